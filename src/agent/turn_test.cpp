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
