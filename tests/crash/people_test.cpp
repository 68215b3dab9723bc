// What people ask for, at the same time as workers and as each other.

#include <gtest/gtest.h>
#include <signal.h>

#include "crash/harness.hpp"

namespace holdfast::crash {
namespace {

Json failing_with(int status, int times = 1) {
  Json errors = Json::array();
  for (int i = 0; i < times; ++i) errors.push_back({{"status", status}});
  return {{"errors", errors}, {"reply", "late"}};
}

Json calling(const std::vector<std::string>& tools) {
  Json calls = Json::array();
  for (const std::string& tool : tools) {
    calls.push_back({{"name", tool}, {"arguments", {{"n", calls.size()}}}});
  }
  return {{"tool_calls", calls}};
}

TEST(People, ACancelledRunInBackoffIsNeverClaimedAgain) {
  Settings settings;
  settings.backoff = "1s";
  Site site(settings);
  site.script("plain", Json::array({failing_with(503, 2)}));
  const std::string run = site.enqueue("plain");
  Process worker = site.worker();
  ASSERT_TRUE(
      eventually(seconds(20), [&] { return site.count_events(run, EventKind::requeued) == 1; }));
  EXPECT_EQ(site.cli({"cancel", run}).code, 0);
  const int claims = site.count_events(run, EventKind::claimed);
  let_pass(milliseconds(scaled(2500, 20000)));
  EXPECT_EQ(site.status(run), "cancelled");
  EXPECT_EQ(site.count_events(run, EventKind::claimed), claims);
  EXPECT_EQ(site.count_events(run, EventKind::cancelled), 1);
  EXPECT_TRUE(site.show(run).at("available_at").is_null()) << site.show(run).dump(1);
  EXPECT_EQ(site.cli({"cancel", run}).code, 0) << "a second cancel changes nothing";
  EXPECT_EQ(site.count_events(run, EventKind::cancelled), 1);
  site.expect_sound();
}

/// Nothing becomes of a cancelled run, also where another worker looks for work.
void expect_it_stays_cancelled(Site& site, const std::string& run) {
  Process other = site.worker();
  let_pass(milliseconds(scaled(2500, 6000)));
  EXPECT_EQ(site.status(run), "cancelled");
  EXPECT_EQ(site.count_events(run, EventKind::requeued), 0);
  EXPECT_EQ(site.count_events(run, EventKind::reaped), 0);
  EXPECT_EQ(site.count_events(run, EventKind::failed), 0);
  EXPECT_EQ(site.count_events(run, EventKind::completed), 0);
  EXPECT_EQ(site.show(run).at("requeue_count"), 0);
  site.expect_sound();
}

/// The model answers in its own time after the cancel: with a failure, or never.
void expect_cancelled_whatever_comes(const Json& turn, const std::string& failpoint,
                                     bool kill_worker) {
  Site site;
  site.script("plain", Json::array({turn}));
  const std::string run = site.enqueue("plain");
  Process worker = site.worker({}, {{"HOLDFAST_FAILPOINTS", failpoint}});
  ASSERT_TRUE(eventually(seconds(20), [&] { return site.status(run) == "running"; }));
  EXPECT_EQ(site.cli({"cancel", run}).code, 0);
  if (kill_worker) worker.kill();
  expect_it_stays_cancelled(site, run);
}

TEST(People, ARetryableFailureAfterTheCancelSchedulesNothing) {
  expect_cancelled_whatever_comes(failing_with(503), "settle.before=pause:2000", false);
}
TEST(People, AFinalFailureAfterTheCancelIsNoDeadLetter) {
  expect_cancelled_whatever_comes(failing_with(400), "settle.before=pause:2000", false);
}
TEST(People, ASuccessAfterTheCancelStaysCancelled) {
  Settings settings;
  settings.lease = "600s";
  settings.heartbeat = "200s";  // nobody tells the worker of the cancel while its tool is held
  Site site(settings);
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process worker = site.worker();
  ASSERT_TRUE(site.has_started("lookup"));
  EXPECT_EQ(site.cli({"cancel", run}).code, 0);
  site.let_go("lookup");
  const auto is_recorded = [&] { return site.count_events(run, EventKind::tool) == 1; };
  EXPECT_TRUE(eventually(seconds(20), is_recorded)) << "what it did is not lost";
  EXPECT_EQ(site.times("lookup", "end"), 1);
  expect_it_stays_cancelled(site, run);
}
TEST(People, AWorkerThatDiesAfterTheCancelIsNotReaped) {
  expect_cancelled_whatever_comes({{"reply", "late"}, {"delay", "30s"}}, "", true);
}

TEST(People, ACancelEndsTheToolInFlight) {
  Settings settings;
  settings.heartbeat = "1s";  // the keep-alive's round trip brings the news
  Site site(settings);
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process worker = site.worker({}, {});
  ASSERT_TRUE(site.has_started("lookup"));
  EXPECT_EQ(site.cli({"cancel", run}).code, 0);
  const pid_t tool = site.ledger().front().pid;
  EXPECT_TRUE(eventually(seconds(25), [&] { return ::kill(tool, 0) != 0; }));
  EXPECT_EQ(site.times("lookup", "end"), 0);
  worker.kill();
  site.let_go("lookup");
  site.expect_sound();
}

TEST(People, CancellingWhatHasEndedIsAConflictAndChangesNothing) {
  Site site;
  const std::string run = site.enqueue("plain");
  {
    Process worker = site.worker({"--drain"});
    ASSERT_EQ(worker.wait(seconds(30)), 0);
  }
  const std::string rows = site.rows_of(run);
  std::vector<Process> all;
  for (int i = 0; i < scaled(8, 50); ++i) all.emplace_back(site.command({"cancel", run}));
  for (Process& process : all) EXPECT_EQ(process.wait(seconds(60)), 4);
  EXPECT_EQ(site.rows_of(run), rows);
  EXPECT_EQ(site.cli({"redrive", run}).code, 4);
  EXPECT_EQ(site.rows_of(run), rows);
  site.expect_sound();
}

TEST(People, OfTwoWhoDecideAtTheSameTimeExactlyOneWins) {
  Site site;
  const int count = scaled(is_postgres() ? 3 : 6, 200);
  std::vector<std::string> runs;
  for (int i = 0; i < count; ++i) runs.push_back(site.enqueue("gated"));
  Process worker = site.worker({"--concurrency", "16"});
  int approved = 0;
  for (const std::string& run : runs) {
    ASSERT_TRUE(site.reaches(run, "waiting_for_approval"));
    Process yes(site.command({"approve", run, "--as", "ann"}));
    Process no(site.command({"deny", run, "--as", "bob"}));
    const auto first = yes.wait(seconds(60));
    const auto second = no.wait(seconds(60));
    EXPECT_TRUE((first == 0 && second == 4) || (first == 4 && second == 0))
        << first.value_or(-1) << " and " << second.value_or(-1);
    approved += first == 0 ? 1 : 0;
    EXPECT_EQ(site.count_events(run, EventKind::approved), first == 0 ? 1 : 0);
    EXPECT_EQ(site.count_events(run, EventKind::denied), second == 0 ? 1 : 0);
  }
  for (const std::string& run : runs) ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.times("send"), approved);
  worker.kill();
  site.expect_sound();
}

TEST(People, ApprovalContinuesTheRunBehindWhatWasDone) {
  Site site;
  Json turns = Json::array();
  for (const char* tool : {"lookup", "pay", "send"}) turns.push_back(calling({tool}));
  turns.push_back({{"reply", "all done"}});
  site.script("errand", turns);
  const std::string run = site.enqueue("errand");
  {
    Process worker = site.worker();
    ASSERT_TRUE(site.reaches(run, "waiting_for_approval"));
    worker.kill();  // while the run waits, nobody needs to live
  }
  let_pass(milliseconds(300));
  Process worker = site.worker();
  EXPECT_EQ(site.status(run), "waiting_for_approval");
  EXPECT_EQ(site.cli({"approve", run}).code, 0);
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.times("lookup"), 1);
  EXPECT_EQ(site.times("pay"), 1);
  EXPECT_EQ(site.times("send"), 1);
  EXPECT_EQ(site.count_events(run, EventKind::model), 4);
  EXPECT_EQ(site.show(run).at("requeue_count"), 0);
  worker.kill();
  site.expect_sound();
}

TEST(People, AnApprovalThatNobodyGaveExpiresWithoutAWorkerAndALateOneIsRefused) {
  Settings settings;
  settings.more =
      "[agents.hasty]\nmodels = [\"gated/m\"]\ntools = [\"lookup\", \"send\"]\napproval_timeout = "
      "\"1s\"\n";
  Site site(settings);
  const std::string run = site.enqueue("hasty");
  {
    Process worker = site.worker();
    ASSERT_TRUE(eventually(
        seconds(20), [&] { return site.count_events(run, EventKind::approval_requested) == 1; }));
    worker.kill();
  }
  let_pass(milliseconds(1200));
  EXPECT_EQ(site.cli({"approve", run}).code, 4) << "its deadline is over";
  EXPECT_EQ(site.cli({"reap"}).code, 0);
  EXPECT_EQ(site.count_events(run, EventKind::expired), 1);
  EXPECT_EQ(site.status(run), "queued");
  EXPECT_EQ(site.cli({"approve", run}).code, 4);
  Process worker = site.worker();
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.times("send"), 0) << "nobody approved it";
  EXPECT_EQ(site.count_events(run, EventKind::denied), 0) << "an expiry is no person's no";
  worker.kill();
  site.expect_sound();
}

TEST(People, DecisionsFromManyProcessesKeepTheJournalGapless) {
  Site site;
  const int calls = scaled(12, 60);
  const std::vector<std::string> turn(static_cast<std::size_t>(calls), "send");
  site.script("gated", Json::array({calling(turn), {{"reply", "sent"}}}));
  const std::string run = site.enqueue("gated");
  Process worker = site.worker();
  ASSERT_TRUE(site.reaches(run, "waiting_for_approval"));
  std::vector<Process> deciders;
  const Json shown = site.show(run);
  for (const Json& call : shown.at("waiting_for").at("calls")) {
    deciders.emplace_back(site.command({"approve", run, "--call", call.at("id")}));
  }
  ASSERT_EQ(deciders.size(), static_cast<std::size_t>(calls));
  int acknowledged = 0;
  for (Process& decider : deciders) acknowledged += decider.wait(seconds(60)) == 0 ? 1 : 0;
  EXPECT_EQ(acknowledged, calls);
  ASSERT_TRUE(site.reaches(run, "completed", seconds(60)));
  EXPECT_EQ(site.count_events(run, EventKind::approved), acknowledged);
  std::int64_t expected = 0;
  for (const Event& event : site.events(run)) EXPECT_EQ(event.sequence, ++expected);
  EXPECT_EQ(site.times("send"), calls);
  worker.kill();
  site.expect_sound();
}

TEST(People, ManyRedrivesOfOneDeadLetterAreOne) {
  Site site;
  site.script("plain", Json::array({failing_with(401)}));
  const std::string run = site.enqueue("plain");
  {
    Process worker = site.worker();
    ASSERT_TRUE(site.reaches(run, "failed"));
    worker.kill();
  }
  std::vector<Process> all;
  for (int i = 0; i < scaled(10, 100); ++i) all.emplace_back(site.command({"redrive", run}));
  int accepted = 0;
  for (Process& process : all) {
    const auto code = process.wait(seconds(60));
    accepted += code == 0 ? 1 : 0;
    EXPECT_TRUE(code == 0 || code == 4);
  }
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ(site.count_events(run, EventKind::redriven), 1);
  EXPECT_EQ(site.show(run).at("redrive_count"), 1);
  site.expect_sound();
}

TEST(People, ABulkRedriveThatIsKilledMidwayIsFinishedByRepeatingIt) {
  Site site;
  site.policy.max_requeues = 0;
  const auto enqueue_team = [&](const std::string& team, int count) {
    std::vector<RunRequest> requests(static_cast<std::size_t>(count));
    for (RunRequest& request : requests) {
      request.agent = "faults";
      request.input = {{"faults", Json::array({"503"})}};
      request.labels = {{"team", team}};
    }
    return site.runtime().enqueue(requests);
  };
  const int ours_count = scaled(450, 6000);
  const auto ours = enqueue_team("ours", ours_count);
  const auto theirs = enqueue_team("theirs", scaled(30, 4000));
  const auto failed = [&] {
    return site.runtime().stats().at("by_status").value("failed", std::size_t{0});
  };
  Process worker = site.app({"worker", "--slots", "16", "--budget", "0"});
  ASSERT_TRUE(eventually(seconds(scaled(90, 1200)),
                         [&] { return failed() == ours.size() + theirs.size(); }));

  const std::vector<std::string> redrive = {"--json", "redrive", "--label", "team=ours"};
  const Result killed = site.cli(redrive, {{"HOLDFAST_FAILPOINTS", "redrive.after=kill@2"}});
  EXPECT_EQ(killed.code, 128 + SIGKILL) << killed.out << killed.err;
  int moved = 0;
  for (const auto& run : ours) moved += site.count_events(run.id, EventKind::redriven);
  EXPECT_GT(moved, 0);
  EXPECT_LT(moved, ours_count) << "it was killed too late to show anything";

  const Result again = site.cli(redrive);
  ASSERT_EQ(again.code, 0) << again.err;
  const Json report = Json::parse(again.out);
  EXPECT_EQ(report.at("moved"), ours_count - moved);
  EXPECT_EQ(report.at("matched").get<int>(),
            report.at("moved").get<int>() + report.at("skipped").get<int>());
  for (const auto& run : ours) {
    ASSERT_TRUE(site.reaches(run.id, "completed", seconds(60)));
    EXPECT_EQ(site.count_events(run.id, EventKind::redriven), 1);
  }
  for (const auto& run : theirs) EXPECT_EQ(site.count_events(run.id, EventKind::redriven), 0);
  worker.kill();
  site.expect_sound();
}

TEST(People, AnInteractiveRunWhoseProcessDiedIsHandedOver) {
  Site site;
  site.hold("label");
  const Command command = site.command({"run", "errand", "--input", "go"});
  std::string run;
  {
    Process interactive(command);
    ASSERT_TRUE(site.has_started("label"));
    run = site.runtime().list({}).runs.front().id;
    EXPECT_EQ(site.cli({"handover", run}).code, 4) << "its process lives";
    interactive.kill();
  }
  Process worker = site.worker();
  let_pass(milliseconds(1000));
  EXPECT_EQ(site.status(run), "running") << "a run without a lease is never reaped";
  EXPECT_EQ(site.count_events(run, EventKind::reaped), 0);
  EXPECT_TRUE(eventually(seconds(5), [&] { return site.show(run).at("abandoned") == true; }));
  EXPECT_EQ(site.cli({"handover", run}).code, 0);
  site.let_go("label");
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.times("lookup"), 1);
  EXPECT_EQ(site.times("pay"), 1);
  worker.kill();
  site.expect_sound();
}

}  // namespace
}  // namespace holdfast::crash
