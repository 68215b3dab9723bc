#include "store/sqlite/sqlite_store.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "base/guard.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "store/sqlite/audit.hpp"
#include "store/sqlite/migrations.hpp"
#include "store/sqlite/open_checks.hpp"
#include "store/sqlite/reader.hpp"
#include "store/sqlite/sqlite_presence.hpp"
#include "store/sqlite/statements.hpp"
#include "store/sqlite/wake_file.hpp"
#include "store/sqlite/writer.hpp"
#include "store/verb_store.hpp"
#include "store/worker_codec.hpp"

namespace holdfast {
namespace sqlite {
namespace {

constexpr char kBootId[] = "boot_id";
constexpr Duration kFrozenAfter = std::chrono::seconds(2);
constexpr std::uint64_t kLowOnDisk = 64u << 20;
constexpr std::uint64_t kFullDisk = 1u << 20;

bool is_of_this_boot(Connection& db, Env& env) {
  auto cursor = db.query(kGetMeta, kBootId);
  return cursor.next() && cursor.text(0) == env.boot_id();
}

/// Is there nothing to prepare? Only reads, and asks for no lock of the writers.
bool is_prepared(const std::string& path, Env& env) {
  try {
    Connection db(path, false);
    return check_version(db) == newest_version() && is_of_this_boot(db, env);
  } catch (const StoreError&) {
    return false;  // what is wrong is said by those who look under the lock
  }
}

/// Another boot: every process of the last one is gone, and its clock counts no more.
void settle_boot(Connection& db, Env& env) {
  if (is_of_this_boot(db, env)) return;
  db.execute("BEGIN IMMEDIATE");
  try {
    db.run(kExpireAllLeases);
    db.run(kEndAllFences);
    db.run(kCloseAllCircuits);
    db.run(kSetMeta, kBootId, env.boot_id());
    db.execute("COMMIT");
  } catch (...) {
    db.roll_back();
    throw;
  }
}

void use_log_mode(Connection& db) {
  auto cursor = db.query("PRAGMA journal_mode = WAL");
  if (!cursor.next() || cursor.view(0) != "wal") {
    throw StoreError(
        fmt::format("the store {} cannot use SQLite's log mode here; put it on a local "
                    "file system",
                    db.path()),
        true);
  }
}

/// Nothing is left of a new file that could not be made, on a full disk for example.
MigrationReport migrate_file(Connection& db, bool is_new) {
  try {
    use_log_mode(db);
    db.execute("PRAGMA synchronous = FULL");
    return migrate_schema(db);
  } catch (const StoreError&) {
    if (is_new) remove_unmade_file(db.path());
    throw;
  }
}

MigrationReport upgrade_file(const std::string& path, bool is_new, Env& env) {
  const auto id = store_id_of_file(path);
  Connection db(path, false);
  check_version(db);
  check_log_is_own(db, id);
  const MigrationReport report = migrate_file(db, is_new);
  settle_boot(db, env);
  // What the file is must stand in the file itself, not only in the log beside it.
  if (report.before != report.after) db.execute("PRAGMA wal_checkpoint(PASSIVE)");
  return report;
}

/// Everything that has to happen once before a store is used; safe with many processes at once.
MigrationReport prepare_file(const std::string& path, Env& env) {
  const bool is_there = check_before_opening(path);
  WriteLock lock(path, env);
  if (!lock.try_lock()) {
    // Somebody writes, or is frozen while writing: those who only want to read need not wait.
    if (is_there && is_prepared(path, env)) return {newest_version(), newest_version()};
    lock.lock();
  }
  const bool is_new = !check_before_opening(path);
  if (is_new) {
    create_file(path);
  } else {
    check_whole(path);
  }
  const MigrationReport report = upgrade_file(path, is_new, env);
  lock.unlock();
  return report;
}

/// A log that is not emptied has a reader that does not come to its end.
Finding check_log_size(const std::string& path) {
  std::error_code none;
  const auto bytes = std::filesystem::file_size(path + "-wal", none);
  const std::uint64_t mebibytes = none ? 0 : bytes >> 20;
  if (mebibytes <= std::uint64_t{kLogCapPages} * 4096 >> 20) {
    return {Finding::Grade::ok, "log", fmt::format("{}-wal has {} MiB", path, mebibytes)};
  }
  return {Finding::Grade::warning, "log",
          fmt::format("{}-wal has grown to {} MiB: some process has been reading from the store "
                      "all the time; it may be stopped (`fuser {}` names those that have it open)",
                      path, mebibytes, path)};
}

class SqliteStore : public VerbStore {
 public:
  SqliteStore(const std::string& path, Env& env)
      : path_(path),
        env_(env),
        presence_(path, env, [this] { return lease_holders(); }),
        readers_(path, env, [this](const WorkerId& id) { return presence_.is_gone(id); }),
        wake_(path, env),
        writer_(
            path, env, [this](const WorkerId& id) { return presence_.is_gone(id); },
            [this] { wake_.announce(); }) {}

 private:
  template <class Question>
  auto read(const Question& question) {
    writer_.check_file();
    return readers_.ask(question);
  }

  std::vector<WorkerId> lease_holders() {
    return read([](SqliteRows&, Connection& db) {
      std::vector<WorkerId> holders;
      auto cursor = db.query(kLeaseHolders);
      while (cursor.next()) holders.push_back(cursor.text(0));
      return holders;
    });
  }

  void show_abandoned(Run& run) {
    run.abandoned = run.status.is(Status::running) && !run.lease_until && run.claimed_by &&
                    presence_.is_gone(*run.claimed_by);
  }

 protected:
  void transact(const Work& work, const Foresight&) override { writer_.run(work); }

  void consult(const Work& work) override {
    read([&](SqliteRows& rows, Connection&) {
      work(rows);
      return true;
    });
  }

  void about_to_look() override { wake_.about_to_look(); }

 public:
  std::optional<Run> find(const RunId& id) override {
    auto found = read([&](SqliteRows& rows, Connection&) { return rows.load(id, Parts::all); });
    if (!found) return std::nullopt;
    show_abandoned(found->run);
    return std::move(found->run);
  }

  RunPage list(const ListFilter& filter) override {
    auto page = read([&](SqliteRows& rows, Connection& db) { return list_runs(rows, db, filter); });
    for (Run& run : page.runs) show_abandoned(run);
    return page;
  }

  std::vector<Event> events(const RunId& id, std::int64_t after, int limit) override {
    return read([&](SqliteRows&, Connection& db) { return read_events(db, id, after, limit); });
  }

  std::vector<Event> all_events(std::int64_t& cursor, int limit) override {
    return read([&](SqliteRows&, Connection& db) { return read_all_events(db, cursor, limit); });
  }

  StoreStats stats() override {
    return read([](SqliteRows& rows, Connection& db) { return read_stats(db, rows.now()); });
  }

  void report_worker(const WorkerRow& row) override {
    HOLDFAST_FAILPOINT("store.report_worker.before");
    const std::string json = dump_json(encode(row));
    writer_.run_with_connection(
        [&](Rows& rows, Connection& db) { db.run(kReportWorker, row.id, rows.now().store, json); });
    HOLDFAST_FAILPOINT("store.report_worker.after");
  }

  void forget_worker(const WorkerId& id) override {
    HOLDFAST_FAILPOINT("store.forget_worker.before");
    writer_.run_with_connection([&](Rows&, Connection& db) { db.run(kForgetWorker, id); });
    HOLDFAST_FAILPOINT("store.forget_worker.after");
  }

  std::vector<WorkerRow> workers() override {
    auto rows = read([](SqliteRows&, Connection& db) {
      std::vector<WorkerRow> found;
      auto cursor = db.query(kWorkers);
      while (cursor.next()) {
        found.push_back(decode_worker(parse_json(cursor.view(2)).value_or(Json::object())));
        found.back().id = cursor.text(0);
        found.back().seen_at = StoreTime(Duration(cursor.number(1)));
      }
      return found;
    });
    for (WorkerRow& row : rows) row.is_gone = presence_.is_gone(row.id);
    return rows;
  }

  std::vector<Circuit> circuits() override {
    return read([](SqliteRows&, Connection& db) {
      std::vector<Circuit> found;
      auto cursor = db.query(kCircuits);
      while (cursor.next()) {
        found.push_back(
            decode_circuit(cursor.text(0), parse_json(cursor.view(1)).value_or(Json())));
      }
      return found;
    });
  }

  PresenceBoard* presence() override { return &presence_; }

  void wait_for_work(Duration max, const std::stop_token& stop) override { wake_.wait(max, stop); }

  StoreTime now() override { return env_.store_now(); }
  WallTime wall_now() override { return env_.wall_now(); }

  void backup(const std::string& file) override;
  std::vector<Finding> check() override;
  std::vector<Finding> audit() override {
    return read([](SqliteRows&, Connection& db) { return audit_rows(db); });
  }

 private:
  const std::string path_;
  Env& env_;
  SqlitePresence presence_;
  ReaderPool readers_;
  WakeFile wake_;
  Writer writer_;
};

/// Copied whole in one reading transaction to a name beside it, made durable, then named: nobody
/// ever sees half a backup.
void SqliteStore::backup(const std::string& file) {
  struct stat info {};
  if (lstat(file.c_str(), &info) == 0) {
    throw RefusedError(
        Refusal::conflict,
        fmt::format("{} exists already: a backup overwrites nothing; name a new file", file));
  }
  const std::string part = fmt::format("{}.{:016x}.part", file, env_.random());
  try {
    create_file(part);
    read([&](SqliteRows&, Connection& db) {
      Connection target(part, false);
      sqlite3_backup* copy = sqlite3_backup_init(target.handle(), "main", db.handle(), "main");
      const int code =
          copy == nullptr ? sqlite3_errcode(target.handle()) : sqlite3_backup_step(copy, -1);
      sqlite3_backup_finish(copy);
      if (code != SQLITE_DONE && code != SQLITE_OK) throw_error(code, part, sqlite3_errstr(code));
      return true;
    });
    HOLDFAST_FAILPOINT("backup.before");
    // Unlike rename, a link never takes the place of a file that somebody made meanwhile.
    if (link(part.c_str(), file.c_str()) != 0) {
      throw StoreError(fmt::format("the backup {} cannot be made ({})", file, std::strerror(errno)),
                       true);
    }
  } catch (...) {
    unlink(part.c_str());
    throw;
  }
  unlink(part.c_str());
  HOLDFAST_FAILPOINT("backup.after");
}

std::vector<Finding> SqliteStore::check() {
  using Grade = Finding::Grade;
  std::vector<Finding> findings;
  const auto say = [&](Grade grade, std::string subject, std::string text) {
    findings.push_back({grade, std::move(subject), std::move(text)});
  };
  read([&](SqliteRows&, Connection& db) {
    auto cursor = db.query("PRAGMA quick_check(20)");
    while (cursor.next()) {
      const std::string line = cursor.text(0);
      if (line == "ok") {
        say(Grade::ok, "integrity", fmt::format("{} is sound", path_));
      } else {
        say(Grade::bad, "integrity",
            fmt::format("{} is damaged: {}; stop all its users and restore a backup", path_, line));
      }
    }
    return true;
  });
  read([&](SqliteRows&, Connection& db) {
    auto cursor = db.query("PRAGMA journal_mode");
    const std::string mode = cursor.next() ? cursor.text(0) : "";
    say(mode == "wal" ? Grade::ok : Grade::bad, "journal",
        fmt::format("journal mode {}, schema version {}, SQLite {}", mode, newest_version(),
                    sqlite3_libversion()));
    return true;
  });
  if (auto found = check_file_system(path_, file_system_of(path_))) {
    findings.push_back(std::move(*found));
  }
  findings.push_back(check_log_size(path_));
  if (const auto pid = WriteLock::find_frozen_holder(path_, env_, kFrozenAfter)) {
    say(Grade::bad, "writer",
        fmt::format("process {} has held the write lock of {} for more than {}: it may be frozen; "
                    "let it go on (kill -CONT {}) or kill it",
                    *pid, path_, format_duration(kFrozenAfter), *pid));
  }
  struct statvfs disk {};
  if (statvfs(path_.c_str(), &disk) == 0) {
    const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    say(free < kFullDisk    ? Grade::bad
        : free < kLowOnDisk ? Grade::warning
                            : Grade::ok,
        "disk", fmt::format("{} MiB free beside {}", free >> 20, path_));
  }
  return findings;
}

}  // namespace
}  // namespace sqlite

std::unique_ptr<Store> open_sqlite_store(const std::string& path, Env& env) {
  const std::string resolved = sqlite::resolve_path(path);
  sqlite::prepare_file(resolved, env);
  if (const auto found = sqlite::check_file_system(resolved, sqlite::file_system_of(resolved))) {
    log(LogLevel::warn, found->text);
  }
  return std::make_unique<sqlite::SqliteStore>(resolved, env);
}

MigrationReport migrate_sqlite_store(const std::string& path, Env& env) {
  return sqlite::prepare_file(sqlite::resolve_path(path), env);
}

}  // namespace holdfast
