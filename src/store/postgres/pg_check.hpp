#pragma once

// Whether the server and the role are fit for the store (`doctor`).

#include <string>
#include <vector>

#include "holdfast/runtime.hpp"
#include "store/postgres/connection.hpp"

namespace holdfast::postgres {

/// From where on something is worth a warning.
struct PgCheckLimits {
  Duration old_transaction = std::chrono::minutes(1);
  std::int64_t dead_rows = 50'000;
};

/// How many sessions a process has at most.
inline constexpr int kMostSessions = 11;

/// The server, its settings, the role's rights, room for connections, autovacuum and transactions
/// that hold it back; each with what to do. Reads only catalogues.
std::vector<Finding> check_pg_server(Connection&, const PgCheckLimits& = {});

/// The statements, in one line, that give this session's role what a worker needs. Empty: it lacks
/// nothing.
std::string missing_grants(Connection&);

}  // namespace holdfast::postgres
