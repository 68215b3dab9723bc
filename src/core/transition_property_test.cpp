// Random histories of one run against the invariants of spec, section 10, and the arithmetic of the
// budget over every sequence of faults.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/test_runs.hpp"

namespace holdfast {
namespace {

using namespace testing_runs;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;
using std::chrono::milliseconds;
using RunRow = Run;

/// One run and its journal, as a store would keep them; every change is checked as it is made.
class History {
 public:
  void begin(const Change& change) { store(change); }

  bool attempt(const Transition& transition, const std::string& what) {
    if (!applied(transition)) return false;
    check(change_of(transition), what);
    store(change_of(transition));
    return true;
  }

  const RunRow& run() const { return run_; }
  const std::vector<Event>& events() const { return events_; }
  Now now{kWall, kStore};

  int count(EventKind kind) const {
    return static_cast<int>(std::count_if(events_.begin(), events_.end(),
                                          [&](const Event& event) { return event.kind.is(kind); }));
  }

 private:
  void store(const Change& change) {
    run_ = change.row;
    for (const NewEvent& event : change.events) {
      events_.push_back(
          {run_.id, ++run_.last_sequence, event.kind, now.wall, event.claim, event.payload});
    }
  }

  void check(const Change& change, const std::string& what) const {
    const RunRow& row = change.row;
    const Status before = *run_.status.known();
    const Status after = *row.status.known();
    RC_ASSERT(may_follow(before, after));
    // 1: claim numbers only grow, by one, with every segment.
    const bool begins = before != Status::running && after == Status::running;
    RC_ASSERT(row.claim == run_.claim + (begins ? 1 : 0));
    // 2: a terminal run changes by an operator, by the step in flight at a cancel, or by its
    // holder.
    if (is_terminal(before)) {
      const bool by_operator = what == "redrive" || what == "resolve";
      const bool after_cancel = what == "record" || what == "acknowledge";
      RC_ASSERT(by_operator || (before == Status::cancelled && after_cancel));
    }
    // 4: nothing but recording, unfencing, an unstarted write or a person clears an unsafe fence.
    if (run_.is_fenced_unsafe() && row.pending != run_.pending) {
      const bool may_clear = what == "record" || what == "unfence" || what == "resolve" ||
                             what == "settle: not started";
      const bool same_fence = row.pending && row.pending->step_key == run_.pending->step_key;
      RC_ASSERT(may_clear || same_fence);
    }
    // 7: the budget.
    RC_ASSERT(row.requeue_count <= row.max_requeues);
    RC_ASSERT(row.reclaim_count <= row.requeue_count);
    check_shape(row, after);
  }

  /// G7 and the shape of leases: who holds what in which status.
  static void check_shape(const RunRow& row, Status status) {
    RC_ASSERT(row.available_at.has_value() == (status == Status::queued));
    RC_ASSERT(row.waiting_for.has_value() == is_waiting(status));
    RC_ASSERT(row.finished_at.has_value() == is_terminal(status));
    RC_ASSERT(row.reason.has_value() == is_terminal(status));
    RC_ASSERT(row.lease_until.has_value() == row.lease_expires_at.has_value());
    if (status == Status::running) {
      RC_ASSERT(row.claimed_by.has_value());
      RC_ASSERT(row.lease_until.has_value() == row.origin.is(Origin::queued));
    } else {
      RC_ASSERT(!row.lease_until);
      RC_ASSERT(!row.claimed_by || status == Status::cancelled);
    }
    if (row.is_fenced_unsafe()) {
      RC_ASSERT(status != Status::completed && !is_waiting(status));
      RC_ASSERT(status != Status::queued || row.pending->has_probe);
    }
    RC_ASSERT((status == Status::completed) == row.answer.has_value());
  }

  RunRow run_;
  std::vector<Event> events_;
};

/// What happened in one drive, read from its events alone.
struct Drive {
  int claims = 0;
  int charged = 0;
  int uncharged = 0;
};

Drive last_drive(const std::vector<Event>& events) {
  Drive drive;
  for (const Event& event : events) {
    switch (*event.kind.known()) {
      case EventKind::redriven:
      case EventKind::resolved:
        drive = Drive{};
        break;
      case EventKind::started:
      case EventKind::claimed:
        ++drive.claims;
        break;
      case EventKind::requeued:
        ++drive.charged;
        break;
      case EventKind::reaped:
        if (event.payload.contains("available_at")) ++drive.charged;
        break;
      case EventKind::parked:
      case EventKind::released:
      case EventKind::handed_over:
      case EventKind::slept:
      case EventKind::approval_requested:
      case EventKind::input_requested:
        ++drive.uncharged;
        break;
      default:  // nothing that lets another segment begin
        break;
    }
  }
  return drive;
}

/// Folding the events gives the row, but for lease and fence (invariant 6).
void check_fold(const History& history) {
  std::string status;
  std::string reason;
  int requeues = 0;
  int redrives = 0;
  std::int64_t claim = 0;
  std::int64_t sequence = 0;
  for (const Event& event : history.events()) {
    RC_ASSERT(event.sequence == ++sequence);
    switch (*event.kind.known()) {
      case EventKind::queued:
      case EventKind::released:
      case EventKind::slept:
      case EventKind::parked:
      case EventKind::woken:
        status = "queued";
        break;
      case EventKind::redriven:
      case EventKind::resolved:
        status = "queued";
        reason.clear();
        requeues = 0;
        ++redrives;
        break;
      case EventKind::handed_over:
      case EventKind::expired:
        status = "queued";
        break;
      case EventKind::requeued:
        status = "queued";
        requeues += event.payload["charged"].get<bool>() ? 1 : 0;
        break;
      case EventKind::reaped:
        if (event.payload.contains("available_at")) {
          status = "queued";
          ++requeues;
        }
        break;
      case EventKind::started:
      case EventKind::claimed:
        status = "running";
        claim = event.claim;
        break;
      case EventKind::approval_requested:
        status = "waiting_for_approval";
        break;
      case EventKind::input_requested:
        status = "waiting_for_input";
        break;
      case EventKind::completed:
      case EventKind::failed:
        status = event.kind.text();
        reason = event.payload["reason"].get<std::string>();
        break;
      case EventKind::cancelled:
        status = reason = "cancelled";
        break;
      case EventKind::approved:
      case EventKind::denied:
      case EventKind::input_submitted:
        // The last decision hands the run on; the tests below decide whole turns.
        status = "queued";
        break;
      case EventKind::model:
      case EventKind::tool:
      case EventKind::step:
      case EventKind::probed:
        break;
    }
  }
  const RunRow& run = history.run();
  RC_ASSERT(run.status.text() == status);
  RC_ASSERT((run.reason ? run.reason->text() : std::string()) == reason);
  RC_ASSERT(run.requeue_count == requeues);
  RC_ASSERT(run.redrive_count == redrives);
  RC_ASSERT(run.claim == claim);
  RC_ASSERT(run.last_sequence == sequence);
}

/// A segment that some worker believes to own: perhaps rightly, perhaps for long no more.
struct Believer {
  Lease lease;
  RunRow seen;  ///< the row as it was at the claim
};

SegmentEnd random_end() {
  Failed failed{failure(static_cast<FailureClass>(*rc::gen::inRange(0, 13)))};
  switch (*rc::gen::inRange(0, 8)) {
    case 0:
      return Completed{1};
    case 1:
      return Suspended{*rc::gen::arbitrary<bool>() ? approval() : *input_run().waiting_for};
    case 2:
      return Slept{"nap#1", "nap", kWall + *rc::gen::inRange(0, 100) * hours(1)};
    case 3:
      return Interrupted{};
    case 4:
      failed.failure.cls = FailureClass::circuit_open;
      failed.failure.attempted = false;
      return failed;
    case 5:
      failed.failure.not_started = true;
      return failed;
    case 6:
      return Ended{Reason::max_iterations, "", std::nullopt};
    default:
      return failed;
  }
}

std::string settle_name(const SegmentEnd& end) {
  const auto* failed = std::get_if<Failed>(&end);
  return failed != nullptr && failed->failure.not_started ? "settle: not started" : "settle";
}

/// One thing that somebody tries; most of it is refused most of the time, which is the point.
void random_attempt(History& history, std::vector<Believer>& believers) {
  const RunRow& run = history.run();
  const Now now = history.now;
  const Believer who = believers.empty()
                           ? Believer{lease_of(running_run()), running_run()}
                           : believers[*rc::gen::inRange<std::size_t>(0, believers.size())];
  const auto note_claim = [&](bool applied_now) {
    if (!applied_now) return;
    believers.push_back({lease_of(history.run()), history.run()});
    believers.back().lease.interactive = !history.run().lease_until;
  };
  Decision decision;
  decision.by = ann();
  decision.kind = static_cast<DecisionKind>(*rc::gen::inRange(0, 3));
  switch (*rc::gen::inRange(0, 19)) {
    case 0:
    case 1:
    case 2: {
      const std::string worker(1, static_cast<char>('a' + *rc::gen::inRange(0, 3)));
      return note_claim(
          history.attempt(claimed(run, worker, AgentOffer{"triage", {}, {}}, now), "claim"));
    }
    case 3:
      history.attempt(renewed(run, who.lease, now), "renew");
      return;
    case 4:
    case 5: {
      StepRecord record;
      record.kind = EventKind::tool;
      record.key = *rc::gen::arbitrary<bool>() ? "tool:pay#1" : "other#1";
      record.payload = {{"key", record.key}};
      const bool already =
          std::any_of(history.events().begin(), history.events().end(), [&](const Event& event) {
            return event.claim == who.lease.claim && event.payload.contains("key") &&
                   event.payload["key"] == record.key;
          });
      history.attempt(recorded(run, who.lease, record, already, now), "record");
      return;
    }
    case 6:
    case 7: {
      const auto effect = static_cast<Effect>(*rc::gen::inRange(1, 3));
      history.attempt(fenced(run, who.lease, fence(effect, *rc::gen::arbitrary<bool>()), now),
                      "fence");
      return;
    }
    case 8:
      history.attempt(unfenced(run, who.lease, {"tool:pay#1", {}}, now), "unfence");
      return;
    case 9:
    case 10:
    case 11: {
      // Decided on what the segment has seen, which may be old.
      const SegmentEnd end = random_end();
      const RunRow& basis = *rc::gen::arbitrary<bool>() ? who.seen : run;
      if (!basis.status.is(Status::running)) return;
      const Settlement settlement = decide(basis, end, who.lease.interactive, now.wall, 0.5);
      history.attempt(settled(run, who.lease, settlement, now), settle_name(end));
      return;
    }
    case 12: {
      const Settlement settlement = decide(run, WorkerLost{"w"}, false, now.wall, 0.5);
      history.attempt(reaped(run, settlement, *rc::gen::arbitrary<bool>(), now), "reap");
      return;
    }
    case 13:
      if (*rc::gen::inRange(0, 4) == 0) history.attempt(cancelled(run, ann(), now), "cancel");
      history.attempt(cancel_acknowledged(run, who.lease, now), "acknowledge");
      return;
    case 14: {
      history.attempt(answered(run, decision, {}, now), "answer");
      return;
    }
    case 15: {
      Transition handed = handed_over(run, *rc::gen::arbitrary<bool>(), true, ann(), now);
      history.attempt(handed, "hand over");
      return;
    }
    case 16: {
      ResolveRequest request;
      request.landed = *rc::gen::arbitrary<bool>();
      request.force = *rc::gen::arbitrary<bool>();
      history.attempt(resolved(run, request, now), "resolve");
      return;
    }
    case 17:
      history.attempt(redriven(run, ann(), now), "redrive");
      history.attempt(woken(history.run(), ann(), now), "wake");
      return;
    default: {
      const Duration step = milliseconds(*rc::gen::inRange(0, 200'000));
      history.now = {now.wall + step, now.store + step};
      return;
    }
  }
}

RC_GTEST_PROP(Histories, KeepTheInvariantsWhateverIsTried, ()) {
  NewRun request;
  request.row = queued_run();
  request.row.max_requeues = *rc::gen::inRange(0, 4);
  History history;
  std::vector<Believer> believers;
  if (*rc::gen::arbitrary<bool>()) {
    history.begin(enqueued(request, history.now));
  } else {
    history.begin(started(request, "a", history.now));
    believers.push_back({lease_of(history.run()), history.run()});
  }
  const int attempts = *rc::gen::inRange(10, 120);
  for (int i = 0; i < attempts; ++i) random_attempt(history, believers);
  check_fold(history);
  const Drive drive = last_drive(history.events());
  RC_ASSERT(drive.charged == history.run().requeue_count);
  RC_ASSERT(drive.claims <= 1 + drive.charged + drive.uncharged);
  if (history.run().status.is(Status::running)) {
    RC_ASSERT(drive.claims == 1 + drive.charged + drive.uncharged);
  }
}

/// Claims and faults until the run is dead; how often it was executed.
int executions_under(std::vector<bool> lost_first, int max_requeues) {
  NewRun request;
  request.row = queued_run();
  request.row.max_requeues = max_requeues;
  RunRow run = enqueued(request, kNow).row;
  int executions = 0;
  Now now = kNow;
  for (std::size_t i = 0; i < 20 && run.status.is(Status::queued); ++i) {
    now = {now.wall + hours(1), now.store + hours(1)};
    run = change_of(claimed(run, "w", AgentOffer{"triage", {}, {}}, now)).row;
    ++executions;
    const bool is_lost = lost_first[i % lost_first.size()];
    if (is_lost) {
      now = {now.wall + hours(1), now.store + hours(1)};
      run =
          change_of(reaped(run, decide(run, WorkerLost{"w"}, false, now.wall, 0), false, now)).row;
    } else {
      const Settlement settlement =
          decide(run, Failed{failure(FailureClass::server_error)}, false, now.wall, 0);
      run = change_of(settled(run, lease_of(run), settlement, now)).row;
    }
  }
  EXPECT_TRUE(run.status.is(Status::failed));
  EXPECT_TRUE(run.reason->is(Reason::retries_exhausted));
  return executions;
}

TEST(Budget, EverySequenceOfFaultsLeadsToTheSameNumberOfExecutions) {
  for (int max_requeues = 0; max_requeues <= 3; ++max_requeues) {
    for (std::size_t length = 1; length <= 3; ++length) {
      for (unsigned bits = 0; bits < (1u << length); ++bits) {
        std::vector<bool> faults;
        for (std::size_t i = 0; i < length; ++i) faults.push_back(((bits >> i) & 1u) != 0);
        EXPECT_EQ(executions_under(faults, max_requeues), max_requeues + 1);
      }
    }
  }
}

TEST(Budget, WhatIsNotChargedNeverEndsARun) {
  NewRun request;
  request.row = queued_run();
  request.row.max_requeues = 0;
  RunRow run = enqueued(request, kNow).row;
  for (int i = 0; i < 50; ++i) {
    run = change_of(claimed(run, "w", AgentOffer{"triage", {}, {}}, kNow)).row;
    const SegmentEnd end =
        i % 2 == 0 ? SegmentEnd(Interrupted{}) : SegmentEnd(Slept{"k", "n", kWall});
    run = change_of(settled(run, lease_of(run), decide(run, end, false, kWall, 0), kNow)).row;
    ASSERT_TRUE(run.status.is(Status::queued));
  }
  EXPECT_EQ(run.claim, 50);
  EXPECT_EQ(run.requeue_count, 0);
}

}  // namespace
}  // namespace holdfast
