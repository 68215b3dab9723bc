// A run and its budget: it ends with what it has, or a person is asked; nothing is forgotten
// between segments, and a redrive counts anew.

#include <gtest/gtest.h>

#include "agent/agent_test_support.hpp"
#include "core/validate.hpp"

namespace holdfast {
namespace {

using namespace agent_test;

/// Looks things up for ever, one call in each turn of 15 tokens and a quarter of a dollar.
Fixture looking() {
  Fixture f;
  f.tools.add("lookup");
  f.spec.tools = {"lookup"};
  f.spec.max_iterations = 50;
  for (int i = 0; i < 30; ++i) {
    f.chain.replies.push_back(calls({{"lookup", {{"id", i}}}}));
    f.chain.replies.back().text = fmt::format("so far {}", i + 1);
  }
  return f;
}

Reply values(Json values) {
  Reply reply;
  reply.values = std::move(values);
  return reply;
}

struct Limited {
  std::string name;
  Budget budget;
  std::size_t model_calls;
  std::size_t tool_calls;
  std::string says;
};

TEST(AgentBudget, StopsBeforeTheCallThatWouldGoBeyondItAndKeepsThePartialAnswer) {
  std::vector<Limited> cases(5);
  cases[0] = {"tokens", {}, 3, 2, "45 tokens"};
  cases[0].budget.tokens = 45;
  cases[1] = {"money", {}, 2, 1, "0.5 US dollars"};
  cases[1].budget.cost_usd = 0.5;
  cases[2] = {"model calls", {}, 4, 4, "4 model calls"};
  cases[2].budget.model_calls = 4;
  cases[3] = {"tool calls", {}, 3, 2, "2 tool calls"};
  cases[3].budget.tool_calls = 2;
  cases[4] = {"time", {}, 0, 0, "10m"};
  cases[4].budget.time = std::chrono::minutes(10);
  for (const Limited& limited : cases) {
    SCOPED_TRACE(limited.name);
    Fixture f = looking();
    f.spec.budget = limited.budget;
    f.journal.time = std::chrono::minutes(11);
    const EndRun end = std::get<EndRun>(f.segment());
    EXPECT_EQ(end.reason, Reason::budget_exhausted);
    EXPECT_EQ(f.chain.calls(), limited.model_calls);
    EXPECT_EQ(f.tools.called.size(), limited.tool_calls);
    EXPECT_NE(end.message.find(limited.says), std::string::npos) << end.message;
    EXPECT_EQ(end.answer, limited.model_calls == 0
                              ? Json("")
                              : Json(fmt::format("so far {}", limited.model_calls)));
  }
}

TEST(AgentBudget, ReadsAtTheSameTimeAreNoMoreThanItHasRoomFor) {
  Fixture f = looking();
  f.chain.replies[0] = calls({{"lookup", {{"id", 1}}}, {"lookup", {{"id", 2}}}});
  f.chain.replies[1] =
      calls({{"lookup", {{"id", 3}}}, {"lookup", {{"id", 4}}}, {"lookup", {{"id", 5}}}});
  f.spec.budget.tool_calls = 4;
  // The worker dies in the midst of the second turn: what is recorded needs no room.
  ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(5)));
  EXPECT_EQ(std::get<EndRun>(f.segment()).reason, Reason::budget_exhausted);
  EXPECT_EQ(f.tools.called.size(), 4u);
  EXPECT_EQ(f.chain.calls(), 2u);
}

TEST(AgentBudget, IsNoLimitWhereItSuffices) {
  Fixture f = looking();
  f.chain.replies.resize(2);
  f.chain.replies.push_back(answers("done"));
  f.spec.budget.tokens = 31;
  f.spec.budget.model_calls = 3;
  f.spec.budget.tool_calls = 3;
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
}

TEST(AgentBudget, OfTheRunComesBeforeThatOfItsAgent) {
  Fixture f = looking();
  f.spec.budget.model_calls = 9;
  f.spec.budget.tool_calls = 3;
  f.run.policy.budget.model_calls = 2;
  EXPECT_NE(std::get<EndRun>(f.segment()).message.find("2 model calls"), std::string::npos);
  Fixture more = looking();
  more.spec.budget.tool_calls = 3;
  more.run.policy.budget.model_calls = 9;
  EXPECT_NE(std::get<EndRun>(more.segment()).message.find("3 tool calls"), std::string::npos);
}

TEST(AgentBudget, CountsOnAfterACrashAtEveryStep) {
  Fixture whole = looking();
  whole.spec.budget.tokens = 45;
  whole.segment();
  const int steps = static_cast<int>(whole.journal.entries.size());
  ASSERT_EQ(steps, 5);
  for (int at = 1; at <= steps; ++at) {
    Fixture f = looking();
    f.spec.budget.tokens = 45;
    ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(at)));
    EXPECT_EQ(std::get<EndRun>(f.segment()).reason, Reason::budget_exhausted);
    EXPECT_EQ(f.chain.calls(), 3u) << at;
    EXPECT_EQ(f.tools.called.size(), 2u) << at;
  }
}

TEST(AgentBudget, APersonRaisesItAndTheRaiseStandsForLaterSegments) {
  Fixture f = looking();
  f.spec.budget.tokens = 30;
  f.spec.on_budget = OnBudget::ask;
  const Suspend first = std::get<Suspend>(f.segment());
  EXPECT_EQ(first.question.kind, WaitKind::input);
  EXPECT_EQ(first.question.key, "budget#1.1");
  EXPECT_TRUE(first.question.calls.empty());
  EXPECT_NE(first.question.prompt.find("30 tokens"), std::string::npos) << first.question.prompt;
  EXPECT_EQ(schema_errors(first.question.schema, {{"tokens", 200000}}).size(), 0u);
  // What is used by now tells which limits make sense; it makes no other question of it.
  EXPECT_EQ(schema_errors(first.question.schema, {{"tokens", 30}}).size(), 1u);
  EXPECT_FALSE(first.question.schema_counts);

  f.journal.replies["budget#1.1"] = values({{"tokens", 75}});
  // The worker dies behind it: the next one knows what was decided.
  ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(1)));
  const Suspend second = std::get<Suspend>(f.segment());
  EXPECT_EQ(second.question.key, "budget#1.2");
  EXPECT_NE(second.question.prompt.find("75 tokens"), std::string::npos);
  EXPECT_EQ(f.chain.calls(), 5u);
  EXPECT_EQ(f.tools.called.size(), 4u);
}

TEST(AgentBudget, ARaiseThatIsNotEnoughIsAskedAgain) {
  Fixture f = looking();
  f.spec.budget.tokens = 30;
  f.spec.on_budget = OnBudget::ask;
  f.journal.replies["budget#1.1"] = values({{"tokens", 20}});
  const Question again = std::get<Suspend>(f.segment()).question;
  EXPECT_EQ(again.key, "budget#1.2");
  EXPECT_NE(again.prompt.find("do not suffice"), std::string::npos) << again.prompt;
  f.journal.replies["budget#1.2"] = values({{"model_calls", 7}});
  EXPECT_EQ(std::get<Suspend>(f.segment()).question.key, "budget#1.3");
}

TEST(AgentBudget, APersonEndsItAndSoDoesNobody) {
  Fixture f = looking();
  f.spec.budget.tokens = 30;
  f.spec.on_budget = OnBudget::ask;
  f.journal.replies["budget#1.1"] = values({{"end", true}});
  const EndRun end = std::get<EndRun>(f.segment());
  EXPECT_EQ(end.reason, Reason::budget_exhausted);
  EXPECT_EQ(end.answer, Json("so far 2"));
  f.journal.replies["budget#1.1"] = Reply{};
  f.journal.replies["budget#1.1"].expired = true;
  EXPECT_EQ(std::get<EndRun>(f.segment()).reason, Reason::budget_exhausted);
}

TEST(AgentBudget, IsAskedBeforeAnApprovalOfCallsThatWouldNotBeMade) {
  Fixture f = looking();
  f.tools.specs["lookup"].approval = true;
  f.spec.budget.tokens = 15;
  f.spec.on_budget = OnBudget::ask;
  EXPECT_EQ(std::get<Suspend>(f.segment()).question.kind, WaitKind::input);
}

TEST(AgentBudget, ARedriveCountsAnewAndForgetsRaises) {
  Fixture f = looking();
  f.spec.budget.tokens = 30;
  f.spec.on_budget = OnBudget::ask;
  f.journal.replies["budget#1.1"] = values({{"tokens", 60}});
  ASSERT_EQ(std::get<Suspend>(f.segment()).question.key, "budget#1.2");
  ASSERT_EQ(f.chain.calls(), 4u);
  f.journal.drive_begins_at = f.journal.entries.size();
  f.run.redrive_count = 1;
  EXPECT_EQ(std::get<Suspend>(f.segment()).question.key, "budget#2.1");
  EXPECT_EQ(f.chain.calls(), 6u);
}

TEST(AgentBudget, OfMoneyNeedsPrices) {
  Fixture f = looking();
  f.run.policy.budget.cost_usd = 1;
  ProviderSpec provider;
  provider.name = "main";
  f.run.definition = agent_definition(f.spec, f.tools, {provider});
  const Failure failure = std::get<Failure>(f.segment());
  EXPECT_EQ(failure.cls, FailureClass::configuration);
  EXPECT_NE(failure.message.find("\"m1\""), std::string::npos) << failure.message;
  EXPECT_NE(failure.message.find("[providers.main] prices"), std::string::npos);
  EXPECT_EQ(f.chain.calls(), 0u);
  provider.prices["m1"] = {1, 2};
  f.run.definition = agent_definition(f.spec, f.tools, {provider});
  EXPECT_EQ(std::get<EndRun>(f.segment()).reason, Reason::budget_exhausted);
}

}  // namespace
}  // namespace holdfast
