#pragma once

// Debian's pgbouncer in front of a test's server: sessions are lent for single transactions. On a
// loopback port, never as root, ended by its process id.

#include <sys/types.h>

#include "support/postgres_server.hpp"

namespace holdfast::testing {

class PgBouncer {
 public:
  /// `sessions`: how many it has with the server, for all its clients together.
  PgBouncer(const PostgresServer&, int sessions);
  PgBouncer(const PgBouncer&) = delete;
  ~PgBouncer();

  int port() const { return port_; }
  /// Ends it, with every connection of a client, and starts it on the same port.
  void restart();

 private:
  void start();
  void stop();

  TempFolder folder_;
  const int port_;
  pid_t pid_ = -1;
};

}  // namespace holdfast::testing
