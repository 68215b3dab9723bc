// Slow is not dead, frozen is not alive, and the claim number tells them apart.

#include <gtest/gtest.h>
#include <signal.h>

#include "crash/harness.hpp"

namespace holdfast::crash {
namespace {

Settings short_lease() {
  Settings settings;
  settings.lease = "1500ms";
  settings.heartbeat = "400ms";
  settings.reaper = "200ms";
  return settings;
}

TEST(Lease, AStepMuchLongerThanTheLeaseIsExecutedOnce) {
  Site site(short_lease());
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process first = site.worker();
  Process second = site.worker();
  ASSERT_TRUE(site.has_started("lookup"));
  // The lease is seen to grow again and again.
  int renewals = 0;
  std::int64_t before = site.lease_until(run);
  const int wanted = scaled(10, 40);
  ASSERT_TRUE(eventually(seconds(60), [&] {
    const std::int64_t now = site.lease_until(run);
    renewals += now > before ? 1 : 0;
    before = now;
    return renewals >= wanted;
  }));
  site.let_go("lookup");
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.times("lookup"), 1);
  EXPECT_EQ(site.count_events(run, EventKind::claimed), 1);
  EXPECT_EQ(site.count_events(run, EventKind::reaped), 0);
  EXPECT_EQ(site.show(run).at("requeue_count"), 0);
  site.expect_sound();
}

TEST(Lease, WithoutAHeartbeatTheGuardAtTheBoundaryDecides) {
  Settings settings = short_lease();
  settings.heartbeat = "0s";
  Site site(settings);
  site.hold("lookup");
  // Each second lease is over before its step, too, where that has to wait for a processor.
  const std::string run = site.enqueue("reader", {"--max-requeues", "50"});
  Process first = site.worker({"--concurrency", "1"});
  ASSERT_TRUE(site.has_started("lookup"));
  Process second = site.worker({"--concurrency", "1"});
  ASSERT_TRUE(site.has_started("lookup", 2));  // reaped after the lease, claimed again
  site.let_go("lookup");
  ASSERT_TRUE(site.reaches(run, "completed"));
  // What is written by a holder renews. Times are rounded to milliseconds, of two clocks.
  const std::vector<Event> events = site.events(run);
  for (std::size_t i = 1; i < events.size(); ++i) {
    if (!events[i].kind.is(EventKind::reaped)) continue;
    EXPECT_GE(events[i].at - events[i - 1].at, milliseconds(1500 - 2))
        << "before its lease was over";
  }
  EXPECT_GE(site.count_events(run, EventKind::reaped), 1);
  ASSERT_TRUE(eventually(seconds(10), [&] { return site.times("lookup", "end") >= 1; }));
  EXPECT_EQ(site.count_events(run, EventKind::completed), 1);
  EXPECT_EQ(site.count_events(run, EventKind::tool), 1) << "the late result was refused";
  site.expect_sound();
}

/// A frozen worker that wakes up after another one has finished its run changes nothing.
void expect_the_zombie_writes_nothing(const std::string& held) {
  Site site(short_lease());
  site.hold(held);
  const std::string run = site.enqueue("errand");
  Process zombie = site.worker();
  ASSERT_TRUE(site.has_started(held));
  site.freeze(zombie);
  Process second = site.worker();
  if (held == "pay") {
    ASSERT_TRUE(site.reaches(run, "failed"));
  } else {
    ASSERT_TRUE(site.has_started(held, 2));
    site.let_go(held);
    ASSERT_TRUE(site.reaches(run, "completed"));
  }
  const std::string rows = site.rows_of(run);
  ASSERT_NE(rows.find("completed") == std::string::npos, held != "pay") << rows;
  const std::size_t lines = site.ledger().size();
  if (held == "pay") site.let_go(held);
  site.freeze(second);
  zombie.signal(SIGCONT);
  // It is shown to be well again by a fresh run that only it can execute.
  const std::string fresh = site.enqueue("plain");
  ASSERT_TRUE(site.reaches(fresh, "completed"));
  EXPECT_EQ(site.rows_of(run), rows);
  if (held != "pay") {
    std::size_t started = 0;
    for (const LedgerLine& line : site.ledger()) started += line.phase == "start" ? 1 : 0;
    EXPECT_LE(started, lines);
  }
  second.signal(SIGCONT);
  EXPECT_EQ(
      site.count_events(run, EventKind::completed) + site.count_events(run, EventKind::failed), 1);
  site.expect_sound();
}

TEST(Lease, AZombieInsideAReadWritesNothing) { expect_the_zombie_writes_nothing("lookup"); }
TEST(Lease, AZombieInsideAnIdempotentWriteWritesNothing) {
  expect_the_zombie_writes_nothing("label");
}
TEST(Lease, AZombieInsideANonIdempotentWriteWritesNothing) {
  expect_the_zombie_writes_nothing("pay");
}

TEST(Lease, AFreezeShorterThanTheLeaseCostsNothing) {
  Site site;
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process first = site.worker();
  Process second = site.worker();
  ASSERT_TRUE(site.has_started("lookup"));
  site.freeze(first);
  let_pass(milliseconds(1500));
  first.signal(SIGCONT);
  site.let_go("lookup");
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.times("lookup"), 1);
  EXPECT_EQ(site.show(run).at("requeue_count"), 0);
  site.expect_sound();
}

TEST(Lease, ASaturatedProcessorDoesNotStarveTheHeartbeat) {
  Settings settings = short_lease();
  settings.lease = "3s";
  settings.heartbeat = "1s";
  Site site(settings);
  const int burn = scaled(6, 15);
  site.write("do.lookup", "for i in 1 2 3 4 5 6 7 8; do timeout " + std::to_string(burn) +
                              " sh -c 'while :; do :; done' & done\nwait\n");
  const std::string run = site.enqueue("reader");
  Command command = site.command({"worker"});
  command.cpu = 0;
  Process first(command);
  ASSERT_TRUE(site.has_started("lookup"));
  Process second = site.worker();
  ASSERT_TRUE(site.reaches(run, "completed", seconds(90)));
  EXPECT_EQ(site.show(run).at("reclaim_count"), 0);
  EXPECT_EQ(site.times("lookup"), 1);
  site.expect_sound();
}

TEST(Lease, AStarvedWorkerNoticesItsLossAndStopsBeforeItDoesHarm) {
  Site site(short_lease());
  site.hold("label");
  const std::string run = site.enqueue("errand");
  Process slow = site.worker({"--concurrency", "1"});
  ASSERT_TRUE(site.has_started("label"));
  Process second = site.worker({"--concurrency", "1"});
  ASSERT_TRUE(site.is_up(second));
  // The processor is its own for a moment every few seconds: its heartbeats come too late for any
  // lease of this length.
  const auto starve_until = [&](const std::function<bool()>& done) {
    return eventually(seconds(60), [&] {
      site.freeze(slow);
      let_pass(milliseconds(2200));
      slow.signal(SIGCONT);
      let_pass(milliseconds(40));
      return done();
    });
  };
  ASSERT_TRUE(starve_until([&] { return site.times("label") == 2; })) << "not taken over";
  site.let_go("label");
  ASSERT_TRUE(starve_until([&] { return site.status(run) == "completed"; }));
  const std::string rows = site.rows_of(run);
  ASSERT_TRUE(starve_until([&] {
    return site.log_of(slow).find("the lease of a run was lost") != std::string::npos;
  })) << site.log_of(slow);
  EXPECT_EQ(site.rows_of(run), rows);
  EXPECT_EQ(site.times("lookup"), 1);
  EXPECT_EQ(site.times("label"), 2) << "the step in flight, once by each of both";
  EXPECT_EQ(site.times("pay"), 1);
  EXPECT_EQ(site.count_events(run, EventKind::tool), 3);
  EXPECT_EQ(site.count_events(run, EventKind::model), 4);
  EXPECT_EQ(site.count_events(run, EventKind::completed), 1);
  site.expect_sound();
}

TEST(Lease, ARestartUnderTheSameNameTakesNothingForGranted) {
  Site site;
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process first = site.worker({"--name", "alpha"});
  ASSERT_TRUE(site.has_started("lookup"));
  const std::string holder = site.show(run).at("claimed_by");
  first.kill();
  Process again = site.worker({"--name", "alpha"});
  ASSERT_TRUE(site.has_started("lookup", 2, seconds(10)));
  EXPECT_NE(site.show(run).at("claimed_by"), holder);
  site.let_go("lookup");
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.count_events(run, EventKind::claimed), 2);
  EXPECT_EQ(site.count_events(run, EventKind::reaped), 1);
  EXPECT_EQ(site.show(run).at("requeue_count"), 1);
  site.expect_sound();
}

TEST(Lease, ADelayedRunIsNotTouchedBeforeItIsDue) {
  Settings settings = short_lease();
  settings.lease = "1s";
  settings.heartbeat = "300ms";
  Site site(settings);
  std::vector<Process> workers;
  for (int i = 0; i < 3; ++i) workers.push_back(site.worker());
  const auto begun = std::chrono::steady_clock::now();
  const int delay = scaled(4, 60);
  const std::string run = site.enqueue("plain", {"--delay", std::to_string(delay) + "s"});
  while (std::chrono::steady_clock::now() < begun + seconds(delay) - milliseconds(500)) {
    const Json shown = site.show(run);
    ASSERT_EQ(shown.at("status"), "queued");
    ASSERT_TRUE(shown.at("claimed_by").is_null());
    ASSERT_TRUE(shown.at("lease_expires_at").is_null());
    let_pass(milliseconds(100));
  }
  ASSERT_TRUE(site.reaches(run, "completed", seconds(10)));
  EXPECT_EQ(site.count_events(run, EventKind::claimed), 1);
  EXPECT_EQ(site.show(run).at("requeue_count"), 0);
  site.expect_sound();
}

TEST(Lease, AJumpOfTheWallClockNeitherEndsNorProlongsALease) {
  for (const char* jump : {"86400000", "-86400000"}) {
    SCOPED_TRACE(jump);
    Site site(short_lease());
    site.write("offset", "0");
    const std::map<std::string, std::string> clock = {
        {"HOLDFAST_TEST_WALL_OFFSET_FILE", (site.folder() / "offset").string()}};
    site.hold("lookup");
    const std::string run = site.enqueue("reader");
    Process first = site.worker({}, clock);
    ASSERT_TRUE(site.has_started("lookup"));
    Process second = site.worker({}, clock);
    site.write("offset", jump);
    let_pass(milliseconds(2500));  // well beyond the lease
    EXPECT_EQ(site.count_events(run, EventKind::reaped), 0) << "a live worker was reaped";
    site.freeze(first);
    // Nor does it keep a lease that is over.
    ASSERT_TRUE(
        eventually(seconds(10), [&] { return site.count_events(run, EventKind::reaped) == 1; }));
    site.let_go("lookup");
    first.signal(SIGCONT);
    // Backwards, the wall clock says that the run is not due yet; `wake` is the operator's answer.
    if (jump[0] == '-') site.cli({"wake", run}, clock);
    ASSERT_TRUE(site.reaches(run, "completed"));
    site.expect_sound();
  }
}

}  // namespace
}  // namespace holdfast::crash
