// Conversations that outgrow their model, from the command line.

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/program.hpp"

namespace holdfast::cli_tests {
namespace {

/// An agent that looks something up four times, each time something long, and then answers.
void write_reader(const Folder& cli, int window) {
  cli.write("turns.json", R"([
    {"tool_calls": [{"name": "look", "arguments": {"n": 1}}]},
    {"tool_calls": [{"name": "look", "arguments": {"n": 2}}]},
    {"tool_calls": [{"name": "look", "arguments": {"n": 3}}]},
    {"tool_calls": [{"name": "look", "arguments": {"n": 4}}]},
    {"reply": "read"}])");
  cli.write("look.sh",
            "#!/bin/sh\nread line\necho \"$line\" >> looked\nprintf 'x%.0s' $(seq 2000)\n", true);
  cli.write("holdfast.toml", R"(
[providers.demo]
kind = "scripted"
script = "turns.json"
context_window = { x = )" + std::to_string(window) +
                                 R"( }
[agents.read]
models = ["demo/x"]
tools = ["look"]
[tools.look]
command = ["./look.sh"]
effect = "read"
)");
}

/// How many turns each request of the model left out.
std::vector<int> left_out(const Folder& cli, const std::string& id) {
  std::vector<int> counts;
  const Result events = cli({"events", id, "--json"});
  for (const Json& event : events.json()) {
    if (event["kind"] == "model") counts.push_back(event["payload"].value("left_out", 0));
  }
  return counts;
}

TEST(ContextWindow, TheOldestTurnsAreLeftOutAndTheJournalKeepsThem) {
  const Folder cli;
  write_reader(cli, 2000);
  const auto run = cli({"run", "read", "--input", "x", "--json"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.json()["answer"], "read");
  EXPECT_EQ(left_out(cli, run.json()["id"]), (std::vector<int>{0, 0, 0, 0, 1}));
  EXPECT_EQ(cli.read("looked"), "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n");
  const auto events = cli({"events", run.json()["id"], "--json"}).json();
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const Json& event) {
                            return event["kind"] == "tool" &&
                                   event["payload"]["result"].get<std::string>().size() == 2000;
                          }),
            4);
}

TEST(ContextWindow, AWorkerThatTakesOverLeavesOutTheSame) {
  const Folder cli;
  write_reader(cli, 2000);
  const std::string id = cli({"enqueue", "read", "--input", "x"}).lines().at(0);
  const auto killed = cli.run(
      {.words = {"worker", "--drain"}, .env = {{"HOLDFAST_FAILPOINTS", "model.after=kill@5"}}});
  EXPECT_EQ(killed.status, 128 + 9);
  EXPECT_EQ(cli({"reap"}).status, 0);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);
  EXPECT_EQ(cli({"show", id, "--json"}).json()["answer"], "read");
  EXPECT_EQ(left_out(cli, id), (std::vector<int>{0, 0, 0, 0, 1}));
}

TEST(ContextWindow, WhatCannotFitEndsTheRunAndSaysWhatFits) {
  const Folder cli;
  write_reader(cli, 400);
  const auto run = cli({"run", "read", "--input", "x", "--json"});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.json()["status"], "failed");
  EXPECT_EQ(run.json()["reason"], "context_truncated");
  const auto why = cli({"why", run.json()["id"]});
  EXPECT_NE(why.out.find("at most 360"), std::string::npos) << why.out;
  EXPECT_EQ(cli.read("looked"), "{\"n\":1}\n");
}

}  // namespace
}  // namespace holdfast::cli_tests
