// Enqueueing in an application's own transaction.

#include <bit>
#include <cmath>
#include <random>

#include "base/text.hpp"
#include "holdfast/runtime.hpp"
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

TEST_F(PostgresEnqueue, BackslashesAreThemselvesWhateverTheServerSays) {
  const std::string old = "&options=-cstandard_conforming_strings%3Doff";
  auto store = open(old);
  postgres::Connection db(postgres::parse_target(url(old)));
  const RunId id = enqueue_sql(
      db, R"('agent', $json${"input": "a\\b", "idempotency_key": "k\\1", "queue": "q\\"}$json$)");
  const auto run = store->find(id);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->input, "a\\b");
  EXPECT_EQ(run->idempotency_key, "k\\1");
  EXPECT_EQ(run->queue, "q\\");
  NewRun own = a_run(real_env());
  own.row.idempotency_key = "\\'";
  store->enqueue(std::span(&own, 1));
  EXPECT_EQ(store->find(own.row.id)->idempotency_key, "\\'");
}

TEST_F(PostgresEnqueue, CommitIsNotified) {
  auto worker = open();
  EXPECT_TRUE(claim(*worker, "w").empty());
  worker->wait_for_work(1ms, {});
  ASSERT_TRUE(
      eventually([&] { return ask_number("SELECT count(*) " + notified_sessions()) == 1; }));
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

/// Whichever way a request comes, its key knows it again.
class PostgresSameRequest : public PostgresEnqueue {
 protected:
  PostgresSameRequest() {
    RuntimeOptions options;
    options.store_url = url();
    runtime = Runtime::open(options);
    runtime->register_task("agent", [](RunContext&) { return Json(); });
  }
  /// Enqueued in SQL, then through the library: the same run or none.
  void expect_same(const std::string& fields, RunRequest request, const std::string& input) {
    SCOPED_TRACE(fields + " " + input);
    const std::string key = "k" + std::to_string(++keys);
    const RunId id = in_sql(fields, key, input);
    request.agent = "agent";
    request.input = *parse_exact_json(input);
    request.idempotency_key = key;
    EXPECT_EQ(runtime->enqueue(request).id, id);
    EXPECT_EQ(runtime->get(id).input, request.input);
    request.input = Json{{"other", request.input}};
    EXPECT_THROW(runtime->enqueue(request), RefusedError);
  }
  RunId in_sql(const std::string& fields, const std::string& key, const std::string& input) {
    return ask(*db, "SELECT @.enqueue('agent', $json${\"input\": " + input +
                        ", \"idempotency_key\": \"" + key + "\"" + fields + "}$json$)")
        .text(0, 0);
  }

  Json any_value(int depth) {
    const auto pick = [&](int kinds) { return static_cast<int>(chance() % std::uint64_t(kinds)); };
    switch (pick(depth > 0 ? 8 : 6)) {
      case 0:
        return pick(2) == 0;
      case 1:
        return static_cast<std::int64_t>(chance()) >> pick(64);
      case 2:
        return chance();
      case 3:
        return static_cast<double>(static_cast<std::int64_t>(chance())) / 1e6;
      case 4: {
        const double bits = std::bit_cast<double>(chance());
        return std::isfinite(bits) ? Json(bits) : Json();
      }
      case 5:
        return any_text();
      case 6: {
        Json array = Json::array();
        for (int left = pick(5); left > 0; --left) array.push_back(any_value(depth - 1));
        return array;
      }
      default: {
        Json object = Json::object();
        for (int left = pick(6); left > 0; --left) object[any_text()] = any_value(depth - 1);
        return object;
      }
    }
  }
  std::string any_text() {
    static const std::vector<std::string> kPieces = {"a", "B", "0", ":", "\"",   "\\",   "\n", " ",
                                                     "é", "€", "😀", "_", "\x7F", "\x01", "ß",  "~"};
    std::string text;
    for (auto left = chance() % 6; left > 0; --left) text += kPieces[chance() % kPieces.size()];
    return text;
  }

  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<postgres::Connection> db = session();
  std::mt19937_64 chance{20240229};
  int keys = 0;
};

TEST_F(PostgresSameRequest, WithAnyInput) {
  const std::vector<std::string> inputs = {
      "null",
      "true",
      R"("")",
      R"("\u00e9 \ud83d\ude00 é \\ \" \/ \n \u001f")",
      R"({"b": 1, "a": {"é": [], "z": {}, "Z": [[1, "1"]]}, "": null, "a:b": 2})",
      R"({"a": 1, "b": 2, "a": {"c": false}})",
      "  [ 1 , 2 ]  ",
      "[0, -0, -0.0, 0.0, 1, 1.0, 1e0, 10E+2, 15e-1]",
      "[9223372036854775807, -9223372036854775808, 18446744073709551615, 9007199254740993]",
      "[0.1, 1e308, 5e-324, 2.2250738585072014e-308, 123456789012345678.9, 1e23]",
      "[0.30000000000000004]",
      std::string(60, '[') + "1" + std::string(60, ']')};
  for (const std::string& input : inputs) expect_same("", {}, input);
}

TEST_F(PostgresSameRequest, WithAnyOption) {
  RunRequest request;
  request.priority = -3;
  expect_same(R"(, "priority": -3)", request, "1");
  request.labels = {{"team", "a\\b"}, {"a", ""}, {"B", "é"}};
  expect_same(R"(, "priority": -3, "labels": {"team": "a\\b", "B": "é", "a": "x", "a": ""})",
              request, "1");
  request.queue = "slow";
  request.max_requeues = 0;
  request.delay = 90min;
  expect_same(R"(, "queue": "slow", "max_requeues": 0, "delay": "90m", "at": null, "priority": -3,
                 "labels": {"B": "é", "a": "", "team": "a\\b"})",
              request, "1");
  request = {};
  request.at = *parse_time("2099-01-01T00:00:00.123Z");
  expect_same(R"(, "at": "2099-01-01T01:00:00.122500+01:00")", request, "1");
  request.at = *parse_time("2001-01-01T00:00:00Z");
  expect_same(R"(, "at": "2001-01-01T00:00:00Z", "queue": null)", request, "1");
}

TEST_F(PostgresSameRequest, WithManyInputsByChance) {
  for (int seed = 0; seed < 60; ++seed) {
    const Json value = any_value(3);
    expect_same("", {}, dump_json(value));
  }
  for (const Finding& finding : runtime->verify()) {
    EXPECT_NE(finding.grade, Finding::Grade::bad) << finding.text;
  }
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
      {R"('a', '{"input": "\ud800"}')", "surrogate"},
      {R"('a', '{"input": 1, "que\u0000ue": 1}')", "U+0000"},
      {R"('a', '{"input": [1e-400]}')", "too small"},
      {R"('a', '{"input": 1, "input": 2}')", "input: stands twice"},
      {R"('a', '{"input": 1, "queue": "a\u007fb"}')", "queue:"},
      {R"('a', '{"input": [1e400]}')", "input:"},
      {R"('a', '{"input": [18446744073709551616]}')", "input:"},
      {"'a', '{\"input\": " + std::string(65, '[') + std::string(65, ']') + "}'", "input:"},
      {R"('a', '{"input": 1, "at": "1969-01-01T00:00:00Z"}')", "at:"},
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

TEST_F(PostgresEnqueue, InputHasTheLimitOfTheOtherWays) {
  open();
  const auto text_of = [](const std::string& bytes) {
    return "'a', json_build_object('input', repeat(E'\\n', " + bytes + "))";
  };
  const auto blanks_in = [](const std::string& before, const std::string& behind) {
    return "'a', ('{\"input\": [" + before + "' || repeat(' ', 1048576) || '" + behind +
           "]}')::json";
  };
  EXPECT_EQ(sql_refusal(text_of("1048576")), "");
  EXPECT_TRUE(has(sql_refusal(text_of("1048577")), "input: is larger"));
  EXPECT_EQ(sql_refusal(blanks_in("1", ", \"a \\\" b\"")), "");
  EXPECT_TRUE(has(sql_refusal(blanks_in("\"", "\"")), "input: is larger"));
}

TEST_F(PostgresEnqueue, LongNamesMakeNoLongErrors) {
  open();
  EXPECT_LT(sql_refusal("'a', json_build_object('input', 1, repeat('x', 9000), 1)").size(), 600u);
}

TEST_F(PostgresEnqueue, TransactionRunsNotIntoThePositionsOfTheNext) {
  auto store = open();
  auto db = session();
  db->execute("BEGIN");
  enqueue_sql(*db, R"('agent', '{"input": 1}')");
  ask(*db,
      "UPDATE @.events SET position = (pg_current_xact_id()::text::bigint << 20) + 1048574 "
      "WHERE position = (pg_current_xact_id()::text::bigint << 20) + 1");
  enqueue_sql(*db, R"('agent', '{"input": 2}')");
  try {
    enqueue_sql(*db, R"('agent', '{"input": 3}')");
    ADD_FAILURE() << "the next transaction's position was taken";
  } catch (const StoreError& error) {
    EXPECT_TRUE(has(error.what(), "split it")) << error.what();
  }
}

TEST_F(PostgresEnqueue, SchemaOfAnOlderVersionIsUpgradedUnderAWorker) {
  auto worker = open();
  enqueue(*worker);
  const Claimed claimed = claim(*worker, "w").at(0);
  session()->execute("DROP FUNCTION " + schema + ".enqueue; DROP FUNCTION " + schema +
                     ".canonical; DROP TABLE " + schema + ".circuits; UPDATE " + schema +
                     ".meta SET value = '1' WHERE key = 'schema_version'");
  const auto report = migrate_store(url(), real_env());
  EXPECT_EQ(report.before, 1);
  EXPECT_EQ(worker->record(claimed.lease, a_step("a")), Write::applied);
  EXPECT_FALSE(enqueue_sql(*session(), R"('agent', '{"input": 1}')").empty());
}

}  // namespace
}  // namespace holdfast::testing
