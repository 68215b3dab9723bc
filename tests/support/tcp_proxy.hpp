#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::testing {

/// Stands between a client and a server on loopback, and spoils what goes through.
class TcpProxy {
 public:
  explicit TcpProxy(int server_port);
  TcpProxy(const TcpProxy&) = delete;
  ~TcpProxy();

  int port() const { return port_; }
  /// The server's replies pass `passing` times more; the next one is lost, with its connection.
  void lose_reply_after(int passing) { replies_left_ = passing; }
  bool has_lost_reply() const { return has_lost_; }
  /// Every connection is reset, and new ones are refused.
  void cut();
  void mend() { is_cut_ = false; }

 private:
  struct Pair {
    int client = -1;
    int server = -1;
  };
  void accept_loop();
  void carry(Pair pair);

  const int server_port_;
  int port_ = 0;
  int listening_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> is_cut_{false};
  std::atomic<int> replies_left_{-1};
  std::atomic<bool> has_lost_{false};
  std::thread acceptor_;
  std::vector<std::thread> carriers_;  ///< the acceptor's, until it has ended
};

}  // namespace holdfast::testing
