// What looking for work costs: how many statements an idle worker issues, and that a long history
// makes no claim longer.

#include <gtest/gtest.h>

#include <array>

#include "conformance/sqlite_file_support.hpp"
#include "holdfast/runtime.hpp"
#include "store/sqlite/statements.hpp"
#include "support/sqlite_watch.hpp"

namespace holdfast::testing {
namespace {

class SqliteCost : public SqliteFile {
 protected:
  /// Runs that ended long ago, as another program would put them there.
  void add_history(int runs) {
    execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
        std::to_string(runs) +
        ") INSERT INTO runs (id, agent, queue, status, reason, origin, priority, created_at, "
        "finished_at, claim, lease_lost_by_presence, requeue_count, max_requeues, reclaim_count, "
        "redrive_count, iterations, prompt_tokens, completion_tokens, total_tokens, cost_usd, "
        "last_sequence, last_position) SELECT printf('old-%08d', i), 'agent', 'default', "
        "CASE i % 3 WHEN 0 THEN 'failed' WHEN 1 THEN 'cancelled' ELSE 'completed' END, "
        "'completed', 'queued', 0, i, i, 1, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0 FROM n");
  }
  std::vector<std::string> plan_of(const std::string& sql) {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(
        sqlite3_prepare_v2(db, ("EXPLAIN QUERY PLAN " + sql).c_str(), -1, &statement, nullptr),
        SQLITE_OK)
        << sqlite3_errmsg(db);
    std::vector<std::string> plan;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      plan.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(statement, 3)));
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return plan;
  }
  /// Steps of a claim of one due run, and of a sweep that finds nothing.
  std::int64_t steps_of_claim_and_sweep(Store& store, SqliteWatch& watch) {
    enqueue(store);
    watch.reset();
    EXPECT_EQ(store.claim({"w", {offer()}, {}, 1, {}}).runs.size(), 1u);
    EXPECT_TRUE(store.claim({"w", {offer()}, {}, 1, {}}).runs.empty());
    EXPECT_EQ(store.reap(50, false, worker_lost(env)).requeued, 0);
    return watch.steps();
  }
};

struct Planned {
  const char* sql;
  const char* index;
};

TEST_F(SqliteCost, EveryLookIsASearchOfItsIndex) {
  { open(); }
  add_history(2000);
  execute("ANALYZE");  // what some people do, and what may change a plan
  const std::array looks = {
      Planned{sqlite::kFirstQueue, "runs_queued"},     Planned{sqlite::kNextQueue, "runs_queued"},
      Planned{sqlite::kNextPriority, "runs_queued"},   Planned{sqlite::kDueInGroup, "runs_queued"},
      Planned{sqlite::kNextDueInGroup, "runs_queued"}, Planned{sqlite::kLeasedBy, "runs_held"},
      Planned{sqlite::kLeasesByKey, "runs_leased"},    Planned{sqlite::kStale, "runs_leased"},
      Planned{sqlite::kOverdueWaits, "runs_waiting"},  Planned{sqlite::kLoad, "runs_by_id"},
  };
  for (const Planned& look : looks) {
    SCOPED_TRACE(look.sql);
    const auto plan = plan_of(look.sql);
    ASSERT_FALSE(plan.empty());
    EXPECT_TRUE(has(plan.front(), "SEARCH")) << plan.front();
    EXPECT_TRUE(has(plan.front(), look.index)) << plan.front();
    for (const auto& line : plan) EXPECT_FALSE(has(line, "SCAN")) << line;
  }
  // What is due comes out of the index in order. (Leases are sorted: there are few of them.)
  for (const char* sql : {sqlite::kDueInGroup, sqlite::kNextDueInGroup, sqlite::kNextPriority}) {
    for (const auto& line : plan_of(sql)) EXPECT_FALSE(has(line, "TEMP B-TREE")) << line;
  }
}

TEST_F(SqliteCost, AClaimIsNoLongerForALongHistory) {
  SqliteWatch watch;
  auto store = open();
  steps_of_claim_and_sweep(*store, watch);  // the first one prepares its statements
  const auto young = steps_of_claim_and_sweep(*store, watch);
  add_history(20'000);
  steps_of_claim_and_sweep(*store, watch);  // and again, where another program changed the file
  const auto old = steps_of_claim_and_sweep(*store, watch);
  EXPECT_GT(young, 100);
  EXPECT_LT(old, young + young / 10);
}

TEST_F(SqliteCost, AnIdleWorkerIssuesFewStatementsAndOnlyReads) {
  SqliteWatch watch;
  RuntimeOptions options;
  options.store_url = url();
  const auto runtime = Runtime::open(options);
  runtime->register_task("task", [](RunContext&) { return Json(); });
  const auto worker = runtime->start_worker({});
  while (runtime->workers().empty()) real_env().sleep_for(10ms, {});
  real_env().sleep_for(500ms, {});
  watch.reset();
  const StoreTime begun = real_env().store_now();
  real_env().sleep_for(3s, {});
  const auto statements = watch.statements();
  const auto seconds = static_cast<double>((real_env().store_now() - begun).count()) / 1000.0;
  int all = 0;
  for (const auto& [sql, times] : statements) {
    all += times;
    for (const char* writing : {"INSERT", "UPDATE", "DELETE", "IMMEDIATE"}) {
      if (!has(sql, writing)) continue;
      // Its row among the workers, once in a while.
      EXPECT_LE(times, 2) << sql;
    }
  }
  EXPECT_LE(all / seconds, 70.0);  // docs/operations.md: about 50
  EXPECT_GT(all, 0);
}

}  // namespace
}  // namespace holdfast::testing
