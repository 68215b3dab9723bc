#include "support/tcp_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>
#include <string_view>
#include <system_error>

namespace holdfast::testing {
namespace {

constexpr int kTickMilliseconds = 20;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// With a reset, not an orderly end.
void slam(int fd) {
  const linger now{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd);
}

bool send_all(int fd, const char* bytes, ssize_t size) {
  while (size > 0) {
    const ssize_t sent = send(fd, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= sent;
  }
  return true;
}

}  // namespace

/// Reads what a client of PostgreSQL says, to know the commits of transactions that have a word.
class TcpProxy::Commits {
 public:
  /// True: with these bytes the client commits a transaction that has the word.
  bool see(std::string_view bytes, const std::string& word) {
    unread_ += bytes;
    bool found = false;
    while (true) {
      // Only what comes before everything else has no letter in front of its length.
      const std::size_t start = !unread_.empty() && unread_[0] == 0 ? 0 : 1;
      if (unread_.size() < start + 4) return found;
      std::size_t length = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        length = length << 8 | static_cast<unsigned char>(unread_[start + i]);
      }
      if (unread_.size() < start + length) return found;
      const std::string_view message = std::string_view(unread_).substr(0, start + length);
      if (start == 1) found |= commits(message[0], message.substr(5), word);
      unread_.erase(0, start + length);
    }
  }
  /// The reply is being lost; here what comes of it.
  std::string reply;
  bool is_losing = false;

 private:
  static std::string_view take_name(std::string_view& text) {
    const auto name = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(name.size() + 1, text.size()));
    return name;
  }
  bool commits(char type, std::string_view body, const std::string& word) {
    bool is_commit = false;
    if (type == 'P') {
      const std::string name(take_name(body));
      const std::string_view text = take_name(body);
      if (text == "COMMIT") commits_.insert(name);
      if (text == "BEGIN") begins_.insert(name);
      return false;
    }
    if (type == 'B') {
      take_name(body);
      const std::string name(take_name(body));
      is_commit = commits_.contains(name);
      if (begins_.contains(name)) has_word_ = false;
    }
    has_word_ = has_word_ || (!word.empty() && body.find(word) != std::string_view::npos);
    if (!is_commit) return false;
    const bool had_word = has_word_;
    has_word_ = false;
    return had_word;
  }

  std::string unread_;
  std::set<std::string> commits_;
  std::set<std::string> begins_;
  bool has_word_ = false;
};

TcpProxy::TcpProxy(int server_port) : server_port_(server_port) {
  held_ = bind_port();
  listen_again();
  acceptor_ = std::thread([this] { accept_loop(); });
}

TcpProxy::~TcpProxy() {
  stopping_ = true;
  acceptor_.join();
  for (std::thread& carrier : carriers_) carrier.join();
  if (listening_ >= 0) close(listening_);
  close(held_);
}

/// A socket at the proxy's port, the first time at any that is free.
int TcpProxy::bind_port() {
  const int bound = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(bound, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = loopback(port_);
  socklen_t size = sizeof address;
  if (bind(bound, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(bound, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "the proxy has no port");
  }
  port_ = ntohs(address.sin_port);
  return bound;
}

void TcpProxy::listen_again() {
  listening_ = bind_port();
  if (listen(listening_, 64) != 0) {
    throw std::system_error(errno, std::generic_category(), "the proxy cannot listen");
  }
}

void TcpProxy::lose_reply_to(const std::string& word) {
  const std::lock_guard lock(mutex_);
  has_lost_ = false;
  lost_word_ = word;
}

void TcpProxy::spoil_only(const std::string& word) {
  const std::lock_guard lock(mutex_);
  said_word_ = word;
  is_choosy_ = true;
}

bool TcpProxy::says_the_word(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  return bytes.find(said_word_) != std::string_view::npos;
}

void TcpProxy::accept_loop() {
  while (!stopping_) {
    const bool listens = way_ != Way::refuse || is_choosy_;
    if (!listens && listening_ >= 0) {
      // Also in a child between its fork and its program, which has a copy.
      shutdown(listening_, SHUT_RD);
      close(listening_);
      listening_ = -1;
    } else if (listens && listening_ < 0) {
      listen_again();
    }
    pollfd waiting{listening_, POLLIN, 0};
    if (poll(&waiting, 1, kTickMilliseconds) <= 0) continue;
    Pair pair;
    pair.client = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (pair.client < 0) continue;
    pair.server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(server_port_);
    pair.is_meant = !is_choosy_;
    if ((is_closed() && pair.is_meant) ||
        connect(pair.server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      slam(pair.client);
      close(pair.server);
      continue;
    }
    carriers_.emplace_back([this, pair] { carry(pair); });
  }
}

bool TcpProxy::carry_to_server(Pair& pair, Commits& commits) {
  std::array<char, 65536> bytes{};
  const ssize_t size = recv(pair.client, bytes.data(), bytes.size(), 0);
  if (size <= 0) return false;
  pair.is_meant = pair.is_meant || says_the_word({bytes.data(), static_cast<std::size_t>(size)});
  if (pair.is_meant && is_closed()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (commits.see({bytes.data(), static_cast<std::size_t>(size)}, lost_word_)) {
      lost_word_.clear();
      commits.is_losing = true;
    }
  }
  return send_all(pair.server, bytes.data(), size);
}

bool TcpProxy::carry_to_client(const Pair& pair, Commits& commits) {
  std::array<char, 65536> bytes{};
  const ssize_t size = recv(pair.server, bytes.data(), bytes.size(), 0);
  if (size <= 0) return false;
  if (replies_left_ >= 0 && replies_left_-- == 0) {
    has_lost_ = true;
    return false;
  }
  if (!commits.is_losing) return send_all(pair.client, bytes.data(), size);
  commits.reply.append(bytes.data(), static_cast<std::size_t>(size));
  has_lost_ = commits.reply.find(std::string_view("COMMIT\0", 7)) != std::string::npos;
  return !has_lost_;
}

void TcpProxy::carry(Pair pair) {
  ++open_;
  ++accepted_;
  Commits commits;
  bool is_open = true;
  while (is_open && !stopping_ && !(pair.is_meant && is_closed())) {
    if (pair.is_meant && way_ == Way::swallow) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kTickMilliseconds));
      continue;
    }
    pollfd waiting[2] = {{pair.client, POLLIN, 0}, {pair.server, POLLIN, 0}};
    if (poll(waiting, 2, kTickMilliseconds) <= 0 || (pair.is_meant && way_ != Way::pass)) continue;
    std::this_thread::sleep_for(delay_.load());
    if (waiting[0].revents != 0) is_open = carry_to_server(pair, commits);
    if (is_open && waiting[1].revents != 0) is_open = carry_to_client(pair, commits);
  }
  slam(pair.client);
  close(pair.server);
  --open_;
}

}  // namespace holdfast::testing
