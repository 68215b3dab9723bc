// A run that asks a person about its budget: who asks, who answers and who goes on may all be
// killed.

#include <gtest/gtest.h>
#include <signal.h>

#include "crash/harness.hpp"

namespace holdfast::crash {
namespace {

/// The errand of three tools, of which one is within the budget.
Settings thrifty() {
  Settings settings;
  settings.more =
      "[agents.thrifty]\nmodels = [\"errand/m\"]\ntools = [\"lookup\", \"label\", \"pay\"]\n"
      "on_budget = \"ask\"\nbudget = { tool_calls = 1 }\n";
  return settings;
}

/// A worker that takes up work and is killed at that point.
void be_killed_at(Site& site, const std::string& failpoint) {
  Process worker = site.worker({}, {{"HOLDFAST_FAILPOINTS", failpoint}});
  ASSERT_EQ(worker.wait(seconds(30)), 128 + SIGKILL) << failpoint;
}

TEST(Budgets, TheQuestionIsStoredOnceWhereverItsWorkerDies) {
  for (const char* failpoint : {"settle.before=kill", "settle.after=kill"}) {
    SCOPED_TRACE(failpoint);
    Site site(thrifty());
    const std::string run = site.enqueue("thrifty");
    be_killed_at(site, failpoint);
    Process worker = site.worker();
    ASSERT_TRUE(site.reaches(run, "waiting_for_input"));
    EXPECT_EQ(site.count_events(run, EventKind::input_requested), 1);
    EXPECT_EQ(site.count_events(run, EventKind::model), 2);
    EXPECT_EQ(site.times("lookup"), 1);
    EXPECT_EQ(site.times("label"), 0);
    worker.kill();
    site.expect_sound();
  }
}

TEST(Budgets, TheAnswerCountsFromItsCommitOnAndForEveryLaterWorker) {
  Site site(thrifty());
  const std::string run = site.enqueue("thrifty");
  {
    Process worker = site.worker();
    ASSERT_TRUE(site.reaches(run, "waiting_for_input"));
    worker.kill();  // while a person thinks, nobody needs to live
  }
  const std::string rows = site.rows_of(run);
  const auto refused = site.cli({"input", run, "--values", R"({"tool_calls": 1})"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("at least 2"), std::string::npos) << refused.err;
  EXPECT_EQ(site.rows_of(run), rows) << "it waits as before";

  const std::vector<std::string> raise = {"input", run, "--values", R"({"tool_calls": 3})"};
  const auto answer_and_die = [&](const std::string& failpoint) {
    return site.cli(raise, {{"HOLDFAST_FAILPOINTS", failpoint}}).code;
  };
  EXPECT_EQ(answer_and_die("store.answer.before=kill"), 128 + SIGKILL);
  EXPECT_EQ(site.status(run), "waiting_for_input");
  EXPECT_EQ(answer_and_die("store.answer.after=kill"), 128 + SIGKILL);
  EXPECT_EQ(site.status(run), "queued");
  EXPECT_EQ(site.cli(raise).code, 4) << "it was answered";

  be_killed_at(site, "tool.before=kill");
  be_killed_at(site, "model.before=kill");
  Process worker = site.worker();
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.show(run).at("reason"), "completed");
  EXPECT_EQ(site.count_events(run, EventKind::input_requested), 1);
  EXPECT_EQ(site.count_events(run, EventKind::input_submitted), 1);
  EXPECT_EQ(site.count_events(run, EventKind::model), 4) << "no recorded answer is paid for again";
  EXPECT_EQ(site.times("lookup"), 1);
  EXPECT_EQ(site.times("pay"), 1);
  worker.kill();
  site.expect_sound();
}

}  // namespace
}  // namespace holdfast::crash
