// The store of a site, seen past the product: by SQL of the test's own.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <map>
#include <string>

#include "crash/harness.hpp"
#include "store/postgres/connection.hpp"

namespace holdfast::crash {

namespace {

std::vector<std::string> ask_file(const fs::path& file, const std::string& statement) {
  sqlite3* handle = nullptr;
  std::vector<std::string> found;
  if (sqlite3_open_v2(file.c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK) {
    sqlite3_busy_timeout(handle, 10000);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    char* problem = nullptr;
    const int answer = sqlite3_exec(
        handle, statement.c_str(),
        [](void* into, int, char** values, char**) {
          static_cast<std::vector<std::string>*>(into)->push_back(values[0] ? values[0] : "");
          return 0;
        },
        &found, &problem);
    EXPECT_EQ(answer, SQLITE_OK) << statement << ": " << (problem ? problem : "");
    sqlite3_free(problem);
  } else {
    ADD_FAILURE() << "cannot open " << file;
  }
  sqlite3_close(handle);
  return found;
}

std::vector<std::string> ask_server(const std::string& url, const std::string& statement) {
  postgres::Connection db(postgres::parse_target(url));
  db.send_text(db.in_schema(statement));
  const postgres::Result result = std::move(db.flush().front());
  std::vector<std::string> found;
  for (int row = 0; row < result.rows(); ++row) {
    found.emplace_back(result.is_null(row, 0) ? "" : result.view(row, 0));
  }
  return found;
}

/// Without what names the schema of a server.
std::string for_a_file(std::string statement) {
  for (auto at = statement.find("@."); at != std::string::npos; at = statement.find("@.")) {
    statement.erase(at, 2);
  }
  return statement;
}

}  // namespace

bool is_postgres() {
  const char* value = std::getenv("HOLDFAST_TEST_STORE");
  return value != nullptr && std::string(value) == "postgres";
}

void Site::move_store(const fs::path& folder) {
  store_folder_ = folder;
  own_url_ = url_ = "sqlite:" + database().string();
}

void Site::use_server(const std::string& url, const std::string& own_url) {
  url_ = url;
  own_url_ = own_url;
}

std::vector<std::string> Site::sql(const std::string& statement) const {
  return is_postgres() ? ask_server(own_url_, statement)
                       : ask_file(database(), for_a_file(statement));
}

std::int64_t Site::sql_number(const std::string& statement) const {
  const auto found = sql(statement);
  return found.empty() || found.front().empty() ? 0 : std::stoll(found.front());
}

std::string Site::rows_of(const std::string& run) const {
  const std::map<std::string, std::string> columns = {{"runs", is_postgres() ? "id" : "row"},
                                                      {"run_data", "run"},
                                                      {"labels", "run"},
                                                      {"events", "run"}};
  const std::string number =
      is_postgres() ? "'" + run + "'" : "(SELECT row FROM runs WHERE id = '" + run + "')";
  std::string all;
  for (const auto& [table, column] : columns) {
    std::string row = is_postgres() ? "to_jsonb(t)::text" : "''";
    if (!is_postgres()) {
      for (const std::string& name : sql("SELECT name FROM pragma_table_info('" + table + "')")) {
        row += " || quote(\"" + name + "\") || ','";
      }
    }
    for (const std::string& text : sql("SELECT " + row + " FROM @." + table + " t WHERE " + column +
                                       " = " + number + " ORDER BY 1")) {
      all += table + ": " + text + "\n";
    }
  }
  return all;
}

std::int64_t Site::lease_until(const std::string& run) const {
  return sql_number("SELECT coalesce(lease_until, 0) FROM @.runs WHERE id = '" + run + "'");
}

void Site::expect_sound() {
  const Result verified = cli({"verify"});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  if (is_postgres()) {
    // A frozen client keeps one for five seconds, the others for no time at all.
    EXPECT_EQ(sql_number("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in tr%' "
                         "AND now() - state_change > interval '6 s'"),
              0);
  } else {
    EXPECT_EQ(sql("PRAGMA integrity_check"), std::vector<std::string>{"ok"});
  }
  std::map<std::string, int> starts;
  for (const LedgerLine& line : ledger()) {
    const bool is_fenced = line.tool == "pay" || line.tool == "send" || line.tool == "count";
    if (is_fenced && line.phase == "start") ++starts[line.key];
  }
  for (const auto& [key, count] : starts) EXPECT_EQ(count, 1) << "the write " << key;
}

}  // namespace holdfast::crash
