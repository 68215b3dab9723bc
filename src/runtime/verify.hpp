#pragma once

// The invariants of spec, section 10, as far as rows and events can show them. Pure.

#include <cstdint>
#include <vector>

#include "holdfast/run.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// Violations by one run, whose row and whole journal these are: 2, 6, 7, orphans of 3, the shape
/// of lease and fence. Each finding is `bad`, its subject the invariant, its text naming the run
/// and what is seen.
std::vector<Finding> check_run(const Run&, const std::vector<Event>& journal);

/// What was looked at.
Finding verified(std::int64_t runs, std::int64_t events);

/// Says of the remaining invariants why rows cannot show them.
std::vector<Finding> invariants_not_shown();

}  // namespace holdfast
