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
    run.available_at = *parse_time(kTime);
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
  Story& queued() { return add(EventKind::queued); }
  Story& claimed() {
    ++run.claim;
    run.status = Status::running;
    run.claimed_by = "w";
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
  Story& completed() { return ended(Status::completed, Reason::completed, EventKind::completed); }
  Story& cancelled() {
    return ended(Status::cancelled, Reason::cancelled, EventKind::cancelled, {{"actor", "ada"}});
  }
  Story& redriven(EventKind kind = EventKind::redriven) {
    run.requeue_count = run.reclaim_count = 0;
    ++run.redrive_count;
    run.reason.reset();
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

TEST(Verify, WordsOfANewerVersionAreNotJudged) {
  auto story = Story().queued();
  story.run.status = Word<Status>("hibernating");
  expect_sound(story);
}

TEST(Verify, SaysWhatRowsCannotShow) {
  for (const auto& finding : invariants_not_shown()) EXPECT_EQ(finding.grade, Finding::Grade::ok);
  EXPECT_EQ(invariants_not_shown().size(), 6U);
}

}  // namespace
}  // namespace holdfast
