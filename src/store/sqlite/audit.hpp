#pragma once

#include <vector>

#include "holdfast/runtime.hpp"
#include "store/sqlite/db.hpp"

namespace holdfast::sqlite {

/// What no run shows by itself: rows of runs that are not there, chains of events that are broken,
/// columns that contradict each other, wrong counts. Reads every row; violations only.
std::vector<Finding> audit_rows(Connection&);

}  // namespace holdfast::sqlite
