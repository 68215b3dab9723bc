#pragma once

// What this process asks of SQLite, over all connections that are opened while it lives.

#include <sqlite3.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>

namespace holdfast::testing {

/// One at a time. The connections must be closed before it goes. Any thread.
class SqliteWatch {
 public:
  SqliteWatch() {
    watching_ = this;
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(&SqliteWatch::on_open));
  }
  ~SqliteWatch() {
    sqlite3_reset_auto_extension();
    watching_ = nullptr;
  }
  SqliteWatch(const SqliteWatch&) = delete;
  SqliteWatch& operator=(const SqliteWatch&) = delete;

  void reset() {
    const std::lock_guard lock(mutex_);
    statements_.clear();
    steps_ = 0;
  }
  /// Statements that were begun since the last reset, by their text.
  std::map<std::string, int> statements() const {
    const std::lock_guard lock(mutex_);
    return statements_;
  }
  int count() const {
    int all = 0;
    for (const auto& [sql, times] : statements()) all += times;
    return all;
  }
  /// Instructions of SQLite's machine since the last reset.
  std::int64_t steps() const { return steps_; }

 private:
  static int on_open(sqlite3* db, char**, const void*) {
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT, &SqliteWatch::on_statement, watching_);
    sqlite3_progress_handler(db, 1, &SqliteWatch::on_step, watching_);
    return SQLITE_OK;
  }
  static int on_statement(unsigned, void* self, void* statement, void*) {
    auto& watch = *static_cast<SqliteWatch*>(self);
    const char* sql = sqlite3_sql(static_cast<sqlite3_stmt*>(statement));
    const std::lock_guard lock(watch.mutex_);
    ++watch.statements_[sql == nullptr ? "" : sql];
    return 0;
  }
  static int on_step(void* self) {
    ++static_cast<SqliteWatch*>(self)->steps_;
    return 0;
  }

  static inline SqliteWatch* watching_ = nullptr;
  mutable std::mutex mutex_;
  std::map<std::string, int> statements_;
  std::atomic<std::int64_t> steps_{0};
};

}  // namespace holdfast::testing
