#include <gtest/gtest.h>

#include "cli/cli_test_support.hpp"

namespace holdfast {
namespace {

using testing::completed_run;
using testing::ended;
using testing::failed_run;
using testing::make_run;
using testing::Shell;

TEST(Operators, AreTheLoginNameOrAsTold) {
  Shell shell;
  shell.runtime.runs["a"] = make_run("a", Status::queued);
  shell.run({"wake", "a"});
  shell.run({"wake", "a", "--as", "grace"});
  ASSERT_EQ(shell.runtime.operators.size(), 2u);
  EXPECT_EQ(shell.runtime.operators[0].actor, "ada");
  EXPECT_EQ(shell.runtime.operators[1].actor, "grace");
  EXPECT_EQ(shell.run({"wake", "a", "--as", ""}), 2);
}

Run waiting_run() {
  auto run = make_run("w", Status::waiting_for_approval);
  run.waiting_for = Wait{};
  run.waiting_for->turn = "digest";
  run.waiting_for->calls = {GatedCall{"1", "pay", {{"amount", 12}}}};
  return run;
}

TEST(Decide, WithoutATurnItIsAboutTheOneThatWasRead) {
  Shell shell;
  shell.runtime.runs["w"] = waiting_run();
  EXPECT_EQ(shell.run({"approve", "w", "--note", "ok", "--call", "1"}), 0);
  EXPECT_EQ(shell.run({"deny", "w", "--turn", "other", "--queue"}), 0);
  const auto& decisions = shell.runtime.decisions;
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].kind, DecisionKind::approve);
  EXPECT_EQ(decisions[0].turn, "digest");
  EXPECT_EQ(decisions[0].call, "1");
  EXPECT_EQ(decisions[0].by.note, "ok");
  EXPECT_EQ(decisions[0].go_on, Decision::Continue::by_origin);
  EXPECT_EQ(decisions[1].kind, DecisionKind::deny);
  EXPECT_EQ(decisions[1].turn, "other");
  EXPECT_EQ(decisions[1].go_on, Decision::Continue::queue);
  EXPECT_EQ(shell.run({"approve", "w", "--queue", "--inline"}), 2);
}

TEST(Decide, AnInlineContinuationEndsLikeARun) {
  Shell shell;
  shell.runtime.runs["w"] = waiting_run();
  shell.runtime.segment = ended(Outcome::completed, completed_run("w", "paid"));
  EXPECT_EQ(shell.run({"approve", "w", "--inline"}), 0);
  EXPECT_EQ(shell.out, "paid\n");
  shell.runtime.segment = ended(Outcome::awaiting_approval, waiting_run());
  EXPECT_EQ(shell.run({"approve", "w", "--inline"}), 5);
}

TEST(Input, TakesJsonValues) {
  Shell shell;
  shell.runtime.runs["w"] = waiting_run();
  EXPECT_EQ(shell.run({"input", "w", "--values", "{\"amount\": 12}"}), 0);
  EXPECT_EQ(shell.runtime.decisions.at(0).values, Json({{"amount", 12}}));
  EXPECT_EQ(shell.run({"input", "w"}), 2);
  EXPECT_EQ(shell.run({"input", "w", "--values", "{amount}"}), 2);
}

TEST(Resolve, SaysExactlyOneThing) {
  Shell shell;
  auto run = failed_run("f");
  run.pending = Fence{};
  run.pending->step_key = "tool:pay#1";
  shell.runtime.runs["f"] = run;
  EXPECT_EQ(shell.run({"resolve", "f"}), 2);
  EXPECT_EQ(shell.run({"resolve", "f", "--landed", "--not-landed"}), 2);
  EXPECT_EQ(shell.run({"resolve", "f", "--not-landed", "--result", "1"}), 2);
  EXPECT_EQ(shell.run({"resolve", "f", "--landed", "--result", "{\"id\":7}"}), 0);
  EXPECT_EQ(shell.run({"resolve", "f", "--not-landed", "--step", "other", "--force"}), 0);
  const auto& asked = shell.runtime.resolutions;
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_TRUE(asked[0].landed);
  EXPECT_EQ(asked[0].result, Json({{"id", 7}}));
  EXPECT_EQ(asked[0].step, "tool:pay#1");
  EXPECT_FALSE(asked[1].landed);
  EXPECT_TRUE(asked[1].force);
  EXPECT_EQ(asked[1].step, "other");
}

TEST(Redrive, NeedsIdsOrAFilterOrAll) {
  Shell shell;
  shell.runtime.runs["f"] = failed_run("f");
  shell.runtime.bulk = {3, 2, 1, {"a", "b"}};
  EXPECT_EQ(shell.run({"redrive"}), 2);
  EXPECT_EQ(shell.run({"redrive", "f", "--all"}), 2);
  EXPECT_EQ(shell.run({"redrive", "f", "--agent", "a"}), 2);
  EXPECT_EQ(shell.run({"redrive", "f"}), 0);
  EXPECT_EQ(shell.run({"redrive", "--all"}), 0);
  EXPECT_EQ(shell.out, "a\nb\n3 matched, 2 moved, 1 skipped\n");
  EXPECT_TRUE(shell.runtime.filters.at(0).oldest_first);
  EXPECT_EQ(shell.runtime.filters.at(0).limit, 0);
  EXPECT_EQ(shell.run({"redrive", "--reason", "not_retryable", "--limit", "5", "--dry-run"}), 0);
  EXPECT_EQ(shell.runtime.calls.back(), "redrive_all dry");
  EXPECT_EQ(shell.runtime.filters.at(1).limit, 5);
  EXPECT_EQ(shell.run({"redrive", "--all", "--json"}), 0);
  EXPECT_EQ(shell.json(), Json::parse(R"({"matched":3,"moved":2,"skipped":1,"ids":["a","b"]})"));
}

TEST(Reap, PrintsItsThreeCounts) {
  Shell shell;
  shell.runtime.reap_answers = {{4, 1, 2, 3, false}};
  EXPECT_EQ(shell.run({"reap"}), 0);
  EXPECT_EQ(shell.out, "4 requeued, 1 dead-lettered, 2 skipped\n");
  EXPECT_EQ(shell.runtime.sweeps.back(), std::make_pair(50, false));
  shell.runtime.reap_answers = {{4, 1, 2, 3, true}};
  EXPECT_EQ(shell.run({"reap", "--limit", "9", "--json"}), 0);
  EXPECT_EQ(shell.json(),
            Json::parse(R"({"requeued":4,"dead_lettered":1,"skipped":2,"expired":3})"));
  EXPECT_EQ(shell.runtime.sweeps.back(), std::make_pair(9, false));
  shell.runtime.reap_answers = {{4, 1, 0, 0, false}};
  EXPECT_EQ(shell.run({"reap", "--dry-run"}), 0);
  EXPECT_EQ(shell.out, "4 would be requeued, 1 would be dead-lettered, 0 would be skipped\n");
  EXPECT_EQ(shell.run({"reap", "--limit", "0"}), 2);
}

TEST(Reap, AllSweepsUntilNothingIsLeft) {
  Shell shell;
  shell.runtime.reap_answers = {{50, 0, 0, 0, true}, {50, 0, 0, 0, true}, {7, 1, 0, 0, false}};
  EXPECT_EQ(shell.run({"reap", "--all"}), 0);
  EXPECT_EQ(shell.out, "107 requeued, 1 dead-lettered, 0 skipped\n");
  // A sweep that moves nothing ends it, however full it was.
  shell.runtime.sweeps.clear();
  shell.runtime.reap_answers = {{0, 0, 50, 0, true}, {1, 0, 0, 0, false}};
  EXPECT_EQ(shell.run({"reap", "--all"}), 0);
  EXPECT_EQ(shell.runtime.sweeps.size(), 1u);
}

TEST(Purge, SaysHowManyOfEachStatus) {
  Shell shell;
  shell.runtime.runs["a"] = completed_run("a", 1);
  shell.runtime.purged = {{{"completed", 2}, {"failed", 1}}, 3};
  EXPECT_EQ(shell.run({"purge", "--older-than", "30d"}), 0);
  EXPECT_EQ(shell.out, "2 completed, 1 failed purged\n");
  EXPECT_EQ(shell.runtime.purges.back().older_than, std::chrono::hours(24 * 30));
  EXPECT_FALSE(shell.runtime.purges.back().unfinished_older_than);
  EXPECT_EQ(shell.run({"purge", "--dry-run", "--json"}), 0);
  EXPECT_TRUE(shell.runtime.purges.back().dry_run);
  EXPECT_EQ(shell.json()["total"], 3);
  EXPECT_EQ(shell.json()["by_status"]["completed"], 2);
  EXPECT_EQ(shell.run({"purge", "a", "nope"}), 3);
  EXPECT_EQ(shell.runtime.purges.back().ids, std::vector<RunId>{"nope"});
}

TEST(Purge, SaysThatAWriteWhichMayHaveLandedGoesToo) {
  Shell shell;
  shell.runtime.runs["a"] = failed_run("a");
  shell.runtime.purged = {{{"failed", 1}}, 1, 1};
  EXPECT_EQ(shell.run({"purge", "a", "--older-than", "0s"}), 0);
  EXPECT_EQ(shell.out, "a failed, purged, with the record of a write that may have landed\n");
  shell.runtime.purged = {{{"failed", 3}}, 3, 2};
  EXPECT_EQ(shell.run({"purge"}), 0);
  EXPECT_EQ(shell.out,
            "3 failed purged, 2 of them with the record of a write that may have landed\n");
  EXPECT_EQ(shell.run({"purge", "--json"}), 0);
  EXPECT_EQ(shell.json()["unknown_writes"], 2);
}

}  // namespace
}  // namespace holdfast
