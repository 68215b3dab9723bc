// Every status against every transition: which apply at all.

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/test_runs.hpp"

namespace holdfast {
namespace {

using namespace testing_runs;  // NOLINT(google-build-using-namespace)
using RunRow = Run;

/// A row on which everything but its status favours every transition.
struct Row {
  const char* name;
  RunRow favourable;  ///< its status is put in by the test
  std::function<Transition(const RunRow&)> attempt;
  std::set<Status> applies;
};

Decision decision_of(DecisionKind kind) {
  Decision made;
  made.kind = kind;
  made.turn = "turn-1";
  made.by = ann();
  return made;
}

std::vector<Row> rows() {
  const Lease mine = lease_of(running_run());
  RunRow waiting = waiting_run();
  waiting.waiting_for->deadline = kWall;
  const std::set<Status> running = {Status::running};
  const std::set<Status> approval_only = {Status::waiting_for_approval};
  RunRow delayed = queued_run();
  delayed.available_at = kWall + Duration(1);
  StepRecord step;
  step.key = "a#1";
  step.payload = {{"key", "a#1"}};
  ResolveRequest resolve;
  resolve.landed = true;
  Settlement failing = fence_forbids(running_run(), std::nullopt);
  Settlement completing = decide(running_run(), Completed{1}, false, kWall, 0);
  return {
      {"claim",
       queued_run(),
       [](const RunRow& run) {
         return claimed(run, "w", AgentOffer{"triage", {}, {}}, kNow);
       },
       {Status::queued}},
      {"renew", running_run(), [=](const RunRow& run) { return renewed(run, mine, kNow); },
       running},
      {"record",
       running_run(),
       [=](const RunRow& run) { return recorded(run, mine, step, false, kNow); },
       {Status::running, Status::cancelled}},
      {"fence", running_run(),
       [=](const RunRow& run) { return fenced(run, mine, unsafe_fence(), kNow); }, running},
      {"unfence", with(running_run(), unsafe_fence()),
       [=](const RunRow& run) {
         return unfenced(run, mine, {"tool:pay#1", {}}, kNow);
       },
       running},
      {"settle", running_run(),
       [=](const RunRow& run) { return settled(run, mine, completing, kNow); }, running},
      {"acknowledge",
       running_run(),
       [=](const RunRow& run) { return cancel_acknowledged(run, mine, kNow); },
       {Status::cancelled}},
      {"reap", stale_run(), [=](const RunRow& run) { return reaped(run, failing, false, kNow); },
       running},
      {"expire by presence", running_run(),
       [](const RunRow& run) { return lease_expired_by_presence(run, "worker-a", kStore, kNow); },
       running},
      {"cancel",
       running_run(),
       [](const RunRow& run) { return cancelled(run, ann(), kNow); },
       {Status::queued, Status::running, Status::waiting_for_approval, Status::waiting_for_input}},
      {"approve", waiting_run(),
       [](const RunRow& run) {
         return answered(run, decision_of(DecisionKind::approve), {}, kNow);
       },
       approval_only},
      {"deny", waiting_run(),
       [](const RunRow& run) { return answered(run, decision_of(DecisionKind::deny), {}, kNow); },
       approval_only},
      {"submit input",
       input_run(),
       [](const RunRow& run) { return answered(run, decision_of(DecisionKind::input), {}, kNow); },
       {Status::waiting_for_input}},
      {"expire a wait",
       waiting,
       [](const RunRow& run) { return wait_expired(run, kNow); },
       {Status::waiting_for_approval, Status::waiting_for_input}},
      {"hand over", interactive_run(),
       [](const RunRow& run) { return handed_over(run, true, false, ann(), kNow); }, running},
      {"resolve",
       with(failed_run(), unsafe_fence()),
       [=](const RunRow& run) { return resolved(run, resolve, kNow); },
       {Status::failed}},
      {"redrive",
       failed_run(),
       [](const RunRow& run) { return redriven(run, ann(), kNow); },
       {Status::failed}},
      {"wake",
       delayed,
       [](const RunRow& run) { return woken(run, ann(), kNow); },
       {Status::queued}},
  };
}

TEST(Transitions, ApplyInTheirOwnStatusesOnly) {
  for (const Row& row : rows()) {
    for (const Status status : kStatuses) {
      RunRow run = row.favourable;
      run.status = status;
      const Transition transition = row.attempt(run);
      EXPECT_EQ(applied(transition), row.applies.contains(status))
          << row.name << " on " << to_word(status);
      if (!applied(transition)) {
        EXPECT_FALSE(std::get<Declined>(transition).why.empty()) << row.name;
      } else {
        const Status after = change_of(transition).row.status.known().value();
        EXPECT_TRUE(may_follow(status, after)) << row.name;
      }
    }
  }
}

TEST(Transitions, LeaveStatusesOfANewerBuildAlone) {
  for (const Row& row : rows()) {
    RunRow run = row.favourable;
    run.status = Word<Status>(std::string("hibernating"));
    EXPECT_EQ(refusal_of(row.attempt(run)), Declined::Kind::unknown_word) << row.name;
  }
  RunRow run = failed_run();
  run.status = Word<Status>(std::string("hibernating"));
  PurgeRequest request;
  request.older_than = request.unfinished_older_than = Duration(0);
  EXPECT_FALSE(may_purge(run, kWall - std::chrono::hours(1), true, request, kNow));
  EXPECT_FALSE(is_stale(run, kNow));
}

TEST(StateTable, TerminalIsTerminal) {
  for (const Status to : kStatuses) {
    EXPECT_FALSE(may_follow(Status::completed, to)) << to_word(to);
    EXPECT_EQ(may_follow(Status::failed, to), to == Status::queued) << to_word(to);
    EXPECT_EQ(may_follow(Status::cancelled, to), to == Status::cancelled) << to_word(to);
  }
}

TEST(StateTable, OnlyARunningRunCompletesOrBeginsToWait) {
  for (const Status from : kStatuses) {
    EXPECT_EQ(may_follow(from, Status::completed), from == Status::running);
    EXPECT_EQ(may_follow(from, Status::waiting_for_input),
              from == Status::running || from == Status::waiting_for_input);
  }
}

TEST(Settled, RefusesToWriteARowOutsideTheStateTable) {
  Settlement wrong;
  wrong.next = Status::running;
  EXPECT_THROW(settled(running_run(), lease_of(running_run()), wrong, kNow), std::logic_error);
}

TEST(MayPurge, GoesByStatusAndAge) {
  const auto old = std::chrono::hours(10);
  PurgeRequest terminal;
  terminal.older_than = std::chrono::hours(2);
  PurgeRequest unfinished;
  unfinished.unfinished_older_than = std::chrono::hours(2);
  for (const Status status : kStatuses) {
    for (const bool is_old : {false, true}) {
      RunRow run = interactive_run();
      run.status = status;
      const WallTime last = is_old ? kWall - old : kWall;
      if (is_terminal(status)) run.finished_at = last;
      const bool is_open = is_waiting(status) || status == Status::running;
      EXPECT_EQ(may_purge(run, last, true, terminal, kNow), is_old && is_terminal(status))
          << to_word(status);
      EXPECT_EQ(may_purge(run, last, true, unfinished, kNow), is_old && is_open) << to_word(status);
    }
  }
  EXPECT_FALSE(may_purge(interactive_run(), kWall - old, false, unfinished, kNow));
  EXPECT_FALSE(may_purge(stale_run(), kWall - old, true, unfinished, kNow));
}

TEST(MayPurge, KeepsToTheNamedRuns) {
  PurgeRequest request;
  request.older_than = Duration(0);
  request.ids = {"another"};
  EXPECT_FALSE(may_purge(failed_run(), kWall, true, request, kNow));
  request.ids.push_back("run-1");
  EXPECT_TRUE(may_purge(failed_run(), kWall, true, request, kNow));
}

TEST(MayPurge, SparesWritesOfUnknownOutcomeWhereItIsAsked) {
  PurgeRequest request;
  request.older_than = Duration(0);
  const RunRow unknown = with(failed_run(), unsafe_fence());
  EXPECT_TRUE(may_purge(unknown, kWall, true, request, kNow));
  request.spares_unknown_writes = true;
  EXPECT_FALSE(may_purge(unknown, kWall, true, request, kNow));
  EXPECT_TRUE(may_purge(failed_run(), kWall, true, request, kNow));
}

}  // namespace
}  // namespace holdfast
