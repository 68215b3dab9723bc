#include "engine/live_segment.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/forwarding_env.hpp"

namespace holdfast {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

/// The real one with a clock that the test moves.
class ManualClockEnv final : public testing::ForwardingEnv {
 public:
  WallTime wall_now() override { return WallTime(now_.time_since_epoch()); }
  StoreTime store_now() override { return now_; }
  void sleep_for(Duration duration, const std::stop_token&) override { now_ += duration; }
  void pass(Duration duration) { now_ += duration; }

 private:
  StoreTime now_{std::chrono::hours(1)};
};

class LiveSegmentTest : public ::testing::Test {
 protected:
  LiveSegment make(bool keeps_alive = true, bool interactive = false) {
    Policy policy;
    policy.lease = seconds(60);
    policy.gap_timeout = minutes(5);
    return LiveSegment({Lease{"r", 1, "w", interactive}, policy, env_.store_now(), keeps_alive},
                       env_, *changed_);
  }
  ManualClockEnv env_;
  const std::unique_ptr<EventCount> changed_ = env_.make_event_count();
};

TEST(Margin, IsATenthWithinHalfASecondAndAThird) {
  Policy policy;
  policy.lease = seconds(60);
  EXPECT_EQ(margin_of(policy), seconds(6));
  policy.lease = seconds(3);
  EXPECT_EQ(margin_of(policy), Duration(500));
  policy.lease = Duration(300);
  EXPECT_EQ(margin_of(policy), Duration(100));
  policy.margin = Duration(20);
  EXPECT_EQ(margin_of(policy), Duration(20));
  policy.margin = seconds(60);
  EXPECT_EQ(margin_of(policy), Duration(100));
}

TEST_F(LiveSegmentTest, StartsNothingWithLessThanTheMargin) {
  LiveSegment segment = make();
  env_.pass(seconds(53));
  EXPECT_TRUE(segment.begin_step(Effect::read, minutes(5)));
  segment.end_step();
  env_.pass(seconds(1));
  EXPECT_FALSE(segment.is_trusted());
  EXPECT_FALSE(segment.begin_step(Effect::read, minutes(5)));
}

TEST_F(LiveSegmentTest, CountsTheLeaseFromTheMomentOfSending) {
  LiveSegment segment = make();
  const StoreTime sent = env_.store_now() + seconds(10);
  env_.pass(seconds(40));
  segment.renewed(sent);
  env_.pass(seconds(23));
  EXPECT_TRUE(segment.is_trusted());
  env_.pass(seconds(1));
  EXPECT_FALSE(segment.is_trusted());
}

TEST_F(LiveSegmentTest, InterruptsWhatMayBeRepeatedWhenTrustRunsOut) {
  for (const Effect effect : {Effect::read, Effect::idempotent_write}) {
    LiveSegment segment = make();
    const auto stop = segment.begin_step(effect, minutes(5));
    env_.pass(seconds(54));
    segment.tick();
    EXPECT_TRUE(stop->stop_requested());
    EXPECT_EQ(segment.end_step(), Cut::trust);
  }
}

TEST_F(LiveSegmentTest, LeavesANonIdempotentWriteInFlight) {
  LiveSegment segment = make();
  const auto stop = segment.begin_step(Effect::non_idempotent_write, minutes(5));
  env_.pass(seconds(61));
  segment.tick();
  EXPECT_FALSE(stop->stop_requested());
  EXPECT_EQ(segment.end_step(), Cut::none);
}

TEST_F(LiveSegmentTest, WithoutHeartbeatAStepMayOutlastItsLease) {
  LiveSegment segment = make(false);
  const auto stop = segment.begin_step(Effect::read, minutes(5));
  env_.pass(minutes(2));
  segment.tick();
  EXPECT_FALSE(stop->stop_requested());
}

TEST_F(LiveSegmentTest, InteractiveSegmentsHaveNoLeaseToLose) {
  LiveSegment segment = make(true, true);
  env_.pass(std::chrono::hours(5));
  EXPECT_TRUE(segment.is_trusted());
  EXPECT_FALSE(segment.wants_renewal());
}

TEST_F(LiveSegmentTest, EndsAStepAtItsDeadline) {
  LiveSegment segment = make();
  const auto stop = segment.begin_step(Effect::non_idempotent_write, seconds(10));
  env_.pass(seconds(10));
  segment.tick();
  EXPECT_TRUE(stop->stop_requested());
  EXPECT_EQ(segment.end_step(), Cut::deadline);
}

TEST_F(LiveSegmentTest, AStepThatIgnoresItsInterruptionLosesItsLease) {
  LiveSegment segment = make();
  segment.begin_step(Effect::read, seconds(10));
  env_.pass(seconds(10));
  segment.tick();
  EXPECT_TRUE(segment.wants_renewal());
  env_.pass(seconds(6));
  segment.tick();
  EXPECT_FALSE(segment.wants_renewal());
  EXPECT_TRUE(segment.is_stuck());
  segment.end_step();
  EXPECT_FALSE(segment.is_stuck());
}

TEST_F(LiveSegmentTest, ReadsAtTheSameTimeEndEachAtItsOwnDeadlineAndTogetherWithTheSegment) {
  LiveSegment segment = make();
  const auto first = segment.begin_step(Effect::read, seconds(10), 0);
  const auto second = segment.begin_step(Effect::read, seconds(20), 1);
  EXPECT_EQ(segment.tick(), env_.store_now() + seconds(1));
  env_.pass(Duration(9500));
  EXPECT_EQ(segment.tick(), env_.store_now() + Duration(500));
  env_.pass(Duration(500));
  segment.tick();
  EXPECT_TRUE(first->stop_requested());
  EXPECT_FALSE(second->stop_requested());
  // The first ignores it, and the second's end does not hide that.
  env_.pass(seconds(6));
  segment.tick();
  EXPECT_FALSE(segment.wants_renewal());
  EXPECT_EQ(segment.end_step(1), Cut::none);
  EXPECT_TRUE(segment.is_stuck());
  EXPECT_EQ(segment.end_step(0), Cut::deadline);
  EXPECT_TRUE(segment.wants_renewal());
  const auto third = segment.begin_step(Effect::read, seconds(10), 0);
  const auto fourth = segment.begin_step(Effect::read, seconds(10), 1);
  segment.end(Ending::at_once);
  EXPECT_TRUE(third->stop_requested());
  EXPECT_TRUE(fourth->stop_requested());
}

TEST_F(LiveSegmentTest, WhatIsOfNoUseAnyMoreIsStopped) {
  LiveSegment segment = make();
  const auto first = segment.begin_step(Effect::read, seconds(10), 0);
  const auto second = segment.begin_step(Effect::read, seconds(10), 1);
  segment.stop_steps();
  EXPECT_TRUE(first->stop_requested());
  EXPECT_TRUE(second->stop_requested());
  EXPECT_EQ(segment.end_step(0), Cut::ending);
  EXPECT_EQ(segment.end_step(1), Cut::ending);
  EXPECT_EQ(segment.ending(), Ending::none);
}

TEST_F(LiveSegmentTest, TimeBetweenStepsIsKeptAliveForTheGapTimeoutOnly) {
  LiveSegment segment = make();
  segment.handler_goes_on();
  env_.pass(minutes(5) - Duration(1));
  segment.tick();
  EXPECT_TRUE(segment.wants_renewal());
  segment.renewed(env_.store_now());
  env_.pass(Duration(1));
  segment.tick();
  EXPECT_FALSE(segment.wants_renewal());
  EXPECT_FALSE(segment.is_stuck());
  env_.pass(minutes(1));
  EXPECT_TRUE(segment.is_stuck());
  segment.engine_goes_on();
  EXPECT_TRUE(segment.wants_renewal());
}

TEST_F(LiveSegmentTest, AGracefulStopLetsTheStepReachItsBoundary) {
  LiveSegment segment = make();
  const auto stop = segment.begin_step(Effect::read, seconds(10));
  segment.end(Ending::at_boundary);
  EXPECT_FALSE(stop->stop_requested());
  EXPECT_FALSE(segment.stop_token().stop_requested());
  segment.end_step();
  EXPECT_FALSE(segment.begin_step(Effect::read, seconds(10)));
}

TEST_F(LiveSegmentTest, LossAndCancelInterruptEverything) {
  for (const Ending ending : {Ending::at_once, Ending::cancelled, Ending::lost}) {
    LiveSegment segment = make();
    const auto stop = segment.begin_step(Effect::non_idempotent_write, seconds(10));
    segment.end(ending);
    EXPECT_TRUE(stop->stop_requested());
    EXPECT_TRUE(segment.stop_token().stop_requested());
    EXPECT_EQ(segment.end_step(), Cut::ending);
    segment.end(Ending::at_boundary);
    EXPECT_EQ(segment.ending(), ending);
  }
}

// Else a worker whose store cannot be reached never ends: it would wait for word of a run that is
// lost or cancelled.
TEST_F(LiveSegmentTest, TheEndOfTheGraceCountsWhateverElseHasBecomeOfTheRun) {
  for (const Ending ending : {Ending::none, Ending::cancelled, Ending::lost}) {
    LiveSegment segment = make();
    segment.end(ending);
    EXPECT_FALSE(segment.is_grace_over());
    const auto seen = changed_->current();
    segment.end(Ending::at_once);
    EXPECT_TRUE(segment.is_grace_over());
    EXPECT_NE(changed_->current(), seen) << "who waits is not told";
    EXPECT_EQ(segment.ending(), std::max(ending, Ending::at_once));
  }
}

}  // namespace
}  // namespace holdfast
