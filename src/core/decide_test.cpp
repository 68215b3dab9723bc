#include "core/decide.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/test_runs.hpp"

namespace holdfast {
namespace {

using namespace testing_runs;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;
using std::chrono::seconds;
using RunRow = Run;  // inside a test `Run` is the test's own method

Settlement decide_for(const RunRow& run, const SegmentEnd& end, bool interactive = false) {
  return decide(run, end, interactive, kWall, 0);
}
Failed failed_by(FailureClass cls) { return {failure(cls), false}; }

RunRow spent_run() {
  RunRow run = running_run();
  run.requeue_count = run.max_requeues;
  return run;
}

Failed no_circuit(std::optional<Duration> hint = {}) {
  Failed end = failed_by(FailureClass::circuit_open);
  end.failure.attempted = false;
  end.failure.retry_after = hint;
  return end;
}

void expect_dead(const Settlement& settlement, Reason reason) {
  EXPECT_EQ(settlement.next, Status::failed);
  EXPECT_EQ(settlement.reason, reason);
  EXPECT_EQ(settlement.event, EventKind::failed);
  EXPECT_EQ(settlement.outcome, Outcome::failed);
  EXPECT_FALSE(settlement.charged);
  EXPECT_TRUE(settlement.failure);
  EXPECT_EQ(settlement.payload.value("reason", ""), to_word(reason));
}

TEST(Decide, CompletesWithTheAnswer) {
  const Settlement settlement = decide_for(running_run(), Completed{"done"});
  EXPECT_EQ(settlement.next, Status::completed);
  EXPECT_EQ(settlement.reason, Reason::completed);
  EXPECT_EQ(settlement.answer, Json("done"));
}

TEST(Decide, RequeuesUnderBudget) {
  RunRow run = running_run();
  run.requeue_count = 2;
  const Settlement settlement = decide_for(run, failed_by(FailureClass::server_error));
  EXPECT_EQ(settlement.next, Status::queued);
  EXPECT_EQ(settlement.event, EventKind::requeued);
  EXPECT_EQ(settlement.outcome, Outcome::requeued);
  EXPECT_TRUE(settlement.charged);
  EXPECT_EQ(settlement.delay, seconds(120));
  EXPECT_EQ(settlement.payload["delay_source"], "backoff");
}

TEST(Decide, DeadLettersOverBudget) {
  const Settlement settlement = decide_for(spent_run(), failed_by(FailureClass::timeout));
  expect_dead(settlement, Reason::retries_exhausted);
}

TEST(Decide, ABudgetOfZeroMeansOneExecution) {
  RunRow run = running_run();
  run.max_requeues = 0;
  expect_dead(decide_for(run, failed_by(FailureClass::timeout)), Reason::retries_exhausted);
  expect_dead(decide_for(run, WorkerLost{"w"}), Reason::retries_exhausted);
}

TEST(Decide, EveryClassFollowsItsRow) {
  for (int i = 0; i <= static_cast<int>(FailureClass::unknown); ++i) {
    const auto cls = static_cast<FailureClass>(i);
    Failed end = failed_by(cls);
    end.in_agent = true;
    const Settlement settlement = decide_for(running_run(), end);
    if (is_retryable(cls)) {
      EXPECT_EQ(settlement.event, EventKind::requeued) << to_word(cls);
    } else {
      expect_dead(settlement, Reason::not_retryable);
    }
  }
}

TEST(Decide, TheExplicitWordOverridesTheClassBothWays) {
  Failed yes = failed_by(FailureClass::client_error);
  yes.failure.should_retry = true;
  EXPECT_EQ(decide_for(running_run(), yes).event, EventKind::requeued);
  expect_dead(decide_for(spent_run(), yes), Reason::retries_exhausted);
  Failed no = failed_by(FailureClass::server_error);
  no.failure.should_retry = false;
  expect_dead(decide_for(running_run(), no), Reason::not_retryable);
}

TEST(Decide, UnknownFailuresOfTasksFollowThePolicyAndThoseOfAgentsEndTheRun) {
  RunRow run = running_run();
  EXPECT_EQ(decide_for(run, failed_by(FailureClass::unknown)).event, EventKind::requeued);
  expect_dead(decide_for(run, Failed{failure(FailureClass::unknown), true}), Reason::not_retryable);
  run.policy.retry_unknown = false;
  expect_dead(decide_for(run, failed_by(FailureClass::unknown)), Reason::not_retryable);
}

TEST(Decide, WaitsAtLeastAsLongAsTheHint) {
  Failed end = failed_by(FailureClass::rate_limit);
  end.failure.retry_after = seconds(90);
  end.failure.delay_source = "retry-after";
  const Settlement settlement = decide_for(running_run(), end);
  EXPECT_EQ(settlement.delay, seconds(90));
  EXPECT_EQ(settlement.payload["delay_source"], "retry-after");
  end.failure.retry_after = seconds(2);
  EXPECT_EQ(decide_for(running_run(), end).payload["delay_source"], "backoff");
}

TEST(Decide, TheFenceWinsOverEveryEnd) {
  const RunRow run = with(running_run(), unsafe_fence());
  for (const SegmentEnd& end : std::initializer_list<SegmentEnd>{
           Completed{1}, Ended{Reason::budget_exhausted, "", 1},
           Ended{Reason::max_iterations, "", {}}, failed_by(FailureClass::server_error),
           no_circuit(), Suspended{approval()}, Slept{"k", "nap", kWall}, Interrupted{},
           WorkerLost{"w"}}) {
    for (const bool interactive : {false, true}) {
      const Settlement settlement = decide_for(run, end, interactive);
      expect_dead(settlement, Reason::not_retryable);
      EXPECT_FALSE(settlement.clears_fence);
      ASSERT_TRUE(settlement.failure);
      EXPECT_NE(settlement.failure->message.find("tool:pay"), std::string::npos);
    }
  }
}

TEST(Decide, AProbeThatCouldNotBeAskedIsAskedAgainWithinTheBudget) {
  const RunRow probed = with(running_run(), fence(Effect::non_idempotent_write, true));
  Failed end = failed_by(FailureClass::overloaded);
  expect_dead(decide_for(probed, end), Reason::not_retryable);
  end.probe_is_open = true;
  const Settlement settlement = decide_for(probed, end);
  EXPECT_EQ(settlement.event, EventKind::requeued);
  EXPECT_TRUE(settlement.charged);
  EXPECT_FALSE(settlement.clears_fence);
  expect_dead(decide_for(with(running_run(), unsafe_fence()), end), Reason::not_retryable);
  expect_dead(decide_for(probed, end, true), Reason::not_retryable);
  RunRow spent = probed;
  spent.requeue_count = spent.max_requeues;
  expect_dead(decide_for(spent, end), Reason::retries_exhausted);
}

TEST(Decide, AProbeLetsTheQueueHaveTheRunButNotAnEnd) {
  const RunRow run = with(running_run(), fence(Effect::non_idempotent_write, true));
  EXPECT_EQ(decide_for(run, WorkerLost{"w"}).event, EventKind::reaped);
  EXPECT_EQ(decide_for(run, Interrupted{}).event, EventKind::released);
  EXPECT_EQ(decide_for(run, Interrupted{}).delay, std::nullopt);
  const Settlement turned_away =
      decide_for(run, Interrupted{"tool 'x' is not here", std::chrono::seconds(4)});
  EXPECT_EQ(turned_away.event, EventKind::released);
  EXPECT_FALSE(turned_away.charged);
  EXPECT_EQ(turned_away.delay, std::chrono::seconds(4));
  EXPECT_EQ(turned_away.payload["message"], "tool 'x' is not here");
  EXPECT_EQ(decide_for(run, Slept{"k", "nap", kWall}).event, EventKind::slept);
  expect_dead(decide_for(run, Completed{1}), Reason::not_retryable);
  expect_dead(decide_for(run, Suspended{approval()}), Reason::not_retryable);
  expect_dead(decide_for(run, failed_by(FailureClass::timeout)), Reason::not_retryable);
}

TEST(Decide, AWriteThatNeverStartedIsNoReasonToStop) {
  Failed end = failed_by(FailureClass::server_error);
  end.failure.not_started = true;
  const Settlement settlement = decide_for(with(running_run(), unsafe_fence()), end);
  EXPECT_EQ(settlement.event, EventKind::requeued);
  EXPECT_TRUE(settlement.clears_fence);
  // A fence that an earlier claim left is another matter.
  const auto old = with(running_run(), fence(Effect::non_idempotent_write, false, 3));
  expect_dead(decide_for(old, end), Reason::not_retryable);
}

TEST(Decide, OnlyAnEndSeenByItsOwnSegmentSaysThatTheWorkIsOver) {
  const RunRow run = with(running_run(), unsafe_fence());
  EXPECT_TRUE(decide_for(run, failed_by(FailureClass::timeout)).executor_ended);
  Failed elsewhere = failed_by(FailureClass::timeout);
  elsewhere.failure.may_still_run = true;
  EXPECT_FALSE(decide_for(run, elsewhere).executor_ended);
  EXPECT_FALSE(decide_for(run, WorkerLost{"w"}).executor_ended);
  EXPECT_FALSE(decide_for(run, Interrupted{}).executor_ended);
  const RunRow old = with(running_run(), fence(Effect::non_idempotent_write, false, 3));
  EXPECT_FALSE(decide_for(old, failed_by(FailureClass::timeout)).executor_ended);
}

TEST(Decide, AnIdempotentWriteIsSimplyRepeated) {
  const RunRow run = with(running_run(), fence(Effect::idempotent_write));
  EXPECT_EQ(decide_for(run, failed_by(FailureClass::timeout)).event, EventKind::requeued);
  EXPECT_EQ(decide_for(run, Completed{1}).next, Status::completed);
}

TEST(Decide, ParksUnchargedWhenNothingWasCalled) {
  const Settlement settlement = decide_for(spent_run(), no_circuit());
  EXPECT_EQ(settlement.next, Status::queued);
  EXPECT_EQ(settlement.event, EventKind::parked);
  EXPECT_EQ(settlement.outcome, Outcome::requeued);
  EXPECT_FALSE(settlement.charged);
  EXPECT_EQ(settlement.delay, seconds(30));
  EXPECT_EQ(decide_for(running_run(), no_circuit(seconds(7))).delay, seconds(7));
  EXPECT_GT(decide(running_run(), no_circuit(), false, kWall, 0.99).delay, seconds(30));
  // A circuit that was tried is an ordinary failure.
  EXPECT_EQ(decide_for(running_run(), failed_by(FailureClass::circuit_open)).event,
            EventKind::requeued);
}

TEST(Decide, ParkingEndsAtMaxWaitSinceTheFirstFailure) {
  RunRow run = running_run();
  run.failing_since = kWall - hours(24) + seconds(10);
  EXPECT_EQ(decide_for(run, no_circuit()).delay, seconds(10));
  run.failing_since = kWall - hours(24);
  expect_dead(decide_for(run, no_circuit()), Reason::retries_exhausted);
}

TEST(Decide, InteractiveFailuresEndTheRun) {
  expect_dead(decide_for(interactive_run(), failed_by(FailureClass::server_error), true),
              Reason::provider_failed);
  expect_dead(decide_for(interactive_run(), no_circuit(), true), Reason::provider_failed);
  expect_dead(decide_for(interactive_run(), failed_by(FailureClass::context_length), true),
              Reason::context_truncated);
  const Settlement settlement = decide_for(interactive_run(), failed_by(FailureClass::auth), true);
  EXPECT_EQ(settlement.failure->message, "it went wrong");  // unchanged for its caller
}

TEST(Decide, AnEndOfTheHandlersOwnKeepsItsReason) {
  expect_dead(decide_for(running_run(), Ended{Reason::max_iterations, "too many", {}}),
              Reason::max_iterations);
  const Settlement partial = decide_for(running_run(), Ended{Reason::budget_exhausted, "", "half"});
  EXPECT_EQ(partial.next, Status::completed);
  EXPECT_EQ(partial.reason, Reason::budget_exhausted);
  EXPECT_EQ(partial.answer, Json("half"));
  const Settlement stopped = decide_for(running_run(), Ended{Reason::cancelled, "", {}});
  EXPECT_EQ(stopped.next, Status::cancelled);
  EXPECT_EQ(stopped.outcome, Outcome::cancelled);
}

TEST(Decide, SuspensionsAreNotCharged) {
  const Settlement approval_wait = decide_for(spent_run(), Suspended{approval(2)});
  EXPECT_EQ(approval_wait.next, Status::waiting_for_approval);
  EXPECT_EQ(approval_wait.outcome, Outcome::awaiting_approval);
  EXPECT_EQ(approval_wait.payload["turn"], "turn-1");
  EXPECT_EQ(approval_wait.payload["calls"].size(), 2u);
  EXPECT_FALSE(approval_wait.charged);
  const Settlement input_wait = decide_for(running_run(), Suspended{*input_run().waiting_for});
  EXPECT_EQ(input_wait.next, Status::waiting_for_input);
  EXPECT_EQ(input_wait.event, EventKind::input_requested);
}

TEST(Decide, SleepsAndReleasesAreNotCharged) {
  const Settlement nap = decide_for(spent_run(), Slept{"nap#1", "nap", kWall + hours(1)});
  EXPECT_EQ(nap.at, kWall + hours(1));
  EXPECT_EQ(nap.payload["key"], "nap#1");
  EXPECT_FALSE(nap.charged);
  const Settlement released = decide_for(spent_run(), Interrupted{});
  EXPECT_EQ(released.outcome, Outcome::released);
  EXPECT_FALSE(released.charged);
  EXPECT_FALSE(released.delay || released.at);
}

TEST(Decide, ALostWorkerIsChargedAndTheRunGoesOnAtOnce) {
  const Settlement settlement = decide_for(running_run(), WorkerLost{"w"});
  EXPECT_TRUE(settlement.charged);
  EXPECT_EQ(settlement.delay, Duration(0));
}

TEST(Decide, DeadLettersNameTheCulprit) {
  RunRow lost = with(spent_run(), fence(Effect::idempotent_write));
  lost.reclaim_count = 3;
  EXPECT_NE(decide_for(lost, WorkerLost{"w"})
                .failure->message.find("worker lost 4 times at step tool:pay"),
            std::string::npos);
  Failed end = failed_by(FailureClass::rate_limit);
  end.failure.provider = "main";
  end.failure.code = "429";
  RunRow failing = spent_run();
  failing.reclaim_count = 1;
  const std::string text = decide_for(failing, end).failure->message;
  EXPECT_NE(text.find("provider main answered rate_limit (429) 3 times"), std::string::npos)
      << text;
  EXPECT_NE(text.find("its worker was lost once"), std::string::npos) << text;
}

rc::Gen<SegmentEnd> any_end() {
  return rc::gen::exec([]() -> SegmentEnd {
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
        return Completed{1};
      case 1:
        return Ended{static_cast<Reason>(*rc::gen::inRange(0, 10)), "m", std::nullopt};
      case 2:
        return Suspended{*rc::gen::arbitrary<bool>() ? approval(2) : *input_run().waiting_for};
      case 3:
        return Slept{"k", "nap", kWall + *rc::gen::inRange(-10, 1000) * seconds(1)};
      case 4:
        return Interrupted{};
      case 5:
        return WorkerLost{"w"};
      default: {
        Failed end = failed_by(static_cast<FailureClass>(*rc::gen::inRange(0, 13)));
        end.failure.attempted = *rc::gen::arbitrary<bool>();
        end.failure.not_started = *rc::gen::arbitrary<bool>();
        if (*rc::gen::arbitrary<bool>()) end.failure.should_retry = *rc::gen::arbitrary<bool>();
        if (*rc::gen::arbitrary<bool>()) {
          end.failure.retry_after = Duration(*rc::gen::arbitrary<std::int64_t>());
        }
        end.in_agent = *rc::gen::arbitrary<bool>();
        return end;
      }
    }
  });
}

RC_GTEST_PROP(Decide, NeverLeavesTheStateTable, ()) {
  RunRow run = running_run();
  run.max_requeues = *rc::gen::inRange(0, 4);
  run.requeue_count = *rc::gen::inRange(0, run.max_requeues + 1);
  if (*rc::gen::arbitrary<bool>()) {
    run.failing_since = kWall - *rc::gen::inRange(0, 30) * hours(1);
  }
  if (*rc::gen::arbitrary<bool>()) {
    run.pending = fence(static_cast<Effect>(*rc::gen::inRange(1, 3)), *rc::gen::arbitrary<bool>(),
                        *rc::gen::inRange(3, 5));
  }
  const bool interactive = *rc::gen::arbitrary<bool>();
  const Settlement settlement = decide(run, *any_end(), interactive, kWall, 0.5);

  RC_ASSERT(settlement.next != Status::running);
  RC_ASSERT(may_follow(Status::running, settlement.next));
  RC_ASSERT(settlement.reason.has_value() == is_terminal(settlement.next));
  RC_ASSERT(settlement.wait.has_value() == is_waiting(settlement.next));
  RC_ASSERT((settlement.next == Status::failed) == (settlement.event == EventKind::failed));
  if (settlement.charged) {
    RC_ASSERT(settlement.next == Status::queued);
    RC_ASSERT(run.requeue_count < run.max_requeues);
  }
  if (settlement.delay) RC_ASSERT(*settlement.delay >= Duration(0));
  const bool fence_stands = run.is_fenced_unsafe() && !settlement.clears_fence;
  if (fence_stands) RC_ASSERT(settlement.next != Status::completed);
  if (fence_stands && !run.pending->has_probe) {
    RC_ASSERT(settlement.next == Status::failed || settlement.next == Status::cancelled);
  }
}

}  // namespace
}  // namespace holdfast
