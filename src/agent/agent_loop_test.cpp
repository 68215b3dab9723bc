#include "agent/agent_loop.hpp"

#include <gtest/gtest.h>

#include "agent/agent_test_support.hpp"

namespace holdfast {
namespace {

using namespace agent_test;

const Json kIdSchema = {
    {"type", "object"}, {"properties", {{"id", {{"type", "string"}}}}}, {"required", {"id"}}};

/// Two turns with tools, then an answer.
Fixture three_turns() {
  Fixture f;
  f.tools.add("lookup").parameters = kIdSchema;
  f.tools.add("create").effect = Effect::non_idempotent_write;
  f.tools.add("notify").effect = Effect::idempotent_write;
  f.spec.tools = {"lookup", "create", "notify"};
  f.chain.replies = {calls({{"lookup", {{"id", "a"}}}, {"lookup", {{"id", "a"}}}}),
                     calls({{"create", {{"title", "x"}}}, {"notify", Json::object()}}),
                     answers("done")};
  return f;
}

TEST(Agent, AnswersThroughItsTools) {
  Fixture f = three_turns();
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  ASSERT_EQ(f.tools.called.size(), 4u);  // two calls that look alike are two calls
  EXPECT_EQ(f.tools.called[2].first, "create");
  EXPECT_EQ(f.tools.called[3].first, "notify");
  EXPECT_EQ(f.tools.contexts[2].key, "tool:create#2.1");
  EXPECT_EQ(f.tools.contexts[2].run, f.run.id);
  EXPECT_EQ(f.journal.find("tool:create#2.1")->effect, Effect::non_idempotent_write);
  EXPECT_EQ(f.result_of("model#1")["calls"][1]["id"], "1.2");
  EXPECT_EQ(f.result_of("model#1")["usage"]["total_tokens"], 15);
}

TEST(Agent, RunsReadsThatFollowEachOtherAtTheSameTimeAndWritesAlone) {
  Fixture f = three_turns();
  f.spec.parallel_reads = 3;
  f.chain.replies = {calls({{"lookup", {{"id", "a"}}},
                            {"nothing", Json::object()},
                            {"lookup", {{"id", "b"}}},
                            {"create", Json::object()},
                            {"notify", Json::object()},
                            {"lookup", {{"id", "c"}}}}),
                     answers("done")};
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_EQ(f.journal.reads,
            (std::vector<std::string>{"3 at once: tool:lookup#1.1 tool:nothing#1.2 tool:lookup#1.3",
                                      "3 at once: tool:lookup#1.6"}));
  ASSERT_EQ(f.tools.called.size(), 5u);
  EXPECT_EQ(f.tools.called[2].first, "create");
  EXPECT_EQ(f.tools.called[4].second, (Json{{"id", "c"}}));
  // The model is told in its own order.
  std::vector<std::string> told;
  for (const Message& message : f.chain.last.messages) {
    if (message.role == Message::Role::tool) told.push_back(message.call_id);
  }
  EXPECT_EQ(told, (std::vector<std::string>{"1.1", "1.2", "1.3", "1.4", "1.5", "1.6"}));
}

TEST(Agent, KeepsTheBoundOfReadsThatTheRunTook) {
  Fixture f = three_turns();
  f.define();
  EXPECT_EQ(f.run.definition["parallel_reads"], 4);
  f.spec.parallel_reads = 1;
  f.segment();
  EXPECT_EQ(f.journal.reads.front(), "4 at once: tool:lookup#1.1 tool:lookup#1.2");
  // Runs that were claimed before there was a bound.
  Fixture old = three_turns();
  old.define();
  old.run.definition.erase("parallel_reads");
  EXPECT_EQ(std::get<Json>(old.segment()), "done");
  EXPECT_EQ(old.journal.reads.front(), "4 at once: tool:lookup#1.1 tool:lookup#1.2");
}

TEST(Agent, GoesOnBehindAPauseAsFarAsItsLimit) {
  Fixture f;
  f.chain.replies = {answers("so far", "pause"), answers("done")};
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  ASSERT_EQ(f.chain.last.messages.size(), 3u);
  EXPECT_EQ(f.chain.last.messages[2].text, "so far");
  Fixture endless;
  endless.spec.max_iterations = 3;
  endless.chain.replies = {answers("so far", "pause")};
  EXPECT_EQ(std::get<EndRun>(endless.segment()).reason, Reason::max_iterations);
  EXPECT_EQ(endless.chain.calls(), 3u);
}

TEST(Agent, SendsSystemTextInputAndHistory) {
  Fixture f = three_turns();
  f.run.input = {{"ticket", 7}};
  f.segment();
  const std::vector<Message>& messages = f.chain.last.messages;
  ASSERT_EQ(messages.size(), 8u);
  EXPECT_EQ(messages[0].text, "You sort tickets.");
  EXPECT_EQ(messages[1].text, "{\"ticket\":7}");
  EXPECT_EQ(messages[2].made_by, "main/m1");
  EXPECT_EQ(messages[2].opaque, (Json{{"kept", "as it is"}}));
  EXPECT_EQ(messages[3].call_id, "1.1");
  EXPECT_EQ(messages[3].text, "{\"ok\":true}");
  EXPECT_EQ(f.chain.last.tools.size(), 3u);
}

TEST(Agent, ContinuesBehindEveryRecordedStepWithTheSameRequests) {
  Fixture whole = three_turns();
  whole.segment();
  const int steps = static_cast<int>(whole.journal.entries.size());
  ASSERT_EQ(steps, 7);
  for (int at = 1; at <= steps; ++at) {
    for (const bool before_record : {false, true}) {
      Fixture f = three_turns();
      ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(at, before_record)));
      EXPECT_EQ(std::get<Json>(f.segment()), "done");
      // Nothing recorded is repeated; only what was in flight is.
      const std::size_t repeated = before_record ? 1 : 0;
      EXPECT_EQ(f.chain.calls() + f.tools.called.size(), 7 + repeated) << at;
      for (const auto& [turn, texts] : f.chain.requests) {
        for (const std::string& text : texts) EXPECT_EQ(text, whole.chain.requests[turn][0]) << at;
      }
    }
  }
}

TEST(Agent, TellsTheModelAboutCallsItCannotExecuteAndRunsTheirSiblings) {
  Fixture f = three_turns();
  ModelReply reply = calls({{"lookup", {{"id", "a"}}},
                            {"lokup", {{"id", "a"}}},
                            {"lookup", Json()},
                            {"lookup", {{"id", 5}}},
                            {"multi_tool_use.parallel", {{"tool_uses", Json::array()}}},
                            {"lookup", Json::array({1})}});
  reply.calls[2].bad_arguments = "{\"id\": ";
  f.chain.replies = {reply, answers("done")};

  EXPECT_EQ(std::get<Json>(f.segment()), "done");

  ASSERT_EQ(f.tools.called.size(), 1u);
  EXPECT_EQ(f.told("1.1"), "{\"ok\":true}");
  EXPECT_NE(f.told("1.2").find("no tool named 'lokup'"), std::string::npos) << f.told("1.2");
  EXPECT_NE(f.told("1.2").find("lookup"), std::string::npos);
  EXPECT_NE(f.told("1.3").find("not valid JSON"), std::string::npos) << f.told("1.3");
  EXPECT_NE(f.told("1.4").find("id"), std::string::npos) << f.told("1.4");
  EXPECT_NE(f.told("1.5").find("multi_tool_use.parallel"), std::string::npos);
  EXPECT_NE(f.told("1.6").find("object"), std::string::npos) << f.told("1.6");
  int errors = 0;
  for (const Message& message : f.chain.last.messages) errors += message.is_error;
  EXPECT_EQ(errors, 5);
  // The history that a person reads has all six.
  EXPECT_EQ(f.journal.find("tool:lokup#1.2")->effect, Effect::read);
  EXPECT_EQ(f.result_of("tool:lookup#1.3")["is_error"], true);
  EXPECT_EQ(f.journal.find("tool:lookup#1.3")->arguments, "{\"id\": ");
}

TEST(Agent, DoesNotRecordArgumentsThatAreTooDeepToBeReadBack) {
  Fixture f = three_turns();
  Json deep = 1;
  for (int level = 0; level < f.limits.depth - 2; ++level) deep = Json::array({deep});
  f.chain.replies = {calls({{"notify", {{"x", deep}}}, {"notify", Json::object()}}),
                     answers("done")};
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_EQ(f.tools.called.size(), 1u);
  EXPECT_NE(f.told("1.1").find("too deep"), std::string::npos);
  EXPECT_TRUE(parse_json(f.journal.find("model#1")->result, f.limits.depth));
}

TEST(Agent, StopsAModelThatRepeatsAnUnknownTool) {
  Fixture f = three_turns();
  f.spec.max_iterations = 5;
  f.spec.max_repeats = 0;
  f.chain.replies = {calls({{"nothing", Json::object()}})};
  const EndRun end = std::get<EndRun>(f.segment());
  EXPECT_EQ(end.reason, Reason::max_iterations);
  EXPECT_NE(end.message.find("5 model calls"), std::string::npos) << end.message;
  EXPECT_EQ(f.chain.calls(), 5u);
}

TEST(Agent, CountsIterationsOfThisDriveOnly) {
  Fixture f = three_turns();
  f.spec.max_iterations = 2;
  f.chain.replies = {calls({{"notify", Json::object()}})};
  f.define();
  ASSERT_EQ(std::get<EndRun>(f.segment()).reason, Reason::max_iterations);
  EXPECT_EQ(f.tools.called.size(), 2u);  // the tools of the last turn ran

  // A redrive sets the run's count to zero and keeps the journal.
  f.chain.replies = {calls({{"notify", Json::object()}}), calls({{"notify", Json::object()}}),
                     answers("done")};
  FakeContext context(f.run, f.journal);
  EXPECT_EQ(make_agent(f.spec, f.chain, f.tools, f.limits)(context), "done");
  EXPECT_EQ(f.tools.called.size(), 2u);
}

TEST(Agent, KeepsTheReasonWhyAnAnswerEndedWithItsTurn) {
  Fixture f = three_turns();
  f.chain.replies = {answers("cut in the mid", "length")};
  const EndRun end = std::get<EndRun>(f.segment());
  EXPECT_EQ(end.reason, Reason::completed);
  EXPECT_EQ(end.answer, Json("cut in the mid"));
  EXPECT_EQ(end.finish, "length");
  EXPECT_EQ(f.result_of("model#1")["finish"], "length");
}

TEST(Agent, FillsDefaultsInBeforeACallRuns) {
  Fixture f = three_turns();
  f.tools.specs["lookup"].parameters = Json::parse(
      R"({"type": "object", "properties": {"id": {"type": "string"}, "depth": {"default": 2}}})");
  f.chain.replies = {calls({{"lookup", {{"id", "a"}}}}), answers("done")};
  f.segment();
  EXPECT_EQ(f.tools.called[0].second, (Json{{"id", "a"}, {"depth", 2}}));
  // What the model reads of itself is what it wrote.
  EXPECT_EQ(f.chain.last.messages[2].calls[0].arguments, (Json{{"id", "a"}}));
}

TEST(Agent, TellsErrorsFromResultsOnEveryReplay) {
  Fixture f = three_turns();
  f.tools.outcomes["lookup"] = {{{"error", "exit status 1"}}, true};
  // A success that looks like a recorded error.
  f.tools.outcomes["notify"] = {{{"is_error", true}, {"result", 1}}, false};
  f.chain.replies = {calls({{"lookup", {{"id", "a"}}}, {"notify", Json::object()}}),
                     answers("done")};
  const auto check = [&] {
    const std::vector<Message>& messages = f.chain.last.messages;
    ASSERT_EQ(messages.size(), 5u);
    EXPECT_TRUE(messages[3].is_error);
    EXPECT_EQ(messages[3].text, R"({"error":"exit status 1"})");
    EXPECT_FALSE(messages[4].is_error);
    EXPECT_EQ(messages[4].text, R"({"is_error":true,"result":1})");
  };
  ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(4, true)));
  check();
  f.segment();
  check();
}

TEST(Agent, TakesAResolvedResultAsTheToolsOwn) {
  Fixture f = three_turns();
  ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(5, true)));  // inside tool:create
  f.journal.entries.push_back(
      {"tool:create#2.1", "tool:create", Effect::non_idempotent_write, {}, R"({"ticket":9})"});
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_EQ(f.told("2.1"), R"({"ticket":9})");
}

TEST(Agent, LetsModelFailuresPass) {
  Fixture f = three_turns();
  Failure failure;
  failure.cls = FailureClass::rate_limit;
  failure.retry_after = std::chrono::seconds(7);
  f.chain.failure = failure;
  EXPECT_EQ(std::get<Failure>(f.segment()), failure);
  EXPECT_TRUE(f.journal.entries.empty());
}

TEST(Agent, FollowsTheDefinitionThatTheRunCarries) {
  Fixture f = three_turns();
  f.define();
  f.tools.specs["create"].effect = Effect::read;
  f.tools.specs["create"].timeout = std::chrono::seconds(1);
  f.spec.system = "Something else.";
  f.segment();
  EXPECT_EQ(f.journal.find("tool:create#2.1")->effect, Effect::non_idempotent_write);
  EXPECT_EQ(f.chain.last.messages[0].text, "You sort tickets.");
}

TEST(Agent, SaysWhichToolThisProcessLacks) {
  Fixture f = three_turns();
  f.define();
  f.spec.tools = {};
  f.tools.specs.erase("create");
  const Failure failure = std::get<Failure>(f.segment());
  EXPECT_EQ(failure.cls, FailureClass::configuration);
  EXPECT_TRUE(failure.not_started);
  EXPECT_NE(failure.message.find("'create'"), std::string::npos) << failure.message;
  EXPECT_EQ(f.tools.called.size(), 2u);  // the turn before ran
}

TEST(Agent, GivesAProbeOnlyToToolsThatDeclareOne) {
  Fixture f = three_turns();
  f.tools.specs["create"].probe_command = {"./probe.sh"};
  f.define();
  EXPECT_EQ(f.run.definition["tools"][1]["has_probe"], true);
  EXPECT_EQ(f.run.definition["tools"][0]["has_probe"], false);
}

}  // namespace
}  // namespace holdfast
