#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
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
  /// The next COMMIT of a PostgreSQL transaction with `word` in a statement or a value of it is
  /// executed, and its reply is lost, with its connection.
  void lose_reply_to(const std::string& word);
  /// From now on only the connections are spoilt whose client has said the word, as soon as it has.
  void spoil_only(const std::string& word);
  /// Every connection is reset, new ones as soon as they are made.
  void cut() { way_ = Way::reset; }
  /// Every connection is reset, and nobody listens.
  void refuse() { way_ = Way::refuse; }
  /// Nothing passes, and nobody is told. What was sent meanwhile passes when it is mended.
  void swallow() { way_ = Way::swallow; }
  /// As it was in the beginning.
  void mend() { way_ = Way::pass; }
  /// Everything takes this much longer on its way.
  void delay(std::chrono::milliseconds time) { delay_ = time; }
  int connections() const { return open_; }
  int accepted() const { return accepted_; }  ///< since the beginning

 private:
  enum class Way { pass, reset, refuse, swallow };
  class Commits;
  struct Pair {
    int client = -1;
    int server = -1;
    bool is_meant = true;  ///< by the faults
  };
  int bind_port();
  void listen_again();
  void accept_loop();
  void carry(Pair pair);
  bool carry_to_server(Pair& pair, Commits& commits);
  bool carry_to_client(const Pair& pair, Commits& commits);
  bool is_closed() const { return way_ == Way::reset || way_ == Way::refuse; }
  bool says_the_word(std::string_view bytes);

  const int server_port_;
  int port_ = 0;
  int held_ = -1;  ///< keeps the port from others, also while nobody listens
  int listening_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<Way> way_{Way::pass};
  std::atomic<std::chrono::milliseconds> delay_{std::chrono::milliseconds(0)};
  std::atomic<int> open_{0};
  std::atomic<int> accepted_{0};
  std::atomic<int> replies_left_{-1};
  std::atomic<bool> has_lost_{false};
  std::mutex mutex_;
  std::string lost_word_;  ///< guarded by mutex_; empty: none
  std::string said_word_;  ///< guarded by mutex_
  std::atomic<bool> is_choosy_{false};
  std::thread acceptor_;
  std::vector<std::thread> carriers_;  ///< the acceptor's, until it has ended
};

}  // namespace holdfast::testing
