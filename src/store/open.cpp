#include "store/memory/memory_store.hpp"
#include "store/postgres/postgres_store.hpp"
#include "store/postgres/url.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store/store.hpp"
#include "store/store_url.hpp"

namespace holdfast {

std::unique_ptr<Store> open_store(const std::string& url, Env& env) {
  if (is_memory_url(url)) return open_memory_store(env);
  if (postgres::is_postgres_url(url)) return open_postgres_store(url, env);
  return open_sqlite_store(get_sqlite_path(url), env);
}

MigrationReport migrate_store(const std::string& url, Env& env) {
  if (is_memory_url(url)) return {};
  if (postgres::is_postgres_url(url)) return migrate_postgres_store(url, env);
  return migrate_sqlite_store(get_sqlite_path(url), env);
}

}  // namespace holdfast
