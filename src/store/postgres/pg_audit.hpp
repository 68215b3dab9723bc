#pragma once

// Looks for what no run shows by itself (`verify`).

#include <vector>

#include "holdfast/runtime.hpp"
#include "store/postgres/connection.hpp"

namespace holdfast::postgres {

/// Rows whose run is missing, gaps in journals, columns that contradict each other, events that
/// readers would pass over. All of one moment: its transaction is open as long as it reads.
std::vector<Finding> audit_pg_rows(Connection&);

}  // namespace holdfast::postgres
