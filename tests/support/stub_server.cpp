#include "support/stub_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace holdfast::testing {
namespace {

void send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the client has gone
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string chunk(const std::string& piece) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string size;
  for (std::size_t rest = piece.size(); rest > 0; rest /= 16) size.insert(0, 1, kDigits[rest % 16]);
  return size + "\r\n" + piece + "\r\n";
}

}  // namespace

StubAnswer StubAnswer::json(int status, std::string body) {
  StubAnswer answer;
  answer.status = status;
  answer.headers = {{"content-type", "application/json"}};
  answer.pieces = {std::move(body)};
  return answer;
}

StubAnswer StubAnswer::events(const std::string& body, std::size_t piece) {
  StubAnswer answer;
  answer.headers = {{"content-type", "text/event-stream"}, {"connection", "close"}};
  if (piece == 0) piece = std::max<std::size_t>(body.size(), 1);
  for (std::size_t at = 0; at < body.size(); at += piece) {
    answer.pieces.push_back(body.substr(at, piece));
  }
  return answer;
}

StubServer::StubServer() {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, generic, &size) != 0 || ::pipe(wake_) != 0) {
    throw std::runtime_error("the stub server cannot listen on the loopback");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

StubServer::~StubServer() {
  thread_.request_stop();
  static_cast<void>(!::write(wake_[1], "x", 1));
  thread_.join();
  ::close(listener_);
  ::close(wake_[0]);
  ::close(wake_[1]);
}

void StubServer::play(StubAnswer answer) {
  const std::lock_guard lock(mutex_);
  answers_.push_back(std::move(answer));
}

std::string StubServer::url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }

std::vector<StubRequest> StubServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

bool StubServer::wait_for_request(std::size_t count) const {
  for (int i = 0; i < 2000; ++i) {
    if (requests().size() >= count) return true;
    ::poll(nullptr, 0, 5);
  }
  return false;
}

void StubServer::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd ready[2] = {{listener_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0 || stop.stop_requested()) continue;
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    const int on = 1;
    ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    answer(connection, stop);
    ::close(connection);
  }
}

bool StubServer::receive(int connection, StubRequest* request, const std::stop_token& stop) const {
  std::string bytes;
  std::size_t head_end = std::string::npos;
  std::size_t body_bytes = 0;
  while (head_end == std::string::npos || bytes.size() < head_end + 4 + body_bytes) {
    pollfd ready[2] = {{connection, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0 || stop.stop_requested()) return false;
    char buffer[65536];
    const ssize_t got = ::recv(connection, buffer, sizeof(buffer), 0);
    if (got <= 0) return false;
    bytes.append(buffer, static_cast<std::size_t>(got));
    if (head_end != std::string::npos) continue;
    head_end = bytes.find("\r\n\r\n");
    if (head_end == std::string::npos) continue;
    std::size_t at = bytes.find("\r\n");
    request->line = bytes.substr(0, at);
    while (at < head_end) {
      const std::size_t next = bytes.find("\r\n", at + 2);
      const std::string header = bytes.substr(at + 2, next - at - 2);
      const std::size_t colon = header.find(": ");
      if (colon != std::string::npos) {
        request->headers[lower_case(header.substr(0, colon))] = header.substr(colon + 2);
      }
      at = next;
    }
    auto length = request->headers.find("content-length");
    if (length != request->headers.end()) body_bytes = std::stoul(length->second);
  }
  request->body = bytes.substr(head_end + 4);
  return true;
}

void StubServer::answer(int connection, const std::stop_token& stop) {
  StubRequest request;
  if (!receive(connection, &request, stop)) return;
  StubAnswer answer = StubAnswer::json(500, "{\"error\":\"the test has no more answers\"}");
  {
    const std::lock_guard lock(mutex_);
    if (!answers_.empty()) {
      answer = std::move(answers_.front());
      answers_.pop_front();
    }
    requests_.push_back(std::move(request));
  }
  if (answer.end == StubAnswer::End::mute) return;
  if (answer.end == StubAnswer::End::gibberish) {
    for (const std::string& piece : answer.pieces) send_all(connection, piece);
    return;
  }
  bool is_chunked = false;
  bool has_length = false;
  if (!answer.before_status) {
    std::size_t body_bytes = 0;
    for (const std::string& piece : answer.pieces) body_bytes += piece.size();
    std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " Played\r\n";
    for (const auto& [name, value] : answer.headers) {
      head.append(name).append(": ").append(value).append("\r\n");
      const std::string lower = lower_case(name);
      is_chunked = is_chunked || (lower == "transfer-encoding" && value == "chunked");
      has_length = has_length || lower == "content-length" || lower == "connection";
    }
    if (!is_chunked && !has_length && answer.end == StubAnswer::End::close) {
      head += "content-length: " + std::to_string(body_bytes) + "\r\n";
    }
    send_all(connection, head + "\r\n");
    for (const std::string& piece : answer.pieces) {
      if (!piece.empty()) send_all(connection, is_chunked ? chunk(piece) : piece);
    }
    if (is_chunked && answer.end == StubAnswer::End::close) send_all(connection, "0\r\n\r\n");
  }
  switch (answer.end) {
    case StubAnswer::End::close:
    case StubAnswer::End::mute:
    case StubAnswer::End::gibberish:
      return;
    case StubAnswer::End::reset: {
      // What was sent is to arrive before the reset destroys it.
      int unsent = 1;
      for (int i = 0; i < 200 && unsent > 0; ++i) {
        tcp_info info{};
        socklen_t size = sizeof(info);
        ::getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &size);
        unsent = static_cast<int>(info.tcpi_unacked);
        ::poll(nullptr, 0, 5);
      }
      const linger now{1, 0};
      ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
      return;
    }
    case StubAnswer::End::silence: {
      pollfd ready[2] = {{connection, POLLIN | POLLRDHUP, 0}, {wake_[0], POLLIN, 0}};
      ::poll(ready, 2, -1);
      return;
    }
  }
}

}  // namespace holdfast::testing
