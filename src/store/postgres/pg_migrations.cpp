// The schema, as numbered steps. A step is never edited after it landed: append the next one. What
// can be called has one text only, the newest: a step that changes it puts it in place of the old.
//
// `runs` is the hot row: narrow, rewritten at every step. What is long or seldom changes stands in
// `run_data`, the journal in `events`. Room is left in each page of `runs`, and no index has a
// column that a renewal or a step changes, so that these stay heap-only. Statuses are words, so
// that what a newer build wrote is shown as it is. Times are milliseconds since 1970 by the server.
//
// `lease_key` is what the index of leases is ordered by: never above `lease_until`.
//
// `events.position` orders the events of all runs for readers that follow them by a cursor: the
// number of the transaction times 2^20 and a running number, above `position_base` (see
// `settle_positions`). Readers go no further than the oldest transaction that still runs: what
// commits later stands behind it.
//
// `presences` says which workers hold the lock of a session, and since which start of the server: a
// lock that was lost with another server proves nothing.

#include "store/postgres/pg_migrations.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/guard.hpp"
#include "store/postgres/pg_enqueue_sql.hpp"

namespace holdfast::postgres {
namespace {

constexpr Duration kMigrationPatience = std::chrono::minutes(10);
constexpr int kTries = 8;

struct Step {
  std::string_view tables;
  bool changes_functions;
};

constexpr std::array kSteps = {
    Step{R"sql(
CREATE TABLE @.policies (id bigint PRIMARY KEY, json text NOT NULL);
CREATE SEQUENCE @.run_rows;
CREATE TABLE @.runs (
  id uuid PRIMARY KEY,
  row bigint NOT NULL DEFAULT nextval('@.run_rows'),
  agent text COLLATE "C" NOT NULL,
  queue text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  reason text COLLATE "C",
  origin text COLLATE "C" NOT NULL,
  rank bigint NOT NULL,
  created_at bigint NOT NULL,
  available_at bigint,
  started_at bigint,
  finished_at bigint,
  claimed_by text COLLATE "C",
  claim bigint NOT NULL,
  lease_until bigint,
  lease_key bigint,
  lease_lost_by_presence int NOT NULL,
  failing_since bigint,
  requeue_count int NOT NULL,
  max_requeues int NOT NULL,
  reclaim_count int NOT NULL,
  redrive_count int NOT NULL,
  iterations int NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  total_tokens bigint NOT NULL,
  cost_usd double precision NOT NULL,
  policy bigint,
  error text,
  fence text,
  waiting text,
  wait_deadline bigint,
  last_sequence bigint NOT NULL
);
CREATE UNIQUE INDEX runs_by_row ON @.runs (row);
CREATE INDEX runs_queued ON @.runs (agent, queue, rank, available_at, id)
  WHERE status = 'queued';
CREATE INDEX runs_leased ON @.runs (lease_key) WHERE lease_key IS NOT NULL;
CREATE INDEX runs_held ON @.runs (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX runs_waiting ON @.runs (wait_deadline)
  WHERE status IN ('waiting_for_approval', 'waiting_for_input');
CREATE INDEX runs_finished ON @.runs (finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_failed ON @.runs (finished_at, id) WHERE status = 'failed';
CREATE TABLE @.run_data (
  run uuid PRIMARY KEY,
  input text NOT NULL,
  answer text,
  definition text,
  idempotency_key text COLLATE "C",
  content_digest text NOT NULL
);
CREATE UNIQUE INDEX run_data_by_key ON @.run_data (idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE TABLE @.labels (
  run uuid NOT NULL,
  key text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  PRIMARY KEY (run, key)
);
CREATE INDEX labels_by_value ON @.labels (key, value, run);
CREATE TABLE @.events (
  run uuid NOT NULL,
  sequence bigint NOT NULL,
  position bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  claim bigint NOT NULL,
  operation text COLLATE "C",
  payload text NOT NULL,
  PRIMARY KEY (run, sequence)
);
CREATE UNIQUE INDEX events_by_position ON @.events (position);
CREATE TABLE @.workers (id text COLLATE "C" PRIMARY KEY, seen_at bigint NOT NULL, json text NOT NULL);
CREATE TABLE @.presences (
  worker text COLLATE "C" PRIMARY KEY,
  server bigint NOT NULL,
  lock_key bigint NOT NULL,
  state text COLLATE "C" NOT NULL
);
ALTER TABLE @.runs SET (
  fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE @.run_data SET (fillfactor = 90);
)sql",
         false},
    Step{"", true},
    Step{"ALTER TABLE @.runs SET (fillfactor = 45);", true},
    Step{"CREATE TABLE @.circuits (target text COLLATE \"C\" PRIMARY KEY, json text NOT NULL);",
         false},
};

/// In one statement: another process may be making them. Its own snapshot is older than what
/// `to_regclass` sees, so that tables without `meta` are another program's.
constexpr char kFindTables[] =
    "SELECT (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v')), to_regclass('@.meta') IS NOT NULL";
/// Whatever columns a `meta` has that another program made.
constexpr char kReadVersion[] =
    "SELECT to_jsonb(m) ->> 'value', to_regclass('@.runs') IS NOT NULL FROM @.meta m "
    "WHERE to_jsonb(m) ->> 'key' = 'schema_version'";
/// Ends with the transaction, so that it works behind a pooler, too.
constexpr char kMigrationLock[] =
    "SELECT pg_advisory_xact_lock(hashtextextended('holdfast migration @.', 0))";

constexpr char kPositionGap[] =
    "SELECT (SELECT max(position) FROM @.events) >= "
    "(SELECT value::bigint FROM @.meta WHERE key = 'position_base') + "
    "(pg_current_xact_id()::text::bigint << 20)";
constexpr char kRaisePositions[] =
    "UPDATE @.meta SET value = (((SELECT max(position) FROM @.events) / 1048576 + 1) * "
    "1048576)::text "
    "WHERE key = 'position_base' AND (SELECT max(position) FROM @.events) >= "
    "value::bigint + (pg_current_xact_id()::text::bigint << 20)";

void refuse_foreign(const Connection& db, std::int64_t tables) {
  throw StoreError(fmt::format("the schema {} of {} holds {} tables of another program; name "
                               "another with ?schema=NAME in the store's URL",
                               db.target().schema, db.target().shown, tables),
                   true);
}

/// What `meta` says, where it is Holdfast's: it and the first tables were made in one transaction.
std::optional<std::int64_t> stored_version(Connection& db) {
  const Result found = db.ask(kReadVersion);
  if (found.rows() != 1 || found.is_null(0, 0) || found.view(0, 1) != "t") return std::nullopt;
  const std::string_view text = found.view(0, 0);
  std::int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return version;
}

int read_version(Connection& db) {
  const Result found = db.ask(kFindTables, Params(db.target().schema));
  const auto tables = found.number(0, 0);
  if (found.view(0, 1) != "t") {
    if (!HOLDFAST_GUARD("foreign_refused", tables == 0)) refuse_foreign(db, tables);
    return 0;
  }
  const auto stored = stored_version(db);
  if (!HOLDFAST_GUARD("foreign_refused", stored.has_value())) refuse_foreign(db, tables);
  const std::int64_t version = stored.value_or(0);
  if (!HOLDFAST_GUARD("newer_refused", version <= newest_schema())) {
    throw StoreError(
        fmt::format("the store {} has schema version {}, this build knows up to {}: use a newer "
                    "holdfast; nothing was changed",
                    db.target().shown, version, newest_schema()),
        true);
  }
  return static_cast<int>(version);
}

/// The next step, if one is due: its number, or nothing.
int migrate_once(Connection& db) {
  // Each statement sees what was committed before it, also what the lock was waited for.
  db.execute("BEGIN ISOLATION LEVEL READ COMMITTED");
  // Before what is read with it.
  db.execute("SET LOCAL standard_conforming_strings = on");
  db.execute(db.in_schema(kMigrationLock), kMigrationPatience,
             "another process upgrades the schema");
  const int version = read_version(db) + 1;
  if (version > newest_schema()) {
    db.execute("COMMIT");
    return 0;
  }
  HOLDFAST_FAILPOINT("migrate.before");
  if (version == 1) {
    db.execute(
        db.in_schema("CREATE TABLE @.meta (key text COLLATE \"C\" PRIMARY KEY, value text NOT "
                     "NULL); INSERT INTO @.meta VALUES ('schema_version', '0'), "
                     "('position_base', '0')"));
  }
  db.execute(db.in_schema(schema_migration(version)), kMigrationPatience);
  db.execute(db.in_schema(
      fmt::format("UPDATE @.meta SET value = '{}' WHERE key = 'schema_version'", version)));
  db.execute("COMMIT", kMigrationPatience);
  HOLDFAST_FAILPOINT("migrate.after");
  return version;
}

bool has_schema(Connection& db) {
  static constexpr char kHasSchema[] = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
  return db.ask(kHasSchema, Params(db.target().schema)).rows() > 0;
}

/// `@` is followed by a dot everywhere but here.
std::string make_schema(const Connection& db) {
  return fmt::format("CREATE SCHEMA IF NOT EXISTS {}", db.target().schema);
}

}  // namespace

int schema_version(Connection& db) { return read_version(db); }

int newest_schema() { return static_cast<int>(kSteps.size()); }

std::string schema_migration(int version) {
  const Step& step = kSteps.at(static_cast<std::size_t>(version - 1));
  return std::string(step.tables) + (step.changes_functions ? kEnqueueSql : "");
}

MigrationReport migrate_schema(Connection& db, Env& env) {
  MigrationReport report;
  report.before = read_version(db);
  report.after = newest_schema();
  // Who finds it made asks for no lock and no right to make anything.
  for (int version = report.before, tries = 0; version < newest_schema();) {
    try {
      if (!has_schema(db)) db.execute(make_schema(db));
      const int done = migrate_once(db);
      version = done == 0 ? newest_schema() : done;
    } catch (const PgError& error) {
      db.roll_back();
      // Two that make the same thing at once: the later one finds it made.
      const bool is_race = error.is_collision() || error.state() == "42P07" ||
                           error.state() == "42P06" || error.state() == "XX000";
      if (!is_race || ++tries == kTries) throw;
      env.sleep_for(Duration(20 * tries), {});
    }
  }
  return report;
}

void settle_positions(Connection& db) {
  const Result gap = db.ask(kPositionGap);
  if (gap.is_null(0, 0) || gap.view(0, 0) != "t") return;
  db.ask(kRaisePositions);
}

}  // namespace holdfast::postgres
