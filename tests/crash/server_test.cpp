// What happens to a database server: it dies, it restarts, it ends sessions, its clients disagree.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "crash/load.hpp"
#include "support/pg_bouncer.hpp"

namespace holdfast::crash {
namespace {

using testing::PostgresServer;

/// Ends the sessions for which `which` holds, not this one; how many.
std::int64_t end_sessions(const Site& site, const std::string& which) {
  return site.sql_number(
      "SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a WHERE " + which +
      " AND a.pid <> pg_backend_pid()");
}

/// The sessions that hold a presence.
constexpr const char* kPresences =
    "a.pid IN (SELECT k.pid FROM pg_locks k JOIN @.presences p ON k.objid::bigint = "
    "(p.lock_key & 4294967295) WHERE k.locktype = 'advisory')";

TEST(Server, ThatIsKilledUnderLoadAgainAndAgainLosesNothing) {
  Site site;
  Load load(site);
  for (int i = 0; i < scaled(3, 12); ++i) {
    ASSERT_TRUE(load.goes_on());
    PostgresServer::shared().crash();
    let_pass(milliseconds(200 + 400 * (i % 3)));
    PostgresServer::shared().start();
  }
  ASSERT_TRUE(load.goes_on());
  load.expect_nothing_lost();
}

TEST(Server, ThatIsRestartedUnderLoadLosesNothing) {
  Site site;
  Load load(site);
  for (const int way : {SIGINT, SIGQUIT}) {
    ASSERT_TRUE(load.goes_on());
    PostgresServer::shared().restart(way);
  }
  ASSERT_TRUE(load.goes_on());
  load.expect_nothing_lost();
}

TEST(Server, ThatEndsSessionsUnderLoadLosesNothing) {
  Site site;
  Load load(site);
  std::int64_t ended = 0;
  for (int i = 0; i < scaled(30, 300); ++i) {
    ended += end_sessions(site,
                          "a.pid = (SELECT pid FROM pg_stat_activity WHERE application_name = "
                          "'holdfast' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1)");
    let_pass(milliseconds(50));
  }
  EXPECT_GT(ended, 0);
  end_sessions(site, "a.application_name = 'holdfast'");
  ASSERT_TRUE(load.goes_on());
  load.expect_nothing_lost();
}

TEST(Server, ThatEndsThePresenceOfALiveWorkerCostsItNoRun) {
  Site site;
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process first = site.worker();
  ASSERT_TRUE(site.has_started("lookup"));
  Process second = site.worker();
  ASSERT_TRUE(site.is_up(second));
  for (int i = 0; i < scaled(5, 50); ++i) {
    EXPECT_GT(end_sessions(site, kPresences), 0);
    let_pass(milliseconds(400));
  }
  EXPECT_EQ(site.count_events(run, EventKind::reaped), 0);
  // It is worth as much as before.
  first.kill();
  ASSERT_TRUE(site.has_started("lookup", 2)) << "long before its lease is over";
  site.let_go("lookup");
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.count_events(run, EventKind::reaped), 1);
  second.kill();
  site.expect_sound();
}

TEST(Server, ThatIsAwayLongerThanTheLeaseCostsOneTakeOverAtMost) {
  Settings settings;
  settings.lease = "3s";
  settings.heartbeat = "500ms";
  settings.reaper = "200ms";
  Site site(settings);
  site.hold("lookup");
  const std::string run = site.enqueue("errand");
  std::vector<Process> workers;
  for (int i = 0; i < 2; ++i) workers.push_back(site.worker());
  ASSERT_TRUE(site.has_started("lookup"));
  const int away = scaled(4, 25);
  PostgresServer::shared().crash();
  let_pass(seconds(away));
  PostgresServer::shared().start();
  let_pass(seconds(2));
  site.let_go("lookup");
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_LE(site.count_events(run, EventKind::reaped), 1);
  EXPECT_EQ(site.count_events(run, EventKind::tool), 3);
  EXPECT_EQ(site.times("pay"), 1);
  for (Process& worker : workers) {
    EXPECT_FALSE(worker.status()) << "it exited";
    const std::string log = site.log_of(worker);
    EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 10 + 2 * away) << log;
    worker.kill();
  }
  site.expect_sound();
}

/// Whoever is back first after an outage must not take the others for dead. The slower one stands
/// still from before the outage on: what it sends to a frozen server is executed behind the outage
/// and renews its lease. False where the outage ended no lease.
bool is_patient_after(const std::function<void()>& outage, const std::function<void()>& end) {
  Settings settings;
  settings.lease = "6s";
  settings.heartbeat = "2s";
  settings.reaper = "200ms";
  Site site(settings);
  site.hold("pay");
  const std::string run = site.enqueue("payer");
  Process slow = site.worker();
  if (!site.has_started("pay")) throw std::runtime_error("no worker pays");
  Process quick = site.worker();
  if (!site.is_up(quick)) throw std::runtime_error("the second worker is not up");
  slow.signal(SIGSTOP);
  outage();
  let_pass(milliseconds(6500));
  end();
  const bool is_over = site.sql_number(
                           "SELECT count(*) FROM @.runs WHERE lease_until < "
                           "extract(epoch FROM clock_timestamp()) * 1000") == 1;
  let_pass(seconds(1));  // time for the quick one to come back, and less than it has to wait
  slow.signal(SIGCONT);
  site.let_go("pay");
  EXPECT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.count_events(run, EventKind::reaped), 0);
  EXPECT_EQ(site.times("pay"), 1);
  slow.kill();
  quick.kill();
  site.expect_sound();
  return is_over;
}

void expect_patience_after(const std::function<void()>& outage, const std::function<void()>& end) {
  for (int tries = 0; tries < 3; ++tries) {
    if (is_patient_after(outage, end) || ::testing::Test::HasFailure()) return;
  }
  ADD_FAILURE() << "no outage ended the lease";
}

TEST(Server, ThatCrashedCostsNobodyARunWhoIsSlowerToReturn) {
  expect_patience_after([] { PostgresServer::shared().crash(); },
                        [] { PostgresServer::shared().start(); });
}

TEST(Server, ThatStoodStillCostsNobodyARunWhoIsSlowerToReturn) {
  expect_patience_after([] { PostgresServer::shared().freeze(); },
                        [] { PostgresServer::shared().thaw(); });
}

TEST(Server, IsTheOnlyOneWhoseClockCounts) {
  const std::vector<std::string> signs = {"", "-"};
  for (int i = 0; i < scaled(1, 2); ++i) {
    const std::string& sign = signs[static_cast<std::size_t>(i)];
    const std::string other = sign.empty() ? "-" : "";
    SCOPED_TRACE("the first worker by " + sign + "600 s");
    Settings settings;
    settings.lease = "10s";
    settings.heartbeat = "1s";
    settings.reaper = "200ms";
    Site site(settings);
    site.write("ahead", sign + "600000");
    site.write("behind", other + "600000");
    const auto clock = [&](const char* file) {
      return std::map<std::string, std::string>{
          {"HOLDFAST_TEST_WALL_OFFSET_FILE", (site.folder() / file).string()}};
    };
    const Json busy = {{"errors", Json::array({Json{{"status", 503}}})}, {"reply", "hello"}};
    site.script("plain", Json::array({busy}));
    site.hold("lookup");
    const std::string held = site.enqueue("reader");
    std::vector<std::string> busy_ones;
    for (int n = 0; n < scaled(6, 60); ++n) busy_ones.push_back(site.enqueue("plain"));
    Process first = site.worker({}, clock("ahead"));
    ASSERT_TRUE(site.has_started("lookup"));
    Process second = site.worker({}, clock("behind"));
    ASSERT_TRUE(site.is_up(second));
    EXPECT_EQ(site.cli({"reap", "--all"}, clock("ahead")).code, 0);
    EXPECT_EQ(site.cli({"reap", "--all"}, clock("behind")).code, 0);
    const std::string later =
        Json::parse(site.cli({"--json", "enqueue", "plain", "--input", "x", "--delay", "2s"},
                             clock("behind"))
                        .out)
            .at("id");
    const holdfast::Run delayed = site.runtime().get(later);
    ASSERT_TRUE(delayed.available_at.has_value());
    EXPECT_GE(*delayed.available_at - delayed.created_at, seconds(2));
    EXPECT_LE(*delayed.available_at - delayed.created_at, seconds(2) + milliseconds(1));
    for (const std::string& run : busy_ones) ASSERT_TRUE(site.reaches(run, "completed"));
    ASSERT_TRUE(site.reaches(later, "completed", seconds(15)));
    EXPECT_GE(site.runtime().get(later).started_at, delayed.available_at);
    for (const std::string& run : busy_ones) {
      const auto due = site.sql_number(
          "SELECT extract(epoch FROM (payload::json ->> 'available_at')::timestamptz) * 1000 FROM "
          "@.events WHERE kind = 'requeued' AND run = '" +
          run + "'");
      const auto failed = site.sql_number(
          "SELECT max(at) FROM @.events WHERE kind = 'requeued' AND run = '" + run + "'");
      const auto claimed = site.sql_number(
          "SELECT max(at) FROM @.events WHERE kind = 'claimed' AND run = '" + run + "'");
      EXPECT_GE(due, failed);
      EXPECT_LE(due, failed + 1000) << "its backoff has a cap of a second";
      EXPECT_GE(claimed, due);
    }
    const auto left = site.sql_number(
        "SELECT max(lease_until) - floor(extract(epoch FROM "
        "clock_timestamp()) * 1000)::bigint FROM @.runs");
    EXPECT_GT(left, 0);
    EXPECT_LE(left, 11000);
    // Backoffs of 50 ms are over in a moment by whatever clock; none of them was ten minutes.
    EXPECT_EQ(site.sql_number("SELECT count(*) FROM @.events WHERE abs(at - floor(extract(epoch "
                              "FROM clock_timestamp()) * 1000)) > 120000"),
              0);
    site.let_go("lookup");
    ASSERT_TRUE(site.reaches(held, "completed"));
    EXPECT_EQ(site.times("lookup"), 1);
    EXPECT_EQ(site.sql_number("SELECT count(*) FROM @.events WHERE kind = 'reaped'"), 0);
    first.kill();
    second.kill();
    site.expect_sound();
  }
}

TEST(Server, MayHaveAnyTimeZone) {
  const std::vector<std::string> zones = {"America/St_Johns", "Asia/Kolkata", "Europe/Berlin"};
  for (int i = 0; i < scaled(1, 3); ++i) {
    const std::string& zone = zones[static_cast<std::size_t>(i)];
    SCOPED_TRACE(zone);
    Site site;
    site.sql("ALTER ROLE holdfast SET timezone TO '" + zone + "'");
    const std::map<std::string, std::string> env = {{"PGTZ", "Europe/Berlin"}, {"TZ", zone}};
    const auto made = [&](std::vector<std::string> when) {
      when.insert(when.begin(), {"--json", "enqueue", "plain", "--input", "x"});
      return Json::parse(site.cli(when, env).out);
    };
    EXPECT_EQ(made({"--at", "2027-10-31T02:30:00+02:00"}).at("available_at"),
              "2027-10-31T00:30:00.000Z");
    const std::string late = made({"--delay", "90m"}).at("id");
    const holdfast::Run stored = site.runtime().get(late);
    EXPECT_GE(*stored.available_at - stored.created_at, std::chrono::minutes(90));
    EXPECT_LE(*stored.available_at - stored.created_at, std::chrono::minutes(90) + milliseconds(1));
    const std::string in_sql = site.sql(R"(SELECT @.enqueue('plain', '{"input": 1}'))").at(0);
    Process worker = site.worker({}, env);
    ASSERT_TRUE(site.reaches(in_sql, "completed"));
    site.sql("ALTER ROLE holdfast RESET timezone");
    worker.kill();
    site.expect_sound();
  }
}

TEST(Server, SeesNoTransactionDuringAStep) {
  Site site;
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process worker = site.worker();
  ASSERT_TRUE(site.has_started("lookup"));
  int in_a_row = 0;
  for (int i = 0; i < scaled(10, 100); ++i) {
    const auto open = site.sql_number(
        "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'");
    in_a_row = open > 0 ? in_a_row + 1 : 0;
    EXPECT_LT(in_a_row, 2);
    let_pass(milliseconds(50));
  }
  EXPECT_NO_THROW(
      site.sql("DO $$ BEGIN SET LOCAL lock_timeout = '1s'; "
               "ALTER TABLE @.runs SET (fillfactor = 70); END $$"));
  site.let_go("lookup");
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.count_events(run, EventKind::claimed), 1);
  worker.kill();
  site.expect_sound();
}

TEST(Server, IsReachedInTimeByTheHeartbeatsOfABusyWorker) {
  Site site;
  LoadSettings settings;
  settings.workers = 1;
  settings.slots = 32;
  settings.lease_ms = 3000;
  settings.heartbeat_ms = 500;
  settings.step_ms = 200;
  site.hold("count");
  Load load(site, settings);
  ASSERT_TRUE(eventually(seconds(30), [&] { return site.times("count") >= 32; }));
  let_pass(milliseconds(scaled(3500, 60000)));  // longer than the lease
  site.let_go("count");
  ASSERT_TRUE(load.goes_on(scaled(60, 600)));
  load.expect_nothing_lost();
}

TEST(Server, ServesProcessesThroughAPoolerForTransactionsThatIsRestarted) {
  PostgresServer& server = PostgresServer::shared();
  testing::PgBouncer pooler(server, 4);
  Site site;
  site.use_server(server.tcp_url(pooler.port(), site.schema(), "&pooler=transaction"),
                  server.url(site.schema()));
  site.configure({});
  Load load(site);
  ASSERT_TRUE(load.goes_on(scaled(60, 3000)));
  pooler.restart();
  ASSERT_TRUE(load.goes_on(scaled(60, 3000)));
  load.expect_nothing_lost();
  for (const Process& worker : load.workers()) {
    EXPECT_EQ(site.log_of(worker).find("prepared statement"), std::string::npos)
        << site.log_of(worker);
  }
  EXPECT_EQ(site.sql_number("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in "
                            "transaction (aborted)'"),
            0);
}

}  // namespace
}  // namespace holdfast::crash
