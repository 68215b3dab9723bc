#include <gtest/gtest.h>

#include "core/test_runs.hpp"

namespace holdfast {
namespace {

using namespace testing_runs;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;
using std::chrono::seconds;
using RunRow = Run;

const AgentOffer kOffer = {"triage", Policy{}, Json{{"system", "sort"}}};

StepRecord step(const char* key) {
  StepRecord record;
  record.kind = EventKind::tool;
  record.key = key;
  record.payload = {{"key", key}, {"result", 1}};
  return record;
}

Settlement decided(const RunRow& run, const SegmentEnd& end) {
  return decide(run, end, !run.lease_until, kWall, 0);
}

TEST(Enqueued, BeginsQueuedAndDueWhenAsked) {
  NewRun request;
  request.row = queued_run();
  EXPECT_EQ(enqueued(request, kNow).row.available_at, kWall);
  request.delay = seconds(5);
  EXPECT_EQ(enqueued(request, kNow).row.available_at, kWall + seconds(5));
  request.delay = Duration::max();
  EXPECT_GT(enqueued(request, kNow).row.available_at, kWall);  // nothing overflows
  request.delay.reset();
  request.at = kWall - hours(1);
  EXPECT_EQ(enqueued(request, kNow).row.available_at, kWall);
  request.at = kWall + hours(1);
  const Change change = enqueued(request, kNow);
  EXPECT_EQ(change.row.available_at, kWall + hours(1));
  EXPECT_EQ(change.events.at(0).kind, EventKind::queued);
  EXPECT_EQ(change.row.created_at, kWall);
}

TEST(Started, RunsWithoutALease) {
  NewRun request;
  request.row = queued_run();
  const Change change = started(request, "me", kNow);
  EXPECT_TRUE(change.row.status.is(Status::running));
  EXPECT_TRUE(change.row.origin.is(Origin::interactive));
  EXPECT_EQ(change.row.claim, 1);
  EXPECT_EQ(change.row.claimed_by, "me");
  EXPECT_FALSE(change.row.lease_until);
  EXPECT_FALSE(is_stale(change.row, after(hours(1000))));
  EXPECT_EQ(change.events.at(0).payload["worker"], "me");
}

TEST(Claimed, RaisesTheClaimUnderALease) {
  RunRow run = queued_run();
  run.claim = 6;
  const Change change = change_of(claimed(run, "w", kOffer, kNow));
  EXPECT_EQ(change.row.claim, 7);
  EXPECT_EQ(change.row.claimed_by, "w");
  EXPECT_EQ(change.row.lease_until, kStore + seconds(60));
  EXPECT_EQ(change.row.lease_expires_at, kWall + seconds(60));
  EXPECT_EQ(change.row.started_at, kWall);
  EXPECT_EQ(change.events.at(0).claim, 7);
  EXPECT_EQ(change.events.at(0).payload, (Json{{"worker", "w"}}));
  EXPECT_TRUE(change.definition_changed);
  EXPECT_EQ(change.row.definition, kOffer.definition);
}

TEST(Claimed, TakesThePolicyOfTheOfferOnceOnly) {
  AgentOffer offer = kOffer;
  offer.policy.lease = seconds(7);
  offer.policy.max_requeues = 9;
  RunRow run = queued_run();
  run.has_policy = false;
  run.max_requeues = -1;
  const RunRow first = change_of(claimed(run, "w", offer, kNow)).row;
  EXPECT_EQ(first.policy, offer.policy);
  EXPECT_EQ(first.max_requeues, 9);
  EXPECT_EQ(first.lease_until, kStore + seconds(7));
  const RunRow own = change_of(claimed(queued_run(), "w", offer, kNow)).row;
  EXPECT_EQ(own.policy, Policy{});
  EXPECT_EQ(own.max_requeues, 3);
}

TEST(Claimed, LeavesWhatIsNotDueNotSafeOrAnothersAgent) {
  RunRow later = queued_run();
  later.available_at = kWall + Duration(1);
  EXPECT_EQ(refusal_of(claimed(later, "w", kOffer, kNow)), Declined::Kind::conflict);
  EXPECT_TRUE(applied(claimed(later, "w", kOffer, after(Duration(1)))));
  const RunRow unsafe = with(queued_run(), unsafe_fence());
  EXPECT_EQ(refusal_of(claimed(unsafe, "w", kOffer, kNow)), Declined::Kind::fenced);
  const RunRow probed = with(queued_run(), fence(Effect::non_idempotent_write, true));
  EXPECT_TRUE(applied(claimed(probed, "w", kOffer, kNow)));
  EXPECT_FALSE(applied(claimed(queued_run(), "w", AgentOffer{"other", {}, {}}, kNow)));
}

TEST(Guarded, WritesNeedTheHolderAndTheClaim) {
  Lease older = lease_of(running_run());
  --older.claim;
  Lease other = lease_of(running_run());
  other.holder = "worker-b";
  for (const Lease& lease : {older, other}) {
    const RunRow run = running_run();
    EXPECT_EQ(refusal_of(renewed(run, lease, kNow)), Declined::Kind::not_mine);
    EXPECT_EQ(refusal_of(recorded(run, lease, step("a"), false, kNow)), Declined::Kind::not_mine);
    EXPECT_EQ(refusal_of(fenced(run, lease, unsafe_fence(), kNow)), Declined::Kind::not_mine);
    EXPECT_EQ(refusal_of(unfenced(run, lease, {"x", {}}, kNow)), Declined::Kind::not_mine);
    EXPECT_EQ(refusal_of(settled(run, lease, decided(run, Completed{1}), kNow)),
              Declined::Kind::not_mine);
    EXPECT_EQ(refusal_of(cancel_acknowledged(cancelled_run(), lease, kNow)),
              Declined::Kind::not_mine);
    EXPECT_EQ(refusal_of(recorded(cancelled_run(), lease, step("a"), false, kNow)),
              Declined::Kind::not_mine);
  }
}

TEST(Guarded, SlowIsNotDead) {
  const RunRow run = stale_run();
  const Lease lease = lease_of(run);
  EXPECT_EQ(change_of(renewed(run, lease, kNow)).row.lease_until, kStore + seconds(60));
  EXPECT_TRUE(applied(settled(run, lease, decided(run, Completed{1}), kNow)));
  EXPECT_TRUE(applied(recorded(run, lease, step("a"), false, kNow)));
}

TEST(Guarded, StrictExpiryRefusesTheLateOwner) {
  RunRow run = stale_run();
  run.policy.strict_expiry = true;
  const Lease lease = lease_of(run);
  EXPECT_EQ(refusal_of(renewed(run, lease, kNow)), Declined::Kind::not_mine);
  EXPECT_EQ(refusal_of(settled(run, lease, decided(run, Completed{1}), kNow)),
            Declined::Kind::not_mine);
  EXPECT_EQ(refusal_of(recorded(run, lease, step("a"), false, kNow)), Declined::Kind::not_mine);
}

TEST(Renewed, GivesInteractiveSegmentsNoLease) {
  const RunRow run = interactive_run();
  const Change change = change_of(renewed(run, lease_of(run), kNow));
  EXPECT_FALSE(change.row.lease_until);
  EXPECT_TRUE(change.events.empty());
}

TEST(Renewed, OfALeaseEndedByPresenceMakesItWholeAgain) {
  RunRow run = stale_run();
  run.lease_lost_by_presence = true;
  EXPECT_FALSE(change_of(renewed(run, lease_of(run), kNow)).row.lease_lost_by_presence);
}

TEST(Recorded, RenewsAppendsCountsAndClearsTheFence) {
  const RunRow run = with(running_run(), unsafe_fence());
  StepRecord record = step("tool:pay#1");
  record.usage = Usage{1, 2, 3, 0.5};
  record.counts_iteration = true;
  record.before = {{EventKind::probed, 0, {{"landed", true}}}};
  const Change change = change_of(recorded(run, lease_of(run), record, false, kNow));
  EXPECT_EQ(change.row.lease_until, kStore + seconds(60));
  EXPECT_FALSE(change.row.pending);
  EXPECT_EQ(change.row.iterations, 1);
  EXPECT_EQ(change.row.usage, (Usage{1, 2, 3, 0.5}));
  ASSERT_EQ(change.events.size(), 2u);
  EXPECT_EQ(change.events[0].kind, EventKind::probed);
  EXPECT_EQ(change.events[0].claim, run.claim);
  EXPECT_EQ(change.events[1].kind, EventKind::tool);
}

TEST(Recorded, LeavesTheFenceOfAnotherStep) {
  const RunRow run = with(running_run(), unsafe_fence());
  EXPECT_TRUE(change_of(recorded(run, lease_of(run), step("b"), false, kNow)).row.pending);
}

TEST(Recorded, AppendsNothingTwice) {
  const RunRow run = running_run();
  StepRecord record = step("a");
  record.usage = Usage{1, 1, 2, 0};
  const Change change = change_of(recorded(run, lease_of(run), record, true, kNow));
  EXPECT_TRUE(change.events.empty());
  EXPECT_EQ(change.row.usage, Usage{});
  EXPECT_EQ(change.row.lease_until, kStore + seconds(60));
}

TEST(Recorded, AfterACancelAppendsTheStepInFlightAndNothingElse) {
  const RunRow run = with(cancelled_run(), unsafe_fence());
  const Change change =
      change_of(recorded(run, lease_of(running_run()), step("tool:pay#1"), false, kNow));
  EXPECT_EQ(change.events.size(), 1u);
  EXPECT_FALSE(change.row.pending);
  EXPECT_FALSE(change.row.lease_until);
  EXPECT_TRUE(change.row.status.is(Status::cancelled));
  EXPECT_EQ(change.row.finished_at, run.finished_at);
  EXPECT_TRUE(change_of(recorded(run, lease_of(running_run()), step("tool:pay#1"), true, kNow))
                  .events.empty());
}

TEST(Fenced, StandsWithItsTimesAndClaim) {
  const RunRow run = running_run();
  Fence asked = unsafe_fence();
  asked.claim = 0;
  asked.since = WallTime{};
  asked.deadline = StoreTime{};
  const Change change = change_of(fenced(run, lease_of(run), asked, kNow));
  EXPECT_EQ(change.row.pending->claim, run.claim);
  EXPECT_EQ(change.row.pending->since, kWall);
  EXPECT_EQ(change.row.pending->deadline, kStore + asked.timeout);
  EXPECT_EQ(change.row.lease_until, kStore + seconds(60));
  EXPECT_TRUE(change.events.empty());
}

TEST(Fenced, NeedsAClearField) {
  Fence second = unsafe_fence();
  second.step_key = "tool:pay#2";
  const RunRow run = with(running_run(), unsafe_fence());
  EXPECT_EQ(refusal_of(fenced(run, lease_of(run), second, kNow)), Declined::Kind::fenced);
  // The same step, but of an earlier claim: nobody knows whether it landed.
  const RunRow old = with(running_run(), fence(Effect::non_idempotent_write, true, 3));
  EXPECT_EQ(refusal_of(fenced(old, lease_of(old), unsafe_fence(), kNow)), Declined::Kind::fenced);
}

TEST(Fenced, IsHarmlessToRepeatAfterALostReply) {
  const RunRow run = with(running_run(), unsafe_fence());
  const Change change = change_of(fenced(run, lease_of(run), unsafe_fence(), kNow));
  EXPECT_EQ(change.row.pending->step_key, "tool:pay#1");
  EXPECT_EQ(change.row.pending->deadline, kStore + unsafe_fence().timeout);
}

TEST(Fenced, AnIdempotentWriteMayTakeItsOwnPlaceAgain) {
  const RunRow run = with(running_run(), fence(Effect::idempotent_write, false, 3));
  const Change change =
      change_of(fenced(run, lease_of(run), fence(Effect::idempotent_write), kNow));
  EXPECT_EQ(change.row.pending->claim, run.claim);
}

TEST(Unfenced, ClearsTheOwnFence) {
  const RunRow run = with(running_run(), unsafe_fence());
  EXPECT_FALSE(change_of(unfenced(run, lease_of(run), {"tool:pay#1", {}}, kNow)).row.pending);
  EXPECT_EQ(refusal_of(unfenced(run, lease_of(run), {"tool:pay#2", {}}, kNow)),
            Declined::Kind::conflict);
}

TEST(Unfenced, AnEarlierClaimsFenceNeedsItsProbeAndItsDeadline) {
  const RunRow run = with(running_run(), fence(Effect::non_idempotent_write, true, 3));
  const Lease lease = lease_of(run);
  const Unfence probed = {"tool:pay#1", NewEvent{EventKind::probed, 0, {{"landed", false}}}};
  const Now late = after(std::chrono::minutes(4));
  EXPECT_EQ(refusal_of(unfenced(run, lease, {"tool:pay#1", {}}, late)), Declined::Kind::fenced);
  EXPECT_EQ(refusal_of(unfenced(run, lease, probed, kNow)), Declined::Kind::conflict);
  const Change change = change_of(unfenced(run, lease, probed, late));
  EXPECT_FALSE(change.row.pending);
  EXPECT_EQ(change.events.at(0).kind, EventKind::probed);
  EXPECT_EQ(change.events.at(0).claim, run.claim);
}

TEST(Settled, CompletesAndClearsTheLastError) {
  RunRow run = running_run();
  run.error = failure(FailureClass::timeout);
  const Change change = change_of(settled(run, lease_of(run), decided(run, Completed{"x"}), kNow));
  EXPECT_TRUE(change.row.status.is(Status::completed));
  EXPECT_EQ(change.row.answer, Json("x"));
  EXPECT_TRUE(change.answer_changed);
  EXPECT_FALSE(change.row.error || change.row.claimed_by || change.row.lease_until);
  EXPECT_EQ(change.row.finished_at, kWall);
  EXPECT_EQ(change.row.claim, run.claim);
}

TEST(Settled, RequeuesWithItsBackoffAndKeepsTheError) {
  const RunRow run = running_run();
  const Change change = change_of(
      settled(run, lease_of(run), decided(run, Failed{failure(FailureClass::timeout)}), kNow));
  EXPECT_TRUE(change.row.status.is(Status::queued));
  EXPECT_EQ(change.row.available_at, kWall + seconds(30));
  EXPECT_EQ(change.row.requeue_count, 1);
  EXPECT_EQ(change.row.failing_since, kWall);
  EXPECT_EQ(change.row.error->cls, FailureClass::timeout);
  const Json& payload = change.events.at(0).payload;
  for (const char* key : {"class", "code", "message", "provider", "model", "charged",
                          "available_at", "delay_source"}) {
    EXPECT_TRUE(payload.contains(key)) << key;
  }
  EXPECT_EQ(payload["available_at"], "2026-11-02T08:30:30.000Z");
}

TEST(Settled, CountsParkingFromTheFirstFailure) {
  RunRow run = running_run();
  run.failing_since = kWall - hours(3);
  Failed end{failure(FailureClass::circuit_open)};
  end.failure.attempted = false;
  const Change change = change_of(settled(run, lease_of(run), decided(run, end), kNow));
  EXPECT_EQ(change.events.at(0).kind, EventKind::parked);
  EXPECT_EQ(change.row.failing_since, kWall - hours(3));
  EXPECT_EQ(change.row.requeue_count, 0);
}

TEST(Settled, MeetsTheFenceThatItsDecisionDidNotKnowOf) {
  for (const SegmentEnd& end : std::initializer_list<SegmentEnd>{
           Completed{1}, Suspended{approval()}, Interrupted{}, Slept{"k", "nap", kWall},
           Failed{failure(FailureClass::timeout)}}) {
    const Settlement early = decided(running_run(), end);
    const RunRow run = with(running_run(), unsafe_fence());
    const Change change = change_of(settled(run, lease_of(run), early, kNow));
    EXPECT_TRUE(change.row.status.is(Status::failed));
    EXPECT_TRUE(change.row.reason->is(Reason::not_retryable));
    EXPECT_TRUE(change.row.pending);
  }
}

TEST(Settled, MeetsTheBudgetThatItsDecisionDidNotKnowOf) {
  const Settlement early = decided(running_run(), Failed{failure(FailureClass::timeout)});
  RunRow run = running_run();
  run.requeue_count = run.max_requeues;
  const Change change = change_of(settled(run, lease_of(run), early, kNow));
  EXPECT_TRUE(change.row.reason->is(Reason::retries_exhausted));
  EXPECT_EQ(change.row.requeue_count, run.max_requeues);
}

TEST(Settled, BringsTheDeadlineForwardWhereTheWorkHasEnded) {
  const RunRow run = with(running_run(), unsafe_fence());
  const Change change = change_of(
      settled(run, lease_of(run), decided(run, Failed{failure(FailureClass::timeout)}), kNow));
  EXPECT_EQ(change.row.pending->deadline, kStore);
  const Change stopped = change_of(settled(run, lease_of(run), decided(run, Interrupted{}), kNow));
  EXPECT_EQ(stopped.row.pending->deadline, run.pending->deadline);
}

TEST(Settled, ClearsTheFenceOfAWriteThatNeverStarted) {
  const RunRow run = with(running_run(), unsafe_fence());
  Failed end{failure(FailureClass::configuration)};
  end.failure.not_started = true;
  const Change change = change_of(settled(run, lease_of(run), decided(run, end), kNow));
  EXPECT_TRUE(change.row.status.is(Status::failed));
  EXPECT_FALSE(change.row.pending);
}

TEST(Settled, WaitsWithADeadlineOnTheWall) {
  const RunRow run = running_run();
  Wait wait = approval(2);
  wait.timeout = hours(2);
  const Change change = change_of(settled(run, lease_of(run), decided(run, Suspended{wait}), kNow));
  EXPECT_TRUE(change.row.status.is(Status::waiting_for_approval));
  EXPECT_EQ(change.row.waiting_for->deadline, kWall + hours(2));
  EXPECT_FALSE(change.row.claimed_by || change.row.lease_until || change.row.available_at);
  const Json& payload = change.events.at(0).payload;
  EXPECT_EQ(payload["turn"], "turn-1");
  EXPECT_EQ(payload["deadline"], "2026-11-02T10:30:00.000Z");
}

TEST(Settled, AQueuedRunBelongsToTheWorkers) {
  const RunRow run = interactive_run();
  const Change change = change_of(
      settled(run, lease_of(run), decided(run, Slept{"k", "nap", kWall + hours(1)}), kNow));
  EXPECT_TRUE(change.row.origin.is(Origin::queued));
  EXPECT_EQ(change.row.available_at, kWall + hours(1));
}

TEST(Settled, ASecondOneDoesNotApply) {
  const RunRow run = running_run();
  const Settlement settlement = decided(run, Completed{1});
  const RunRow done = change_of(settled(run, lease_of(run), settlement, kNow)).row;
  EXPECT_EQ(refusal_of(settled(done, lease_of(run), settlement, kNow)), Declined::Kind::not_mine);
}

TEST(Settled, ACancelWinsOverALateEnd) {
  EXPECT_EQ(refusal_of(settled(cancelled_run(), lease_of(running_run()),
                               decided(running_run(), Completed{1}), kNow)),
            Declined::Kind::cancelled);
}

TEST(CancelAcknowledged, ClearsTheHolderOnceAndKeepsTheFence) {
  const RunRow run = with(cancelled_run(), unsafe_fence());
  const Lease lease = lease_of(running_run());
  const Change change = change_of(cancel_acknowledged(run, lease, kNow));
  EXPECT_FALSE(change.row.claimed_by);
  EXPECT_TRUE(change.row.pending);
  EXPECT_TRUE(change.events.empty());
  EXPECT_EQ(refusal_of(cancel_acknowledged(change.row, lease, kNow)), Declined::Kind::unchanged);
}

}  // namespace
}  // namespace holdfast
