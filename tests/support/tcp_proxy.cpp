#include "support/tcp_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

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

TcpProxy::TcpProxy(int server_port) : server_port_(server_port) {
  listening_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listening_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listening_, 64) != 0 ||
      getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("the proxy cannot listen");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

TcpProxy::~TcpProxy() {
  stopping_ = true;
  acceptor_.join();
  for (std::thread& carrier : carriers_) carrier.join();
  close(listening_);
}

void TcpProxy::cut() { is_cut_ = true; }

void TcpProxy::accept_loop() {
  while (!stopping_) {
    pollfd waiting{listening_, POLLIN, 0};
    if (poll(&waiting, 1, kTickMilliseconds) <= 0) continue;
    Pair pair;
    pair.client = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (pair.client < 0) continue;
    pair.server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(server_port_);
    if (is_cut_ ||
        connect(pair.server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      slam(pair.client);
      close(pair.server);
      continue;
    }
    carriers_.emplace_back([this, pair] { carry(pair); });
  }
}

void TcpProxy::carry(Pair pair) {
  std::array<char, 65536> bytes{};
  bool is_open = true;
  while (is_open && !stopping_ && !is_cut_) {
    pollfd waiting[2] = {{pair.client, POLLIN, 0}, {pair.server, POLLIN, 0}};
    if (poll(waiting, 2, kTickMilliseconds) <= 0) continue;
    if (waiting[0].revents != 0) {
      const ssize_t size = recv(pair.client, bytes.data(), bytes.size(), 0);
      is_open = size > 0 && send_all(pair.server, bytes.data(), size);
    }
    if (is_open && waiting[1].revents != 0) {
      const ssize_t size = recv(pair.server, bytes.data(), bytes.size(), 0);
      if (size > 0 && replies_left_ >= 0 && replies_left_-- == 0) {
        has_lost_ = true;
        break;
      }
      is_open = size > 0 && send_all(pair.client, bytes.data(), size);
    }
  }
  slam(pair.client);
  close(pair.server);
}

}  // namespace holdfast::testing
