#include "store/postgres/pg_audit.hpp"

#include <fmt/format.h>

#include <array>

#include "core/invariants.hpp"

namespace holdfast::postgres {
namespace {

/// It reads tables whole.
constexpr Duration kAuditPatience = std::chrono::hours(1);
constexpr std::int64_t kPage = 2000;

constexpr char kOneMoment[] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
constexpr char kUnhurried[] =
    "SELECT set_config('statement_timeout', '0', true), set_config('enable_seqscan', 'on', true), "
    "set_config('enable_hashjoin', 'on', true), set_config('enable_mergejoin', 'on', true)";

/// Each row of its answer is a violation: the text.
struct AuditQuestion {
  const char* invariant;
  const char* sql;
};

constexpr std::array kAuditQuestions = {
    AuditQuestion{kFoundInvariant,
                  "SELECT format('run %s is missing: %s of its events are still there', e.run, "
                  "count(*)) FROM @.events e LEFT JOIN @.runs r ON r.id = e.run "
                  "WHERE r.id IS NULL GROUP BY e.run"},
    AuditQuestion{kFoundInvariant,
                  "SELECT format('run %s is missing: its request is still there, idempotency key "
                  "%s', d.run, coalesce(d.idempotency_key, 'none')) FROM @.run_data d "
                  "LEFT JOIN @.runs r ON r.id = d.run WHERE r.id IS NULL"},
    AuditQuestion{kFoundInvariant,
                  "SELECT format('run %s is missing: its label %s is still there', l.run, l.key) "
                  "FROM @.labels l LEFT JOIN @.runs r ON r.id = l.run WHERE r.id IS NULL"},
    AuditQuestion{kFoundInvariant,
                  "SELECT format('run %s: its request (run_data) is missing', r.id) FROM @.runs r "
                  "LEFT JOIN @.run_data d ON d.run = r.id WHERE d.run IS NULL"},
    AuditQuestion{kJournalInvariant,
                  "SELECT format('run %s: %s of its events are stored, numbered %s to %s, and its "
                  "newest is number %s', r.id, coalesce(e.number, 0), coalesce(e.first, 0), "
                  "coalesce(e.last, 0), r.last_sequence) FROM @.runs r LEFT JOIN (SELECT run, "
                  "count(*) AS number, min(sequence) AS first, max(sequence) AS last "
                  "FROM @.events GROUP BY run) e ON e.run = r.id WHERE r.last_sequence < 1 OR "
                  "(e.number, e.first, e.last) IS DISTINCT FROM "
                  "(r.last_sequence, 1::bigint, r.last_sequence)"},
    AuditQuestion{
        kJournalInvariant,
        "SELECT format('run %s: who follows all events meets event %s before the one "
        "that it stands behind', o.run, o.sequence) FROM (SELECT run, sequence, position, "
        "lag(position) OVER (PARTITION BY run ORDER BY sequence) AS before "
        "FROM @.events) o WHERE o.position <= o.before"},
    AuditQuestion{kJournalInvariant,
                  "SELECT format('%s events stand beyond the newest transaction: who follows all "
                  "events does not see them', count(*)) FROM @.events WHERE position >= (SELECT "
                  "value::bigint FROM @.meta WHERE key = 'position_base') + "
                  "(pg_snapshot_xmax(pg_current_snapshot())::text::bigint << 20) "
                  "HAVING count(*) > 0"},
    AuditQuestion{kOrphanInvariant,
                  "SELECT format('run %s: no reaper would find its lease in time', id) "
                  "FROM @.runs WHERE (lease_key IS NULL) <> (lease_until IS NULL) "
                  "OR lease_key > lease_until"},
    AuditQuestion{kJournalInvariant,
                  "SELECT format('run %s: its policy, number %s, is not stored', r.id, r.policy) "
                  "FROM @.runs r LEFT JOIN @.policies p ON p.id = r.policy "
                  "WHERE r.policy IS NOT NULL AND p.id IS NULL"},
};

constexpr char kPolicyTexts[] = "SELECT id, json FROM @.policies ORDER BY id";
constexpr char kJsonTexts[] =
    "SELECT row, id, error, fence, waiting, wait_deadline FROM @.runs WHERE row > $1::bigint AND "
    "(error IS NOT NULL OR fence IS NOT NULL OR waiting IS NOT NULL OR wait_deadline IS NOT NULL) "
    "ORDER BY row LIMIT $2::bigint";

/// Servers before PostgreSQL 16 cannot be asked whether a text is JSON.
class JsonAudit {
 public:
  explicit JsonAudit(std::vector<Finding>& findings) : findings_(findings) {}

  void check_policy(RowReader at) {
    const auto id = at.number();
    if (is_json(at.view())) return;
    say(kJournalInvariant, fmt::format("policy {}: is not JSON", id));
  }

  /// The row's number.
  std::int64_t check_run(RowReader at) {
    const auto row = at.number();
    const std::string id = at.text();
    if (const auto error = at.maybe_view(); error && !is_json(*error)) {
      say(kJournalInvariant, fmt::format("run {}: its error is not JSON", id));
    }
    if (const auto fence = at.maybe_view(); fence && !is_json(*fence)) {
      say(kLeaseAndFenceShape, fmt::format("run {}: its fence is not JSON", id));
    }
    const auto waiting = at.maybe_view();
    const Json wait = waiting ? Json::parse(*waiting, nullptr, false) : Json();
    if (wait.is_discarded()) {
      say(kOrphanInvariant, fmt::format("run {}: what it waits for is not JSON", id));
      return row;
    }
    const Json wanted = wait.is_object() ? wait.value("deadline", Json()) : Json();
    const Json looked_for = at.next_is_null() ? Json() : Json(at.number());
    if (wanted != looked_for) {
      say(kOrphanInvariant, fmt::format("run {}: the deadline that reapers look for is not the one "
                                        "of its wait",
                                        id));
    }
    return row;
  }

 private:
  static bool is_json(std::string_view text) { return Json::accept(text); }
  void say(const char* invariant, std::string text) {
    findings_.push_back({Finding::Grade::bad, invariant, std::move(text)});
  }

  std::vector<Finding>& findings_;
};

Result ask_unhurried(Connection& db, const char* sql, const Params& params = Params()) {
  db.send_text(db.in_schema(sql), params);
  return std::move(db.flush(kAuditPatience).front());
}

}  // namespace

std::vector<Finding> audit_pg_rows(Connection& db) {
  std::vector<Finding> findings;
  db.execute(kOneMoment);
  db.ask(kUnhurried);
  for (const auto& question : kAuditQuestions) {
    const Result result = ask_unhurried(db, question.sql);
    for (int row = 0; row < result.rows(); ++row) {
      findings.push_back({Finding::Grade::bad, question.invariant, result.text(row, 0)});
    }
  }
  JsonAudit json(findings);
  const Result policies = ask_unhurried(db, kPolicyTexts);
  for (int row = 0; row < policies.rows(); ++row) json.check_policy(RowReader(policies, row));
  for (std::int64_t after = 0;;) {
    const Result page = ask_unhurried(db, kJsonTexts, Params(after, kPage));
    for (int row = 0; row < page.rows(); ++row) after = json.check_run(RowReader(page, row));
    if (page.rows() < kPage) break;
  }
  db.execute("COMMIT");
  return findings;
}

}  // namespace holdfast::postgres
