// How a schema comes to be, and what opening a store says.

#include <sys/wait.h>
#include <unistd.h>

#include "base/text.hpp"
#include "postgres/postgres_test_support.hpp"
#include "store/postgres/pg_enqueue_sql.hpp"
#include "store/postgres/pg_migrations.hpp"
#include "support/old_schema.hpp"

namespace holdfast::testing {
namespace {

class PostgresSchema : public PostgresTest {
 protected:
  /// Processes that open it and put a run there, all at once.
  static void open_by_many(const std::string& url, int processes) {
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        try {
          auto store = open_store(url, real_env());
          enqueue(*store);
          store.reset();
        } catch (const std::exception& error) {
          std::fprintf(stderr, "child: %s\n", error.what());
          _exit(1);
        }
        _exit(0);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
  }
  void set_back_to_version_2() {
    auto db = session();
    db->execute(db->in_schema(kBackToVersion2));
  }
  void expect_upgraded() {
    EXPECT_EQ(ask_number("SELECT value::bigint FROM @.meta WHERE key = 'schema_version'"),
              postgres::newest_schema());
    EXPECT_EQ(ask_number("SELECT count(*) FROM pg_class WHERE oid = '@.runs'::regclass AND "
                         "'fillfactor=45' = ANY(reloptions)"),
              1);
    EXPECT_EQ(ask_number("SELECT count(*) FROM pg_proc WHERE oid = '@.enqueue'::regproc AND "
                         "prosecdef AND proacl IS NOT NULL"),
              1)
        << "the new text, the rights as they were";
  }
};

TEST_F(PostgresSchema, IsMadeOnceByManyProcessesAtOnce) {
  for (int round = 0; round < 3; ++round) {
    const std::string fresh = PostgresServer::fresh_schema();
    open_by_many(server.url(fresh), 8);
    auto store = open_store(server.url(fresh), real_env());
    EXPECT_EQ(store->stats().by_status.at("queued"), 8);
    const auto versions =
        ask(*session(), "SELECT count(*) FROM " + fresh + ".meta WHERE key = 'schema_version'");
    EXPECT_EQ(versions.number(0, 0), 1);
  }
}

TEST_F(PostgresSchema, OlderOneIsUpgradedOnceByManyProcessesAtOnce) {
  enqueue(*open());
  for (std::int64_t round = 0; round < 3; ++round) {
    set_back_to_version_2();
    open_by_many(url(), 8);
    expect_upgraded();
    EXPECT_EQ(open()->stats().by_status.at("queued"), 1 + 8 * (round + 1));
  }
}

TEST_F(PostgresSchema, NewerOneIsRefusedAndLeftAlone) {
  open();
  session()->execute("UPDATE " + schema + ".meta SET value = '99' WHERE key = 'schema_version'");
  const std::string text = refusal(url());
  EXPECT_TRUE(has(text, "99") && has(text, "newer")) << text;
  EXPECT_EQ(ask_number("SELECT value::bigint FROM @.meta WHERE key = 'schema_version'"), 99);
}

TEST_F(PostgresSchema, OneOfAnotherProgramIsRefused) {
  session()->execute("CREATE SCHEMA " + schema + "; CREATE TABLE " + schema + ".things (id int)");
  EXPECT_TRUE(has(refusal(url()), "another program"));
}

TEST_F(PostgresSchema, OneWhoseMetaIsAnotherProgramsIsRefusedAndLeftAlone) {
  const std::vector<std::string> metas = {
      "(id int)",
      "(key text, value text)",
      "(key int, value int)",
      "(key, value) AS VALUES ('schema_version', '1.4')",
      "(key, value) AS VALUES ('schema_version', '2')",
      "(key, value) AS VALUES ('schema_version', '2'), ('schema_version', '2')"};
  for (const std::string& meta : metas) {
    SCOPED_TRACE(meta);
    session()->execute("DROP SCHEMA IF EXISTS " + schema + " CASCADE; CREATE SCHEMA " + schema +
                       "; CREATE TABLE " + schema + ".things (id int); CREATE TABLE " + schema +
                       ".meta " + meta);
    EXPECT_TRUE(has(refusal(url()), "holds 2 tables of another program")) << refusal(url());
    EXPECT_EQ(ask_number("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = "
                         "c.relnamespace WHERE n.nspname = '" +
                         schema + "'"),
              2);
  }
}

TEST_F(PostgresSchema, IsMadeOnceAndFoundMadeThen) {
  EXPECT_EQ(migrate_store(url(), real_env()).before, 0);
  const auto report = migrate_store(url(), real_env());
  EXPECT_EQ(report.before, postgres::newest_schema());
  EXPECT_EQ(report.after, postgres::newest_schema());
}

/// What can be called has one text, the newest, which stands behind the tables of a step.
TEST_F(PostgresSchema, StepsAreNeverEditedAfterTheyLanded) {
  const std::vector<std::pair<bool, std::string>> landed = {
      {false, "35e9ab84c6ae2caccea7e8aa81792fe02616a4b1f0e8ac24a487c8c56cb34d6c"},
      {true, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {true, "a7582a6571dc33b3679478e1c9eaca196eab60c366e141d862e97ed27cdf9f46"},
      {false, "c26c834995c80e2812bd6c7c282ee3ec1c6b1fa7ee9537417dea65dcb9a5a73d"}};
  ASSERT_EQ(postgres::newest_schema(), static_cast<int>(landed.size())) << "append the new step";
  const std::string functions = postgres::kEnqueueSql;
  for (int version = 1; version <= postgres::newest_schema(); ++version) {
    const auto& [changes_functions, digest] = landed.at(static_cast<std::size_t>(version - 1));
    std::string text = postgres::schema_migration(version);
    EXPECT_EQ(text.ends_with(functions), changes_functions) << version;
    if (changes_functions) text.resize(text.size() - functions.size());
    EXPECT_EQ(sha256_hex(text), digest) << version;
  }
}

TEST_F(PostgresSchema, OlderOneIsUpgradedWhileItIsInUse) {
  auto in_use = open();
  set_back_to_version_2();
  const auto report = migrate_store(url(), real_env());
  EXPECT_EQ(report.before, 2);
  EXPECT_EQ(report.after, postgres::newest_schema());
  expect_upgraded();
  enqueue(*in_use);
  EXPECT_EQ(ask_number("SELECT count(*) FROM (SELECT @.enqueue('agent', '{\"input\": 1}')) e(id) "
                       "WHERE id IS NOT NULL"),
            1);
  EXPECT_EQ(in_use->stats().by_status.at("queued"), 2);
}

TEST_F(PostgresSchema, RestoredDatabaseGoesOnBehindItsOldEvents) {
  auto store = open();
  enqueue(*store);
  // As if the numbers of transactions had been far ahead where it came from.
  session()->execute("UPDATE " + schema +
                     ".events SET position = position + (1000000::bigint << 20)");
  store.reset();
  store = open();
  std::int64_t cursor = 0;
  EXPECT_EQ(store->all_events(cursor, 0).size(), 1u);
  enqueue(*store);
  EXPECT_EQ(store->all_events(cursor, 0).size(), 1u);
}

TEST_F(PostgresSchema, NoMessageHasThePassword) {
  const std::vector<std::string> urls = {"postgresql://ann:s3cret@127.0.0.1:1/db",
                                         "postgresql://ann:s3cret%zz@127.0.0.1:1/db",
                                         "postgresql://ann:s3cret@127.0.0.1:1/db?unknown=1",
                                         "postgresql://ann:s3cret@127.0.0.1:1/db?schema=Not!",
                                         "postgresql://ann@127.0.0.1:1/db?password=s3cret",
                                         "postgresql:ann:s3cret@127.0.0.1:1/db",
                                         "postgre://ann:s3cret@127.0.0.1:1/db",
                                         "postgresql://ann:s3cret@127.0.0.1:port/db",
                                         "postgresql://ann:se/s3cret@127.0.0.1:1/db",
                                         "postgresql://ann:se@s3cret@127.0.0.1:1/db",
                                         "postgresql://ann:s3cret@x@127.0.0.1:1/db",
                                         "postgresql://ann:se?s3cret@127.0.0.1:1/db",
                                         "postgresql://ann:se#s3cret/x@127.0.0.1:1/db",
                                         "postgresql://ann:[s3cret/@127.0.0.1:1/db",
                                         "postgresql://ann:s3cret/db",
                                         "postgresql://ann:1@127.0.0.1/db?s3cret",
                                         "postgresql://ann:1@127.0.0.1/db?s3cret=1",
                                         "host=127.0.0.1 password=s3cret dbname=db",
                                         "password='s3cret' host=127.0.0.1",
                                         "ann:s3cret@127.0.0.1:1/db",
                                         "sqlite3://ann:s3cret@127.0.0.1:1/db"};
  for (const std::string& bad : urls) {
    const std::string text = refusal(bad);
    EXPECT_FALSE(text.empty()) << bad;
    EXPECT_FALSE(has(text, "s3cret")) << text;
    EXPECT_FALSE(has(text, ":se")) << text;
  }
  EXPECT_TRUE(has(refusal(urls[0]), "127.0.0.1:1")) << refusal(urls[0]);
}

TEST_F(PostgresSchema, MistakesInTheUrlAreNamed) {
  const auto said_of = [&](const std::string& options) {
    try {
      postgres::parse_target("postgresql://ann@127.0.0.1/db?" + options);
    } catch (const RefusedError& error) {
      EXPECT_EQ(error.refusal(), Refusal::usage);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"poolr=transaction", "no option `poolr`"},
      {"pooler=session", "pooler"},
      {"notify=maybe", "notify"},
      {"schema=", "`schema` is empty"},
      {"schema=select", "reserved words"},
      {"schema=user", "reserved words"},
      {"schema=7up", "begins with a letter"},
      {"schema=pg_mine", "pg_"},
      {"schema=information_schema", "information_schema"},
      {"schema=a-b", "small letters"},
      {"schema=" + std::string(63, 'a'), "at most 50"},
      {"schema=a&schema=b", "`schema` twice"},
      {"connect_timeout=1&connect_timeout=2", "`connect_timeout` twice"},
      {"notify", "NAME=VALUE"},
      {"port=70000", "from 1 to 65535"},
      {"port=x", "from 1 to 65535"},
      {"port=1,0", "from 1 to 65535"}};
  for (const auto& [options, said] : mistakes) {
    EXPECT_TRUE(has(said_of(options), said)) << options << ": " << said_of(options);
  }
  for (const char* options : {"schema=users", "schema=_1", "port=5432,5433", "sslmode=disable"}) {
    EXPECT_EQ(said_of(options), "nothing") << options;
  }
}

TEST_F(PostgresSchema, EachHostIsShownWithItsPort) {
  const auto shown = [](const std::string& url) { return postgres::parse_target(url).shown; };
  EXPECT_EQ(shown("postgresql://ann@a:1,b:2/db"), "postgresql://a:1,b:2/db");
  EXPECT_EQ(shown("postgresql://ann@/db?host=a,b&port=7"), "postgresql://a:7,b:7/db");
  EXPECT_EQ(shown("postgresql://ann:1@[::1]:2/db?schema=s"), "postgresql://[::1]:2/db?schema=s");
}

TEST_F(PostgresSchema, DatabaseOfAnotherEncodingIsRefused) {
  const std::string name = schema + "_ascii";
  session()->execute("CREATE DATABASE " + name +
                     " ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
  std::string there = url();
  there.replace(there.find("/postgres?"), 10, "/" + name + "?");
  const std::string text = refusal(there);
  EXPECT_TRUE(has(text, "SQL_ASCII") && has(text, "ENCODING 'UTF8'")) << text;
  session()->execute("DROP DATABASE " + name + " WITH (FORCE)");
}

}  // namespace
}  // namespace holdfast::testing
