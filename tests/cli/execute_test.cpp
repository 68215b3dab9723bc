// Runs from the command line: started, queued, decided on, stopped.

#include <gtest/gtest.h>
#include <signal.h>

#include "cli/program.hpp"

namespace holdfast::cli_tests {
namespace {

TEST(Init, WhatItWritesWorksWithoutAKey) {
  const Folder cli;
  const auto made = cli({"init"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(made.lines(), (std::vector<std::string>{"holdfast.toml", "hello.json", "clock.sh"}));

  const auto answer = cli({"run", "hello", "--input", "What time is it?"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_NE(answer.out.find("Holdfast works"), std::string::npos);
  EXPECT_NE(answer.err.find("\"utc\""), std::string::npos) << "the tool ran: " << answer.err;

  const auto id = cli({"enqueue", "hello", "--input", "x"});
  ASSERT_EQ(id.status, 0) << id.err;
  const auto worker = cli({"worker", "--drain"});
  EXPECT_EQ(worker.status, 0) << worker.err;
  EXPECT_NE(worker.err.find("ready: 8 slots, agents hello, queues all"), std::string::npos);
  EXPECT_EQ(worker.out, "");
  const auto run = cli({"show", id.lines().at(0), "--json"}).json();
  EXPECT_EQ(run["status"], "completed");
  EXPECT_EQ(cli({"doctor"}).status, 0);
  EXPECT_EQ(cli({"verify"}).status, 0);
}

TEST(Init, SaysWhatToDoNextWithTheFileThatItWrote) {
  const Folder cli;
  EXPECT_NE(cli({"init"}).err.find("next: holdfast run hello"), std::string::npos);
  const auto other = cli({"--config", "other.toml", "init"});
  EXPECT_EQ(other.status, 4) << "its script and its tool are there";
  fs::create_directory(cli.path() / "sub");
  EXPECT_NE(
      cli({"--config", "sub/a.toml", "init"}).err.find("next: holdfast --config sub/a.toml run"),
      std::string::npos);
}

TEST(Init, OverwritesNothingAndWritesNothingByHalves) {
  const Folder cli;
  cli.write("clock.sh", "mine");
  EXPECT_EQ(cli({"init"}).status, 4);
  EXPECT_EQ(cli.read("clock.sh"), "mine");
  EXPECT_FALSE(fs::exists(cli.path() / "holdfast.toml"));
  EXPECT_FALSE(fs::exists(cli.path() / "hello.json"));
}

TEST(Run, StepsGoToStandardErrorAndTheAnswerToStandardOutput) {
  const Folder cli;
  cli.write_agent(false);
  const auto result = cli({"run", "pay", "--input", "please"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "paid\n");
  EXPECT_NE(result.err.find("pay"), std::string::npos);
  EXPECT_EQ(cli.read("payments"), "{\"amount\":12}\n");
  const auto json = cli({"--json", "run", "pay", "--input", "please"});
  EXPECT_EQ(json.lines().size(), 1u);
  EXPECT_EQ(json.json()["answer"], "paid");
  EXPECT_EQ(json.json()["origin"], "interactive");
}

TEST(Run, AFailedRunIsOne) {
  const Folder cli;
  cli.write_agent(false);
  cli.write("turns.json", R"([{"errors": [{"status": 400, "body": "no"}], "reply": "x"}])");
  const auto result = cli({"run", "pay", "--input", "please"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("holdfast why "), std::string::npos) << result.err;
}

TEST(Run, TheFirstInterruptCancelsAtTheBoundary) {
  const Folder cli;
  cli.write_agent(false);
  cli.write("turns.json", R"([{"tool_calls": [{"name": "look", "arguments": {"id": "1"}}]},
                              {"reply": "late", "delay": "3s"}])");
  Running run(cli.path(), {{"run", "pay", "--input", "x"}});
  ASSERT_TRUE(run.says("look"));
  run.signal(SIGINT);
  const auto result = run.finish();
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_EQ(result.out, "");
  const auto runs = cli({"list", "--json"}).json()["runs"];
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0]["status"], "cancelled");
}

TEST(Run, TheSecondInterruptLeavesItAndHandoverGivesItToTheWorkers) {
  const Folder cli;
  cli.write_agent(false);
  cli.write("turns.json", R"([{"tool_calls": [{"name": "look", "arguments": {"id": "1"}}]},
                              {"reply": "done"}])");
  // It does not end when it is asked to: the boundary is far away.
  cli.write("look.sh",
            "#!/bin/sh\ntrap '' TERM\ncat > /dev/null\n[ -e again ] && exit\necho > started\n"
            "sleep 30\n",
            true);
  Signpost started(cli, "started");
  Running run(cli.path(), {{"run", "pay", "--input", "x"}});
  ASSERT_TRUE(started.passed());
  run.signal(SIGINT);
  ASSERT_TRUE(run.says("a second signal leaves the run"));
  run.signal(SIGINT);
  EXPECT_EQ(run.finish().status, 130);

  const auto left = cli({"list", "--json"}).json()["runs"].at(0);
  EXPECT_EQ(left["status"], "running");
  EXPECT_EQ(left["abandoned"], true);
  const std::string id = left["id"];
  const auto given = cli({"handover", id, "--json"});
  ASSERT_EQ(given.status, 0) << given.err;
  EXPECT_EQ(given.json()["status"], "queued");
  EXPECT_EQ(given.json()["origin"], "queued");
  cli.write("again", "");
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"wait", id}).status, 0);
}

TEST(Enqueue, TakesItsInputFromManyPlaces) {
  const Folder cli;
  cli.write_agent(false);
  cli.write("request.txt", "from a file\n");
  const auto input_of = [&](const Call& call) {
    const auto stored = cli.run(call);
    EXPECT_EQ(stored.status, 0) << stored.err;
    return stored.status == 0 ? stored.json()["input"] : Json();
  };
  EXPECT_EQ(input_of({{"enqueue", "pay", "--json", "--input", "{\"a\":1}"}}), "{\"a\":1}");
  EXPECT_EQ(input_of({{"enqueue", "pay", "--json", "--input-file", "request.txt"}}),
            "from a file\n");
  EXPECT_EQ(input_of({{"enqueue", "pay", "--json", "--input-file", "-"}, {}, "from a pipe"}),
            "from a pipe");
  EXPECT_EQ(input_of({{"enqueue", "pay", "--json", "--input-json", "{\"a\":1}"}}),
            Json({{"a", 1}}));
}

TEST(Enqueue, AnIdempotencyKeyIsOneRun) {
  const Folder cli;
  cli.write_agent(false);
  const auto first = cli({"enqueue", "pay", "--input", "a", "--idempotency-key", "k"});
  const auto again = cli({"enqueue", "pay", "--input", "a", "--idempotency-key", "k"});
  EXPECT_EQ(first.status, 0);
  EXPECT_EQ(first.out, again.out);
  const auto other = cli({"enqueue", "pay", "--input", "b", "--idempotency-key", "k"});
  EXPECT_EQ(other.status, 4);
  EXPECT_EQ(other.out, "");
}

TEST(Enqueue, InlineExecutesUnderALease) {
  const Folder cli;
  cli.write_agent(false);
  const auto result = cli({"enqueue", "pay", "--input", "x", "--inline"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "paid\n");
  EXPECT_EQ(cli({"list", "--json"}).json()["runs"][0]["origin"], "queued");
}

TEST(Enqueue, WakeMakesADelayedRunAvailable) {
  const Folder cli;
  cli.write_agent(false);
  const auto id = cli({"enqueue", "pay", "--input", "x", "--delay", "1d"}).lines().at(0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"show", id, "--json"}).json()["status"], "queued");
  EXPECT_EQ(cli({"wait", id, "--timeout", "0s"}).status, 1);
  EXPECT_EQ(cli({"wake", id}).status, 0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"wait", id}).status, 0);
}

TEST(Approval, SuspendsWithFiveAndGoesOnAfterwards) {
  const Folder cli;
  cli.write_agent(true);
  const auto asked = cli({"run", "pay", "--input", "x", "--json"});
  ASSERT_EQ(asked.status, 5) << asked.err;
  const auto run = asked.json();
  const std::string id = run["id"];
  EXPECT_EQ(run["waiting_for"]["kind"], "approval");
  EXPECT_EQ(cli({"wait", id}).status, 5);
  EXPECT_EQ(cli({"approve", id, "--turn", "stale"}).status, 4);
  EXPECT_EQ(cli({"input", id, "--values", "{}"}).status, 4);
  EXPECT_EQ(cli.read("payments"), "");
  const auto approved = cli({"approve", id, "--as", "ada", "--note", "fine"});
  EXPECT_EQ(approved.status, 0) << approved.err;
  EXPECT_EQ(approved.out, "paid\n");
  EXPECT_EQ(cli({"approve", id}).status, 4);
  EXPECT_EQ(cli.read("payments"), "{\"amount\":12}\n");
  bool found = false;
  for (const auto& event : cli({"events", id, "--json"}).json()) {
    if (event["kind"] != "approved") continue;
    found = true;
    EXPECT_EQ(event["payload"]["actor"], "ada");
    EXPECT_EQ(event["payload"]["note"], "fine");
  }
  EXPECT_TRUE(found);
}

void replace_in(const Folder& cli, const std::string& what, const std::string& with) {
  auto text = cli.read("holdfast.toml");
  const auto at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what;
  cli.write("holdfast.toml", text.replace(at, what.size(), with));
}

TEST(Approval, WhatWasApprovedIsWhatRunsWhateverTheConfigurationSaysByThen) {
  for (const auto* executed_by : {"run", "enqueue"}) {
    const Folder cli;
    cli.write_agent(true);
    cli.write("other.sh", "#!/bin/sh\ncat >> others\necho '{\"ok\": true}'\n", true);
    const auto asked = cli({executed_by, "pay", "--input", "x", "--json"});
    const std::string id = asked.json()["id"];
    EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
    replace_in(cli, "\"./pay.sh\"", "\"./other.sh\"");
    EXPECT_EQ(cli({"approve", id}).status, 0);
    EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
    EXPECT_EQ(cli({"show", id, "--json"}).json()["status"], "completed");
    EXPECT_EQ(cli.read("payments"), "{\"amount\":12}\n");
    EXPECT_EQ(cli.read("others"), "");
  }
}

TEST(Approval, IsNotUsedUnderAnotherEnvironment) {
  const Folder cli;
  cli.write_agent(true, "env = { TRACKER = \"one-secret\" }\n");
  const auto id = cli({"enqueue", "pay", "--input", "x"}).lines().at(0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  replace_in(cli, "one-secret", "another");
  EXPECT_EQ(cli({"approve", id}).status, 0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  const auto run = cli({"show", id, "--json"}).json();
  EXPECT_EQ(run["status"], "failed");
  EXPECT_EQ(run["error"]["class"], "configuration");
  const std::string message = run["error"]["message"];
  EXPECT_NE(message.find("'pay'"), std::string::npos) << message;
  EXPECT_NE(message.find("redrive"), std::string::npos) << message;
  EXPECT_EQ(cli.read("payments"), "");
  EXPECT_EQ(cli.read("holdfast.db").find("one-secret"), std::string::npos);
  // The redrive takes the new definition, and what was approved was not that.
  EXPECT_EQ(cli({"redrive", id}).status, 0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"show", id, "--json"}).json()["status"], "waiting_for_approval");
  EXPECT_EQ(cli.read("payments"), "");
  EXPECT_EQ(cli({"approve", id}).status, 0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"show", id, "--json"}).json()["status"], "completed");
  EXPECT_EQ(cli.read("payments"), "{\"amount\":12}\n");
}

/// A run whose approved payment could not be started for want of its program, then redriven.
void expect_after_redrive(const std::string& change, const std::string& with,
                          const std::string& status) {
  SCOPED_TRACE(change + " becomes " + with);
  const Folder cli;
  cli.write_agent(true);
  const auto id = cli({"enqueue", "pay", "--input", "x"}).lines().at(0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  fs::rename(cli.path() / "pay.sh", cli.path() / "away.sh");
  EXPECT_EQ(cli({"approve", id}).status, 0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"show", id, "--json"}).json()["status"], "failed");
  fs::rename(cli.path() / "away.sh", cli.path() / "pay.sh");
  replace_in(cli, change, with);
  EXPECT_EQ(cli({"redrive", id}).status, 0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"show", id, "--json"}).json()["status"], status);
  EXPECT_EQ(cli.read("payments"), status == "completed" ? "{\"amount\":12}\n" : "");
}

TEST(Approval, CountsNoMoreForAToolThatARedriveFindsChanged) {
  const std::string command = "[\"./pay.sh\"]";
  const std::string effect = "non_idempotent_write";
  expect_after_redrive(command, command, "completed");
  expect_after_redrive(command, "[\"./pay.sh\", \"--twice\"]", "waiting_for_approval");
  expect_after_redrive(effect, "idempotent_write", "waiting_for_approval");
}

TEST(Approval, CallsHaveOneIdEverywhere) {
  const Folder cli;
  cli.write_agent(true);
  const auto run = cli({"run", "pay", "--input", "x", "--json"}).json();
  const std::string id = run["id"];
  const std::string call = run["waiting_for"]["calls"][0]["id"];
  EXPECT_EQ(call, "2.1");
  for (const auto& event : cli({"events", id, "--json"}).json()) {
    if (event["kind"] != "approval_requested") continue;
    EXPECT_EQ(event["payload"]["calls"][0]["id"], call);
  }
  EXPECT_EQ(cli({"approve", id, "--call", "1"}).status, 3);
  EXPECT_EQ(cli({"approve", id, "--call", call}).out, "paid\n");
}

TEST(Approval, AQueuedRunGoesBackToTheWorkers) {
  const Folder cli;
  cli.write_agent(true);
  const auto id = cli({"enqueue", "pay", "--input", "x"}).lines().at(0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  const auto denied = cli({"deny", id, "--json"});
  ASSERT_EQ(denied.status, 0) << denied.err;
  EXPECT_EQ(denied.json()["status"], "queued");
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"wait", id}).status, 0);
  EXPECT_EQ(cli.read("payments"), "") << "what was denied did not run";
}

TEST(Input, IsCheckedAgainstTheSchemaBeforeAnythingIsClaimed) {
  const Folder cli;
  cli.write_agent(false,
                  "input = { type = \"object\", properties = { amount = { type = \"integer\", "
                  "minimum = 1 } }, required = [\"amount\"] }\n");
  const auto asked = cli({"run", "pay", "--input", "x", "--json"});
  ASSERT_EQ(asked.status, 5) << asked.err;
  const std::string id = asked.json()["id"];
  EXPECT_EQ(cli({"input", id, "--values", "{\"amount\": 0}"}).status, 2);
  EXPECT_EQ(cli({"input", id, "--values", "{\"amount\": \"1\"}"}).status, 2);
  EXPECT_EQ(cli({"show", id, "--json"}).json()["status"], "waiting_for_input");
  const auto other = cli({"input", id, "--call", "7.7", "--values", "{\"amount\": 5}"});
  EXPECT_EQ(other.status, 3) << other.err;
  EXPECT_NE(other.err.find("pending: 2.1"), std::string::npos) << other.err;
  const auto given = cli({"input", id, "--call", "2.1", "--values", "{\"amount\": 5}"});
  EXPECT_EQ(given.status, 0) << given.err;
  EXPECT_EQ(cli.read("payments"), "{\"amount\":5}\n");
}

TEST(Worker, ASignalHandsItsRunsBackAndExitsZero) {
  for (const int number : {SIGTERM, SIGINT}) {
    const Folder cli;
    cli.write_agent(false);
    cli.write("turns.json", R"([{"tool_calls": [{"name": "look", "arguments": {"id": "1"}}]},
                                {"reply": "done"}])");
    cli.write("look.sh",
              "#!/bin/sh\ncat > /dev/null\n[ -e again ] || { echo > started; sleep 1; }\necho 1\n",
              true);
    Signpost started(cli, "started");
    const auto id = cli({"enqueue", "pay", "--input", "x"}).lines().at(0);
    Running worker(cli.path(), {{"worker", "--log-level", "off"}});
    ASSERT_TRUE(started.passed());
    worker.signal(number);
    const auto result = worker.finish();
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.err.find("stopped"), std::string::npos);
    const auto run = cli({"show", id, "--json"}).json();
    EXPECT_EQ(run["status"], "queued");
    EXPECT_EQ(run["claimed_by"], nullptr);
    EXPECT_EQ(run["requeue_count"], 0) << "a release is not charged";
    cli.write("again", "");
    EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
    EXPECT_EQ(cli({"wait", id}).status, 0);
    EXPECT_EQ(cli({"verify"}).status, 0);
  }
}

}  // namespace
}  // namespace holdfast::cli_tests
