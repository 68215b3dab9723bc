// Two servers, one following the other: the first dies under load, and its standby takes over.

#include <gtest/gtest.h>

#include "crash/load.hpp"
#include "store/postgres/connection.hpp"
#include "support/postgres_server.hpp"

namespace holdfast::crash {
namespace {

using testing::PostgresServer;

/// A server and its synchronous standby: what is acknowledged stands on both.
class Failover : public ::testing::Test {
 protected:
  Failover() : standby(PostgresServer::StandbyOf{primary}) {
    on(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    on(primary, "SELECT pg_reload_conf()");
    EXPECT_TRUE(eventually(seconds(20), [&] {
      return on(primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") ==
             "1";
    }));
  }

  /// By a session of the test's own, which any server answers; the first value.
  static std::string on(const PostgresServer& server, const std::string& statement) {
    postgres::Connection db(
        postgres::parse_target(server.url("holdfast", "&target_session_attrs=any")));
    db.send_text(statement);
    const postgres::Result result = std::move(db.flush().front());
    return result.rows() == 0 ? "" : std::string(result.view(0, 0));
  }

  void promote() const { EXPECT_EQ(on(standby, "SELECT pg_promote(true, 30)"), "t"); }

  /// Both hosts, in this order.
  std::string url_of(const PostgresServer& first, const PostgresServer& second) const {
    return "postgresql://holdfast@127.0.0.1:" + std::to_string(first.port()) +
           ",127.0.0.1:" + std::to_string(second.port()) +
           "/postgres?target_session_attrs=read-write&schema=" + site.schema();
  }

  void use(const std::string& url) {
    site.use_server(url, url);
    site.configure({});
  }

  PostgresServer primary;
  PostgresServer standby;
  Site site;
};

TEST_F(Failover, LosesNothingThatWasAcknowledgedAndRunsNothingTwice) {
  use(url_of(primary, standby));
  Load load(site);
  ASSERT_TRUE(load.goes_on());
  EXPECT_EQ(site.sql("SHOW synchronous_commit"), std::vector<std::string>{"on"});
  primary.crash();
  let_pass(milliseconds(500));
  promote();
  ASSERT_TRUE(load.goes_on());
  load.expect_nothing_lost();
}

TEST_F(Failover, WorksWhicheverServerIsListedFirst) {
  use(url_of(standby, primary));
  Load load(site);
  ASSERT_TRUE(load.goes_on());
  EXPECT_EQ(site.sql_number("SHOW port"), primary.port());
  primary.crash();
  promote();
  ASSERT_TRUE(load.goes_on());
  EXPECT_EQ(site.sql_number("SHOW port"), standby.port());
  load.expect_nothing_lost();
}

TEST_F(Failover, OfAServerThatOnlyReadsFromThenOnIsFollowedByEverySession) {
  use(url_of(standby, primary));
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process worker = site.worker();
  ASSERT_TRUE(site.has_started("lookup"));
  EXPECT_EQ(site.status(run), "running");  // by a session that stays open
  // Its standby is to answer for it, so that nothing waits for the standby any more.
  on(primary, "ALTER SYSTEM SET default_transaction_read_only = on");
  on(primary, "SELECT pg_reload_conf()");
  ASSERT_TRUE(eventually(seconds(20), [&] {
    return on(primary,
              "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = "
              "pg_current_wal_flush_lsn()") == "1";
  }));
  promote();
  site.let_go("lookup");
  ASSERT_TRUE(site.reaches(run, "completed")) << "it is looked at on the server that was left";
  EXPECT_EQ(site.times("lookup"), 1);
  EXPECT_EQ(site.count_events(run, EventKind::claimed), 1);
  worker.kill();
  site.expect_sound();
}

}  // namespace
}  // namespace holdfast::crash
