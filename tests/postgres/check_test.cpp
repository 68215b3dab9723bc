// What `doctor` says of a server, a role and a database that are not fit for the store.

#include "postgres/postgres_test_support.hpp"
#include "store/postgres/pg_check.hpp"
#include "support/pg_bouncer.hpp"

namespace holdfast::testing {
namespace {

using Grade = Finding::Grade;

class PostgresCheck : public PostgresTest {
 protected:
  void SetUp() override { open(); }
  void TearDown() override {
    auto db = session();
    if (made_role_) {
      db->execute("DROP OWNED BY " + role());
      db->execute("DROP ROLE " + role());
    }
  }
  std::string role() const { return schema + "_role"; }
  void make_role(const std::string& options = "") {
    session()->execute("CREATE ROLE " + role() + " LOGIN " + options);
    made_role_ = true;
  }
  void grant_all() const {
    for (const char* grant : {"GRANT USAGE ON SCHEMA @. TO ",
                              "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA @. TO ",
                              "GRANT USAGE ON ALL SEQUENCES IN SCHEMA @. TO "}) {
      std::string sql = grant + role();
      sql.replace(sql.find("@."), 2, schema);
      session()->execute(sql);
    }
  }
  std::string role_url() const { return replace(url(), "holdfast@", role() + "@"); }
  static std::string replace(std::string text, const std::string& what, const std::string& by) {
    return text.replace(text.find(what), what.size(), by);
  }
  /// What is wrong with a subject, all of it; empty: nothing.
  static std::string wrong(const std::vector<Finding>& findings, const std::string& subject) {
    std::string text;
    for (const Finding& finding : findings) {
      if (finding.subject == subject && finding.grade != Grade::ok) text += finding.text + "\n";
    }
    return text;
  }
  std::string wrong(const std::string& url, const std::string& subject) const {
    return wrong(open_store(url, real_env())->check(), subject);
  }
  std::string wrong_here(const std::string& subject, const postgres::PgCheckLimits& limits = {}) {
    return wrong(postgres::check_pg_server(*session(), limits), subject);
  }

 private:
  bool made_role_ = false;
};

#define EXPECT_SAYS(text, part)                                 \
  do {                                                          \
    const std::string said = (text);                            \
    EXPECT_TRUE(has(said, part)) << said << "lacks " << (part); \
  } while (false)

TEST_F(PostgresCheck, FindsNothingToMendInWhatIsInOrder) {
  for (const char* subject :
       {"server", "encoding", "writes", "rights", "connections", "pooler", "transactions"}) {
    EXPECT_EQ(wrong_here(subject), "") << subject;
  }
}

TEST_F(PostgresCheck, RoleThatLacksRightsIsToldTheGrants) {
  make_role();
  grant_all();
  EXPECT_EQ(wrong(role_url(), "rights"), "");
  session()->execute("REVOKE INSERT, UPDATE ON " + schema + ".events FROM " + role());
  EXPECT_SAYS(wrong(role_url(), "rights"),
              "GRANT INSERT, UPDATE ON TABLE " + schema + ".events TO " + role());
  session()->execute("REVOKE USAGE ON SEQUENCE " + schema + ".run_rows FROM " + role());
  EXPECT_SAYS(wrong(role_url(), "rights"), "GRANT USAGE ON SEQUENCE " + schema + ".run_rows");
}

TEST_F(PostgresCheck, StoreThatARoleCannotOpenNamesTheGrants) {
  make_role();
  EXPECT_SAYS(refusal(role_url()), "GRANT USAGE ON SCHEMA " + schema + " TO " + role());
  grant_all();
  session()->execute("REVOKE SELECT ON " + schema + ".presences FROM " + role());
  EXPECT_SAYS(refusal(role_url()), "GRANT SELECT ON TABLE " + schema + ".presences TO " + role());
  EXPECT_SAYS(refusal(replace(role_url(), "schema=" + schema, "schema=" + schema + "_other")),
              "GRANT CREATE ON DATABASE postgres TO " + role());
}

TEST_F(PostgresCheck, RoleThatMayOnlyReadLooksAndWritesNothing) {
  const auto owner = open();
  const RunId id = enqueue(*owner);
  claim(*owner, "w");
  make_role();
  session()->execute("GRANT USAGE ON SCHEMA " + schema + " TO " + role());
  session()->execute("GRANT SELECT ON ALL TABLES IN SCHEMA " + schema + " TO " + role());
  const auto reader = open_store(role_url(), real_env());
  EXPECT_EQ(reader->stats().leases_held, 1);
  EXPECT_EQ(reader->list({}).runs.size(), 1u);
  EXPECT_TRUE(reader->find(id).has_value());
  EXPECT_EQ(reader->events(id, 0, 0).size(), 2u);
  EXPECT_TRUE(reader->workers().empty());
  const NewRun run = a_run(real_env());
  EXPECT_THROW(reader->enqueue(std::span(&run, 1)), StoreError);
  EXPECT_SAYS(wrong(reader->check(), "rights"), "GRANT INSERT, UPDATE, DELETE");
}

TEST_F(PostgresCheck, RoleThatMayNotUpgradeIsToldWhoMay) {
  make_role();
  grant_all();
  session()->execute("UPDATE " + schema + ".meta SET value = '1' WHERE key = 'schema_version'");
  const std::string text = refusal(role_url());
  EXPECT_SAYS(text, "schema version 1");
  EXPECT_SAYS(text, "let the owner of the schema run `holdfast migrate`");
}

TEST_F(PostgresCheck, GrantsThatItNamesAreEnough) {
  make_role();
  const auto grants = [&] {
    postgres::Connection db(postgres::parse_target(role_url()));
    return postgres::missing_grants(db);
  };
  session()->execute(grants());
  EXPECT_EQ(grants(), "");
  const auto store = open_store(role_url(), real_env());
  enqueue(*store);
  const Claimed claimed = claim(*store, "w").at(0);
  EXPECT_EQ(store->record(claimed.lease, a_step("a")), Write::applied);
}

TEST_F(PostgresCheck, FewConnectionsOfARoleAreTold) {
  make_role("CONNECTION LIMIT 9");
  grant_all();
  EXPECT_SAYS(wrong(role_url(), "connections"), "ALTER ROLE " + role() + " CONNECTION LIMIT -1");
  session()->execute("ALTER ROLE " + role() + " CONNECTION LIMIT 60");
  EXPECT_EQ(wrong(role_url(), "connections"), "");
}

TEST_F(PostgresCheck, AutovacuumThatIsOffIsTold) {
  // As the tests' server is set.
  EXPECT_SAYS(wrong_here("autovacuum"), "set autovacuum = on");
  EXPECT_FALSE(has(wrong_here("autovacuum"), "RESET")) << wrong_here("autovacuum");
  session()->execute("ALTER TABLE " + schema + ".runs SET (autovacuum_enabled = false)");
  EXPECT_SAYS(wrong_here("autovacuum"),
              "ALTER TABLE " + schema + ".runs RESET (autovacuum_enabled)");
}

TEST_F(PostgresCheck, LostSettingsOfTheHotTableAreTold) {
  session()->execute("ALTER TABLE " + schema + ".runs RESET (fillfactor)");
  EXPECT_SAYS(wrong_here("autovacuum"), "runs SET (fillfactor = 45");
}

TEST_F(PostgresCheck, DeadRowsThatPileUpAreTold) {
  auto store = open();
  std::vector<NewRun> runs;
  for (int i = 0; i < 200; ++i) runs.push_back(a_run(real_env()));
  store->enqueue(runs);
  session()->execute("UPDATE " + schema + ".runs SET claimed_by = 'x'");
  postgres::PgCheckLimits limits;
  limits.dead_rows = 100;
  const std::string vacuum = "VACUUM " + schema + ".runs";
  EXPECT_TRUE(eventually([&] { return has(wrong_here("autovacuum", limits), vacuum); }));
  session()->execute(vacuum);
  EXPECT_TRUE(eventually([&] { return !has(wrong_here("autovacuum", limits), vacuum); }));
}

TEST_F(PostgresCheck, TransactionLeftOpenIsToldWithItsSession) {
  postgres::PgCheckLimits limits;
  limits.old_transaction = 0ms;
  auto other = session();
  const auto pid = std::to_string(ask(*other, "SELECT pg_backend_pid()").number(0, 0));
  const std::string remedy = "SELECT pg_terminate_backend(" + pid + ")";
  EXPECT_FALSE(has(wrong_here("transactions", limits), remedy));
  other->execute("BEGIN; SELECT pg_current_xact_id()");
  EXPECT_SAYS(wrong_here("transactions", limits), remedy);
  EXPECT_FALSE(has(wrong_here("transactions"), remedy)) << "it is not old yet";
}

TEST_F(PostgresCheck, CommitThatDoesNotWaitIsTold) {
  EXPECT_FALSE(has(wrong_here("durability"), "synchronous_commit = on"));
  EXPECT_SAYS(wrong(url("&options=-csynchronous_commit%3Doff"), "durability"),
              "ALTER ROLE holdfast SET synchronous_commit = on");
}

TEST_F(PostgresCheck, RoleThatMayOnlyReadIsTold) {
  make_role();
  grant_all();
  const auto store = open_store(role_url() + "&target_session_attrs=any", real_env());
  EXPECT_EQ(wrong(store->check(), "writes"), "");
  session()->execute("ALTER ROLE " + role() + " SET default_transaction_read_only = on");
  // The session that it has was made before.
  ask(*session(),
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '" + role() +
          "'");
  EXPECT_SAYS(wrong(store->check(), "writes"),
              "ALTER ROLE " + role() + " SET default_transaction_read_only = off");
  EXPECT_SAYS(refusal(role_url()), "default_transaction_read_only is off");
}

TEST_F(PostgresCheck, DatabaseOfAnotherEncodingIsTold) {
  const std::string name = schema + "_ascii";
  session()->execute("CREATE DATABASE " + name +
                     " ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
  {
    postgres::Connection db(postgres::parse_target(replace(url(), "/postgres?", "/" + name + "?")));
    EXPECT_SAYS(wrong(postgres::check_pg_server(db), "encoding"), "ENCODING 'UTF8'");
  }
  session()->execute("DROP DATABASE " + name + " WITH (FORCE)");
}

TEST_F(PostgresCheck, PoolerThatWasNotDeclaredIsFound) {
  PgBouncer bouncer(server, 3);
  const auto check = [&](const std::string& url) {
    postgres::Connection db(postgres::parse_target(url));
    return wrong(postgres::check_pg_server(db), "pooler");
  };
  EXPECT_SAYS(check(server.tcp_url(bouncer.port(), schema)), "add pooler=transaction");
  EXPECT_EQ(check(server.tcp_url(bouncer.port(), schema, "&pooler=transaction")), "");
  EXPECT_EQ(check(server.tcp_url(server.port(), schema)), "");
}

TEST_F(PostgresCheck, PoolerThatWasNotDeclaredIsNamedWhereItIsInTheWay) {
  PgBouncer bouncer(server, 1);
  const auto target = postgres::parse_target(server.tcp_url(bouncer.port(), schema));
  static constexpr char kOne[] = "SELECT 1";
  static constexpr char kTwo[] = "SELECT 2";
  postgres::Connection first(target);
  postgres::Connection second(target);
  first.ask(kOne);
  try {
    second.ask(kTwo);
    ADD_FAILURE() << "two sessions were not one";
  } catch (const StoreError& error) {
    EXPECT_SAYS(error.what(), "pooler=transaction");
  }
}

}  // namespace
}  // namespace holdfast::testing
