// Bugs that are planted on purpose, by a guard that is off (base/guard.hpp): the simulator finds
// each, under the name of the promise that it breaks, and makes its history small.
//
// Each is looked for in a world of its own: the history of a seed, with more of what the bug needs.
// There a few seeds find it, and go on finding it when the code around it changes.

#ifdef HOLDFAST_TESTING

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/log.hpp"
#include "sim/shrink.hpp"

namespace holdfast::sim {
namespace {

constexpr int kFound = 3;
constexpr int kShrunk = 4;
/// Each needs about three; with all guards in their places none of these breaks anything.
constexpr std::uint64_t kMostSeeds = 25;

using World = void (*)(Plan&);

void any(Plan&) {}

/// Whoever comes to this place for the first, the second … time.
void strike_at(Plan& plan, Do what, const char* place, bool after, int length) {
  for (int nth = 1; nth <= 4; ++nth) {
    Element fault;
    fault.what = what;
    fault.subject = kAnyWorker;
    fault.place = place;
    fault.after = after;
    fault.nth = nth;
    fault.length = length;
    plan.elements.push_back(fault);
  }
}

/// A lease is over before the reply to a fence is read; and not so late that `fence_fresh` takes
/// the fence for stale, which would hide what the lease's own guards do.
void fences_answered_late(Plan& plan) {
  plan.settings.lease = 2000;
  plan.settings.heartbeat = 500;
  strike_at(plan, Do::freeze, "fence", true, 2600);
}

void workers_lost_within_tools(Plan& plan) { strike_at(plan, Do::kill, "tool", false, 0); }

void tools_that_fail(Plan& plan) { plan.settings.tool_trouble = 60; }

/// A worker wakes up in front of a write, and its run is long another's.
void zombies(Plan& plan) {
  plan.settings.workers = 3;
  strike_at(plan, Do::freeze, "record", false, plan.settings.lease * 4);
}

void suspected(Plan& plan) {
  plan.settings.workers = 3;
  plan.settings.presence = 200;
  plan.settings.suspicion = 60;
}

void runs_of_callers(Plan& plan) {
  for (Element& element : plan.elements) {
    if (element.what == Do::enqueue) element.what = Do::run_inline;
  }
}

/// Every call needs an approval, and there is always somebody who says no.
void denials(Plan& plan) {
  std::vector<Element> people;
  for (Element& element : plan.elements) {
    if (!element.detail.is_object()) continue;
    element.detail["agent"] = "clerk";
    element.detail["script"] = {{"turns", {{{{"tool", "wire"}, {"n", 1}}}}}};
    Element denial;
    denial.what = Do::deny;
    denial.at = element.at + 1000;
    denial.subject = element.subject;
    people.push_back(denial);
  }
  plan.elements.insert(plan.elements.end(), people.begin(), people.end());
}

Plan plan_in(World world, std::uint64_t seed) {
  Plan plan = make_plan(seed);
  world(plan);
  std::ranges::stable_sort(plan.elements, {}, &Element::at);
  return plan;
}

/// In a process of its own, as the list of guards is read once in each: it tells what it found by
/// its exit code and on its standard error.
[[noreturn]] void look_for(const std::string& guard, World world, bool shrinks) {
  ::setenv("HOLDFAST_GUARDS_OFF", guard.c_str(), 1);
  set_log_level(LogLevel::off);
  SimThreads threads;
  for (std::uint64_t seed = 1; seed <= kMostSeeds; ++seed) {
    const Plan plan = plan_in(world, seed);
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
  const char* guard;  ///< or more, where one stands behind another
  World world;
  const char* broken;
};

std::ostream& operator<<(std::ostream& out, const Planted& planted) { return out << planted.guard; }

class SimPlantedDeathTest : public ::testing::TestWithParam<Planted> {
 protected:
  SimPlantedDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(SimPlantedDeathTest, IsFound) {
  const Planted& planted = GetParam();
  EXPECT_EXIT(look_for(planted.guard, planted.world, false), ::testing::ExitedWithCode(kFound),
              planted.broken);
}

INSTANTIATE_TEST_SUITE_P(
    All, SimPlantedDeathTest,
    ::testing::Values(Planted{"mine_claim,mine_holder,mine_status", zombies,
                              "one writer at a claim"},
                      Planted{"decide_fence_first,settle_fence,claim_safe", tools_that_fail,
                              "shape of lease and fence"},
                      Planted{"decide_lost_safe,settle_fence,claim_safe", workers_lost_within_tools,
                              "shape of lease and fence"},
                      Planted{"trust_before_step,trust_before_work", fences_answered_late,
                              "no write without a lease"},
                      Planted{"presence_proof", suspected, "invariant 8"},
                      Planted{"claim_queued", runs_of_callers, "one writer at a claim"},
                      Planted{"decide_budget,settle_budget", any, "invariant 7"},
                      Planted{"key_unused", any, "invariant 9"},
                      Planted{"agent_approved_runs", denials, "what was approved"},
                      Planted{"cancel_not_terminal", any, "no exception"}),
    [](const auto& of) {
      const std::string guards = of.param.guard;
      return guards.substr(0, guards.find(','));
    });

TEST(SimPlanted, WithAllGuardsNoneOfTheseWorldsBreaksAPromise) {
  set_log_level(LogLevel::off);
  SimThreads threads;
  for (const World world : {zombies, tools_that_fail, workers_lost_within_tools,
                            fences_answered_late, suspected, runs_of_callers, denials}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Plan plan = plan_in(world, seed);
      const Report report = run_history(plan, threads);
      EXPECT_TRUE(report.is_good()) << to_text(report) << "\nplan: " << to_text(plan);
    }
  }
  set_log_level(LogLevel::info);
}

TEST(SimShrunkDeathTest, WhatIsFoundIsMadeSmall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(look_for("key_unused", any, true), ::testing::ExitedWithCode(kShrunk), "invariant 9");
}

}  // namespace
}  // namespace holdfast::sim

#endif
