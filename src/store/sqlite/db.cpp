#include "store/sqlite/db.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace holdfast::sqlite {
namespace {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

void throw_error(int code, const std::string& path, const std::string& detail) {
  const auto raise = [&](bool is_permanent, std::string_view text) {
    throw StoreError(fmt::format("the store {} {} ({})", path, text, detail), is_permanent);
  };
  switch (code & 0xff) {
    case SQLITE_FULL:
      raise(false, "cannot grow: its disk is full; free some space, nothing is half done");
      break;
    case SQLITE_IOERR:
      raise(false,
            "cannot be read or written; check its disk and that nobody removed its files "
            "(`holdfast doctor`)");
      break;
    case SQLITE_CORRUPT:
      raise(true, "is damaged; stop all its users and restore a backup (`holdfast doctor`)");
      break;
    case SQLITE_NOTADB:
      raise(true, "is not a SQLite database; name another file, or move this one away");
      break;
    case SQLITE_READONLY:
      raise(true, "may not be written; check the rights of the file and of its folder");
      break;
    case SQLITE_CANTOPEN:
      raise(false, "cannot be opened; check the rights of the file and of its folder");
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      raise(false, "is locked by a program other than Holdfast; end that program's transaction");
      break;
    case SQLITE_NOMEM:
      raise(false, "cannot be used: out of memory");
      break;
    default:
      break;
  }
  raise(false, "cannot be used");
  std::abort();
}

void Cursor::fail(int code) {
  sqlite3* db = sqlite3_db_handle(statement_);
  throw_error(code, path_, fmt::format("{}, code {}", sqlite3_errmsg(db), code));
}

Connection::Connection(std::string path, bool is_readonly) : path_(std::move(path)) {
  const int mode = is_readonly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  const int code = sqlite3_open_v2(path_.c_str(), &db_,
                                   mode | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nullptr);
  if (code != SQLITE_OK) {
    const std::string detail = db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_);
    sqlite3_close(db_);
    throw_error(code, path_, detail);
  }
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, kBusyMilliseconds);
  // Closing must not checkpoint: that happens under the writers' lock only.
  sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_wal_autocheckpoint(db_, 0);
}

Connection::~Connection() {
  statements_.clear();
  sqlite3_close(db_);
}

void Connection::execute(const std::string& sql) {
  char* message = nullptr;
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, &message);
  if (code == SQLITE_OK) return;
  const std::string detail = message == nullptr ? sqlite3_errstr(code) : message;
  sqlite3_free(message);
  throw_error(code, path_, fmt::format("{}, code {}", detail, code));
}

void Connection::roll_back() {
  if (is_in_transaction()) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
}

Connection::Prepared Connection::prepare(std::string_view sql, unsigned flags) {
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), flags, &raw, nullptr);
  if (code != SQLITE_OK) throw_error(code, path_, sqlite3_errmsg(db_));
  return Prepared(raw);
}

sqlite3_stmt* Connection::prepared(const char* sql) {
  auto& statement = statements_[sql];
  if (!statement) statement = prepare(sql, SQLITE_PREPARE_PERSISTENT);
  return statement.get();
}

void Connection::bind(sqlite3_stmt* statement, int index, std::int64_t value,
                      sqlite3_destructor_type) {
  sqlite3_bind_int64(statement, index, value);
}

void Connection::bind(sqlite3_stmt* statement, int index, double value, sqlite3_destructor_type) {
  sqlite3_bind_double(statement, index, value);
}

void Connection::bind(sqlite3_stmt* statement, int index, std::nullopt_t, sqlite3_destructor_type) {
  sqlite3_bind_null(statement, index);
}

/// Invalid UTF-8 never reaches the database.
void Connection::bind(sqlite3_stmt* statement, int index, std::string_view value,
                      sqlite3_destructor_type lifetime) {
  int code = SQLITE_OK;
  if (is_ascii(value)) {
    const char* text = value.data() == nullptr ? "" : value.data();
    code = sqlite3_bind_text64(statement, index, text, value.size(), lifetime, SQLITE_UTF8);
  } else {
    const std::string clean = clean_utf8(value);
    code = sqlite3_bind_text64(statement, index, clean.data(), clean.size(), SQLITE_TRANSIENT,
                               SQLITE_UTF8);
  }
  if (code != SQLITE_OK) throw_error(code, path_, sqlite3_errstr(code));
}

ReadTransaction::ReadTransaction(Connection& db) : db_(db) { db_.run("BEGIN"); }

}  // namespace holdfast::sqlite
