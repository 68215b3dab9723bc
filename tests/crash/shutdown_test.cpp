// Stopping gracefully hands runs back at once and uncharged, whenever the signal comes.

#include <gtest/gtest.h>
#include <signal.h>

#include "crash/harness.hpp"

namespace holdfast::crash {
namespace {

TEST(Shutdown, AStopBetweenClaimAndFirstStepReleasesTheRun) {
  const std::vector<std::vector<int>> ways = {{SIGTERM}, {SIGTERM, SIGTERM}, {SIGINT, SIGTERM}};
  for (const auto& signals : ways) {
    SCOPED_TRACE(std::to_string(signals.size()) + " signals, first " + std::to_string(signals[0]));
    Site site;
    const std::string run = site.enqueue("plain");
    Process first = site.worker({}, {{"HOLDFAST_FAILPOINTS", "store.claim.after=pause:1500@1"}});
    ASSERT_TRUE(eventually(seconds(20), [&] { return site.status(run) == "running"; }));
    for (const int number : signals) first.signal(number);
    EXPECT_EQ(first.wait(seconds(15)), 0) << site.log_of(first);
    EXPECT_NE(site.status(run), "running") << "it waits for its lease";
    Process second = site.worker();
    ASSERT_TRUE(site.reaches(run, "completed", seconds(10)));
    EXPECT_EQ(site.show(run).at("requeue_count"), 0);
    second.kill();
    site.expect_sound();
  }
}

TEST(Shutdown, AStopAtAnyMomentAroundTheClaimLosesNothing) {
  Site site;
  for (int i = 0; i < scaled(8, 100); ++i) {
    Process first = site.worker();
    ASSERT_TRUE(site.is_up(first));
    const std::string run = site.enqueue("plain");
    let_pass(milliseconds((i * 7) % 50));
    first.signal(SIGTERM);
    EXPECT_EQ(first.wait(seconds(35)), 0) << site.log_of(first);
    EXPECT_NE(site.status(run), "running");
    if (site.status(run) != "completed") {
      Process second = site.worker({"--drain"});
      EXPECT_EQ(second.wait(seconds(30)), 0);
    }
    EXPECT_EQ(site.status(run), "completed");
    EXPECT_EQ(site.show(run).at("requeue_count"), 0);
  }
  site.expect_sound();
}

TEST(Shutdown, AStepThatOutlivesTheGraceIsHandedBackDueNow) {
  Site site;
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process first = site.worker({"--grace", "1s"});
  ASSERT_TRUE(site.has_started("lookup"));
  const auto asked = std::chrono::steady_clock::now();
  first.signal(SIGTERM);
  ASSERT_TRUE(eventually(seconds(15), [&] { return site.status(run) == "queued"; }));
  EXPECT_LT(std::chrono::steady_clock::now() - asked, seconds(4));
  EXPECT_EQ(first.wait(seconds(15)), 0);
  const Json shown = site.show(run);
  EXPECT_TRUE(shown.at("claimed_by").is_null());
  EXPECT_EQ(shown.at("requeue_count"), 0) << "a graceful stop is not charged";
  EXPECT_EQ(site.count_events(run, EventKind::released), 1);
  Process second = site.worker();
  ASSERT_TRUE(site.has_started("lookup", 2, seconds(10)));
  site.let_go("lookup");
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.count_events(run, EventKind::model), 2) << "no finished step is repeated";
  second.kill();
  site.expect_sound();
}

TEST(Shutdown, AStepThatFinishesWithinTheGraceIsKept) {
  Site site;
  site.hold("label");
  const std::string run = site.enqueue("errand");
  Process first = site.worker({"--grace", "20s"});
  ASSERT_TRUE(site.has_started("label"));
  first.signal(SIGTERM);
  let_pass(milliseconds(300));
  site.let_go("label");
  EXPECT_EQ(first.wait(seconds(20)), 0);
  EXPECT_EQ(site.status(run), "queued");
  EXPECT_EQ(site.count_events(run, EventKind::tool), 2);
  Process second = site.worker({"--drain"});
  EXPECT_EQ(second.wait(seconds(30)), 0);
  EXPECT_EQ(site.status(run), "completed");
  EXPECT_EQ(site.times("label"), 1);
  EXPECT_EQ(site.times("pay"), 1);
  site.expect_sound();
}

TEST(Shutdown, AWriteThatOutlivesTheGraceIsAPersonsMatter) {
  Site site;
  site.hold("pay");
  const std::string run = site.enqueue("payer");
  Process first = site.worker({"--grace", "1s"});
  ASSERT_TRUE(site.has_started("pay"));
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(seconds(30)), 0) << site.log_of(first);
  EXPECT_EQ(site.status(run), "failed");
  EXPECT_EQ(site.show(run).at("reason"), "not_retryable");
  EXPECT_TRUE(site.show(run).at("pending").is_object());
  EXPECT_EQ(site.times("pay"), 1);
  site.let_go("pay");
  site.expect_sound();
}

TEST(Shutdown, ADrainingWorkerEndsWhenNothingIsLeft) {
  Site site;
  std::vector<std::string> runs;
  for (int i = 0; i < 5; ++i) runs.push_back(site.enqueue("errand"));
  const std::string later = site.enqueue("plain", {"--delay", "1h"});
  Process worker = site.worker({"--drain", "--concurrency", "2"});
  EXPECT_EQ(worker.wait(seconds(60)), 0);
  for (const std::string& run : runs) EXPECT_EQ(site.status(run), "completed");
  EXPECT_EQ(site.status(later), "queued");
  EXPECT_EQ(site.times("pay"), 5);
  site.expect_sound();
}

TEST(Shutdown, ADrainingWorkerTakesUpWhatAKilledOneLeftAMomentAgo) {
  Site site;
  for (int i = 0; i < scaled(4, 50); ++i) {
    site.hold("lookup");
    const std::string run = site.enqueue("reader");
    Process first = site.worker();
    ASSERT_TRUE(site.has_started("lookup", 2 * i + 1));
    first.kill();
    site.let_go("lookup");
    // A session that was lost may come back.
    if (is_postgres()) let_pass(seconds(1));
    Process second = site.worker({"--drain"});
    EXPECT_EQ(second.wait(seconds(60)), 0);
    EXPECT_EQ(site.status(run), "completed");
    EXPECT_EQ(site.times("lookup"), 2 * i + 2);
  }
  site.expect_sound();
}

TEST(Shutdown, StartedAndStoppedUnderLoadAgainAndAgainNothingIsLost) {
  Site site;
  std::vector<RunRequest> requests(static_cast<std::size_t>(scaled(60, 600)));
  for (RunRequest& request : requests) {
    request.agent = "count";
    request.input = {{"steps", 3}};
  }
  const auto runs = site.runtime().enqueue(requests);
  for (int i = 0; i < scaled(6, 100); ++i) {
    Process worker = site.app({"worker", "--slots", "4"});
    ASSERT_TRUE(site.is_up(worker));
    let_pass(milliseconds(150 + 40 * (i % 5)));
    worker.signal(SIGTERM);
    EXPECT_EQ(worker.wait(seconds(30)), 0) << site.log_of(worker);
  }
  EXPECT_EQ(site.runtime().stats().at("by_status").value("running", 0), 0);
  Process worker = site.app({"worker", "--slots", "8"});
  for (const auto& run : runs) ASSERT_TRUE(site.reaches(run.id, "completed", seconds(60)));
  EXPECT_EQ(site.times("count"), 3 * static_cast<int>(runs.size())) << "each step once";
  for (const auto& run : runs) EXPECT_EQ(site.show(run.id).at("requeue_count"), 0);
  worker.kill();
  site.expect_sound();
}

}  // namespace
}  // namespace holdfast::crash
