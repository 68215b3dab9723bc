#pragma once

// A PostgreSQL server of the test program's own: in a temporary folder, on a unix socket and a
// loopback port, never as root, ended by its process id. One for each program, made when it is
// first asked for; a fresh schema for each test.

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "support/temp_folder.hpp"

namespace holdfast::testing {

class PostgresServer {
 public:
  /// `settings`: as `name=value`, beside those of every test's server.
  explicit PostgresServer(std::vector<std::string> settings = {});
  struct StandbyOf {
    const PostgresServer& primary;
  };
  /// Follows another one that is running.
  explicit PostgresServer(StandbyOf);
  PostgresServer(const PostgresServer&) = delete;
  ~PostgresServer();

  void start();
  /// SIGINT (fast) or SIGQUIT (immediate, as if it crashed); returns when it is gone.
  void stop(int signal);
  /// SIGKILL for all of its processes at once, as if its machine lost power.
  void crash();
  /// All of its processes stand still, as if its machine slept.
  void freeze() const { signal_all(SIGSTOP); }
  void thaw() const { signal_all(SIGCONT); }
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
  /// To whom.
  std::vector<pid_t> signal_all(int signal) const;

  TempFolder folder_;
  const std::vector<std::string> settings_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace holdfast::testing
