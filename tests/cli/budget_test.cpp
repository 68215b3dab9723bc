// Budgets from the command line: a run that stops with what it has, one that asks, and one whose
// worker dies behind the answer.

#include <gtest/gtest.h>

#include "cli/program.hpp"

namespace holdfast::cli_tests {
namespace {

/// An agent that may use one token, and asks for more.
void write_asking_agent(const Folder& cli) {
  cli.write_agent(false);
  const std::string asks = "[agents.pay]\non_budget = \"ask\"\nbudget = { tokens = 1 }\n";
  std::string config = cli.read("holdfast.toml");
  config.replace(config.find("[agents.pay]\n"), 13, asks);
  cli.write("holdfast.toml", config);
}

/// A run that waits because its budget is used up.
std::string asked_run(const Folder& cli) {
  const auto stored = cli({"enqueue", "pay", "--input", "x", "--max-requeues", "3"});
  EXPECT_EQ(stored.status, 0) << stored.err;
  const std::string id = stored.lines().at(0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  const auto run = cli({"show", id, "--json"}).json();
  EXPECT_EQ(run["status"], "waiting_for_input") << run.dump(1);
  EXPECT_TRUE(run["waiting_for"]["schema"]["properties"].contains("tokens")) << run.dump(1);
  return id;
}

TEST(Budget, OfARunStopsItWithWhatItHas) {
  const Folder cli;
  cli.write_agent(false);
  const auto result =
      cli({"run", "pay", "--input", "please", "--budget", "tool_calls=1", "--json"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.json()["status"], "completed");
  EXPECT_EQ(result.json()["reason"], "budget_exhausted");
  EXPECT_FALSE(fs::exists(cli.path() / "payments"));
  const auto why = cli({"why", result.json()["id"]});
  EXPECT_NE(why.out.find("budget"), std::string::npos) << why.out;
}

TEST(Budget, APersonRaisesItAndTheNextWorkerKnowsAlthoughTheFirstWasKilled) {
  const Folder cli;
  write_asking_agent(cli);
  const std::string id = asked_run(cli);
  EXPECT_EQ(cli({"input", id, "--values", R"({"token": 200000})"}).status, 2);
  const auto told = cli({"input", id, "--values", R"({"tokens": 200000})"});
  ASSERT_EQ(told.status, 0) << told.err;
  // It dies behind the payment, before the next call of the model.
  const auto killed = cli.run(
      {.words = {"worker", "--drain"}, .env = {{"HOLDFAST_FAILPOINTS", "model.before=kill@2"}}});
  EXPECT_EQ(killed.status, 128 + 9);
  EXPECT_EQ(cli.read("payments"), "{\"amount\":12}\n");
  EXPECT_EQ(cli({"reap"}).status, 0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  const auto run = cli({"show", id, "--json"}).json();
  EXPECT_EQ(run["reason"], "completed") << run.dump(1);
  EXPECT_EQ(run["answer"], "paid");
  EXPECT_EQ(run["reclaim_count"], 1);
  EXPECT_EQ(cli.read("payments"), "{\"amount\":12}\n");
}

TEST(Budget, APersonEndsTheRun) {
  const Folder cli;
  write_asking_agent(cli);
  const std::string id = asked_run(cli);
  ASSERT_EQ(cli({"input", id, "--values", R"({"end": true})"}).status, 0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"show", id, "--json"}).json()["reason"], "budget_exhausted");
  EXPECT_EQ(cli({"verify"}).status, 0);
}

TEST(Budget, OfMoneyNamesTheModelWithoutAPrice) {
  const Folder cli;
  cli.write_agent(false);
  const auto refused = cli({"enqueue", "pay", "--input", "x", "--budget", "cost_usd=1"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("demo/x has no price"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace holdfast::cli_tests
