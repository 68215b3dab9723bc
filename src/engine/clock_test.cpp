// Runs in flight while clocks are set and the machine sleeps, and judges that stood still.

#include <utility>

#include "engine/engine_test_support.hpp"
#include "support/shifted_env.hpp"

namespace holdfast::engine_test {
namespace {

using std::chrono::minutes;

/// The environment comes before everything that uses it.
struct MovedClocks {
  holdfast::testing::ShiftedEnv clocks_;
};

class ClockTest : private MovedClocks, public EngineTest {
 protected:
  ClockTest() : EngineTest(clocks_) {}

  holdfast::testing::ShiftedEnv& clocks() { return clocks_; }

  /// A worker with a store of its own that judges nobody.
  std::unique_ptr<WorkerHandle> hold_on(Store& store) {
    WorkerSettings settings;
    settings.concurrency = 1;
    settings.with_reaper = false;
    return start_worker(env_, store, handlers_, options_, settings);
  }
  /// A task with one write that waits at the gate.
  void handle_payment(Gate& gate) {
    handle("pay", [&](RunContext& run) {
      return run.step("pay", payment(), [&](const StepContext&) {
        gate.pass();
        ++payments_;
        return StepResult{Json("paid"), std::nullopt};
      });
    });
  }
  void expect_paid_once(const RunId& id) {
    ASSERT_TRUE(eventually([&] { return is(id, Status::completed); })) << error_of(id);
    EXPECT_EQ(payments_, 1);
    EXPECT_EQ(count(id, EventKind::claimed), 1);
    EXPECT_EQ(count(id, EventKind::reaped), 0);
    EXPECT_EQ(get(id).requeue_count, 0);
  }
  /// Leases that outlast any delay of a busy machine, and judges who doubt themselves for as long.
  void judge_slowly() {
    options_.heartbeat = seconds(20);
    options_.reaper_interval = milliseconds(20);
  }

  std::atomic<int> payments_ = 0;
};

/// Else it could still be at it when the fence's deadline has passed, and "not landed" is believed.
TEST_F(ClockTest, AWriteWhoseFenceWasAnsweredLateHasLessTimeOrAFreshFence) {
  options_.heartbeat = Duration(0);
  struct Case {
    Duration late;
    int fences;
    Duration longest;
  };
  Duration allowed{};
  handle("pay", [&](RunContext& run) {
    StepOptions options = payment();
    options.timeout = seconds(100);
    return run.step("pay", options, [&](const StepContext& context) {
      allowed = context.timeout;
      return StepResult{};
    });
  });
  for (const Case& c : {Case{Duration(0), 1, seconds(100)}, Case{seconds(31), 1, seconds(70)},
                        Case{seconds(71), 2, seconds(100)}}) {
    const int before = store_.calls("fence");
    store_.before("fence", [&] { clocks().suspend(c.late); });
    const RunId id = enqueue("pay", hasty_policy(hours(1)));
    work_off();
    EXPECT_TRUE(is(id, Status::completed));
    EXPECT_EQ(store_.calls("fence") - before, c.fences);
    EXPECT_LE(allowed, c.longest);
    EXPECT_GE(allowed, seconds(50));
  }
}

TEST_F(ClockTest, AWallClockThatIsSetTouchesNoRunInFlight) {
  options_.heartbeat = milliseconds(20);
  options_.reaper_interval = milliseconds(10);
  std::atomic<int> calls = 0;
  Gate gate;
  handle("task", [&](RunContext& run) {
    return run.step("long", {}, [&](const StepContext& context) -> StepResult {
      ++calls;
      if (!gate.pass(context.stop)) throw std::runtime_error("interrupted");
      return {Json("done"), std::nullopt};
    });
  });
  const RunId id = enqueue("task", hasty_policy(seconds(60)));
  const auto first = work();
  const auto second = work();
  const OpenedAtEnd opened(gate);
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  for (const Duration jump : {Duration(hours(24)), Duration(-hours(48)), Duration(hours(9000))}) {
    clocks().jump_wall(jump);
    const int renewals = store_.calls("renew");
    const int looks = store_.calls("look");
    ASSERT_TRUE(eventually([&] {
      return store_.calls("renew") >= renewals + 3 && store_.calls("look") >= looks + 4;
    }));
    const Duration left = *get(id).lease_until - env_.store_now();
    EXPECT_GT(left, Duration(0));
    EXPECT_LE(left, seconds(60));
  }
  gate.open();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(count(id, EventKind::claimed), 1);
  EXPECT_EQ(count(id, EventKind::reaped), 0);
}

TEST_F(ClockTest, AWallClockThatIsSetBackDoesNotKeepALeaseThatIsOver) {
  options_.reaper_interval = milliseconds(10);
  handle("task", [](RunContext&) { return Json("taken over"); });
  const RunId id = enqueue("task", hasty_policy(milliseconds(200)));
  claim_as("dead", id);
  clocks().jump_wall(-hours(24));
  const auto judge = work();
  ASSERT_TRUE(eventually([&] { return count(id, EventKind::reaped) == 1; }));
  EXPECT_TRUE(eventually([&] { return is(id, Status::completed); }));
}

TEST_F(ClockTest, ASleepThatIsOverIsNotSleptAgainWhenTheWallClockIsSetBack) {
  handle("nap", [&](RunContext& run) {
    if (run.run().claim == 2) clocks().jump_wall(-hours(3));
    run.sleep("nap", hours(1));
    return Json("rested");
  });
  const RunId id = enqueue("nap");
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return count(id, EventKind::slept) == 1; }));
  clocks().jump_wall(hours(2));
  EXPECT_TRUE(eventually([&] { return is(id, Status::completed); }, seconds(20)));
  EXPECT_EQ(count(id, EventKind::slept), 1);
}

TEST_F(ClockTest, AMachineThatSleptChargesNobody) {
  judge_slowly();
  Gate gate;
  handle_payment(gate);
  const RunId id = enqueue("pay", hasty_policy(seconds(60)));
  FaultyStore own(*memory_);
  const auto holder = hold_on(own);
  const OpenedAtEnd opened(gate);
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  const auto judge = work();
  ASSERT_TRUE(eventually([&] { return store_.calls("look") >= 2; }));
  clocks().suspend(minutes(10));
  // Time for many sweeps, while the holder has not come to renew yet.
  env_.sleep_for(milliseconds(400), {});
  EXPECT_LE(*get(id).lease_until, env_.store_now());
  EXPECT_EQ(count(id, EventKind::reaped), 0);
  gate.open();
  expect_paid_once(id);
}

/// Somebody's lease is over; while the judge is on its way to say so, time passes at `verb` in
/// which nobody could renew.
class StalledJudge : public ClockTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(At, StalledJudge, ::testing::Values("look", "forget_worker", "reap"));

TEST_P(StalledJudge, JudgesNobodyBeforeTheLivingCouldRenew) {
  judge_slowly();
  Gate gate;
  handle_payment(gate);
  handle("lost", [](RunContext&) { return Json(); });
  const RunId id = enqueue("pay", hasty_policy(seconds(60)));
  FaultyStore own(*memory_);
  const auto holder = hold_on(own);
  const OpenedAtEnd opened(gate);
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  const RunId lost = enqueue("lost", hasty_policy(milliseconds(1)));
  claim_as("dead", lost);
  std::atomic<bool> has_stalled = false;
  store_.before(GetParam(), [&] {
    clocks().suspend(minutes(10));
    has_stalled = true;
  });
  const auto judge = work();
  ASSERT_TRUE(eventually([&] { return has_stalled.load(); }));
  env_.sleep_for(milliseconds(400), {});
  EXPECT_LE(*get(id).lease_until, env_.store_now());
  EXPECT_EQ(count(id, EventKind::reaped), 0);
  gate.open();
  expect_paid_once(id);
}

TEST_F(ClockTest, AJudgeThatStoodStillJudgesAgainAfterAHeartbeatAndAMargin) {
  options_.heartbeat = milliseconds(100);
  options_.reaper_interval = milliseconds(20);
  handle("lost", [](RunContext&) { return Json(); });
  const RunId lost = enqueue("lost", hasty_policy(milliseconds(1)));
  claim_as("dead", lost);
  StoreTime stalled{};
  store_.before("reap", [&] {
    clocks().suspend(minutes(10));
    stalled = env_.store_now();
  });
  const auto judge = work();
  ASSERT_TRUE(eventually([&] { return count(lost, EventKind::reaped) == 1; }));
  EXPECT_GE(env_.store_now() - stalled, milliseconds(600));
}

TEST_F(ClockTest, AJudgeThatWasCutOffJudgesNobodyBeforeTheLivingCouldRenew) {
  judge_slowly();
  Gate gate;
  handle_payment(gate);
  const RunId id = enqueue("pay", hasty_policy(seconds(60)));
  FaultyStore own(*memory_);
  const auto holder = hold_on(own);
  const OpenedAtEnd opened(gate);
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  const auto judge = work();
  ASSERT_TRUE(eventually([&] { return store_.calls("look") >= 2; }));
  own.set_down(true);
  store_.set_down(true);
  // In steps that are no standstill: it tries again and again.
  while (*get(id).lease_until > env_.store_now()) {
    const int faults = store_.faults();
    clocks().suspend(milliseconds(600));
    ASSERT_TRUE(eventually([&] { return store_.faults() > faults + 2; }));
  }
  store_.set_down(false);
  env_.sleep_for(milliseconds(400), {});
  EXPECT_EQ(count(id, EventKind::reaped), 0);
  own.set_down(false);
  gate.open();
  expect_paid_once(id);
}

TEST_F(ClockTest, ANewJudgeLetsTheLivingRenewFirst) {
  judge_slowly();
  Gate gate;
  handle_payment(gate);
  const RunId id = enqueue("pay", hasty_policy(seconds(60)));
  FaultyStore own(*memory_);
  const auto holder = hold_on(own);
  const OpenedAtEnd opened(gate);
  ASSERT_TRUE(eventually([&] { return gate.is_reached() && !memory_->workers().empty(); }));
  own.set_down(true);
  clocks().suspend(minutes(10));
  ASSERT_LE(*get(id).lease_until, env_.store_now());
  const auto judge = work();
  ASSERT_TRUE(eventually([&] { return store_.calls("workers") >= 1; }));
  env_.sleep_for(milliseconds(400), {});
  EXPECT_EQ(count(id, EventKind::reaped), 0);
  own.set_down(false);
  gate.open();
  expect_paid_once(id);
}

TEST_F(ClockTest, ASweepByHandWaitsForTheLivingAndNoLonger) {
  Gate gate;
  handle_payment(gate);
  const RunId id = enqueue("pay", hasty_policy(seconds(60)));
  FaultyStore own(*memory_);
  options_.heartbeat = seconds(20);
  const auto holder = hold_on(own);
  const OpenedAtEnd opened(gate);
  ASSERT_TRUE(eventually([&] { return gate.is_reached() && !memory_->workers().empty(); }));
  own.set_down(true);
  clocks().suspend(minutes(10));
  // It comes back while it is waited for.
  store_.before("workers", [&] {
    own.set_down(false);
    gate.open();
  });
  Vigil vigil(env_, options_.heartbeat, options_.heartbeat);
  const ReapReport report = reap_once(env_, store_, 50, false, &vigil);
  EXPECT_EQ(report.requeued + report.dead_lettered, 0);
  expect_paid_once(id);
}

TEST_F(ClockTest, ASweepByHandJudgesWhoeverDoesNotRenewInTime) {
  handle("task", [](RunContext&) { return Json(); });
  WorkerRow row;
  row.id = "frozen";
  const RunId id = enqueue("task", hasty_policy(milliseconds(1)));
  claim_as(row.id, id);
  const Identity identity{row.id, "host", 1, 1};
  const auto held = memory_->presence()->hold(identity);
  memory_->report_worker(row);
  ASSERT_TRUE(eventually([&] { return *get(id).lease_until <= env_.store_now(); }));
  Vigil vigil(env_, milliseconds(100), milliseconds(100));
  const StoreTime begun = env_.store_now();
  EXPECT_EQ(reap_once(env_, store_, 50, false, &vigil).requeued, 1);
  EXPECT_GE(env_.store_now() - begun, vigil.doubt());
}

TEST_F(ClockTest, ALongSweepTellsHowFarItIs) {
  handle("task", [](RunContext&) { return Json(); });
  constexpr int kRuns = 300;
  for (int i = 0; i < kRuns; ++i) claim_as("dead", enqueue("task", hasty_policy()));
  clocks().suspend(seconds(1));
  std::atomic<int> sweeps = 0;
  std::function<void()> slow = [&] {
    ++sweeps;
    clocks().suspend(milliseconds(600));
    store_.before("reap", slow);
  };
  store_.before("reap", slow);
  options_.reaper_interval = milliseconds(10);
  options_.reaper_limit = 5;
  options_.heartbeat = seconds(4);  // so long a judge that has just begun looks at each holder
  ::testing::internal::CaptureStderr();
  {
    const auto worker = work();
    EXPECT_TRUE(eventually([&] { return sweeps >= kRuns / 5; }));
  }
  const std::string told = ::testing::internal::GetCapturedStderr();
  const std::string line = "a sweep of the reaper goes on";
  const auto first = told.find(line);
  ASSERT_NE(first, std::string::npos) << told;
  EXPECT_NE(told.find(line, first + 1), std::string::npos) << told;
  EXPECT_NE(told.find("runs=", first), std::string::npos) << told;
}

}  // namespace
}  // namespace holdfast::engine_test
