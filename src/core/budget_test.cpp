#include "core/budget.hpp"

#include <gtest/gtest.h>

#include "core/validate.hpp"

namespace holdfast {
namespace {

/// Every limit, each as it is met by `used_up`.
Budget limited() {
  Budget budget;
  budget.tokens = 100;
  budget.cost_usd = 0.5;
  budget.time = std::chrono::minutes(10);
  budget.model_calls = 3;
  budget.tool_calls = 4;
  return budget;
}

Spent used_up() {
  Spent spent;
  spent.usage.total_tokens = 130;
  spent.usage.cost_usd = 0.5;
  spent.time = std::chrono::minutes(10);
  spent.model_calls = 3;
  spent.tool_calls = 4;
  return spent;
}

std::vector<std::string> limit_keys(const std::vector<SpentLimit>& limits) {
  std::vector<std::string> keys;
  for (const SpentLimit& limit : limits) keys.push_back(limit.key);
  return keys;
}

std::string errors_of(const Json& schema, const Json& values) {
  std::string text;
  for (const std::string& error : schema_errors(schema, values)) text += error + "; ";
  return text;
}

TEST(SpentLimits, NamesEachLimitThatIsMetAndWhatIsUsed) {
  const auto limits = spent_limits(limited(), used_up(), Spender::model);
  EXPECT_EQ(limit_keys(limits),
            (std::vector<std::string>{"tokens", "cost_usd", "time", "model_calls"}));
  EXPECT_EQ(limits[0].text, "the budget of 100 tokens is used up (130 tokens)");
  EXPECT_EQ(limits[1].text, "the budget of 0.5 US dollars is used up (0.5 US dollars)");
  EXPECT_EQ(limit_keys(spent_limits(limited(), used_up(), Spender::tool)).back(), "tool_calls");
  EXPECT_TRUE(spent_limits(limited(), {}, Spender::model).empty());
  EXPECT_TRUE(spent_limits({}, used_up(), Spender::tool).empty());
}

TEST(SpentLimits, LeavesRoomUpToTheLimitItself) {
  Spent spent;
  spent.usage.total_tokens = 99;
  spent.usage.cost_usd = 0.4999;
  spent.time = std::chrono::minutes(10) - Duration(1);
  spent.model_calls = 2;
  EXPECT_TRUE(spent_limits(limited(), spent, Spender::model).empty());
}

TEST(BudgetSchema, TakesHigherLimitsForWhatIsUsedUpOrTheEnd) {
  Budget budget = limited();
  const Spent spent = used_up();
  const Json schema = budget_schema(budget, spent, spent_limits(budget, spent, Spender::model));
  const Json all = {{"tokens", 131}, {"cost_usd", 0.6}, {"time", "11m"}, {"model_calls", 4}};
  EXPECT_EQ(errors_of(schema, all), "");
  EXPECT_EQ(errors_of(schema, {{"end", true}}), "");
  EXPECT_EQ(errors_of(schema, schema["examples"][0]), "") << schema["examples"].dump();
  raise(budget, schema["examples"][0]);
  EXPECT_TRUE(spent_limits(budget, spent, Spender::model).empty());
}

TEST(BudgetSchema, RefusesWhatWouldNotSufficeAndNamesIt) {
  Budget budget;
  budget.tokens = 100;
  budget.tool_calls = 9;
  Spent spent;
  spent.usage.total_tokens = 130;
  spent.tool_calls = 2;
  const Json schema = budget_schema(budget, spent, spent_limits(budget, spent, Spender::model));
  EXPECT_EQ(errors_of(schema, {{"tokens", 131}, {"tool_calls", 9}}), "");
  const std::vector<std::pair<Json, std::string>> wrong = {
      {{{"tokens", 130}}, "/tokens: must be at least 131"},
      {{{"tokens", "200000"}}, "/tokens: must be of type"},
      {{{"tokens", 1e300}}, "/tokens: must be at most"},
      {{{"token", 200000}}, "did you mean"},
      {{{"tool_calls", 20}}, "tokens"},
      {{{"tokens", 200}, {"tool_calls", 8}}, "/tool_calls: must be at least 9"},
      {{{"tokens", 200}, {"model_calls", 8}}, "/model_calls: is not a known property"},
      {{{"end", false}}, "/end: must be one of [true]"},
      {Json::object(), "tokens"},
      {Json(200000), "must be of type"}};
  for (const auto& [values, says] : wrong) {
    EXPECT_NE(errors_of(schema, values).find(says), std::string::npos)
        << values << ": " << errors_of(schema, values);
  }
}

TEST(BudgetSchema, NoAnswerLowersALimit) {
  Budget budget = limited();
  raise(budget,
        {{"tokens", 5}, {"cost_usd", 0.1}, {"time", "1s"}, {"model_calls", 1}, {"end", true}});
  EXPECT_EQ(budget, limited());
  raise(budget, {{"tokens", 500}, {"time", "99999999999999999999d"}});
  EXPECT_EQ(budget.tokens, 500);
  EXPECT_EQ(budget.time, limited().time) << "no duration: left as it is";
}

}  // namespace
}  // namespace holdfast
