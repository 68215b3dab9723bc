#include <string_view>

#include "store/memory/memory_store.hpp"
#include "store/postgres/postgres_store.hpp"
#include "store/postgres/url.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store/store.hpp"

namespace holdfast {
namespace {

constexpr std::string_view kSqlite = "sqlite:";
constexpr std::string_view kMemory = "memory:";

bool is_memory(const std::string& url) { return url == kMemory; }

/// The path behind `sqlite:`.
std::string get_path(const std::string& url) {
  if (url.starts_with(kSqlite) && url.size() > kSqlite.size() &&
      url.find('\0') == std::string::npos) {
    return url.substr(kSqlite.size());
  }
  throw RefusedError(Refusal::usage,
                     "'" + postgres::redact_url(url) +
                         "' is not the URL of a store; use sqlite:PATH (for example "
                         "sqlite:holdfast.db), postgresql://USER@HOST/DATABASE or memory:");
}

}  // namespace

void check_store_url(const std::string& url) {
  if (is_memory(url)) return;
  if (postgres::is_postgres_url(url)) {
    postgres::parse_target(url);
  } else {
    get_path(url);
  }
}

std::unique_ptr<Store> open_store(const std::string& url, Env& env) {
  if (is_memory(url)) return open_memory_store(env);
  if (postgres::is_postgres_url(url)) return open_postgres_store(url, env);
  return open_sqlite_store(get_path(url), env);
}

MigrationReport migrate_store(const std::string& url, Env& env) {
  if (is_memory(url)) return {};
  if (postgres::is_postgres_url(url)) return migrate_postgres_store(url, env);
  return migrate_sqlite_store(get_path(url), env);
}

}  // namespace holdfast
