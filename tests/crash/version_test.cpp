// Servers whose schema is of another age: a newer one is left as it was, whatever command meets it;
// the newest is made once, whoever is killed at it.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <regex>

#include "crash/harness.hpp"
#include "store/postgres/connection.hpp"
#include "support/old_schema.hpp"

namespace holdfast::crash {
namespace {

constexpr const char* kVersion = "SELECT value FROM @.meta WHERE key = 'schema_version'";

/// Tables, columns, indexes, functions and rights of a site's schema, without its name.
std::string structure_of(const Site& site) {
  const std::string here = "'" + site.schema() + "'::regnamespace";
  std::string text;
  std::string query =
      "SELECT c.relname || ' ' || c.relkind::text || ' ' || coalesce(c.reloptions::text, '') || "
      "coalesce(pg_get_indexdef(i.indexrelid), '') || coalesce(c.relacl::text, '') AS line "
      "FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid WHERE c.relnamespace = $ "
      "UNION ALL SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, "
      "a.atttypmod) || ' ' || a.attnotnull || ' ' || coalesce(pg_get_expr(d.adbin, "
      "d.adrelid), '') FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN "
      "pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum WHERE c.relkind = 'r' AND "
      "a.attnum > 0 AND NOT a.attisdropped AND c.relnamespace = $ "
      "UNION ALL SELECT pg_get_functiondef(p.oid) FROM pg_proc p WHERE p.pronamespace = $ "
      "ORDER BY 1";
  query = std::regex_replace(query, std::regex("\\$"), here);
  for (const std::string& line : site.sql(query)) {
    text += line + "\n";
  }
  return std::regex_replace(text, std::regex(site.schema()), "S");
}

std::string rows_of_all_tables(const Site& site) {
  std::string text;
  for (const std::string& table :
       site.sql("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = '" +
                site.schema() + "'::regnamespace ORDER BY 1")) {
    for (const std::string& row :
         site.sql("SELECT to_jsonb(t)::text FROM @." + table + " t ORDER BY 1")) {
      text.append(table).append(": ").append(row).append("\n");
    }
  }
  return text;
}

TEST(Server, WhoseSchemaIsNewerIsRefusedByEveryCommandAndLeftAsItWas) {
  Site site;
  const std::string run = site.enqueue("plain");
  const std::string known = site.sql(kVersion).at(0);
  site.sql("UPDATE @.meta SET value = '99' WHERE key = 'schema_version'");
  const std::string structure = structure_of(site);
  const std::string rows = rows_of_all_tables(site);
  ASSERT_NE(structure.find("runs.claim "), std::string::npos) << structure;
  ASSERT_NE(rows.find(run), std::string::npos) << rows;
  for (const std::vector<std::string>& args : {std::vector<std::string>{"list"},
                                               {"show", run},
                                               {"enqueue", "plain", "--input", "x"},
                                               {"worker", "--drain"},
                                               {"cancel", run},
                                               {"reap"},
                                               {"migrate"},
                                               {"verify"}}) {
    const Result result = site.cli(args);
    EXPECT_EQ(result.code, 1) << args[0] << ": " << result.out << result.err;
    EXPECT_NE(result.err.find("version 99"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("up to " + known), std::string::npos) << result.err;
  }
  EXPECT_EQ(structure_of(site), structure);
  EXPECT_EQ(rows_of_all_tables(site), rows);
}

/// Two processes at once, each killed at its first (or second) step, if one is left to it: how many
/// were.
int kill_two_at_step(const Site& site, const std::string& which) {
  std::vector<Command> commands;
  std::vector<Process> all;
  for (const char* place : {"migrate.before=kill@", "migrate.after=kill@"}) {
    commands.push_back(site.command({"migrate"}, {{"HOLDFAST_FAILPOINTS", place + which}}));
  }
  for (const Command& command : commands) all.emplace_back(command);
  int killed = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto ended = all[i].wait(seconds(60));
    EXPECT_TRUE(ended == 0 || ended == 128 + SIGKILL) << read_file(commands[i].errors);
    killed += ended == 128 + SIGKILL ? 1 : 0;
  }
  return killed;
}

/// Of an upgrade of two steps or more the first two processes make one at most.
void kill_at_the_upgrade(const Site& site) {
  EXPECT_EQ(kill_two_at_step(site, "1"), 2);
  kill_two_at_step(site, "2");
}

/// The next processes, all at once, finish what was begun.
void expect_all_come_up(const Site& site) {
  std::vector<Command> commands;
  std::vector<Process> all;
  for (int i = 0; i < scaled(6, 12); ++i) {
    commands.push_back(i % 3 == 0   ? site.command({"migrate"})
                       : i % 3 == 1 ? site.command({"enqueue", "errand", "--input", "x"})
                                    : site.command({"worker", "--drain"}));
  }
  for (const Command& command : commands) all.emplace_back(command);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].wait(seconds(90)), 0) << read_file(commands[i].errors);
  }
}

TEST(Server, WhoseSchemaIsMadeByProcessesThatAreKilledIsMadeOnce) {
  Site alone;
  EXPECT_EQ(alone.cli({"migrate"}).code, 0);
  const std::string structure = structure_of(alone);
  const std::string newest = alone.sql(kVersion).at(0);
  for (int round = 0; round < scaled(1, 25); ++round) {
    Site site;
    kill_at_the_upgrade(site);
    expect_all_come_up(site);
    EXPECT_EQ(site.sql(kVersion), std::vector<std::string>{newest});
    EXPECT_EQ(structure_of(site), structure);

    const std::string early = site.enqueue("errand");
    {
      postgres::Connection db(postgres::parse_target(site.store_url()));
      db.execute(db.in_schema(testing::kBackToVersion2));
    }
    EXPECT_NE(structure_of(site), structure);
    kill_at_the_upgrade(site);
    expect_all_come_up(site);
    EXPECT_EQ(site.sql(kVersion), std::vector<std::string>{newest});
    EXPECT_EQ(structure_of(site), structure);
    Process worker = site.worker({"--drain"});
    EXPECT_EQ(worker.wait(seconds(60)), 0);
    EXPECT_EQ(site.status(early), "completed");
    site.expect_sound();
  }
}

}  // namespace
}  // namespace holdfast::crash
