#pragma once

// A small HTTP server on the loopback that plays what a test tells it, byte for byte, and logs what
// it was sent.

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::testing {

struct StubRequest {
  std::string line;                            ///< `POST /v1/chat/completions HTTP/1.1`
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// One answer. Without a `content-length` or `transfer-encoding` among the headers the length is
/// added, where the answer ends well.
struct StubAnswer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::string> pieces;  ///< of the body, sent one by one

  enum class End {
    close,     ///< all was sent
    reset,     ///< the connection is reset (RST) after what was sent
    silence,   ///< nothing more comes until the client goes away
    mute,      ///< not even a status line: closed at once
    gibberish  ///< the pieces alone, without a status line: not HTTP
  } end = End::close;
  bool before_status = false;  ///< `reset` and `silence` come before the status line

  static StubAnswer json(int status, std::string body);
  /// A stream of server-sent events in pieces of `piece` bytes; the end of the connection ends it.
  static StubAnswer events(const std::string& body, std::size_t piece = 0);
};

/// Plays its answers in order, one per connection; then 500. Any thread.
class StubServer {
 public:
  StubServer();
  ~StubServer();
  StubServer(const StubServer&) = delete;
  StubServer& operator=(const StubServer&) = delete;

  void play(StubAnswer answer);
  std::string url() const;  ///< http://127.0.0.1:PORT/v1
  int port() const { return port_; }
  std::vector<StubRequest> requests() const;
  /// Returns when a request is being answered; false after ten seconds.
  bool wait_for_request(std::size_t count) const;

 private:
  void serve(const std::stop_token& stop);
  void answer(int connection, const std::stop_token& stop);
  bool receive(int connection, StubRequest* request, const std::stop_token& stop) const;

  int listener_ = -1;
  int wake_[2] = {-1, -1};
  int port_ = 0;
  mutable std::mutex mutex_;
  std::deque<StubAnswer> answers_;
  std::vector<StubRequest> requests_;
  std::jthread thread_;
};

}  // namespace holdfast::testing
