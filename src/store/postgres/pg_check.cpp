#include "store/postgres/pg_check.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "store/postgres/pg_migrations.hpp"

namespace holdfast::postgres {
namespace {

using Grade = Finding::Grade;
using Findings = std::vector<Finding>;

constexpr int kOldestServer = 130000;

constexpr char kServer[] =
    "SELECT current_setting('server_version_num')::bigint, current_setting('server_version'), "
    "current_setting('server_encoding'), current_setting('synchronous_commit'), "
    "current_setting('fsync'), current_setting('synchronous_standby_names'), "
    "current_setting('transaction_read_only'), pg_is_in_recovery(), quote_ident(current_user), "
    "pg_backend_pid()::bigint, quote_ident(current_database())";
/// What of the schema there is, and what the role may not do with it.
constexpr char kRights[] =
    "SELECT c.relname, c.relkind = 'S', CASE WHEN c.relkind = 'S' THEN "
    "CASE WHEN has_sequence_privilege(c.oid, 'USAGE') THEN '' ELSE 'USAGE' END ELSE "
    "array_to_string(ARRAY(SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) p "
    "WHERE NOT has_table_privilege(c.oid, p)), ', ') END "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p', 'S') ORDER BY c.relname";
constexpr char kSchemaRights[] =
    "SELECT has_schema_privilege(n.oid, 'USAGE'), quote_ident(current_user), "
    "quote_ident(current_database()), has_database_privilege(current_database(), 'CREATE') "
    "FROM (SELECT 1) one LEFT JOIN pg_namespace n ON n.nspname = $1::text";
/// Room on the server, for the database and for the role; -1: no limit.
constexpr char kRoom[] =
    "SELECT current_setting('max_connections')::bigint, "
    "current_setting('superuser_reserved_connections')::bigint + "
    "coalesce(current_setting('reserved_connections', true), '0')::bigint, "
    "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
    "d.datconnlimit::bigint, (SELECT count(*) FROM pg_stat_activity a WHERE a.datid = d.oid "
    "AND a.backend_type = 'client backend'), "
    "r.rolconnlimit::bigint, (SELECT count(*) FROM pg_stat_activity a WHERE a.usesysid = r.oid "
    "AND a.backend_type = 'client backend') "
    "FROM pg_database d, pg_roles r WHERE d.datname = current_database() "
    "AND r.rolname = current_user";
constexpr char kVacuum[] =
    "SELECT current_setting('autovacuum'), current_setting('track_counts'), c.relname, "
    "coalesce(array_to_string(c.reloptions, ' '), ''), coalesce(s.n_live_tup, 0), "
    "coalesce(s.n_dead_tup, 0) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid WHERE n.nspname = $1::text "
    "AND c.relname IN ('runs', 'run_data', 'events') AND c.relkind IN ('r', 'p') "
    "ORDER BY c.relname = 'runs' DESC, c.relname";
/// What holds back the oldest snapshot, the oldest first. When a transaction of another role began
/// is hidden from those who may not read statistics; that it is there is not.
constexpr char kTransactions[] =
    "SELECT who, remedy, seconds FROM ("
    "SELECT format('session %s (%s, %s, %s)', pid, coalesce(usename, 'unknown'), "
    "coalesce(nullif(application_name, ''), 'no name'), coalesce(state, 'state hidden')) AS who, "
    "format('SELECT pg_terminate_backend(%s)', pid) AS remedy, "
    "extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds "
    "FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
    "AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL) AND datname = current_database() "
    "UNION ALL SELECT format('prepared transaction %L', gid), format('ROLLBACK PREPARED %L', gid), "
    "extract(epoch FROM clock_timestamp() - prepared)::bigint FROM pg_prepared_xacts "
    "WHERE database = current_database()) t "
    "WHERE seconds >= $1::bigint ORDER BY seconds DESC LIMIT 3";

Result ask_plainly(Connection& db, const char* sql, const Params& params = Params()) {
  // By no name: a pooler that nobody declared must not stand in the way of being found.
  db.send_text(db.in_schema(sql), params);
  return std::move(db.flush().front());
}

bool is_true(const Result& result, int column) { return result.view(0, column) == "t"; }

void check_version(const Result& server, Findings& findings) {
  const bool is_old = server.number(0, 0) < kOldestServer;
  findings.push_back({is_old ? Grade::bad : Grade::ok, "server",
                      fmt::format("PostgreSQL {}, schema version {}{}", server.view(0, 1),
                                  newest_schema(), is_old ? "; 13 or newer is needed" : "")});
  if (server.view(0, 2) != "UTF8") {
    findings.push_back(
        {Grade::bad, "encoding",
         fmt::format("the database is encoded in {}, texts could not be kept as they are; make one "
                     "with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
                     server.view(0, 2))});
  }
  const bool is_standby = is_true(server, 7);
  if (is_standby || server.view(0, 6) == "on") {
    findings.push_back(
        {Grade::bad, "writes",
         is_standby
             ? "the server is a standby and takes no writes; name the primary, or all hosts "
               "(postgresql://db1,db2/…) without another target_session_attrs than read-write"
             : fmt::format("the role may only read by its settings: ALTER ROLE {} SET "
                           "default_transaction_read_only = off, or the same for the database",
                           server.view(0, 8))});
  }
}

void check_durability(const Result& server, Findings& findings) {
  const auto commit = server.view(0, 3);
  std::string text = fmt::format("synchronous_commit {}, fsync {}", commit, server.view(0, 4));
  const std::size_t seen = text.size();
  if (commit == "off") {
    text += fmt::format(
        "; acknowledged writes may be lost when the server crashes: ALTER ROLE {} SET "
        "synchronous_commit = on",
        server.view(0, 8));
  } else if (commit == "local" && !server.view(0, 5).empty()) {
    text += fmt::format(
        "; acknowledged writes may be missing on the standby after a failover: ALTER ROLE {} SET "
        "synchronous_commit = on",
        server.view(0, 8));
  }
  if (server.view(0, 4) != "on") {
    text += "; a crash of its machine may damage the whole database: set fsync = on";
  }
  const Grade grade = text.size() == seen ? Grade::ok : Grade::warning;
  findings.push_back({grade, "durability", std::move(text)});
}

void check_rights(Connection& db, const Result& server, Findings& findings) {
  const std::string grants = missing_grants(db);
  if (grants.empty()) {
    findings.push_back({Grade::ok, "rights", fmt::format("role {} has all", server.view(0, 8))});
  } else {
    findings.push_back({Grade::bad, "rights",
                        fmt::format("role {} lacks rights; let the owner of the schema run: {}",
                                    server.view(0, 8), grants)});
  }
}

void check_room(Connection& db, const Result& server, Findings& findings) {
  // Behind a pooler its own limits count, which the server does not know.
  if (!db.target().has_sessions()) return;
  const Result room = ask_plainly(db, kRoom);
  if (room.rows() == 0) return;
  struct Limit {
    std::string what;
    std::string remedy;
    std::int64_t most;
    std::int64_t used;
  };
  const Limit limits[] = {
      {"the server", "raise max_connections, or put a pooler before it (pooler=transaction)",
       room.number(0, 0) - room.number(0, 1), room.number(0, 2)},
      {"the database", fmt::format("ALTER DATABASE {} CONNECTION LIMIT -1", server.view(0, 10)),
       room.number(0, 3), room.number(0, 4)},
      {"the role", fmt::format("ALTER ROLE {} CONNECTION LIMIT -1", server.view(0, 8)),
       room.number(0, 5), room.number(0, 6)}};
  bool is_tight = false;
  for (const Limit& limit : limits) {
    if (limit.most < 0 || limit.most - limit.used >= kMostSessions) continue;
    is_tight = true;
    findings.push_back(
        {Grade::warning, "connections",
         fmt::format("{} of {} that {} allows are in use, and a process has up to {}: {}",
                     limit.used, limit.most, limit.what, kMostSessions, limit.remedy)});
  }
  if (is_tight) return;
  findings.push_back({Grade::ok, "connections",
                      fmt::format("{} of {} in use, a process has up to {}", limits[0].used,
                                  limits[0].most, kMostSessions)});
}

void check_pooler(Connection& db, const Result& server, Findings& findings) {
  if (!db.target().has_sessions()) {
    findings.push_back(
        {Grade::ok, "pooler", "no notifications and no presence: leases and polling decide alone"});
    return;
  }
  // Who stands between makes up the number that it gives to its clients.
  const auto session = server.number(0, 9);
  if (session > 0 && session != db.process_number()) {
    findings.push_back(
        {Grade::warning, "pooler",
         "a pooler stands before the server and is not declared; if it lends sessions for single "
         "transactions, add pooler=transaction to the store's URL (in session mode all is well)"});
  }
}

void check_vacuum(Connection& db, const PgCheckLimits& limits, Findings& findings) {
  const std::string& schema = db.target().schema;
  const Result tables = ask_plainly(db, kVacuum, Params(schema));
  const std::size_t before = findings.size();
  const auto warn = [&](std::string text) {
    findings.push_back({Grade::warning, "autovacuum", std::move(text)});
  };
  std::string seen;
  for (int row = 0; row < tables.rows(); ++row) {
    if (row == 0 && (tables.view(0, 0) != "on" || tables.view(0, 1) != "on")) {
      warn(
          "is off on the server: the queue gets slower without end; set autovacuum = on and "
          "track_counts = on");
    }
    const std::string name = fmt::format("{}.{}", schema, tables.view(row, 2));
    const auto options = tables.view(row, 3);
    if (options.find("autovacuum_enabled=false") != std::string_view::npos ||
        options.find("autovacuum_enabled=off") != std::string_view::npos) {
      warn(fmt::format("is off for {}: ALTER TABLE {} RESET (autovacuum_enabled)", name, name));
    }
    if (tables.view(row, 2) == "runs" &&
        (options.find("fillfactor=") == std::string_view::npos ||
         options.find("autovacuum_vacuum_scale_factor=") == std::string_view::npos)) {
      warn(
          fmt::format("{} lost its own settings: ALTER TABLE {} SET (fillfactor = 45, "
                      "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)",
                      name, name));
    }
    const auto live = tables.number(row, 4);
    const auto dead = tables.number(row, 5);
    if (dead > limits.dead_rows && dead > live / 4) {
      warn(
          fmt::format("does not keep up: {} has {} dead rows beside {} live ones; end old "
                      "transactions, then VACUUM {}",
                      name, dead, live, name));
    }
    if (tables.view(row, 2) == "runs") seen = fmt::format("{} dead rows in {}", dead, name);
  }
  if (findings.size() == before) {
    findings.push_back({Grade::ok, "autovacuum", "on; " + seen});
  }
}

void check_transactions(Connection& db, const PgCheckLimits& limits, Findings& findings) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(limits.old_transaction).count();
  const Result old = ask_plainly(db, kTransactions, Params(std::int64_t{seconds}));
  for (int row = 0; row < old.rows(); ++row) {
    findings.push_back(
        {Grade::warning, "transactions",
         fmt::format("{} has one open for {} s: vacuum and `events --all` wait for it; end it, or "
                     "{}",
                     clean_utf8(old.view(row, 0)), old.number(row, 2),
                     clean_utf8(old.view(row, 1)))});
  }
}

}  // namespace

std::string missing_grants(Connection& db) {
  const std::string& schema = db.target().schema;
  const Result found = ask_plainly(db, kSchemaRights, Params(schema));
  const std::string role(found.view(0, 1));
  if (found.is_null(0, 0)) {
    if (found.view(0, 3) == "t") return "";
    return fmt::format("GRANT CREATE ON DATABASE {} TO {};", found.view(0, 2), role);
  }
  std::string grants;
  const auto add = [&](const std::string& grant) {
    grants += fmt::format("{}GRANT {} TO {};", grants.empty() ? "" : " ", grant, role);
  };
  if (found.view(0, 0) != "t") add(fmt::format("USAGE ON SCHEMA {}", schema));
  const Result parts = ask_plainly(db, kRights, Params(schema));
  for (int row = 0; row < parts.rows(); ++row) {
    if (parts.view(row, 2).empty()) continue;
    add(fmt::format("{} ON {} {}.{}", parts.view(row, 2),
                    parts.view(row, 1) == "t" ? "SEQUENCE" : "TABLE", schema, parts.view(row, 0)));
  }
  return grants;
}

std::vector<Finding> check_pg_server(Connection& db, const PgCheckLimits& limits) {
  Findings findings;
  const Result server = ask_plainly(db, kServer);
  check_version(server, findings);
  check_durability(server, findings);
  check_rights(db, server, findings);
  check_room(db, server, findings);
  check_pooler(db, server, findings);
  check_vacuum(db, limits, findings);
  check_transactions(db, limits, findings);
  return findings;
}

}  // namespace holdfast::postgres
