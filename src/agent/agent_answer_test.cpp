// An agent whose answer must meet a schema.

#include <gtest/gtest.h>

#include "agent/agent_test_support.hpp"
#include "agent/answer_check.hpp"

namespace holdfast {
namespace {

using namespace agent_test;

const Json kTotal = Json::parse(
    R"({"type":"object","properties":{"total":{"type":"integer","minimum":0}},"required":["total"]})");

/// Looks something up, then says each of these texts.
Fixture saying(const std::vector<std::string>& texts) {
  Fixture f;
  f.tools.add("look");
  f.spec.tools = {"look"};
  f.spec.answer_schema = kTotal;
  f.chain.replies.push_back(calls({{"look", {{"id", 1}}}}));
  for (const std::string& text : texts) f.chain.replies.push_back(answers(text));
  return f;
}

TEST(AnswerValue, IsTheOneJsonValueOfTheText) {
  const std::vector<std::pair<std::string, Json>> good = {
      {R"({"a": 1})", {{"a", 1}}}, {" \n[1, 2]\n", {1, 2}},
      {"\"text\"", "text"},        {"null", nullptr},
      {"\"\\ud800\"", "\uFFFD"},   {"```json\n{\"a\": 1}\n```", {{"a", 1}}},
      {"\n```\n7\n```\n", 7}};
  for (const auto& [text, value] : good) {
    std::string problem;
    EXPECT_EQ(value_of_answer(text, 64, &problem), value) << text << ": " << problem;
  }
  for (const char* text :
       {"", " ", "total is 7", "{\"a\": 1} and more", "Here it is:\n```json\n{}\n```",
        "```json\n```", "``````", "```", "{\"a\": 1", "[123456789012345678901234567890]"}) {
    std::string problem;
    EXPECT_EQ(value_of_answer(text, 64, &problem), std::nullopt) << text;
    EXPECT_FALSE(problem.empty()) << text;
  }
  std::string problem;
  EXPECT_EQ(value_of_answer(std::string(65, '[') + std::string(65, ']'), 64, &problem),
            std::nullopt);
}

TEST(AgentAnswer, IsTheValueThatMeetsTheSchema) {
  Fixture f = saying({R"({"total": 7})"});
  EXPECT_EQ(std::get<Json>(f.segment()), (Json{{"total", 7}}));
  EXPECT_EQ(f.chain.calls(), 2u);
}

TEST(AgentAnswer, IsAskedForInTheRequestAndInTheSystemText) {
  Fixture f = saying({R"({"total": 7})"});
  f.segment();
  EXPECT_EQ(f.chain.last.answer_schema, kTotal);
  const std::string& system = f.chain.last.messages.at(0).text;
  EXPECT_TRUE(system.starts_with("You sort tickets.\n\n")) << system;
  EXPECT_NE(system.find(dump_json(kTotal)), std::string::npos) << system;
  Fixture without = saying({"seven"});
  without.spec.answer_schema = nullptr;
  EXPECT_EQ(std::get<Json>(without.segment()), "seven");
  EXPECT_TRUE(without.chain.last.answer_schema.is_null());
  EXPECT_EQ(without.chain.last.messages.at(0).text, "You sort tickets.");
}

TEST(AgentAnswer, AModelIsToldWhatIsWrongAndMayMendIt) {
  for (const char* wrong : {R"({"total": "7"})", "seven", R"({"total": -1})", "{}", "[]", ""}) {
    Fixture f = saying({wrong, R"({"total": 7})"});
    EXPECT_EQ(std::get<Json>(f.segment()), (Json{{"total", 7}})) << wrong;
    const Message& told = f.chain.last.messages.back();
    EXPECT_EQ(told.role, Message::Role::user);
    EXPECT_NE(told.text.find("does not meet"), std::string::npos) << told.text;
  }
  Fixture f = saying({R"({"total": "7"})", R"({"total": 7})"});
  f.segment();
  EXPECT_NE(f.chain.last.messages.back().text.find("/total: must be of type"), std::string::npos)
      << f.chain.last.messages.back().text;
}

TEST(AgentAnswer, AModelMayLookAgainBeforeItMends) {
  Fixture f = saying({"seven"});
  f.chain.replies.push_back(calls({{"look", {{"id", 2}}}}));
  f.chain.replies.push_back(answers(R"({"total": 7})"));
  EXPECT_EQ(std::get<Json>(f.segment()), (Json{{"total", 7}}));
  EXPECT_EQ(f.tools.called.size(), 2u);
}

TEST(AgentAnswer, TheSecondOneThatDoesNotFitEndsTheRun) {
  Fixture f = saying({"seven", R"({"total": "7"})", R"({"total": 7})"});
  const Failure failure = std::get<Failure>(f.segment());
  EXPECT_EQ(failure.cls, FailureClass::configuration);
  EXPECT_EQ(failure.code, "answer_schema");
  EXPECT_NE(failure.message.find("/total: must be of type"), std::string::npos) << failure.message;
  EXPECT_NE(failure.message.find(R"({"total": "7"})"), std::string::npos) << failure.message;
  EXPECT_EQ(f.chain.calls(), 3u);
  EXPECT_EQ(std::get<Failure>(f.segment()).code, "answer_schema");
  EXPECT_EQ(f.chain.calls(), 3u) << "what is recorded is not asked again";
}

TEST(AgentAnswer, NothingIsPaidTwiceWhereverAWorkerDies) {
  for (int at = 1; at <= 4; ++at) {
    Fixture f = saying({"seven", R"({"total": 7})"});
    ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(at)));
    EXPECT_EQ(std::get<Json>(f.segment()), (Json{{"total", 7}})) << at;
    EXPECT_EQ(f.chain.calls(), 3u) << at;
    EXPECT_EQ(f.tools.called.size(), 1u) << at;
  }
}

TEST(AgentAnswer, ARequestToMendIsTheSameInEverySegment) {
  Fixture f = saying({"seven", R"({"total": 7})"});
  ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(4, true)));
  f.segment();
  ASSERT_EQ(f.chain.requests.at(2).size(), 2u);
  EXPECT_EQ(f.chain.requests.at(2).front(), f.chain.requests.at(2).back());
}

TEST(AgentAnswer, ARedriveGivesBothChancesAnew) {
  Fixture f = saying({"one", "two", "three", R"({"total": 7})"});
  ASSERT_EQ(std::get<Failure>(f.segment()).code, "answer_schema");
  f.journal.drive_begins_at = f.journal.entries.size();
  f.run.redrive_count = 1;
  EXPECT_EQ(std::get<Json>(f.segment()), (Json{{"total", 7}}));
  EXPECT_EQ(f.chain.calls(), 5u);
  Fixture again = saying({"one", "two", "three", "four", R"({"total": 7})"});
  ASSERT_EQ(std::get<Failure>(again.segment()).code, "answer_schema");
  again.journal.drive_begins_at = again.journal.entries.size();
  EXPECT_EQ(std::get<Failure>(again.segment()).code, "answer_schema");
  EXPECT_EQ(again.chain.calls(), 5u);
}

TEST(AgentAnswer, MendingCountsAgainstBudgetAndIterations) {
  Fixture f = saying({"seven", R"({"total": 7})"});
  f.spec.budget.model_calls = 2;
  const EndRun end = std::get<EndRun>(f.segment());
  EXPECT_EQ(end.reason, Reason::budget_exhausted);
  EXPECT_EQ(end.answer, Json("seven"));
  EXPECT_EQ(f.chain.calls(), 2u);
  Fixture few = saying({"seven", R"({"total": 7})"});
  few.spec.max_iterations = 2;
  EXPECT_EQ(std::get<EndRun>(few.segment()).reason, Reason::max_iterations);
}

TEST(AgentAnswer, ThatWasCutIsToldSoAndAWholeOneKeepsItsFlag) {
  Fixture f = saying({R"({"total": )", R"({"total": 7})"});
  f.chain.replies[1].finish = "length";
  EXPECT_EQ(std::get<Json>(f.segment()), (Json{{"total", 7}}));
  EXPECT_NE(f.chain.last.messages.back().text.find("cut at the token limit"), std::string::npos);
  Fixture whole = saying({R"({"total": 7})"});
  whole.chain.replies[1].finish = "length";
  const EndRun end = std::get<EndRun>(whole.segment());
  EXPECT_EQ(end.reason, Reason::completed);
  EXPECT_EQ(end.finish, "length");
  EXPECT_EQ(end.answer, (Json{{"total", 7}}));
}

TEST(AgentAnswer, OfARunStaysWhatItWasAskedForUntilARedrive) {
  Fixture f = saying({"seven"});
  ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(1)));
  f.spec.answer_schema = nullptr;
  EXPECT_EQ(std::get<Failure>(f.segment()).code, "answer_schema");
}

}  // namespace
}  // namespace holdfast
