#include <gtest/gtest.h>

#include "core/test_runs.hpp"

namespace holdfast {
namespace {

using namespace testing_runs;  // NOLINT(google-build-using-namespace)
using RunRow = Run;

Decision decision(DecisionKind kind, std::optional<std::string> call = {}) {
  Decision made;
  made.run = "run-1";
  made.kind = kind;
  made.turn = "turn-1";
  made.call = std::move(call);
  made.by = ann();
  return made;
}

Transition approve(const RunRow& run, std::optional<std::string> call = {}) {
  return answered(run, decision(DecisionKind::approve, std::move(call)), {}, kNow);
}

TEST(Answered, OneDecisionCoversAllCalls) {
  const Change change = change_of(approve(waiting_run(2)));
  EXPECT_TRUE(change.row.status.is(Status::queued));
  EXPECT_TRUE(change.row.origin.is(Origin::queued));
  EXPECT_EQ(change.row.available_at, kWall);
  EXPECT_EQ(change.row.requeue_count, 0);
  EXPECT_FALSE(change.row.waiting_for);
  ASSERT_EQ(change.events.size(), 1u);
  EXPECT_EQ(change.events[0].kind, EventKind::approved);
  EXPECT_EQ(
      change.events[0].payload,
      (Json{{"actor", "ann"},
            {"note", "because"},
            {"operation", "op-1"},
            {"turn", "turn-1"},
            {"calls",
             {{{"id", "1"}, {"decision", "approved"}}, {{"id", "2"}, {"decision", "approved"}}}}}));
}

TEST(Answered, WaitsUntilEveryCallIsDecided) {
  const Change first = change_of(approve(waiting_run(2), "2"));
  EXPECT_TRUE(first.row.status.is(Status::waiting_for_approval));
  EXPECT_EQ(first.row.waiting_for->calls[0].decision, Verdict::undecided);
  EXPECT_EQ(first.row.waiting_for->calls[1].decision, Verdict::approved);
  EXPECT_EQ(first.events.at(0).payload["calls"].size(), 1u);
  // The rest is decided by one decision, which leaves the first alone.
  const Change rest = change_of(answered(first.row, decision(DecisionKind::deny), {}, kNow));
  EXPECT_TRUE(rest.row.status.is(Status::queued));
  EXPECT_EQ(rest.events.at(0).kind, EventKind::denied);
  EXPECT_EQ(rest.events.at(0).payload["calls"], (Json{{{"id", "1"}, {"decision", "denied"}}}));
}

TEST(Answered, ACallIsDecidedOnce) {
  const RunRow run = change_of(approve(waiting_run(2), "2")).row;
  EXPECT_EQ(refusal_of(answered(run, decision(DecisionKind::deny, "2"), {}, kNow)),
            Declined::Kind::conflict);
  EXPECT_EQ(refusal_of(approve(run, "3")), Declined::Kind::conflict);
}

TEST(Answered, RefusesATurnThatHasMovedOn) {
  RunRow run = waiting_run();
  run.waiting_for->turn = "turn-2";
  EXPECT_EQ(refusal_of(approve(run)), Declined::Kind::conflict);
  Decision any = decision(DecisionKind::approve);
  any.turn.reset();
  EXPECT_TRUE(applied(answered(run, any, {}, kNow)));
}

TEST(Answered, RefusesALateDecision) {
  RunRow run = waiting_run();
  run.waiting_for->deadline = kWall;
  EXPECT_EQ(refusal_of(approve(run)), Declined::Kind::conflict);
  run.waiting_for->deadline = kWall + Duration(1);
  EXPECT_TRUE(applied(approve(run)));
}

TEST(Answered, TheVerbFitsTheWait) {
  EXPECT_FALSE(applied(answered(waiting_run(), decision(DecisionKind::input), {}, kNow)));
  EXPECT_FALSE(applied(answered(input_run(), decision(DecisionKind::approve), {}, kNow)));
  EXPECT_FALSE(applied(answered(input_run(), decision(DecisionKind::deny), {}, kNow)));
}

TEST(Answered, InputCarriesItsValues) {
  Decision made = decision(DecisionKind::input);
  made.values = {{"sum", 7}};
  const Change change = change_of(answered(input_run(), made, {}, kNow));
  EXPECT_TRUE(change.row.status.is(Status::queued));
  EXPECT_EQ(change.events.at(0).kind, EventKind::input_submitted);
  EXPECT_EQ(change.events.at(0).payload["values"], (Json{{"sum", 7}}));
}

TEST(Answered, AQuestionWithoutCallsIsAnsweredToo) {
  RunRow run = input_run();
  run.waiting_for->calls.clear();
  EXPECT_TRUE(change_of(answered(run, decision(DecisionKind::input), {}, kNow))
                  .row.status.is(Status::queued));
}

TEST(Answered, ContinuesInlineUnderANewClaim) {
  const RunRow run = waiting_run();
  const Change change =
      change_of(answered(run, decision(DecisionKind::approve), {true, "me", false}, kNow));
  EXPECT_TRUE(change.row.status.is(Status::running));
  EXPECT_EQ(change.row.claim, run.claim + 1);
  EXPECT_EQ(change.row.claimed_by, "me");
  EXPECT_EQ(change.row.lease_until, kStore + run.policy.lease);
  ASSERT_EQ(change.events.size(), 2u);
  EXPECT_EQ(change.events[0].claim, run.claim);
  EXPECT_EQ(change.events[1].kind, EventKind::claimed);
  EXPECT_EQ(change.events[1].claim, run.claim + 1);
}

TEST(Answered, ContinuesAnInteractiveRunWithoutALease) {
  RunRow run = waiting_run();
  run.origin = Origin::interactive;
  const Change change =
      change_of(answered(run, decision(DecisionKind::approve), {true, "me", true}, kNow));
  EXPECT_FALSE(change.row.lease_until);
  EXPECT_TRUE(change.row.origin.is(Origin::interactive));
}

TEST(WaitExpired, GoesOnWithoutADecision) {
  RunRow run = change_of(approve(waiting_run(2), "1")).row;
  run.origin = Origin::interactive;
  run.waiting_for->deadline = kWall;
  const Change change = change_of(wait_expired(run, kNow));
  EXPECT_TRUE(change.row.status.is(Status::queued));
  EXPECT_TRUE(change.row.origin.is(Origin::queued));
  EXPECT_FALSE(change.row.waiting_for);
  EXPECT_EQ(change.events.at(0).kind, EventKind::expired);
  EXPECT_EQ(change.events.at(0).payload,
            (Json{{"turn", "turn-1"}, {"calls", {{{"id", "2"}, {"decision", "expired"}}}}}));
}

TEST(WaitExpired, EndsTheRunWhereADenialDoes) {
  RunRow run = waiting_run(2);
  run.waiting_for->deadline = kWall;
  run.waiting_for->calls[1].ends_on_denial = true;
  const Change change = change_of(wait_expired(run, kNow));
  EXPECT_TRUE(change.row.status.is(Status::failed));
  EXPECT_TRUE(change.row.reason->is(Reason::approval_denied));
  ASSERT_EQ(change.events.size(), 2u);
  EXPECT_EQ(change.events[1].kind, EventKind::failed);
  // Where that call was approved before, nothing is denied.
  run.waiting_for->calls[1].decision = Verdict::approved;
  EXPECT_TRUE(change_of(wait_expired(run, kNow)).row.status.is(Status::queued));
}

TEST(WaitExpired, NeedsADeadlineThatIsOver) {
  RunRow run = waiting_run();
  EXPECT_FALSE(applied(wait_expired(run, kNow)));
  run.waiting_for->deadline = kWall + Duration(1);
  EXPECT_FALSE(applied(wait_expired(run, kNow)));
}

}  // namespace
}  // namespace holdfast
