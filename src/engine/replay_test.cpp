#include "engine/replay.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

Event event(std::int64_t sequence, EventKind kind, Json payload) {
  Event made;
  made.run = "r";
  made.sequence = sequence;
  made.kind = kind;
  made.claim = 1;
  made.payload = std::move(payload);
  return made;
}

Event recorded(std::int64_t sequence, const std::string& name, const std::string& key,
               const Json& result) {
  return event(sequence, EventKind::step,
               step_payload(StepKind::step, name, key, Effect::read, nullptr, result));
}

TEST(Replay, ReturnsRecordedStepsInOrder) {
  Replay replay(
      {recorded(1, "a", "a#1", 1), recorded(2, "a", "a#2", 2), recorded(3, "b", "b#1", 3)});
  EXPECT_EQ(replay.take(replay.next_key("a", ""), "a", false, false)->result, 1);
  EXPECT_EQ(replay.take(replay.next_key("a", ""), "a", false, false)->result, 2);
  EXPECT_EQ(replay.take(replay.next_key("b", ""), "b", false, false)->result, 3);
  EXPECT_EQ(replay.take(replay.next_key("a", ""), "a", false, false), nullptr);
}

TEST(Replay, NamesBothStepsOfAMismatch) {
  Replay replay({recorded(1, "charge", "charge#1", 1)});
  const std::string key = replay.next_key("refund", "");
  try {
    replay.take(key, "refund", false, false);
    FAIL() << "the order of the journal was not kept";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().cls, FailureClass::configuration);
    EXPECT_NE(error.failure().message.find("charge#1"), std::string::npos);
    EXPECT_NE(error.failure().message.find("refund#1"), std::string::npos);
  }
}

TEST(Replay, RefusesALiveStepWhileRecordedOnesRemain) {
  Replay replay({recorded(1, "a", "a#1", 1), recorded(2, "b", "b#1", 2)});
  replay.take(replay.next_key("a", ""), "a", false, false);
  EXPECT_THROW(replay.take(replay.next_key("a", ""), "a", false, false), FailureError);
}

TEST(Replay, FindsStepsWithKeysOfTheirOwnInAnyOrder) {
  Replay replay({recorded(1, "tool:x", "t1.1", "first"), recorded(2, "tool:y", "t1.3", "third")});
  EXPECT_EQ(replay.take(replay.next_key("tool:y", "t1.3"), "tool:y", true, false)->result, "third");
  EXPECT_EQ(replay.take(replay.next_key("tool:z", "t1.2"), "tool:z", true, false), nullptr);
  EXPECT_EQ(replay.take(replay.next_key("tool:x", "t1.1"), "tool:x", true, false)->result, "first");
}

TEST(Replay, RefusesAKeyThatWasUsedBefore) {
  Replay replay;
  replay.next_key("a", "k");
  EXPECT_THROW(replay.next_key("b", "k"), FailureError);
}

TEST(Replay, KeepsTheWaitForAProbeOutOfTheJournal) {
  Replay replay({event(1, EventKind::slept, {{"key", ""}, {"name", "probe"}, {"until", 5}}),
                 recorded(2, "a", "a#1", 1)});
  EXPECT_NE(replay.take(replay.next_key("a", ""), "a", false, false), nullptr);
}

TEST(Replay, RemembersDueTimeAndWakeOfASleep) {
  for (const Json& until : {Json("1970-01-01T00:00:12.345Z"), Json(12345)}) {
    const auto slept =
        event(1, EventKind::slept, {{"key", "nap#1"}, {"name", "nap"}, {"until", until}});
    Replay asleep({slept});
    const auto* step = asleep.take(asleep.next_key("nap", ""), "nap", false, true);
    ASSERT_NE(step, nullptr);
    EXPECT_EQ(step->until, WallTime(Duration(12345)));
    EXPECT_FALSE(step->woken);
    Replay woken({slept, event(2, EventKind::woken, {{"actor", "me"}})});
    EXPECT_TRUE(woken.take(woken.next_key("nap", ""), "nap", false, true)->woken);
  }
}

TEST(Replay, ResultsComeBackExactly) {
  for (const StepKind kind : {StepKind::step, StepKind::model, StepKind::tool}) {
    const EventKind event_kind = kind == StepKind::model ? EventKind::model : EventKind::step;
    for (const Json& result : {Json(nullptr), Json(7), Json("text"), Json::array({1, 2}),
                               Json{{"text", "hi"}}, Json{{"name", "own"}, {"text", "hi"}},
                               Json{{"key", 1}}, Json{{"result", {{"a", 1}}}}, Json::object()}) {
      EXPECT_EQ(result_of(event_kind, step_payload(kind, "n", "n#1", Effect::read, {}, result)),
                result)
          << result;
    }
  }
}

TEST(Replay, ShowsAModelsFieldsAtTheTop) {
  const Json payload = step_payload(StepKind::model, "model", "model#1", Effect::read, {},
                                    {{"text", "hi"}, {"model", "m"}});
  EXPECT_EQ(payload.at("text"), "hi");
  EXPECT_EQ(payload.at("model"), "m");
}

Question two_calls() {
  Question question;
  question.kind = WaitKind::approval;
  question.key = "turn 1";
  question.calls = {{"1", "pay", {{"amount", 5}}}, {"2", "mail", {{"to", "x"}}}};
  return question;
}

TEST(TurnDigest, ChangesWithRunPlaceAndArguments) {
  const Question question = two_calls();
  const std::string digest = turn_digest("r", question);
  EXPECT_EQ(turn_digest("r", two_calls()), digest);
  EXPECT_NE(turn_digest("s", question), digest);
  Question other = two_calls();
  other.calls[0].arguments["amount"] = 6;
  EXPECT_NE(turn_digest("r", other), digest);
  other = two_calls();
  other.key = "turn 2";
  EXPECT_NE(turn_digest("r", other), digest);
}

TEST(TurnDigest, KnowsWhetherTheSchemaIsPartOfTheQuestion) {
  Question question;
  question.key = "input#1.1";
  question.schema = {{"minimum", 1}};
  Question other = question;
  other.schema = {{"minimum", 2}};
  EXPECT_NE(turn_digest("r", question), turn_digest("r", other));
  question.schema_counts = other.schema_counts = false;
  EXPECT_EQ(turn_digest("r", question), turn_digest("r", other));
}

TEST(Answers, GatherTheVerdictsOfEachCall) {
  const auto calls = two_calls().calls;
  Replay replay(
      {event(1, EventKind::approved, {{"turn", "t"}, {"actor", "ann"}, {"calls", {{{"id", "1"}}}}}),
       event(2, EventKind::denied, {{"turn", "t"}, {"actor", "bob"}, {"calls", {{{"id", "2"}}}}}),
       event(3, EventKind::denied, {{"turn", "other"}})});
  const Answers answers = replay.find_answers("t", calls);
  EXPECT_EQ(answers.verdicts[0], Verdict::approved);
  EXPECT_EQ(answers.verdicts[1], Verdict::denied);
  EXPECT_EQ(answers.actor, "bob");
}

TEST(Answers, OfAnEarlierDriveCountOnlyWhereTheyApproved) {
  const auto calls = two_calls().calls;
  const Json both = {{"turn", "t"}, {"calls", {{{"id", "1"}}, {{"id", "2"}}}}};
  Replay denied({event(1, EventKind::denied, both), event(2, EventKind::redriven, {})});
  EXPECT_FALSE(denied.find_answers("t", calls).verdicts[0].has_value());
  Replay told({event(1, EventKind::denied, both), recorded(2, "tool:x", "tool:x#1.1", "refused"),
               event(3, EventKind::redriven, {})});
  EXPECT_EQ(told.find_answers("t", calls).verdicts[0], Verdict::denied)
      << "the run went on behind the refusal";
  Replay approved({event(1, EventKind::approved, both), event(2, EventKind::redriven, {})});
  EXPECT_EQ(approved.find_answers("t", calls).verdicts[1], Verdict::approved);
  Replay changed_mind({event(1, EventKind::approved, both), event(2, EventKind::redriven, {}),
                       event(3, EventKind::denied, both)});
  EXPECT_EQ(changed_mind.find_answers("t", calls).verdicts[0], Verdict::denied);
}

TEST(Replay, CountsWhatThePresentDriveUsedUp) {
  std::int64_t sequence = 0;
  std::int64_t second = 0;
  std::vector<Event> events;
  const auto add = [&](EventKind kind, int after) {
    ++sequence;
    events.push_back(event(sequence, kind, {{"key", std::to_string(sequence)}}));
    events.back().at = WallTime(std::chrono::seconds(second += after));
  };
  using enum EventKind;
  add(queued, 0);
  add(claimed, 100);
  add(model, 1);
  add(tool, 1);
  EXPECT_EQ(Replay(events).drive().begun_at, WallTime(std::chrono::seconds(100)));
  EXPECT_EQ(Replay(events).drive().tool_calls, 1);
  add(approval_requested, 1);
  add(approved, 60);
  add(denied, 60);
  add(claimed, 7);
  EXPECT_EQ(Replay(events).drive().begun_at, WallTime(std::chrono::seconds(100)));
  EXPECT_EQ(Replay(events).drive().waited, std::chrono::minutes(2));
  EXPECT_EQ(Replay(events).drive().earlier_model_calls, 0);
  add(failed, 1);
  add(redriven, 1);
  EXPECT_FALSE(Replay(events).drive().begun_at);
  add(claimed, 68);
  add(tool, 1);
  add(tool, 1);
  const Replay::Drive drive = Replay(events).drive();
  EXPECT_EQ(drive.begun_at, WallTime(std::chrono::seconds(300)));
  EXPECT_EQ(drive.waited, Duration::zero());
  EXPECT_EQ(drive.tool_calls, 2);
  EXPECT_EQ(drive.earlier_model_calls, 1);
}

TEST(Replay, KnowsWhichStepIsRecordedNext) {
  Replay replay({recorded(1, "a", "a#1", 1), recorded(2, "tool:x", "t1.1", 2)});
  EXPECT_TRUE(replay.holds("a", ""));
  EXPECT_TRUE(replay.holds("tool:x", "t1.1"));
  EXPECT_FALSE(replay.holds("tool:x", "t1.2"));
  EXPECT_FALSE(replay.holds("b", ""));
  replay.take(replay.next_key("a", ""), "a", false, false);
  EXPECT_FALSE(replay.holds("a", ""));
}

}  // namespace
}  // namespace holdfast
