// The schema, as numbered steps. A step is never edited after it landed: append the next one.
//
// `runs` is the hot row: narrow, rewritten at every step. What is long or seldom changes stands in
// `run_data`, the journal in `events`, where `position` is the order of commits over all runs.
// Statuses are kept as words, so that what a newer build wrote is shown as it is.
//
// `lease_key` is what the index of leases is ordered by: never above `lease_until`, so that a
// renewal touches no index; the reaper draws it level when it comes to it.
//
// The events of a run are a chain, from `last_position` backwards over `previous`: a step appends
// at the end of one table, where an index by run would dirty a page for each run of a commit. Every
// 64th event stands in an index, so that reading from the middle need not start at the end.
//
// `store_id` stands in the file and, written with `log_mark` at each beginning of the log, in the
// log: that is how a log of another store is known (check_log_is_own).

#include "store/sqlite/migrations.hpp"

#include <fmt/format.h>

#include <array>

#include "base/guard.hpp"

namespace holdfast::sqlite {
namespace {

constexpr std::array kMigrations = {
    R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE policies (id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE runs (
  row INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  agent TEXT NOT NULL,
  queue TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT,
  origin TEXT NOT NULL,
  priority INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  available_at INTEGER,
  started_at INTEGER,
  finished_at INTEGER,
  claimed_by TEXT,
  claim INTEGER NOT NULL,
  lease_until INTEGER,
  lease_key INTEGER,
  lease_lost_by_presence INTEGER NOT NULL,
  failing_since INTEGER,
  requeue_count INTEGER NOT NULL,
  max_requeues INTEGER NOT NULL,
  reclaim_count INTEGER NOT NULL,
  redrive_count INTEGER NOT NULL,
  iterations INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  total_tokens INTEGER NOT NULL,
  cost_usd REAL NOT NULL,
  policy INTEGER REFERENCES policies (id),
  error TEXT,
  fence TEXT,
  waiting TEXT,
  wait_deadline INTEGER,
  last_sequence INTEGER NOT NULL,
  last_position INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX runs_by_id ON runs (id);
CREATE INDEX runs_queued ON runs (agent, queue, priority DESC, available_at, id)
  WHERE status = 'queued';
CREATE INDEX runs_leased ON runs (lease_key) WHERE lease_key IS NOT NULL;
CREATE INDEX runs_held ON runs (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX runs_waiting ON runs (wait_deadline) WHERE waiting IS NOT NULL;
CREATE INDEX runs_finished ON runs (finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_failed ON runs (status) WHERE status = 'failed';
CREATE TABLE run_data (
  run INTEGER PRIMARY KEY,
  input TEXT NOT NULL,
  answer TEXT,
  definition TEXT,
  idempotency_key TEXT,
  content_digest TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX run_data_by_key ON run_data (idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE TABLE labels (
  run INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX labels_by_value ON labels (key, value, run);
CREATE TABLE events (
  position INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  claim INTEGER NOT NULL,
  previous INTEGER NOT NULL,
  payload TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_run ON events (run, sequence) WHERE sequence % 64 = 0;
CREATE TABLE counts (
  status TEXT NOT NULL,
  reason TEXT NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (status, reason)
) STRICT, WITHOUT ROWID;
CREATE TABLE workers (
  id TEXT PRIMARY KEY,
  seen_at INTEGER NOT NULL,
  json TEXT NOT NULL
) STRICT, WITHOUT ROWID;
)sql",
    R"sql(
CREATE TABLE circuits (target TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta (key, value) VALUES ('store_id', lower(hex(randomblob(16)))), ('log_mark', '0');
)sql",
};

std::int64_t ask_number(Connection& db, const char* sql) {
  auto cursor = db.query(sql);
  return cursor.next() ? cursor.number(0) : 0;
}

}  // namespace

int newest_version() { return static_cast<int>(kMigrations.size()); }

std::string migration_text(int version) {
  return kMigrations.at(static_cast<std::size_t>(version - 1));
}

int check_version(Connection& db) {
  const auto tables = ask_number(db, "SELECT count(*) FROM sqlite_schema");
  const auto application = ask_number(db, "PRAGMA application_id");
  const auto version = ask_number(db, "PRAGMA user_version");
  const bool is_ours = application == kApplicationId && version > 0;
  const bool is_empty = tables == 0 && application == 0 && version == 0;
  if (!HOLDFAST_GUARD("foreign_refused", is_ours || is_empty)) {
    throw StoreError(fmt::format("{} is a database of another program (application id {}, {} "
                                 "tables and indexes); name another file for the store",
                                 db.path(), application, tables),
                     true);
  }
  if (!HOLDFAST_GUARD("newer_refused", version <= newest_version())) {
    throw StoreError(
        fmt::format("the store {} has schema version {}, this build knows up to {}: use a newer "
                    "holdfast; nothing was changed",
                    db.path(), version, newest_version()),
        true);
  }
  return static_cast<int>(version);
}

MigrationReport migrate_schema(Connection& db) {
  MigrationReport report;
  report.before = check_version(db);
  for (int version = report.before + 1; version <= newest_version(); ++version) {
    HOLDFAST_FAILPOINT("migrate.before");
    db.execute("BEGIN IMMEDIATE");
    try {
      db.execute(migration_text(version));
      db.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId,
                             version));
      db.execute("COMMIT");
    } catch (...) {
      db.roll_back();
      throw;
    }
    HOLDFAST_FAILPOINT("migrate.after");
  }
  report.after = newest_version();
  return report;
}

}  // namespace holdfast::sqlite
