// A long history costs the queue nothing: what is planned for the statements that workers repeat.

#include "postgres/postgres_test_support.hpp"
#include "store/postgres/pg_statements.hpp"

namespace holdfast::testing {
namespace {

class PostgresPlan : public PostgresTest {
 protected:
  /// Many copies of the one run that there is.
  void copy_run(int copies, const std::string& changes) const {
    auto db = session();
    db->execute(
        db->in_schema("CREATE TEMP TABLE copy AS SELECT r.* FROM @.runs r, generate_series(1, " +
                      std::to_string(copies) + ") LIMIT " + std::to_string(copies) +
                      "; UPDATE copy SET id = gen_random_uuid(), row = nextval('@.run_rows'), " +
                      changes + "; INSERT INTO @.runs SELECT * FROM copy; DROP TABLE copy"));
  }
  std::string plan_of(const char* statement, const postgres::Params& params) const {
    const auto db = postgres::Connection::make_tuned(postgres::parse_target(url()));
    db->send_text(db->in_schema(std::string("EXPLAIN ") + statement), params);
    const auto result = std::move(db->flush().front());
    std::string text;
    for (int row = 0; row < result.rows(); ++row) text += result.text(row, 0) + "\n";
    return text;
  }
  /// How much of the tables and indexes an idle worker's look reads.
  std::int64_t blocks_of_a_look() const {
    postgres::Array agents(postgres::Array::Of::texts);
    agents.add(std::string("agent"));
    postgres::Params params(agents);
    params.add_null();
    const auto db = postgres::Connection::make_tuned(postgres::parse_target(url()));
    db->send_text(
        db->in_schema(std::string("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ") + postgres::kLook),
        params);
    const Json plan = Json::parse(std::string(std::move(db->flush().front()).view(0, 0)));
    const Json& top = plan.at(0).at("Plan");
    return top.at("Shared Hit Blocks").get<std::int64_t>() +
           top.at("Shared Read Blocks").get<std::int64_t>();
  }
  void expect_index(const std::string& index, const char* statement,
                    const postgres::Params& params) const {
    const std::string plan = plan_of(statement, params);
    EXPECT_TRUE(has(plan, " using " + index)) << plan;
    EXPECT_FALSE(has(plan, "Seq Scan on runs")) << plan;
    EXPECT_FALSE(has(plan, "Sort Key: runs")) << plan;
  }
};

TEST_F(PostgresPlan, OfAClaimReadsNothingThatIsFinishedOrNotYetDue) {
  auto store = open("&notify=off");
  enqueue(*store);
  copy_run(20000, "status = 'completed', available_at = NULL, finished_at = 1");
  const std::string queued = "SELECT count(*) FROM @.runs WHERE status = 'queued'";
  ASSERT_EQ(ask_number(queued), 1);
  auto db = session();
  db->execute(db->in_schema(
      "INSERT INTO @.runs SELECT (jsonb_populate_record(r, jsonb_build_object('id', "
      "gen_random_uuid(), 'row', nextval('@.run_rows'), 'available_at', 9e14::bigint))).* "
      "FROM @.runs r, generate_series(1, 5000) WHERE r.status = 'queued'; "
      "ANALYZE @.runs; ANALYZE @.run_data"));
  ASSERT_EQ(ask_number(queued), 5001);
  postgres::Array agents(postgres::Array::Of::texts);
  agents.add(std::string("agent"));
  postgres::Params params(agents);
  params.add_null();
  expect_index("runs_queued", postgres::kLook, params);
  params.add_null();
  expect_index("runs_queued", postgres::kNextDue, params);
  params.add(8);
  expect_index("runs_queued", postgres::kClaimable, params);
  const std::string worker = "w";
  expect_index("runs_held", postgres::kLeasedBy, postgres::Params(worker));
  expect_index("runs_leased", postgres::kLockStale, postgres::Params(std::int64_t{1}, 50));
  EXPECT_EQ(claim(*store, worker, 8).size(), 1u);
}

/// Somebody's old transaction keeps what workers leave behind. It keeps nobody from working, and
/// what it costs is over with it.
TEST_F(PostgresPlan, OfALookIsShortAgainWhenAnOldTransactionIsOver) {
  auto store = open("&notify=off");
  enqueue(*store);
  const Claimed held = claim(*store, "w").at(0);
  auto old = session();
  old->execute("BEGIN ISOLATION LEVEL REPEATABLE READ");
  EXPECT_EQ(ask(*old, "SELECT count(*) FROM @.runs").number(0, 0), 1);
  for (int round = 0; round < 10; ++round) {
    std::vector<NewRun> batch;
    for (int i = 0; i < 100; ++i) batch.push_back(a_run(real_env()));
    store->enqueue(batch);
    const auto claims = claim(*store, "w", 100);
    ASSERT_EQ(claims.size(), 100u);
    for (const Claimed& claimed : claims) {
      EXPECT_EQ(store->settle(claimed.lease, settlement(claimed.run, Completed{1}, real_env())),
                Write::applied);
    }
    EXPECT_EQ(store->renew("w", std::span(&held.lease, 1)).answers.at(0), Write::applied);
  }
  const auto meanwhile = blocks_of_a_look();
  EXPECT_EQ(ask(*old, "SELECT count(*) FROM @.runs").number(0, 0), 1);
  old->execute("COMMIT");
  session()->execute("VACUUM " + schema + ".runs");
  EXPECT_LT(blocks_of_a_look(), 20);
  EXPECT_GT(meanwhile, 0);
}

}  // namespace
}  // namespace holdfast::testing
