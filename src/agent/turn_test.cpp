#include "agent/turn.hpp"

#include <gtest/gtest.h>

#include "agent/agent_test_support.hpp"

namespace holdfast {
namespace {

using namespace agent_test;

Fixture with_notify() {
  Fixture f;
  f.tools.add("notify");
  f.spec.tools = {"notify"};
  f.limits.result_bytes = 20000;
  return f;
}

TEST(AgentTurn, CutsAnAnswerThatIsTooLargeAndKeepsWhatItCost) {
  Fixture f = with_notify();
  std::string large;
  while (large.size() < 60000) large += "\xE2\x82\xAC\"";  // six bytes as JSON, four as text
  f.chain.replies = {answers(large)};
  const std::string answer = std::get<Json>(f.segment());
  EXPECT_EQ(answer.substr(0, 400), large.substr(0, 400));
  EXPECT_NE(answer.find("[cut: the answer has 60000 bytes"), std::string::npos);
  const std::string& recorded = f.journal.find("model#1")->result;
  EXPECT_LE(recorded.size(), f.limits.result_bytes);
  EXPECT_GT(recorded.size(), f.limits.result_bytes - 100);
  EXPECT_EQ(Json::parse(recorded)["usage"]["total_tokens"], 15);
  f.segment();
  EXPECT_EQ(f.chain.calls(), 1u) << "what was paid for is not asked for again";
}

TEST(AgentTurn, ReadsTheStepsThatEarlierBuildsRecorded) {
  // As the first builds wrote it.
  const Turn turn = parse_turn(1, Json::parse(R"({
    "calls":[{"arguments":{"text":"hi"},"id":"1.1","name":"notify"}],
    "finish":"tool_calls","model":"m1","opaque":{"kept":"as it is"},"provider":"main","text":"",
    "usage":{"completion_tokens":5,"cost_usd":0.25,"prompt_tokens":10,"total_tokens":15}})"));
  EXPECT_EQ(turn.usage.total_tokens, 15);
  EXPECT_FALSE(turn.usage.estimated);
  EXPECT_EQ(turn.opaque, (Json{{"kept", "as it is"}}));
  ASSERT_EQ(turn.calls.size(), 1u);
  EXPECT_EQ(turn.calls[0].arguments["text"], "hi");
}

TEST(AgentTurn, RecordsWhatACallUsedAndOfWhatKind) {
  Fixture f = with_notify();
  ModelReply reply = answers("hi");
  reply.usage = ModelUsage{{100, 20, 120, 0.5}, 60, 30, 12, true};
  f.chain.replies = {reply};
  f.segment();
  const Json recorded = f.result_of("model#1");
  EXPECT_EQ(recorded["usage"], Json::parse(R"({"prompt_tokens":100,"completion_tokens":20,
    "total_tokens":120,"cost_usd":0.5,"cached_tokens":60,"cache_write_tokens":30,
    "reasoning_tokens":12,"estimated":true})"));
  EXPECT_EQ(parse_turn(1, recorded).usage, reply.usage);
}

TEST(AgentTurn, KeepsNoPartsOfTheMakersThatNoLongerFit) {
  Fixture f = with_notify();
  ModelReply reply = answers(std::string(60000, 'x'));
  reply.opaque = {{"signature", "of the whole text"}};
  f.chain.replies = {reply};
  f.segment();
  EXPECT_FALSE(f.result_of("model#1").contains("opaque"));
}

TEST(AgentTurn, RefusesArgumentsThatAreTooLargeAndRunsTheirSiblings) {
  Fixture f = with_notify();
  ModelReply reply = calls({{"notify", {{"text", "small"}}},
                            {"notify", {{"text", std::string(50000, 'x')}}},
                            {std::string(50000, 'n'), Json::object()}});
  reply.text = std::string(50000, 't');
  f.chain.replies = {reply, answers("done")};
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  ASSERT_EQ(f.tools.called.size(), 1u);
  EXPECT_EQ(f.tools.called[0].second["text"], "small");
  EXPECT_NE(f.told("1.2").find("too large"), std::string::npos) << f.told("1.2");
  EXPECT_LE(f.journal.find("model#1")->result.size(), f.limits.result_bytes);
}

TEST(AgentTurn, KeepsWhatCanBeRecordedOfCountlessCalls) {
  Fixture f = with_notify();
  std::vector<std::pair<std::string, Json>> many(2000, {"notify", {{"text", "again"}}});
  f.chain.replies = {calls(many), answers("done")};
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_LE(f.journal.find("model#1")->result.size(), f.limits.result_bytes);
}

TEST(AgentTurn, TellsTheModelOfNumbersThatWouldBeRounded) {
  Fixture f = with_notify();
  ModelReply reply = calls({{"notify", Json::object()}, {"notify", Json::object()}});
  reply.calls[0].bad_arguments = R"({"id": 12345678901234567890123})";
  reply.calls[1].bad_arguments = R"({"id": 1.2345678901234568e+22})";
  f.chain.replies = {reply, answers("done")};
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_TRUE(f.tools.called.empty());
  EXPECT_NE(f.told("1.1").find("12345678901234567890123"), std::string::npos) << f.told("1.1");
  for (const char* call : {"1.1", "1.2"}) {
    EXPECT_NE(f.told(call).find("as a string"), std::string::npos) << f.told(call);
    EXPECT_EQ(f.told(call).find("not valid JSON"), std::string::npos) << f.told(call);
  }
}

}  // namespace
}  // namespace holdfast
