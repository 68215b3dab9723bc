#pragma once

// A small world, and every way that it can go: all schedules with at most so many preemptions, and
// at most so many faults, each at every place. Histories are run one after another; each repeats
// the choices of the one before up to the last that had another way to go, and takes that.

#include <cstdint>

#include "sim/history.hpp"

namespace holdfast::sim {

/// Two workers, one of them with a reaper, and one run of a read and a write.
Plan small_world();

struct Bound {
  int preemptions = 1;  ///< points at which another task goes on than would have
  int faults = 1;       ///< a kill, a freeze beyond the lease, an error before or after a write
  std::uint64_t histories = 1'000'000;
};

struct Search {
  std::uint64_t histories = 0;
  bool is_complete = false;  ///< there is no other within the bound
  Report failed;             ///< the first that broke something
};

/// Stops at the first history that breaks something; that one is run again for the onlooker.
Search search(const Plan&, const Bound&, SimThreads&, const Onlooker& = {});

}  // namespace holdfast::sim
