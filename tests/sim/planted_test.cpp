// Bugs that are planted on purpose, by a guard that is off (base/guard.hpp): the simulator finds
// each, under the name of the promise that it breaks, and makes its history small.

#ifdef HOLDFAST_TESTING

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/log.hpp"
#include "sim/shrink.hpp"

namespace holdfast::sim {
namespace {

constexpr int kFound = 3;
constexpr int kShrunk = 4;
constexpr std::uint64_t kMostSeeds = 300;

/// In a process of its own, as the list of guards is read once in each: it tells what it found by
/// its exit code and on its standard error.
[[noreturn]] void look_for(const std::string& guard, std::uint64_t first, bool shrinks) {
  ::setenv("HOLDFAST_GUARDS_OFF", guard.c_str(), 1);
  set_log_level(LogLevel::off);
  SimThreads threads;
  for (std::uint64_t seed = first; seed < first + kMostSeeds; ++seed) {
    const Plan plan = make_plan(seed);
    const Report report = run_history(plan, threads);
    if (report.is_good()) continue;
    fmt::print(stderr, "seed {}: {}\n", seed, to_text(report));
    if (!shrinks) std::_Exit(kFound);
    const std::string broken = report.violations.front().name;
    const Plan small = shrink(plan, broken, threads, 100);
    const Report again = run_history(parse_plan(to_text(small)), threads);
    const bool is_same = !again.is_good() && again.violations.front().name == broken;
    const bool is_smaller = to_text(small).size() < to_text(plan).size();
    std::_Exit(is_same && is_smaller ? kShrunk : 1);
  }
  std::_Exit(0);
}

struct Planted {
  const char* guard;    ///< or more, where one stands behind another
  std::uint64_t first;  ///< from this seed on it does not take long
  const char* broken;
};

std::ostream& operator<<(std::ostream& out, const Planted& planted) { return out << planted.guard; }

class SimPlantedDeathTest : public ::testing::TestWithParam<Planted> {
 protected:
  SimPlantedDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(SimPlantedDeathTest, IsFound) {
  const Planted& planted = GetParam();
  EXPECT_EXIT(look_for(planted.guard, planted.first, false), ::testing::ExitedWithCode(kFound),
              planted.broken);
}

INSTANTIATE_TEST_SUITE_P(
    All, SimPlantedDeathTest,
    ::testing::Values(
        Planted{"mine_claim,mine_holder,mine_status", 5, "no exception"},
        Planted{"decide_fence_first,settle_fence,claim_safe", 40, "shape of lease and fence"},
        Planted{"decide_lost_safe,settle_fence,claim_safe", 8, "shape of lease and fence"},
        Planted{"trust_before_step,trust_before_work", 70, "no write without a lease"},
        Planted{"presence_proof", 13, "invariant 8"}, Planted{"claim_queued", 76, "invariant 1"},
        Planted{"decide_budget,settle_budget", 4, "invariant 7"},
        Planted{"key_unused", 1, "invariant 9"},
        Planted{"agent_approved_runs", 30, "what was approved"},
        Planted{"cancel_not_terminal", 7, "no exception"}),
    [](const auto& of) {
      const std::string guards = of.param.guard;
      return guards.substr(0, guards.find(','));
    });

TEST(SimShrunkDeathTest, WhatIsFoundIsMadeSmall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(look_for("key_unused", 1, true), ::testing::ExitedWithCode(kShrunk), "invariant 9");
}

}  // namespace
}  // namespace holdfast::sim

#endif
