#include "runtime/why.hpp"

#include <gtest/gtest.h>

#include "runtime/why_text.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr const char* kId = "01890000-0000-7000-8000-000000000001";

/// A run as it stands ten minutes after it was stored; tests fill in the rest.
class Why : public ::testing::Test {
 protected:
  Why() {
    in_.now = {WallTime(std::chrono::hours(500000)), StoreTime(std::chrono::hours(10))};
    in_.run.id = kId;
    in_.run.agent = "triage";
    in_.run.created_at = in_.now.wall - 10min;
    add(EventKind::queued, {}, 10min);
  }
  void add(EventKind kind, Json payload = Json::object(), Duration ago = 1min) {
    Event event;
    event.run = kId;
    event.sequence = static_cast<std::int64_t>(in_.events.size()) + 1;
    event.kind = kind;
    event.at = in_.now.wall - ago;
    event.claim = in_.run.claim;
    event.payload = std::move(payload);
    in_.events.push_back(std::move(event));
  }
  void serve(const std::string& agent, std::vector<std::string> queues = {}) {
    WorkerRow worker;
    worker.id = "w-1";
    worker.agents = {agent};
    worker.queues = std::move(queues);
    in_.workers.push_back(worker);
  }
  void running() {
    in_.run.status = Status::running;
    in_.run.claim = 1;
    in_.run.claimed_by = "w-1";
    in_.run.lease_until = in_.now.store + 40s;
    add(EventKind::claimed, {{"worker", "w-1"}}, 5min);
  }
  Fence fence() {
    Fence fence;
    fence.step_key = "tool:pay#2.1";
    fence.name = "tool:pay";
    fence.arguments = {{"amount", 5}};
    fence.idempotency_key = "key-77";
    fence.since = in_.now.wall - 3min;
    fence.claim = 1;
    return fence;
  }
  void failed(Reason reason, const std::string& message) {
    in_.run.status = Status::failed;
    in_.run.reason = Word<Reason>(reason);
    in_.run.finished_at = in_.now.wall - 1min;
    in_.run.error = Failure{};
    in_.run.error->message = message;
  }

  void expect_says(const std::string& part) {
    const auto text = explain(in_).at("text").get<std::string>();
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin:\n" << text;
  }
  void expect_offers(const std::string& command) {
    const auto commands = explain(in_).at("commands").get<std::vector<std::string>>();
    EXPECT_NE(std::find(commands.begin(), commands.end(), "holdfast " + command), commands.end())
        << command << "\nin: " << Json(commands).dump();
  }
  void expect_does_not_offer(const std::string& verb) {
    const auto json = explain(in_);
    for (const auto& command : json.at("commands")) {
      EXPECT_NE(command.get<std::string>().find("holdfast " + verb), 0U) << command;
    }
  }

  void expect_does_not_say(const std::string& text) {
    const std::string said = explain(in_).at("text");
    EXPECT_EQ(said.find(text), std::string::npos) << said;
  }

  WhyInput in_;
};

TEST_F(Why, HasIdStatusTextFactsAndCommands) {
  const auto json = explain(in_);
  EXPECT_EQ(json.at("id"), kId);
  EXPECT_EQ(json.at("status"), "queued");
  EXPECT_TRUE(json.at("facts").is_object());
  EXPECT_TRUE(json.at("commands").is_array());
}

TEST_F(Why, QueuedRunThatNobodyServesSaysSo) {
  expect_says("No live worker serves agent triage in queue default");
  expect_offers("worker --queue 'default'");
  EXPECT_EQ(explain(in_)["facts"]["served"], false);
  serve("other");
  expect_says("No live worker serves agent triage");
  serve("triage", {"night"});
  expect_says("No live worker serves agent triage");
  serve("triage", {"night", "default"});
  expect_says("A live worker serves it");
  expect_does_not_offer("worker");
}

TEST_F(Why, RunThatAWorkerCouldNotExecuteSaysWhatIsMissingThere) {
  in_.run.available_at = in_.now.wall + 25s;
  add(EventKind::released, {{"message", "tool 'pay' is not one of this process's tools"}});
  expect_says("A worker handed it back");
  expect_says("for another to take: tool 'pay' is not one of this process's tools.");
}

TEST_F(Why, DelayedRunSaysUntilWhenAndHowToWakeIt) {
  in_.run.available_at = in_.now.wall + 25s;
  expect_says("it may start in 25 s");
  expect_offers(std::string("wake ") + kId);
  EXPECT_EQ(explain(in_)["facts"]["due_in_seconds"], 25.0);
}

TEST_F(Why, BackingOffRunNamesTheFailureAndTheBudget) {
  in_.run.available_at = in_.now.wall + 25s;
  in_.run.requeue_count = 2;
  in_.run.reclaim_count = 1;
  add(EventKind::requeued, {{"class", "rate_limit"},
                            {"code", "rate_limit_exceeded"},
                            {"message", "slow down"},
                            {"provider", "main"},
                            {"model", "m"}});
  expect_says("rate_limit (rate_limit_exceeded) from main/m: slow down");
  expect_says("2 of 3 requeues are used (1 of them for lost workers)");
  EXPECT_EQ(explain(in_)["facts"]["failures"].size(), 1U);
}

TEST_F(Why, ReapedRunTellsWhatTheLostWorkerWasDoing) {
  in_.run.requeue_count = in_.run.reclaim_count = 1;
  add(EventKind::reaped, {{"worker", "w-dead"},
                          {"cause", "presence"},
                          {"step", "tool:lookup"},
                          {"available_at", "x"}});
  expect_says("Worker w-dead was lost");
  expect_says("while it executed step tool:lookup: its process ended");
}

TEST_F(Why, OldDrivesAreNotToldAgain) {
  add(EventKind::requeued, {{"class", "timeout"}});
  add(EventKind::redriven, {{"actor", "ada"}});
  EXPECT_TRUE(explain(in_)["facts"]["failures"].empty());
  expect_says("It was redriven 60 s ago");
  expect_says("by ada");
}

TEST_F(Why, EveryWayBackToTheQueueIsNamed) {
  const std::vector<std::pair<EventKind, std::string>> ways = {
      {EventKind::queued, "has not been started yet"},
      {EventKind::parked, "It was parked"},
      {EventKind::slept, "It asked to sleep"},
      {EventKind::released, "stopped gracefully"},
      {EventKind::handed_over, "handed over to the workers"},
      {EventKind::approved, "A person answered it"},
      {EventKind::denied, "A person answered it"},
      {EventKind::input_submitted, "A person answered it"},
      {EventKind::expired, "Nobody decided until its deadline"},
  };
  for (const auto& [kind, text] : ways) {
    add(kind);
    expect_says(text);
  }
}

TEST_F(Why, RunningRunNamesHolderStepAndLease) {
  running();
  in_.run.pending = fence();
  expect_says("is executed by worker w-1 under claim 1, since 5 min");
  expect_says("Step tool:pay#2.1 (tool:pay, non_idempotent_write)");
  expect_says("good for another 40 s");
  expect_does_not_offer("reap");
}

TEST_F(Why, StaleRunSaysWhatTheReaperWillDo) {
  running();
  in_.run.lease_until = in_.now.store - 10s;
  expect_says("Its lease has been over for 10 s");
  expect_says("queued again at once, as requeue 1 of 3");
  expect_offers("reap");
  in_.run.requeue_count = 3;
  expect_says("retries_exhausted");
  in_.run.pending = fence();
  expect_says("not_retryable");
}

TEST_F(Why, HolderThatIsGoneIsSaidToBe) {
  running();
  in_.holder_gone = true;
  expect_says("That worker is gone");
  EXPECT_EQ(explain(in_)["facts"]["holder_gone"], true);
}

TEST_F(Why, AbandonedInteractiveRunIsHandedOver) {
  in_.run.status = Status::running;
  in_.run.origin = Origin::interactive;
  in_.run.claimed_by = "me";
  expect_offers(std::string("handover ") + kId + " --force");
  in_.run.abandoned = true;
  expect_says("That process is gone");
  expect_offers(std::string("handover ") + kId);
}

TEST_F(Why, ApprovalShowsWhatIsToBeApproved) {
  in_.run.status = Status::waiting_for_approval;
  Wait wait;
  wait.turn = "abcd";
  wait.calls = {{"1", "pay", {{"amount", 5}}, Verdict::approved, false},
                {"2", "mail", {{"to", "ada"}}, Verdict::undecided, false},
                {"3", "mail", {{"to", "bob"}}, Verdict::undecided, false}};
  wait.deadline = in_.now.wall + 30min;
  in_.run.waiting_for = wait;
  expect_says("Call 1: pay with {\"amount\":5} (approved)");
  expect_says("Its deadline is in 30 min");
  expect_offers(std::string("approve ") + kId + " --turn abcd");
  expect_offers(std::string("approve ") + kId + " --turn abcd --call 2");
  expect_offers(std::string("deny ") + kId + " --turn abcd");
  in_.run.waiting_for->deadline = in_.now.wall - 1min;
  expect_says("a decision is refused now");
  expect_offers("reap");
  expect_does_not_offer("approve");
  expect_does_not_offer("deny");
}

TEST_F(Why, InputShowsWhatIsAsked) {
  in_.run.status = Status::waiting_for_input;
  Wait wait;
  wait.kind = WaitKind::input;
  wait.turn = "abcd";
  wait.prompt = "Who's there?";
  wait.schema = {{"type", "object"}, {"properties", {{"name", {{"type", "string"}}}}}};
  in_.run.waiting_for = wait;
  expect_says("Who's there?");
  expect_says("- name: {\"type\":\"string\"}");
  expect_offers(std::string("input ") + kId + " --turn abcd --values '{\"name\":\"…\"}'");
}

/// As it is offered it fits the types, so that only the values are to be replaced.
TEST_F(Why, InputIsOfferedWithValuesOfTheTypesThatAreAsked) {
  in_.run.status = Status::waiting_for_input;
  Wait wait;
  wait.kind = WaitKind::input;
  wait.turn = "abcd";
  wait.schema = {{"type", "object"},
                 {"properties",
                  {{"amount", {{"type", "integer"}, {"minimum", 3}}},
                   {"kind", {{"enum", {"card", "cash"}}}},
                   {"share", {{"type", "number"}}},
                   {"tags", {{"type", "array"}}},
                   {"urgent", {{"type", "boolean"}}}}}};
  in_.run.waiting_for = wait;
  expect_offers(std::string("input ") + kId +
                " --turn abcd --values "
                "'{\"amount\":3,\"kind\":\"card\",\"share\":0,\"tags\":[],\"urgent\":true}'");
}

TEST_F(Why, UnknownWriteSaysWhereToLookAndHowToResolve) {
  failed(Reason::not_retryable, "the outcome of tool:pay is not known");
  in_.run.pending = fence();
  expect_says("Step tool:pay#2.1");
  expect_says("3 min ago");
  expect_says("{\"amount\":5}");
  expect_says("Look where tool:pay has its effect");
  expect_says("key-77");
  expect_offers(std::string("resolve ") + kId + " --step 'tool:pay#2.1' --landed --result 'JSON'");
  expect_offers(std::string("resolve ") + kId + " --step 'tool:pay#2.1' --not-landed");
  expect_does_not_offer("redrive");
  expect_does_not_say("Not landed is accepted");
  in_.run.pending->deadline = in_.now.store + 4min;
  expect_says("Not landed is accepted in 4 min");
  in_.run.pending->has_probe = true;
  expect_offers(std::string("redrive ") + kId);
}

TEST_F(Why, SpentBudgetNamesTheCulprit) {
  failed(Reason::retries_exhausted, "worker lost 3 times at step tool:lookup");
  expect_says("worker lost 3 times at step tool:lookup");
  expect_says("budget of 3 requeues is spent");
  expect_offers(std::string("redrive ") + kId);
}

TEST_F(Why, CancelledRunSaysByWhomAndWhatIsStillInFlight) {
  in_.run.status = Status::cancelled;
  in_.run.claimed_by = "w-1";
  add(EventKind::cancelled, {{"actor", "ada"}, {"note", "enough"}});
  expect_says("by ada (enough)");
  expect_says("Worker w-1 has not acknowledged yet");
}

TEST_F(Why, CompletedRunAndPartialAnswer) {
  in_.run.status = Status::completed;
  in_.run.reason = Word<Reason>(Reason::completed);
  expect_says("completed");
  in_.run.reason = Word<Reason>(Reason::budget_exhausted);
  expect_says("partial answer");
}

TEST_F(Why, AnswerThatWasCutAtTheTokenLimitIsSaidToBe) {
  in_.run.status = Status::completed;
  in_.run.reason = Word<Reason>(Reason::completed);
  EXPECT_EQ(explain(in_)["text"].get<std::string>().find("token limit"), std::string::npos);
  in_.run.finish = "length";
  expect_says("cut at the model's token limit");
  EXPECT_EQ(explain(in_)["facts"]["finish"], "length");
}

TEST_F(Why, StatusOfANewerVersionIsKeptAndNotJudged) {
  in_.run.status = Word<Status>("hibernating");
  expect_says("hibernating, was written by a newer holdfast");
  EXPECT_EQ(explain(in_)["status"], "hibernating");
}

TEST(WhyText, QuotesForTheShell) { EXPECT_EQ(shell_word("it's"), "'it'\\''s'"); }

TEST(WhyText, SpeaksOfTimeInOneUnit) {
  EXPECT_EQ(spoken(250ms), "250 ms");
  EXPECT_EQ(spoken(119s), "119 s");
  EXPECT_EQ(spoken(120s), "2 min");
  EXPECT_EQ(spoken(3h), "3 h");
  EXPECT_EQ(spoken(72h), "3 days");
}

}  // namespace
}  // namespace holdfast
