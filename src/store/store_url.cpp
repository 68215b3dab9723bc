#include "store/store_url.hpp"

#include <string_view>

#include "store/postgres/url.hpp"
#include "store/store.hpp"

namespace holdfast {
namespace {

constexpr std::string_view kSqlite = "sqlite:";
constexpr std::string_view kMemory = "memory:";

}  // namespace

bool is_memory_url(const std::string& url) { return url == kMemory; }

std::string get_sqlite_path(const std::string& url) {
  if (url.starts_with(kSqlite) && url.size() > kSqlite.size() &&
      url.find('\0') == std::string::npos) {
    return url.substr(kSqlite.size());
  }
  throw RefusedError(Refusal::usage,
                     "'" + postgres::redact_url(url) +
                         "' is not the URL of a store; use sqlite:PATH (for example "
                         "sqlite:holdfast.db), postgresql://USER@HOST/DATABASE or memory:");
}

void check_store_url(const std::string& url) {
  if (is_memory_url(url)) return;
  if (postgres::is_postgres_url(url)) {
    postgres::parse_target(url);
  } else {
    get_sqlite_path(url);
  }
}

}  // namespace holdfast
