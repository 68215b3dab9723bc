// Enqueueing in an application's own transaction.

#include "postgres/postgres_test_support.hpp"

namespace holdfast::testing {
namespace {

class PostgresEnqueue : public PostgresTest {
 protected:
  RunId enqueue_sql(postgres::Connection& db, const std::string& arguments) const {
    return ask(db, "SELECT @.enqueue(" + arguments + ")").text(0, 0);
  }
  std::string sql_refusal(const std::string& arguments) const {
    try {
      enqueue_sql(*session(), arguments);
    } catch (const StoreError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(PostgresEnqueue, CommitMakesItRunAndRollbackLeavesNothing) {
  auto store = open();
  auto application = session();
  application->execute("BEGIN");
  enqueue_sql(*application, R"('agent', '{"input": "never"}')");
  application->execute("ROLLBACK");
  EXPECT_TRUE(store->stats().by_status.empty());
  application->execute("BEGIN");
  const RunId first = enqueue_sql(*application, R"('agent', '{"input": {"a": [1, "\\"]}}')");
  const RunId second = enqueue_sql(
      *application,
      R"('agent', '{"input": null, "priority": 5, "labels": {"team": "a\\b"}, "max_requeues": 0,
         "idempotency_key": "k\\1", "queue": "q"}')");
  EXPECT_TRUE(claim(*store, "w").empty());
  application->execute("COMMIT");
  const auto claims = store->claim({"w", {offer()}, {}, 2, {}}).runs;
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_EQ(claims[0].run.id, second);
  EXPECT_EQ(claims[0].run.labels, (Labels{{"team", "a\\b"}}));
  EXPECT_EQ(claims[0].run.idempotency_key, "k\\1");
  EXPECT_EQ(claims[0].run.max_requeues, 0);
  EXPECT_EQ(claims[0].run.queue, "q");
  EXPECT_EQ(claims[1].run.id, first);
  EXPECT_EQ(claims[1].run.input, (Json{{"a", {1, "\\"}}}));
  EXPECT_EQ(claims[1].run.max_requeues, offer().policy.max_requeues);
  EXPECT_EQ(kinds(*store, first), (Kinds{"queued", "claimed"}));
  std::int64_t cursor = 0;
  EXPECT_EQ(store->all_events(cursor, 0).size(), 4u);
}

TEST_F(PostgresEnqueue, CommitIsNotified) {
  auto worker = open();
  EXPECT_TRUE(claim(*worker, "w").empty());
  worker->wait_for_work(1ms, {});
  ASSERT_TRUE(eventually([&] {
    return ask_number("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%" + schema +
                      "%' AND pid <> pg_backend_pid()") == 1;
  }));
  Duration best = 10s;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(claim(*worker, "w").empty());
    enqueue_sql(*session(), R"('agent', '{"input": 1}')");
    best = std::min(best, pick_up(*worker, "w"));
  }
  EXPECT_LT(best, 1s);
}

TEST_F(PostgresEnqueue, SameKeyAndContentIsTheSameRun) {
  open();
  auto db = session();
  const std::string one = R"('agent', '{"input": 1, "idempotency_key": "k"}')";
  EXPECT_EQ(enqueue_sql(*db, one), enqueue_sql(*db, one));
  EXPECT_TRUE(
      has(sql_refusal(R"('agent', '{"input": 2, "idempotency_key": "k"}')"), "idempotency_key"));
}

TEST_F(PostgresEnqueue, DelayedRunIsDueWhenItSays) {
  auto store = open();
  const RunId id = enqueue_sql(*session(), R"('agent', '{"input": 1, "delay": "2h"}')");
  const auto run = store->find(id);
  EXPECT_EQ(*run->available_at - run->created_at, 2h);
  const RunId at =
      enqueue_sql(*session(), R"('agent', '{"input": 1, "at": "2099-01-01T00:00:00+01:00"}')");
  EXPECT_EQ(store->events(at, 0, 0).at(0).payload["available_at"], "2098-12-31T23:00:00.000Z");
}

TEST_F(PostgresEnqueue, WrongInputNamesItsField) {
  auto store = open();
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"('', '{"input": 1}')", "agent:"},
      {R"('a', '[]')", "request:"},
      {R"('a', '{}')", "input:"},
      {R"('a', '{"input": "\u0000"}')", "U+0000"},
      {R"('a', '{"input": 1, "id": "x"}')", "id:"},
      {R"('a', '{"input": 1, "queue": 7}')", "queue:"},
      {R"('a', '{"input": 1, "priority": "high"}')", "priority:"},
      {R"('a', '{"input": 1, "priority": 1.5}')", "priority:"},
      {R"('a', '{"input": 1, "max_requeues": -1}')", "max_requeues:"},
      {R"('a', '{"input": 1, "delay": "soon"}')", "delay:"},
      {R"('a', '{"input": 1, "at": "2026-01-01T00:00:00"}')", "at:"},
      {R"('a', '{"input": 1, "at": "2026-13-01T00:00:00Z"}')", "at:"},
      {R"('a', '{"input": 1, "labels": {"a b": "c"}}')", "labels:"},
      {R"('a', '{"input": 1, "idempotency_key": ""}')", "idempotency_key:"},
      {R"('a', '{"input": 1, "inputs": 1}')", "inputs:"}};
  for (const auto& [arguments, field] : wrong) {
    EXPECT_TRUE(has(sql_refusal(arguments), field)) << arguments << ": " << sql_refusal(arguments);
  }
  EXPECT_TRUE(store->stats().by_status.empty());
}

TEST_F(PostgresEnqueue, SchemaOfAnOlderVersionIsUpgradedUnderAWorker) {
  auto worker = open();
  enqueue(*worker);
  const Claimed claimed = claim(*worker, "w").at(0);
  session()->execute("DROP FUNCTION " + schema + ".enqueue; UPDATE " + schema +
                     ".meta SET value = '1' WHERE key = 'schema_version'");
  const auto report = migrate_store(url(), real_env());
  EXPECT_EQ(report.before, 1);
  EXPECT_EQ(worker->record(claimed.lease, a_step("a")), Write::applied);
  EXPECT_FALSE(enqueue_sql(*session(), R"('agent', '{"input": 1}')").empty());
}

}  // namespace
}  // namespace holdfast::testing
