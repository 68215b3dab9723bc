// The simulator itself, and what it says of the production code: histories of some seeds, those
// that once broke something, and a small world searched through.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/log.hpp"
#include "sim/exhaustive.hpp"
#include "sim/shrink.hpp"

namespace holdfast::sim {
namespace {

class Sim : public ::testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::off); }
  void TearDown() override { set_log_level(LogLevel::info); }

  Report expect_good(const Plan& plan) {
    Report report = run_history(plan, threads_);
    EXPECT_TRUE(report.is_good()) << "seed " << plan.seed << ": " << to_text(report)
                                  << "\nplan: " << to_text(plan);
    return report;
  }

  SimThreads threads_;
};

TEST_F(Sim, WhatOnceBrokeAPromiseBreaksItNoMore) {
  std::ifstream file(HOLDFAST_SOURCE_DIR "/tests/sim/regressions.txt");
  ASSERT_TRUE(file);
  int plans = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    ++plans;
    expect_good(parse_plan(line));
  }
  EXPECT_GT(plans, 0);
}

TEST_F(Sim, TheSameSeedIsTheSameHistory) {
  for (const std::uint64_t seed : {7u, 42u, 1001u}) {
    const Report once = run_history(make_plan(seed), threads_);
    SimThreads others;
    const Report again = run_history(make_plan(seed), others);
    EXPECT_EQ(once.digest, again.digest) << "seed " << seed;
    EXPECT_EQ(to_text(once), to_text(again)) << "seed " << seed;
  }
  EXPECT_NE(run_history(make_plan(7), threads_).digest, run_history(make_plan(8), threads_).digest);
}

TEST_F(Sim, AHistoryDoesNotChangeTheNext) {
  const std::uint64_t alone = run_history(make_plan(9), threads_).digest;
  run_history(make_plan(10), threads_);
  EXPECT_EQ(run_history(make_plan(9), threads_).digest, alone);
}

TEST_F(Sim, APlanIsReadBackAsItWasWritten) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::string text = to_text(make_plan(seed));
    EXPECT_EQ(to_text(parse_plan(text)), text);
  }
}

TEST_F(Sim, NoSeedBreaksAPromise) {
  const bool is_long = std::getenv("HOLDFAST_LONG") != nullptr;
  const std::uint64_t last = is_long ? 2000 : 80;
  Report all;
  std::int64_t runs = 0;
  for (std::uint64_t seed = 1; seed <= last; ++seed) {
    const Report report = expect_good(make_plan(seed));
    all.landed += report.landed;
    all.faults += report.faults;
    all.happened[kBesideAnother] +=
        report.happened.contains(kBesideAnother) ? report.happened.at(kBesideAnother) : 0;
    for (const auto& [status, count] : report.runs) {
      all.runs[status] += count;
      runs += count;
    }
  }
  // And they reach what they are for.
  EXPECT_GT(runs, 120);
  EXPECT_GT(all.landed, 100);
  EXPECT_GT(all.faults, 80);
  EXPECT_GT(all.happened[kBesideAnother], 5);
  for (const char* status :
       {"completed", "failed", "cancelled", "waiting_for_approval", "waiting_for_input"}) {
    EXPECT_GT(all.runs[status], 0) << status;
  }
}

TEST_F(Sim, ASmallWorldHoldsHoweverItGoes) {
  for (const Bound& bound : {Bound{1, 0}, Bound{0, 1}}) {
    const Search all = search(small_world(), bound, threads_);
    EXPECT_TRUE(all.is_complete);
    EXPECT_TRUE(all.failed.is_good()) << to_text(all.failed);
    EXPECT_GT(all.histories, 50u);
    RecordProperty("histories_" + std::to_string(bound.preemptions) + std::to_string(bound.faults),
                   static_cast<int>(all.histories));
  }
}

}  // namespace
}  // namespace holdfast::sim
