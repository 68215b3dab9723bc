// What an agent's table says about limits and answers.

#include <gtest/gtest.h>

#include "app/config.hpp"

namespace holdfast {
namespace {

const std::string kProvider =
    "[providers.main]\nbase_url = \"http://127.0.0.1:1/v1\"\n"
    "prices = { m = { input = 1, output = 2 } }\n";

RuntimeOptions parse_agents(const std::string& text) {
  return parse_configuration(kProvider + text, "f.toml", "");
}

/// The message with which a text is refused; its lines begin behind those of the provider.
std::string agent_problem(const std::string& text) {
  try {
    parse_agents(text);
  } catch (const RefusedError& error) {
    return error.what();
  }
  return "";
}

TEST(ConfigBudget, ReadsEveryLimit) {
  const auto options = parse_agents(R"(
[agents.a]
models = ["main/m"]
on_budget = "ask"
budget = { tokens = 200000, cost_usd = 1.5, time = "10m", model_calls = 7, tool_calls = 9 }
[agents.b]
models = ["main/m"]
)");
  const AgentSpec& a = options.agents.at(0);
  EXPECT_EQ(a.budget.tokens, 200000);
  EXPECT_EQ(a.budget.cost_usd, 1.5);
  EXPECT_EQ(a.budget.time, std::chrono::minutes(10));
  EXPECT_EQ(a.budget.model_calls, 7);
  EXPECT_EQ(a.budget.tool_calls, 9);
  EXPECT_EQ(a.on_budget, OnBudget::ask);
  EXPECT_TRUE(options.agents.at(1).budget.is_empty());
  EXPECT_EQ(options.agents.at(1).on_budget, OnBudget::stop);
}

TEST(ConfigBudget, NamesTheKeyAndTheLineOfWhatCannotBe) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"budget = { tokens = 0 }", "f.toml:6: agents.a.budget.tokens"},
      {"budget = { cost_usd = 0 }", "f.toml:6: agents.a.budget.cost_usd"},
      {"budget = { time = \"0s\" }", "f.toml:6: agents.a.budget.time"},
      {"budget = { token = 5 }", "f.toml:6: agents.a.budget.token"},
      {"budget = { cost = 5 }", "expected one of cost_usd, model_calls, time, tokens, tool_calls"},
      {"budget = { tool_calls = \"5\" }", "f.toml:6: agents.a.budget.tool_calls"},
      {"on_budget = \"halt\"", "f.toml:6: agents.a.on_budget: expected stop or ask"}};
  for (const auto& [line, expected] : cases) {
    const std::string problem = agent_problem("[agents.a]\nmodels = [\"main/m\"]\n" + line + "\n");
    EXPECT_NE(problem.find(expected), std::string::npos) << line << ": " << problem;
  }
}

TEST(ConfigAnswer, ReadsTheSchemaAndNamesTheLineOfOneThatCannotBeUsed) {
  const auto options = parse_agents(R"(
[agents.a]
models = ["main/m"]
answer_schema = { type = "object", properties = { total = { type = "integer" } } }
[agents.b]
models = ["main/m"]
)");
  EXPECT_EQ(options.agents.at(0).answer_schema["properties"]["total"]["type"], "integer");
  EXPECT_TRUE(options.agents.at(1).answer_schema.is_null());
  EXPECT_TRUE(options.providers.at(0).native_schema);
  for (const char* schema : {"5", "{ type = \"whole\" }", "{ unevaluatedItems = false }"}) {
    const std::string problem =
        agent_problem("[agents.a]\nmodels = [\"main/m\"]\nanswer_schema = " + std::string(schema));
    EXPECT_NE(problem.find("f.toml:6: agents.a.answer_schema"), std::string::npos) << problem;
  }
}

TEST(ConfigBudget, OfMoneyNeedsThePriceOfEveryModel) {
  const std::string budget = "budget = { cost_usd = 1 }\n";
  EXPECT_EQ(agent_problem("[agents.a]\nmodels = [\"main/m\"]\n" + budget), "");
  const std::string problem =
      agent_problem("[agents.a]\nmodels = [\"main/m\", \"main/free\"]\n" + budget);
  EXPECT_NE(problem.find("f.toml:6: agents.a.budget.cost_usd: main/free has no price"),
            std::string::npos)
      << problem;
  EXPECT_NE(problem.find("[providers.main] prices"), std::string::npos) << problem;
}

}  // namespace
}  // namespace holdfast
