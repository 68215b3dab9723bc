#include "runtime/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/text.hpp"

namespace holdfast {
namespace {

constexpr const char* kTime = "2026-11-02T08:30:00.000Z";

/// Builds a run and its journal side by side; a test then bends one of them.
struct Story {
  Run run;
  std::vector<Event> journal;

  Story() {
    run.id = "r-1";
    run.agent = "triage";
    run.created_at = *parse_time(kTime);
    run.available_at = run.created_at;
  }
  Story& add(EventKind kind, Json payload = Json::object()) {
    Event event;
    event.run = run.id;
    event.sequence = ++run.last_sequence;
    event.kind = kind;
    event.at = *parse_time(kTime);
    event.claim = run.claim;
    event.payload = std::move(payload);
    journal.push_back(std::move(event));
    return *this;
  }
  Story& queued() {
    return add(EventKind::queued, {{"agent", "triage"}, {"queue", "default"}, {"priority", 0}});
  }
  Story& started() {
    run.claim = 1;
    run.status = Status::running;
    run.origin = Origin::interactive;
    run.claimed_by = "w";
    run.started_at = *parse_time(kTime);
    run.available_at.reset();
    return add(EventKind::started, {{"agent", "triage"}, {"worker", "w"}});
  }
  Story& claimed() {
    ++run.claim;
    run.status = Status::running;
    run.claimed_by = "w";
    run.started_at = *parse_time(kTime);
    run.available_at.reset();
    run.lease_until = StoreTime(std::chrono::seconds(10));
    return add(EventKind::claimed, {{"worker", "w"}});
  }
  Story& back() {
    run.status = Status::queued;
    run.claimed_by.reset();
    run.lease_until.reset();
    run.available_at = *parse_time(kTime);
    return *this;
  }
  Story& step(const std::string& key) { return add(EventKind::step, {{"key", key}}); }
  Story& requeued() {
    ++run.requeue_count;
    return back().add(EventKind::requeued, {{"available_at", kTime}});
  }
  Story& ended(Status status, Reason reason, EventKind kind, Json payload = Json::object()) {
    back();
    run.available_at.reset();
    run.waiting_for.reset();
    run.status = status;
    run.reason = Word<Reason>(reason);
    run.finished_at = *parse_time(kTime);
    payload["reason"] = to_word(reason);
    return add(kind, std::move(payload));
  }
  Story& failed() { return ended(Status::failed, Reason::not_retryable, EventKind::failed); }
  Story& failed_with(FailureClass cls, const std::string& message) {
    run.error.emplace();
    run.error->cls = cls;
    run.error->message = message;
    return ended(Status::failed, Reason::not_retryable, EventKind::failed,
                 {{"class", to_word(cls)}, {"message", message}});
  }
  Story& answered(const Json& answer) {
    run.answer = answer;
    return ended(Status::completed, Reason::completed, EventKind::completed, {{"answer", answer}});
  }
  Story& completed() { return ended(Status::completed, Reason::completed, EventKind::completed); }
  Story& cancelled() {
    return ended(Status::cancelled, Reason::cancelled, EventKind::cancelled, {{"actor", "ada"}});
  }
  Story& redriven(EventKind kind = EventKind::redriven) {
    run.requeue_count = run.reclaim_count = 0;
    ++run.redrive_count;
    run.reason.reset();
    run.error.reset();
    run.finished_at.reset();
    return back().add(kind);
  }
  Story& asks(std::vector<std::string> ids) {
    run.status = Status::waiting_for_approval;
    run.claimed_by.reset();
    run.lease_until.reset();
    run.waiting_for = Wait{};
    auto calls = Json::array();
    for (const auto& id : ids) calls.push_back({{"id", id}});
    return add(EventKind::approval_requested, {{"calls", calls}});
  }
  Story& decided(const std::string& id) {
    return add(EventKind::approved, {{"calls", {{{"id", id}}}}});
  }

  std::vector<Finding> findings() const { return check_run(run, journal); }
};

std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const auto& finding : findings) text += finding.subject + ": " + finding.text + "\n";
  return text;
}

void expect_sound(const Story& story) {
  EXPECT_TRUE(story.findings().empty()) << text_of(story.findings());
}

void expect_broken(const Story& story, const std::string& part) {
  const auto text = text_of(story.findings());
  EXPECT_NE(text.find(part), std::string::npos) << part << "\nin: " << text;
  EXPECT_NE(text.find("r-1"), std::string::npos);
}

TEST(Verify, OrdinaryLivesAreSound) {
  expect_sound(Story().queued());
  expect_sound(Story().queued().claimed());
  expect_sound(Story().queued().claimed().step("a").requeued().claimed().completed());
  expect_sound(Story().queued().claimed().failed().redriven().claimed().completed());
  expect_sound(Story().queued().cancelled());
  expect_sound(Story().queued().claimed().answered({{"a", 1}}));
  expect_sound(Story().queued().claimed().answered(nullptr));
  expect_sound(Story().queued().claimed().failed_with(FailureClass::auth, "no").redriven());
  expect_sound(Story().started().answered("here"));
}

TEST(Verify, WhoGoesOnAfterADecisionIsNotInTheEvents) {
  auto story = Story().started().asks({"1"}).decided("1");
  story.run.waiting_for.reset();
  auto given = story.back();
  given.run.origin = Origin::queued;
  expect_sound(given);
  expect_sound(given.claimed());
  story.claimed();
  story.run.lease_until.reset();
  expect_sound(story);
}

TEST(Verify, AWaitThatEndsTheRunLeavesItsOrigin) {
  auto story = Story().started().asks({"1"}).add(EventKind::expired);
  story.failed_with(FailureClass::unknown, "nobody approved");
  expect_sound(story);
  story.run.origin = Origin::queued;
  expect_broken(story, "its origin is queued, its events say interactive");
}

TEST(Verify, DecisionsOnTwoCallsAreOneRestart) {
  auto story = Story().queued().claimed().asks({"1", "2"}).decided("2");
  expect_sound(story);
  story.decided("1");
  story.run.waiting_for.reset();
  expect_sound(story.back());
  expect_sound(story.claimed());
}

TEST(Verify, StepInFlightAtACancelIsRecordedOnce) {
  auto story = Story().queued().claimed().cancelled();
  story.run.claimed_by = "w";
  expect_sound(story.step("a"));
  expect_broken(story.step("b"), "changes a run that is cancelled");
}

TEST(Verify, WriteThatLandedIsRecordedBeforeItsResolve) {
  auto story = Story().queued().claimed().failed().step("pay").redriven(EventKind::resolved);
  expect_sound(story);
  expect_broken(Story().queued().claimed().failed().step("pay").redriven(), "changes a run");
}

TEST(Verify, ReapedRunsAreChargedOrDead) {
  auto story = Story().queued().claimed();
  ++story.run.requeue_count;
  ++story.run.reclaim_count;
  story.back().add(EventKind::reaped, {{"available_at", kTime}});
  expect_sound(story);
  expect_sound(story.claimed());
  expect_sound(Story().queued().claimed().add(EventKind::reaped, {{"reason", "x"}}).failed());
  auto open = Story().queued().claimed().add(EventKind::reaped, {{"reason", "x"}}).completed();
  expect_broken(open, "stands where the failure belongs");
}

TEST(Verify, NamesWhatIsBroken) {
  struct Case {
    const char* says;
    std::function<void(Story&)> bend;
  };
  const auto base = [] { return Story().queued().claimed().step("a"); };
  const std::vector<Case> cases = {
      {"number 2 belongs", [](Story& s) { s.journal.erase(s.journal.begin() + 1); }},
      {"number 3 belongs", [](Story& s) { s.journal[2].sequence = 2; }},
      {"newest event is 4", [](Story& s) { s.run.last_sequence = 4; }},
      {"its status is completed", [](Story& s) { s.run.status = Status::completed; }},
      {"its claim is 2, its events say 1", [](Story& s) { s.run.claim = 2; }},
      {"its requeue_count is 1", [](Story& s) { s.run.requeue_count = 1; }},
      {"its reclaim_count is 1", [](Story& s) { s.run.reclaim_count = 1; }},
      {"its redrive_count is 1", [](Story& s) { s.run.redrive_count = 1; }},
      {"its iterations is 5", [](Story& s) { s.run.iterations = 5; }},
      {"its claimed_by is x", [](Story& s) { s.run.claimed_by = "x"; }},
      {"nobody holds it", [](Story& s) { s.run.claimed_by.reset(); }},
      {"without a lease", [](Story& s) { s.run.lease_until.reset(); }},
      {"interactive segment has a lease", [](Story& s) { s.run.origin = Origin::interactive; }},
      {"has a due time", [](Story& s) { s.run.available_at = *parse_time(kTime); }},
      {"waits for something", [](Story& s) { s.run.waiting_for = Wait{}; }},
      {"a time of its end", [](Story& s) { s.run.finished_at = *parse_time(kTime); }},
      {"4 requeues of 3", [](Story& s) { s.run.requeue_count = 4; }},
      {"recorded again by event 4", [](Story& s) { s.step("a"); }},
      {"without a key", [](Story& s) { s.step(""); }},
      {"claims a run that is running", [](Story& s) { s.claimed(); }},
      {"is of claim 7", [](Story& s) { s.journal[2].claim = 7; }},
      {"stands in mid-journal", [](Story& s) { s.queued(); }},
      {"begins the journal", [](Story& s) { s.journal[0].kind = EventKind::woken; }},
      {"changes a run that is completed",
       [](Story& s) { s.completed().add(EventKind::woken, {}); }},
      {"changes a run that is failed", [](Story& s) { s.failed().completed(); }},
      {"fence is of step a, which is recorded",
       [](Story& s) {
         s.run.pending = Fence{};
         s.run.pending->step_key = "a";
         s.run.pending->claim = 1;
       }},
      {"fence is of claim 9",
       [](Story& s) {
         s.run.pending = Fence{};
         s.run.pending->step_key = "b";
         s.run.pending->claim = 9;
       }},
      {"queued under an unsafe fence",
       [](Story& s) {
         s.run.pending = Fence{};
         s.run.pending->step_key = "b";
         s.run.pending->claim = 1;
         s.requeued();
       }},
      {"is queued and held by w",
       [](Story& s) {
         s.requeued();
         s.run.claimed_by = "w";
       }},
      {"its agent is \"other\", its events say \"triage\"",
       [](Story& s) { s.run.agent = "other"; }},
      {"its queue is \"slow\"", [](Story& s) { s.run.queue = "slow"; }},
      {"its priority is 7, its events say 0", [](Story& s) { s.run.priority = 7; }},
      {"its origin is interactive, its events say queued",
       [](Story& s) { s.run.origin = Origin::interactive; }},
      {"its origin is space, its events say queued (or a newer holdfast wrote it)",
       [](Story& s) { s.run.origin = Word<Origin>("space"); }},
      {"its total_tokens is 9, its events say 0", [](Story& s) { s.run.usage.total_tokens = 9; }},
      {"its cost_usd is 0.5", [](Story& s) { s.run.usage.cost_usd = 0.5; }},
      {"its started_at is none", [](Story& s) { s.completed().run.started_at.reset(); }},
      {"its created_at is 1970", [](Story& s) { s.run.created_at = WallTime{}; }},
      {"its available_at is 1970", [](Story& s) { s.requeued().run.available_at = WallTime{}; }},
      {"its finished_at is 1970", [](Story& s) { s.failed().run.finished_at = WallTime{}; }},
      {"has no policy", [](Story& s) { s.run.has_policy = false; }},
      {"its error is none, its events say auth",
       [](Story& s) { s.failed_with(FailureClass::auth, "no").run.error.reset(); }},
      {"its error is auth without code (provider none, model none): yes",
       [](Story& s) { s.failed_with(FailureClass::auth, "no").run.error->message = "yes"; }},
      {"its answer is 1, its completed event says 2",
       [](Story& s) { s.answered(2).run.answer = 1; }},
      {"its answer is none, its completed event says null",
       [](Story& s) { s.answered(nullptr).run.answer.reset(); }},
      {"it has an answer, and its events have none", [](Story& s) { s.run.answer = 1; }},
      {"its pending turn is x", [](Story& s) { s.asks({"1"}).run.waiting_for->turn = "x"; }},
      {"the payload of event 3 (step) is not JSON",
       [](Story& s) { s.journal[2].payload = Json(Json::value_t::discarded); }},
      {"its input is not JSON", [](Story& s) { s.run.input = Json(Json::value_t::discarded); }},
      {"decides call 1 a second time",
       [](Story& s) {
         s.asks({"1", "2"}).decided("1").decided("1");
       }},
  };
  for (const auto& one : cases) {
    auto story = base();
    one.bend(story);
    expect_broken(story, one.says);
  }
}

TEST(Verify, MoreClaimsThanTheBudgetExplainsAreFound) {
  auto story = Story().queued().claimed();
  story.back();
  story.journal.push_back(story.journal.back());
  story.journal.back().sequence = 3;
  story.journal.back().claim = 2;
  story.run.last_sequence = 3;
  story.run.claim = 2;
  expect_broken(story, "2 claims in this drive; 0 requeues and 0 uncharged restarts explain");
}

TEST(Verify, EventsOfANewerVersionAreNotJudged) {
  auto story = Story().queued();
  story.add(EventKind::woken).journal.back().kind = Word<EventKind>("orbited");
  story.run.status = Word<Status>("hibernating");
  expect_sound(story);
}

TEST(Verify, AnUnknownStatusIsFoundWhereTheEventsSayAnother) {
  auto story = Story().queued();
  story.run.status = Word<Status>("zzz");
  expect_broken(story, "its status is zzz, its events say queued (or a newer holdfast wrote it)");
}

TEST(Verify, SaysWhatRowsCannotShow) {
  for (const auto& finding : invariants_not_shown()) EXPECT_EQ(finding.grade, Finding::Grade::ok);
  EXPECT_EQ(invariants_not_shown().size(), 6U);
}

}  // namespace
}  // namespace holdfast
