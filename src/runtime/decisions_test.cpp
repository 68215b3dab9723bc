#include <barrier>
#include <thread>

#include "runtime/test_runtime.hpp"

namespace holdfast::testing {
namespace {

class Decisions : public RuntimeTest {
 protected:
  static Decision decision(const RunId& id, DecisionKind kind) {
    Decision decision;
    decision.run = id;
    decision.kind = kind;
    decision.by.actor = "ada";
    return decision;
  }
  void drain() {
    WorkerSettings settings;
    settings.drain = true;
    runtime_->start_worker(settings)->join();
  }
  DecisionResult decide(const Decision& decision) { return runtime_->decide(decision, {}, {}); }
};
HOLDFAST_FOR_EACH_STORE(Decisions);

TEST_P(Decisions, OnAQueuedRunGiveItBackToTheWorkers) {
  const auto id = run_inline("approve").id;
  const auto result = decide(decision(id, DecisionKind::approve));
  EXPECT_FALSE(result.segment);
  EXPECT_TRUE(result.run.status.is(Status::queued));
  drain();
  EXPECT_EQ(runtime_->get(id).answer, Json(1));
  expect_sound();
}

TEST_P(Decisions, OnAnInteractiveRunGoOnHereWithoutALease) {
  const auto first = runtime_->run(request("approve"), {}, {});
  EXPECT_EQ(first.outcome, Outcome::awaiting_approval);
  const auto result = decide(decision(first.run.id, DecisionKind::approve));
  ASSERT_TRUE(result.segment);
  EXPECT_EQ(result.segment->outcome, Outcome::completed);
  EXPECT_TRUE(result.run.origin.is(Origin::interactive));
  EXPECT_EQ(result.run.claim, 2);
  expect_sound();
}

TEST_P(Decisions, TooLateAreRefusedWithoutTheAdviceToDecide) {
  runtime_->register_task("hurry", [](RunContext& context) -> Json {
    auto question = approval_question();
    question.timeout = Duration(1);
    context.ask(question);
    return nullptr;
  });
  const auto id = run_inline("hurry").id;
  while (store_->wall_now() <= *runtime_->get(id).waiting_for->deadline) std::this_thread::yield();
  const auto approve = decision(id, DecisionKind::approve);
  expect_refused(Refusal::conflict, "too late", [&] { decide(approve); });
  for (const auto* command : {"`holdfast why ", "`holdfast show "}) {
    expect_refused(Refusal::conflict, command + id, [&] { decide(approve); });
  }
  try {
    decide(approve);
  } catch (const RefusedError& error) {
    EXPECT_EQ(std::string(error.what()).find("holdfast approve"), std::string::npos)
        << error.what();
  }
}

TEST_P(Decisions, CanBeSentTheOtherWay) {
  auto to_queue = decision(runtime_->run(request("approve"), {}, {}).run.id, DecisionKind::approve);
  to_queue.go_on = Decision::Continue::queue;
  EXPECT_TRUE(decide(to_queue).run.status.is(Status::queued));
  auto here = decision(run_inline("approve").id, DecisionKind::approve);
  here.go_on = Decision::Continue::inline_segment;
  const auto result = decide(here);
  ASSERT_TRUE(result.segment);
  EXPECT_EQ(result.segment->outcome, Outcome::completed);
  EXPECT_TRUE(result.run.origin.is(Origin::queued));
  expect_sound();
}

TEST_P(Decisions, InlineNeedTheAgentHere) {
  auto here = decision(run_inline("approve").id, DecisionKind::approve);
  here.go_on = Decision::Continue::inline_segment;
  if (std::string(GetParam()) == "memory") return;  // no second runtime can share it
  RuntimeOptions options;
  options.store_url = url();
  const auto other = Runtime::open(options);
  expect_refused(Refusal::not_found, "approve", [&] { other->decide(here, {}, {}); });
  here.go_on = Decision::Continue::by_origin;
  EXPECT_TRUE(other->decide(here, {}, {}).run.status.is(Status::queued));
}

TEST_P(Decisions, DenialReachesTheTask) {
  const auto id = run_inline("approve").id;
  auto deny = decision(id, DecisionKind::deny);
  deny.by.note = "too much";
  deny.go_on = Decision::Continue::inline_segment;
  EXPECT_EQ(decide(deny).run.answer, Json("refused"));
  EXPECT_EQ(acted_, 0);
  const auto events = runtime_->events(id, 0, 0);
  const auto it = std::find_if(events.begin(), events.end(),
                               [](const auto& event) { return event.kind.is(EventKind::denied); });
  ASSERT_NE(it, events.end());
  EXPECT_EQ(it->payload["actor"], "ada");
  EXPECT_EQ(it->payload["note"], "too much");
}

TEST_P(Decisions, OnATurnThatMovedOnAreRefused) {
  const auto run = run_inline("approve");
  auto stale = decision(run.id, DecisionKind::approve);
  stale.turn = "0123";
  expect_refused(Refusal::conflict, run.waiting_for->turn, [&] { decide(stale); });
  EXPECT_TRUE(runtime_->get(run.id).status.is(Status::waiting_for_approval));
  stale.turn = run.waiting_for->turn;
  stale.call = "7";
  expect_refused(Refusal::not_found, "pending: 1", [&] { decide(stale); });
}

TEST_P(Decisions, OfTheWrongKindOrOnRunsThatWaitForNothingAreRefused) {
  const auto waits = run_inline("approve").id;
  expect_refused(Refusal::conflict, "holdfast approve",
                 [&] { decide(decision(waits, DecisionKind::input)); });
  const auto done = run_inline("echo").id;
  expect_refused(Refusal::conflict, "completed",
                 [&] { decide(decision(done, DecisionKind::approve)); });
}

TEST_P(Decisions, InputIsCheckedBeforeAnythingHappens) {
  const auto id = run_inline("fill").id;
  auto input = decision(id, DecisionKind::input);
  const auto events = kinds(id);
  for (const Json& values : {Json::object(), Json{{"name", 3}}, Json("Ada"), Json()}) {
    input.values = values;
    expect_refused(Refusal::usage, id, [&] { decide(input); });
  }
  EXPECT_EQ(kinds(id), events);
  EXPECT_TRUE(runtime_->get(id).status.is(Status::waiting_for_input));
  input.values = {{"name", "Ada"}};
  input.go_on = Decision::Continue::inline_segment;
  EXPECT_EQ(decide(input).run.answer, input.values);
  expect_sound();
}

TEST_P(Decisions, InputAboveTheLimitsIsRefused) {
  RuntimeOptions options;
  options.limits.request_bytes = 64;
  options.limits.depth = 3;
  open(options);
  const auto id = run_inline("fill").id;
  auto input = decision(id, DecisionKind::input);
  input.values = {{"name", std::string(100, 'x')}};
  expect_refused(Refusal::usage, "64", [&] { decide(input); });
  input.values = {{"name", "Ada"}, {"a", {{"b", {{"c", {{"d", 1}}}}}}}};
  expect_refused(Refusal::usage, "deeper", [&] { decide(input); });
}

TEST_P(Decisions, WhoseReplyWasLostAreMadeOnce) {
  const auto first = runtime_->run(request("approve"), {}, {});
  store_->after_answer = lose_once();
  const auto result = decide(decision(first.run.id, DecisionKind::approve));
  ASSERT_TRUE(result.segment);
  EXPECT_EQ(result.segment->outcome, Outcome::completed);
  EXPECT_EQ(count(first.run.id, "approved"), 1);
  EXPECT_EQ(acted_, 1);
  expect_sound();
}

TEST_P(Decisions, OfTwoPeopleAtOnceExactlyOneWins) {
  constexpr int kRuns = 40;
  std::vector<RunId> ids;
  for (int i = 0; i < kRuns; ++i) ids.push_back(run_inline("approve").id);
  std::vector<int> won_by(kRuns, -1);
  std::atomic<int> conflicts = 0;
  std::barrier start(2);
  const auto person = [&](int who, DecisionKind kind) {
    for (int i = 0; i < kRuns; ++i) {
      start.arrive_and_wait();
      auto mine = decision(ids[static_cast<std::size_t>(i)], kind);
      mine.by.actor = who == 0 ? "ada" : "grace";
      try {
        decide(mine);
        won_by[static_cast<std::size_t>(i)] = who;
      } catch (const RefusedError& error) {
        EXPECT_EQ(error.refusal(), Refusal::conflict) << error.what();
        ++conflicts;
      }
      start.arrive_and_wait();
    }
  };
  {
    std::jthread ada(person, 0, DecisionKind::approve);
    std::jthread grace(person, 1, DecisionKind::deny);
  }
  EXPECT_EQ(conflicts, kRuns);
  drain();
  int approved = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto& id = ids[static_cast<std::size_t>(i)];
    const bool is_approved = won_by[static_cast<std::size_t>(i)] == 0;
    approved += is_approved;
    EXPECT_EQ(count(id, "approved") + count(id, "denied"), 1);
    EXPECT_EQ(count(id, "approved"), is_approved ? 1 : 0);
    EXPECT_EQ(count(id, "step"), is_approved ? 1 : 0);
    for (const auto& event : runtime_->events(id, 0, 0)) {
      const bool decides = event.kind.is(EventKind::approved) || event.kind.is(EventKind::denied);
      if (!decides) continue;
      EXPECT_EQ(event.payload["actor"], is_approved ? "ada" : "grace");
    }
  }
  EXPECT_EQ(acted_, approved);
  expect_sound();
}

}  // namespace
}  // namespace holdfast::testing
