#pragma once

// A thin wrapper of the SQLite C interface: connections, cached statements, errors as StoreError.

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "holdfast/failure.hpp"
#include "holdfast/time.hpp"

namespace holdfast::sqlite {

/// Only against programs that are not ours: Holdfast's own writers queue before they come here.
constexpr int kBusyMilliseconds = 10'000;

/// Throws StoreError for a result code: what happened to which file, and what to do.
[[noreturn]] void throw_error(int code, const std::string& path, const std::string& detail);

/// A statement while it is executed; reset when it goes.
class Cursor {
 public:
  Cursor(sqlite3_stmt* statement, const std::string& path) : statement_(statement), path_(path) {}
  Cursor(const Cursor&) = delete;
  ~Cursor() { sqlite3_reset(statement_); }

  /// True while there is a row.
  bool next() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) fail(code);
    return false;
  }

  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  int small(int column) const { return sqlite3_column_int(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  /// Valid until the next row.
  std::string_view view(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    if (text == nullptr) return {};
    return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }
  std::string text(int column) const { return std::string(view(column)); }
  WallTime wall(int column) const { return WallTime(Duration(number(column))); }
  std::optional<WallTime> maybe_wall(int column) const {
    if (is_null(column)) return std::nullopt;
    return wall(column);
  }

 private:
  [[noreturn]] void fail(int code);

  sqlite3_stmt* statement_;
  const std::string& path_;
};

/// One connection. One thread at a time.
class Connection {
 public:
  /// Opens an existing file. `is_readonly`: never writes.
  Connection(std::string path, bool is_readonly);
  Connection(const Connection&) = delete;
  ~Connection();

  /// Executes a constant statement with its values. Texts are taken by reference until it is done.
  template <class... Values>
  void run(const char* sql, const Values&... values) {
    Cursor cursor(prepared(sql), path_);
    bind_all<Values...>(sql, SQLITE_STATIC, values...);
    while (cursor.next()) {
    }
  }

  /// Begins a constant statement; its rows are read from the cursor. One use of a statement at a
  /// time.
  template <class... Values>
  Cursor query(const char* sql, const Values&... values) {
    bind_all<Values...>(sql, SQLITE_TRANSIENT, values...);
    return Cursor(prepared(sql), path_);
  }

  /// Executes text that is made at run time, with texts as its values; calls `visit` for each row.
  template <class Visit>
  void query_once(const std::string& sql, const std::vector<std::string>& values,
                  const Visit& visit) {
    const auto statement = prepare(sql, 0);
    Cursor cursor(statement.get(), path_);
    for (int i = 0; i < static_cast<int>(values.size()); ++i) {
      bind(statement.get(), i + 1, values[static_cast<std::size_t>(i)], SQLITE_STATIC);
    }
    while (cursor.next()) visit(cursor);
  }

  /// Executes text that is made at run time, without values.
  void execute(const std::string& sql);

  std::int64_t last_row() const { return sqlite3_last_insert_rowid(db_); }
  bool is_in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }
  /// Ends a transaction that may have been ended by an error already. Never throws.
  void roll_back();
  sqlite3* handle() { return db_; }
  const std::string& path() const { return path_; }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Prepared = std::unique_ptr<sqlite3_stmt, Finalize>;

  Prepared prepare(std::string_view sql, unsigned flags);
  sqlite3_stmt* prepared(const char* sql);

  template <class... Values>
  void bind_all(const char* sql, [[maybe_unused]] sqlite3_destructor_type lifetime,
                const Values&... values) {
    [[maybe_unused]] sqlite3_stmt* statement = prepared(sql);
    [[maybe_unused]] int index = 0;
    (bind(statement, ++index, values, lifetime), ...);
  }

  void bind(sqlite3_stmt*, int index, std::int64_t value, sqlite3_destructor_type);
  void bind(sqlite3_stmt* statement, int index, int value, sqlite3_destructor_type lifetime) {
    bind(statement, index, static_cast<std::int64_t>(value), lifetime);
  }
  void bind(sqlite3_stmt*, int index, double value, sqlite3_destructor_type);
  void bind(sqlite3_stmt*, int index, std::string_view value, sqlite3_destructor_type lifetime);
  void bind(sqlite3_stmt* s, int i, const std::string& value, sqlite3_destructor_type lifetime) {
    bind(s, i, std::string_view(value), lifetime);
  }
  void bind(sqlite3_stmt* s, int i, const char* value, sqlite3_destructor_type lifetime) {
    bind(s, i, std::string_view(value), lifetime);
  }
  void bind(sqlite3_stmt*, int index, std::nullopt_t, sqlite3_destructor_type);
  void bind(sqlite3_stmt* statement, int index, WallTime value, sqlite3_destructor_type lifetime) {
    bind(statement, index, std::int64_t{value.time_since_epoch().count()}, lifetime);
  }
  void bind(sqlite3_stmt* statement, int index, StoreTime value, sqlite3_destructor_type lifetime) {
    bind(statement, index, std::int64_t{value.time_since_epoch().count()}, lifetime);
  }
  template <class T>
  void bind(sqlite3_stmt* statement, int index, const std::optional<T>& value,
            sqlite3_destructor_type lifetime) {
    if (value) {
      bind(statement, index, *value, lifetime);
    } else {
      bind(statement, index, std::nullopt, lifetime);
    }
  }

  const std::string path_;
  sqlite3* db_ = nullptr;
  /// By the address of the constant.
  std::unordered_map<const char*, Prepared> statements_;
};

/// A transaction for reading: everything in it sees one state. Ends with its scope.
class ReadTransaction {
 public:
  explicit ReadTransaction(Connection& db);
  ReadTransaction(const ReadTransaction&) = delete;
  ~ReadTransaction() { db_.roll_back(); }

 private:
  Connection& db_;
};

}  // namespace holdfast::sqlite
