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

}  // namespace
}  // namespace holdfast::testing
