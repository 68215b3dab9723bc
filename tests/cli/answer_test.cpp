// Answers that must meet a schema, from the command line.

#include <gtest/gtest.h>

#include "cli/program.hpp"

namespace holdfast::cli_tests {
namespace {

/// An agent that looks once and then says these texts.
void write_counter(const Folder& cli, const std::vector<std::string>& texts) {
  Json turns = Json::array();
  turns.push_back({{"tool_calls", {{{"name", "look"}, {"arguments", Json::object()}}}}});
  for (const std::string& text : texts) turns.push_back({{"reply", text}});
  cli.write("turns.json", turns.dump());
  cli.write("look.sh", "#!/bin/sh\necho x >> looked\necho 7\n", true);
  cli.write("holdfast.toml", R"(
[lease]
duration = "5s"
[providers.demo]
kind = "scripted"
script = "turns.json"
[agents.count]
models = ["demo/x"]
tools = ["look"]
answer_schema = { type = "object", properties = { total = { type = "integer" } }, required = ["total"] }
[tools.look]
command = ["./look.sh"]
effect = "read"
)");
}

TEST(AnswerSchema, TheAnswerIsTheValue) {
  const Folder cli;
  write_counter(cli, {"```json\n{\"total\": 7}\n```"});
  const auto run = cli({"run", "count", "--input", "x"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out), (Json{{"total", 7}}));
  const auto shown = cli({"list", "--json"}).json()["runs"][0];
  EXPECT_EQ(shown["answer"], (Json{{"total", 7}}));
  EXPECT_EQ(shown["iterations"], 2);
}

TEST(AnswerSchema, IsMendedOnceAlthoughTheWorkerIsKilledInBetween) {
  for (const char* failpoint :
       {"model.before=kill@3", "model.after=kill@3", "settle.before=kill"}) {
    const Folder cli;
    write_counter(cli, {"seven", R"({"total": 7})"});
    const std::string id = cli({"enqueue", "count", "--input", "x"}).lines().at(0);
    const auto killed =
        cli.run({.words = {"worker", "--drain"}, .env = {{"HOLDFAST_FAILPOINTS", failpoint}}});
    EXPECT_EQ(killed.status, 128 + 9) << failpoint;
    EXPECT_EQ(cli({"reap"}).status, 0);
    EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
    const auto run = cli({"show", id, "--json"}).json();
    EXPECT_EQ(run["answer"], (Json{{"total", 7}})) << failpoint;
    EXPECT_EQ(run["iterations"], 3) << failpoint;
    EXPECT_EQ(cli.read("looked"), "x\n") << failpoint;
    EXPECT_EQ(cli({"verify"}).status, 0);
  }
}

TEST(AnswerSchema, ThatIsMissedTwiceIsADeadLetterWhichARedriveTriesAnew) {
  const Folder cli;
  write_counter(cli, {"seven", R"({"total": "7"})", R"({"total": 7})"});
  const std::string id = cli({"enqueue", "count", "--input", "x"}).lines().at(0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  const auto failed = cli({"show", id, "--json"}).json();
  EXPECT_EQ(failed["reason"], "not_retryable");
  EXPECT_EQ(failed["error"]["class"], "configuration");
  EXPECT_EQ(failed["error"]["code"], "answer_schema");
  EXPECT_EQ(failed["requeue_count"], 0);
  const auto why = cli({"why", id});
  EXPECT_NE(why.out.find("/total: must be of type"), std::string::npos) << why.out;
  EXPECT_EQ(cli({"redrive", id}).status, 0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"show", id, "--json"}).json()["answer"], (Json{{"total", 7}}));
  EXPECT_EQ(cli.read("looked"), "x\n");
}

TEST(AnswerSchema, TheTurnThatMendsItIsPaidFromTheBudget) {
  const Folder cli;
  write_counter(cli, {"seven", R"({"total": 7})"});
  const auto run = cli({"run", "count", "--input", "x", "--budget", "model_calls=2", "--json"});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.json()["reason"], "budget_exhausted");
  EXPECT_EQ(run.json()["answer"], "seven");
}

TEST(AnswerSchema, ThatCannotBeUsedIsRefusedWithItsLine) {
  const Folder cli;
  write_counter(cli, {"x"});
  std::string config = cli.read("holdfast.toml");
  config.replace(config.find("\"integer\""), 9, "\"whole\"");
  cli.write("holdfast.toml", config);
  const auto refused = cli({"run", "count", "--input", "x"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find(":10: agents.count.answer_schema: not a usable JSON Schema"),
            std::string::npos)
      << refused.err;
}

}  // namespace
}  // namespace holdfast::cli_tests
