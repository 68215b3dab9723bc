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
  std::string id = stored.lines().at(0);
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
  EXPECT_NE(why.out.find("because the budget of 1 tool call is used up"), std::string::npos)
      << why.out;
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

TEST(Budget, AnAnswerThatWouldNotSufficeIsRefusedWithWhatIsUsed) {
  const Folder cli;
  write_asking_agent(cli);
  const std::string id = asked_run(cli);
  const std::string used = std::to_string(
      cli({"show", id, "--json"}).json()["usage"]["total_tokens"].get<std::int64_t>());
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"tokens": 1})", "/tokens: must be at least"},
      {R"({"tokens": )" + used + "}", "at least"},
      {R"({"tokens": -5})", "at least"},
      {R"({"tokens": "many"})", "of type"},
      {R"({"tokens": 1.5})", "of type"},
      {R"({"tokens": 1e99})", "at most"},
      {R"({"token": 5})", "did you mean"},
      {R"({"cost_usd": 5})", "tokens"},
      {R"({"end": false})", "must be one of [true]"},
      {"{}", "tokens"},
      {"[]", "of type"},
      {"200000", "of type"}};
  for (const auto& [values, says] : wrong) {
    const auto refused = cli({"input", id, "--values", values});
    EXPECT_EQ(refused.status, 2) << values;
    EXPECT_NE(refused.err.find(says), std::string::npos) << values << ": " << refused.err;
  }
  const auto why = cli({"why", id});
  EXPECT_NE(why.out.find(used + " token"), std::string::npos) << why.out;
  EXPECT_NE(why.out.find(R"(--values '{"tokens":)"), std::string::npos) << why.out;
  EXPECT_EQ(cli({"show", id, "--json"}).json()["status"], "waiting_for_input");
}

TEST(Budget, OfAnInteractiveRunIsAskedAboutAndItGoesOnWithTheAnswer) {
  const Folder cli;
  write_asking_agent(cli);
  const auto asked = cli({"run", "pay", "--input", "x", "--budget", "tokens=1000000", "--budget",
                          "time=1ms", "--json"});
  EXPECT_EQ(asked.status, 5) << asked.err;
  const std::string id = asked.json()["id"];
  const auto short_of = cli({"input", id, "--values", R"({"time": "1ms"})"});
  EXPECT_EQ(short_of.status, 5) << "a text is compared when the run looks at it: asked again";
  EXPECT_NE(cli({"why", id}).out.find("do not suffice"), std::string::npos);
  const auto raised = cli({"input", id, "--values", R"({"time": "1h"})"});
  EXPECT_EQ(raised.status, 0) << raised.err;
  EXPECT_EQ(cli({"show", id, "--json"}).json()["answer"], "paid");
  EXPECT_EQ(cli({"verify"}).status, 0);
}

TEST(Budget, ARedriveCountsAnew) {
  const Folder cli;
  cli.write_agent(false);
  const std::string turns = cli.read("turns.json");
  std::string failing = turns;
  failing.replace(failing.rfind("{\"tool_calls"), 1, R"({"errors": [{"status": 400}], )");
  cli.write("turns.json", failing);
  const auto stored = cli({"enqueue", "pay", "--input", "x", "--budget", "model_calls=2"});
  const std::string id = stored.lines().at(0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"show", id, "--json"}).json()["reason"], "not_retryable");
  cli.write("turns.json", turns);
  EXPECT_EQ(cli({"redrive", id}).status, 0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  const auto run = cli({"show", id, "--json"}).json();
  EXPECT_EQ(run["reason"], "completed") << "three calls in all, two of them in this drive";
  EXPECT_EQ(run["answer"], "paid");
  EXPECT_EQ(cli.read("payments"), "{\"amount\":12}\n");
}

TEST(Budget, TellsWhatIsWrongWithAValue) {
  const Folder cli;
  cli.write_agent(false);
  for (const char* wrong :
       {"tokens=0", "tokens=1e3", "tokens=99999999999999999999", "tool_calls=x", "model_calls=-1",
        "time=10", "time=0s", "cost_usd=inf", "cost_usd=0", "tokens", "money=5", ""}) {
    const auto refused = cli({"enqueue", "pay", "--input", "x", "--budget", wrong});
    EXPECT_EQ(refused.status, 2) << wrong << refused.out;
    EXPECT_NE(refused.err.find("budget"), std::string::npos) << refused.err;
  }
  EXPECT_TRUE(cli({"list", "--json"}).json()["runs"].empty());
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
