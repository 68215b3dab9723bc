#pragma once

// A TLS server on the loopback whose certificate nobody vouches for: made here, signed by itself.
// Counts what it was asked; answers nothing.

#include <atomic>
#include <memory>
#include <string>
#include <thread>

namespace holdfast::testing {

struct TlsCertificate {
  std::string host = "127.0.0.1";  ///< the name that it is for
  bool is_expired = false;
};

/// Any thread.
class TlsServer {
 public:
  explicit TlsServer(const TlsCertificate& = {});
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  std::string url() const;  ///< https://127.0.0.1:PORT/v1
  int connections() const { return connections_; }
  /// Requests that came over an established connection: the client took the certificate.
  int requests() const { return requests_; }

 private:
  struct Context;
  void serve(const std::stop_token& stop);
  void answer(int connection);

  std::unique_ptr<Context> context_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<int> requests_ = 0;
  std::jthread thread_;
};

}  // namespace holdfast::testing
