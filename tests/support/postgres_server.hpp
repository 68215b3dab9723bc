#pragma once

// A PostgreSQL server of the test program's own: in a temporary folder, on a unix socket and a
// loopback port, never as root, ended by its process id. One for each program, made when it is
// first asked for; a fresh schema for each test.

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/temp_folder.hpp"

namespace holdfast::testing {

class PostgresServer {
 public:
  /// `settings`: as `name=value`, beside those of every test's server.
  explicit PostgresServer(std::vector<std::string> settings = {});
  PostgresServer(const PostgresServer&) = delete;
  ~PostgresServer();

  void start();
  /// SIGINT (fast) or SIGQUIT (immediate, as if it crashed); returns when it is gone.
  void stop(int signal);
  void restart(int signal) {
    stop(signal);
    start();
  }

  /// Over the socket, in a schema.
  std::string url(const std::string& schema, const std::string& more = "") const;
  std::string tcp_url(int port, const std::string& schema, const std::string& more = "") const;
  int port() const { return port_; }
  pid_t pid() const { return pid_; }

  /// The program's server, running.
  static PostgresServer& shared();
  /// A name that no other test of this program uses.
  static std::string fresh_schema();

 private:
  TempFolder folder_;
  const std::vector<std::string> settings_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace holdfast::testing
