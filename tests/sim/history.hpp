#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/faults.hpp"
#include "sim/plan.hpp"
#include "sim/violations.hpp"
#include "support/sim_env.hpp"

namespace holdfast::sim {

/// What became of one history.
struct Report {
  std::vector<Violation> violations;
  std::uint64_t digest = 0;    ///< of everything that happened, in order
  std::uint64_t points = 0;    ///< at which somebody was picked
  std::uint64_t switches = 0;  ///< of which to another task
  std::int64_t events = 0;
  int calls = 0;       ///< of models and tools
  int landed = 0;      ///< writes
  int overlapped = 0;  ///< calls beside others of their run
  int faults = 0;      ///< that struck
  Duration time{};
  std::map<std::string, int> runs;  ///< at the end, by status

  bool is_good() const { return violations.empty(); }
};

/// What is told of a history while it runs, a line each.
using Onlooker = std::function<void(const std::string&)>;

/// What else steers a history than its plan.
struct Controls {
  SimScheduler* scheduler = nullptr;  ///< null: one by the plan's seed
  FaultOracle oracle = {};
  Onlooker onlooker = {};
};

/// Runs a plan from its beginning to its end: safety under faults, then progress without them.
Report run_history(const Plan&, SimThreads&, const Controls&);
inline Report run_history(const Plan& plan, SimThreads& threads) {
  return run_history(plan, threads, Controls());
}

std::string to_text(const Report&);

}  // namespace holdfast::sim
