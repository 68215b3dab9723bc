#include <gtest/gtest.h>

#include "core/test_runs.hpp"

namespace holdfast {
namespace {

using namespace testing_runs;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;
using std::chrono::seconds;
using RunRow = Run;

TEST(Cancelled, KeepsTheHolderForTheStepInFlight) {
  const RunRow run = with(running_run(), unsafe_fence());
  const Change change = change_of(cancelled(run, ann(), kNow));
  EXPECT_TRUE(change.row.status.is(Status::cancelled));
  EXPECT_TRUE(change.row.reason->is(Reason::cancelled));
  EXPECT_EQ(change.row.claimed_by, run.claimed_by);
  EXPECT_EQ(change.row.claim, run.claim);
  EXPECT_FALSE(change.row.lease_until);
  EXPECT_TRUE(change.row.pending);
  EXPECT_EQ(change.row.finished_at, kWall);
  EXPECT_EQ(change.events.at(0).payload,
            (Json{{"actor", "ann"}, {"note", "because"}, {"operation", "op-1"}}));
}

TEST(Cancelled, TakesWhatAWaitingOrQueuedRunHad) {
  EXPECT_FALSE(change_of(cancelled(waiting_run(), ann(), kNow)).row.waiting_for);
  EXPECT_FALSE(change_of(cancelled(queued_run(), ann(), kNow)).row.available_at);
}

TEST(Cancelled, ASecondOneChangesNothing) {
  EXPECT_EQ(refusal_of(cancelled(cancelled_run(), ann(), kNow)), Declined::Kind::unchanged);
  EXPECT_EQ(refusal_of(cancelled(failed_run(), ann(), kNow)), Declined::Kind::conflict);
}

TEST(HandedOver, GivesARunToTheWorkers) {
  const Change change = change_of(handed_over(interactive_run(), true, false, ann(), kNow));
  EXPECT_TRUE(change.row.status.is(Status::queued));
  EXPECT_TRUE(change.row.origin.is(Origin::queued));
  EXPECT_FALSE(change.row.claimed_by);
  EXPECT_EQ(change.row.requeue_count, 0);
  ASSERT_EQ(change.events.size(), 1u);
  EXPECT_EQ(change.events[0].payload["actor"], "ann");
}

TEST(HandedOver, NeedsProofOrForceAndNoLease) {
  EXPECT_FALSE(applied(handed_over(interactive_run(), false, false, ann(), kNow)));
  EXPECT_TRUE(applied(handed_over(interactive_run(), false, true, ann(), kNow)));
  EXPECT_FALSE(applied(handed_over(running_run(), true, true, ann(), kNow)));
}

TEST(HandedOver, StopsAtAnUnsafeFence) {
  const RunRow run = with(interactive_run(), unsafe_fence());
  const Change change = change_of(handed_over(run, true, false, ann(), kNow));
  EXPECT_TRUE(change.row.reason->is(Reason::not_retryable));
  EXPECT_EQ(change.row.pending->deadline, kStore + seconds(2));
  ASSERT_EQ(change.events.size(), 2u);
  EXPECT_EQ(change.events[0].kind, EventKind::handed_over);
  EXPECT_EQ(change.events[1].kind, EventKind::failed);
  const Change forced = change_of(handed_over(run, false, true, ann(), kNow));
  EXPECT_EQ(forced.row.pending->deadline, run.pending->deadline);
}

ResolveRequest resolve(bool landed) {
  ResolveRequest request;
  request.run = "run-1";
  request.landed = landed;
  request.step = "tool:pay#1";
  request.by = ann();
  return request;
}

TEST(Resolved, LandedAppendsTheStepAndDrivesAnew) {
  RunRow run = with(failed_run(), unsafe_fence());
  run.requeue_count = 3;
  run.reclaim_count = 2;
  run.iterations = 5;
  run.usage.total_tokens = 9;
  run.failing_since = kWall;
  ResolveRequest request = resolve(true);
  request.result = {{"receipt", 1}};
  const Change change = change_of(resolved(run, request, kNow));
  ASSERT_EQ(change.events.size(), 2u);
  EXPECT_EQ(change.events[0].kind, EventKind::tool);
  EXPECT_EQ(change.events[0].payload, (Json{{"name", "tool:pay"},
                                            {"key", "tool:pay#1"},
                                            {"effect", "non_idempotent_write"},
                                            {"arguments", {{"sum", 7}}},
                                            {"result", {{"receipt", 1}}}}));
  EXPECT_EQ(change.events[1].kind, EventKind::resolved);
  EXPECT_EQ(change.events[1].payload["landed"], true);
  EXPECT_EQ(change.events[1].payload["step"], "tool:pay#1");
  EXPECT_TRUE(change.row.status.is(Status::queued));
  EXPECT_FALSE(change.row.pending || change.row.error || change.row.reason ||
               change.row.finished_at || change.row.failing_since);
  EXPECT_EQ(change.row.requeue_count, 0);
  EXPECT_EQ(change.row.reclaim_count, 0);
  EXPECT_EQ(change.row.redrive_count, 1);
  EXPECT_EQ(change.row.iterations, 0);
  EXPECT_EQ(change.row.usage, Usage{});
  EXPECT_TRUE(change.definition_changed);
}

TEST(Resolved, AStepOfATaskIsAStep) {
  RunRow run = with(failed_run(), unsafe_fence());
  run.pending->name = "charge";
  EXPECT_EQ(change_of(resolved(run, resolve(true), kNow)).events.at(0).kind, EventKind::step);
}

TEST(Resolved, NotLandedWaitsForTheDeadlineUnlessForced) {
  const RunRow run = with(failed_run(), unsafe_fence());
  const Transition early = resolved(run, resolve(false), kNow);
  ASSERT_EQ(refusal_of(early), Declined::Kind::conflict);
  EXPECT_NE(std::get<Declined>(early).why.find("2026-11-02T08:34:00.000Z"), std::string::npos)
      << std::get<Declined>(early).why;
  ResolveRequest forced = resolve(false);
  forced.force = true;
  EXPECT_TRUE(applied(resolved(run, forced, kNow)));
  const Change change = change_of(resolved(run, resolve(false), after(std::chrono::minutes(4))));
  ASSERT_EQ(change.events.size(), 1u);
  EXPECT_FALSE(change.row.pending);
}

TEST(Resolved, NeedsTheStepThatThePersonSaw) {
  RunRow run = with(failed_run(), unsafe_fence());
  run.pending->step_key = "tool:pay#2";
  EXPECT_EQ(refusal_of(resolved(run, resolve(true), kNow)), Declined::Kind::conflict);
  ResolveRequest any = resolve(true);
  any.step.reset();
  EXPECT_TRUE(applied(resolved(run, any, kNow)));
}

TEST(Resolved, NeedsAnUnsafeFence) {
  EXPECT_EQ(refusal_of(resolved(failed_run(), resolve(true), kNow)), Declined::Kind::conflict);
  const RunRow run = with(failed_run(), fence(Effect::idempotent_write));
  EXPECT_EQ(refusal_of(resolved(run, resolve(true), kNow)), Declined::Kind::conflict);
}

TEST(Redriven, BeginsANewDriveAndKeepsTheClaimNumber) {
  RunRow run = failed_run();
  run.requeue_count = 3;
  const Change change = change_of(redriven(run, ann(), kNow));
  EXPECT_TRUE(change.row.status.is(Status::queued));
  EXPECT_EQ(change.row.requeue_count, 0);
  EXPECT_EQ(change.row.redrive_count, 1);
  EXPECT_EQ(change.row.claim, run.claim);
  EXPECT_TRUE(change.definition_changed);
  EXPECT_TRUE(change.row.definition.is_null());
  EXPECT_EQ(change.events.at(0).kind, EventKind::redriven);
  EXPECT_EQ(change.events.at(0).payload["operation"], "op-1");
}

TEST(Redriven, IsRefusedOverAnUnsafeFenceWithoutAProbe) {
  EXPECT_EQ(refusal_of(redriven(with(failed_run(), unsafe_fence()), ann(), kNow)),
            Declined::Kind::fenced);
  const RunRow probed = with(failed_run(), fence(Effect::non_idempotent_write, true));
  const Change change = change_of(redriven(probed, ann(), kNow));
  EXPECT_TRUE(change.row.pending);  // the next claimer asks its probe
}

TEST(Woken, MakesADelayedRunAvailable) {
  RunRow run = queued_run();
  run.available_at = kWall + hours(1);
  const Change change = change_of(woken(run, ann(), kNow));
  EXPECT_EQ(change.row.available_at, kWall);
  EXPECT_EQ(change.events.at(0).kind, EventKind::woken);
  EXPECT_EQ(refusal_of(woken(change.row, ann(), kNow)), Declined::Kind::conflict);
}

Event event(EventKind kind, std::int64_t claim, Json payload = Json::object()) {
  return {"run-1", 1, kind, kWall, claim, std::move(payload)};
}

TEST(LostReplies, ASettlementIsFoundByItsClaim) {
  const std::vector<Event> events = {event(EventKind::claimed, 1), event(EventKind::requeued, 1),
                                     event(EventKind::claimed, 2), event(EventKind::tool, 2)};
  EXPECT_TRUE(segment_already_settled(events, 1));
  EXPECT_FALSE(segment_already_settled(events, 2));
  EXPECT_FALSE(segment_already_settled({}, 1));
}

TEST(LostReplies, AReaperIsNotTheHolder) {
  const std::vector<Event> events = {event(EventKind::claimed, 1), event(EventKind::reaped, 1),
                                     event(EventKind::failed, 1)};
  EXPECT_FALSE(segment_already_settled(events, 1));
  const std::vector<Event> handed = {event(EventKind::started, 1), event(EventKind::handed_over, 1),
                                     event(EventKind::failed, 1)};
  EXPECT_FALSE(segment_already_settled(handed, 1));
}

TEST(LostReplies, ASleepInPlaceAndAPersonsCancelSettleNothing) {
  EXPECT_FALSE(
      segment_already_settled(std::vector{event(EventKind::slept, 1, {{"key", "nap#1"}})}, 1));
  EXPECT_TRUE(segment_already_settled(
      std::vector{event(EventKind::slept, 1, {{"available_at", "2026"}})}, 1));
  EXPECT_FALSE(
      segment_already_settled(std::vector{event(EventKind::cancelled, 1, {{"actor", "ann"}})}, 1));
  EXPECT_TRUE(segment_already_settled(std::vector{event(EventKind::cancelled, 1)}, 1));
}

TEST(LostReplies, AnOperationIsFoundByItsId) {
  const std::vector<Event> events = {event(EventKind::woken, 1, {{"operation", "op-1"}}),
                                     event(EventKind::woken, 1, {{"operation", nullptr}}),
                                     event(EventKind::model, 1, Json())};
  EXPECT_TRUE(operation_already_done(events, "op-1"));
  EXPECT_FALSE(operation_already_done(events, "op-2"));
  EXPECT_FALSE(operation_already_done(events, ""));
}

}  // namespace
}  // namespace holdfast
