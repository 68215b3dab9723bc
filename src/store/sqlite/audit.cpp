#include "store/sqlite/audit.hpp"

#include <array>

#include "core/invariants.hpp"

namespace holdfast::sqlite {
namespace {

/// Each row of its answer is a violation: the text.
struct AuditQuestion {
  const char* invariant;
  const char* sql;
};

constexpr std::array kAuditQuestions = {
    AuditQuestion{kFoundInvariant,
                  "SELECT 'the run of row ' || run || ' is missing: ' || count(*) || "
                  "' of its events are still there' FROM events "
                  "WHERE run NOT IN (SELECT row FROM runs) GROUP BY run"},
    AuditQuestion{kFoundInvariant,
                  "SELECT 'the run of row ' || run || ' is missing: its request is still there, "
                  "idempotency key ' || coalesce(idempotency_key, 'none') FROM run_data "
                  "WHERE run NOT IN (SELECT row FROM runs)"},
    AuditQuestion{kFoundInvariant,
                  "SELECT 'the run of row ' || run || ' is missing: its label ' || key || ' is "
                  "still there' FROM labels WHERE run NOT IN (SELECT row FROM runs)"},
    AuditQuestion{kFoundInvariant,
                  "SELECT 'run ' || id || ': its request (run_data) is missing' FROM runs "
                  "WHERE row NOT IN (SELECT run FROM run_data)"},
    AuditQuestion{
        kJournalInvariant,
        "SELECT 'run ' || coalesce(r.id, 'of row ' || e.run) || ': event ' || e.sequence || ' (' "
        "|| e.kind || ') does not stand behind event ' || (e.sequence - 1) || ' of its chain' "
        "FROM events e LEFT JOIN events p ON p.position = e.previous "
        "LEFT JOIN runs r ON r.row = e.run WHERE e.previous >= e.position OR "
        "CASE WHEN e.sequence = 1 THEN e.previous <> 0 "
        "ELSE p.run IS NOT e.run OR p.sequence IS NOT e.sequence - 1 END"},
    AuditQuestion{kJournalInvariant,
                  "SELECT 'run ' || r.id || ': its newest event, ' || r.last_sequence || ', is not "
                  "where its chain begins' FROM runs r "
                  "LEFT JOIN events e ON e.position = r.last_position "
                  "WHERE e.run IS NOT r.row OR e.sequence IS NOT r.last_sequence"},
    AuditQuestion{kJournalInvariant,
                  "SELECT 'run ' || r.id || ': ' || e.number || ' events of it are stored, its "
                  "chain has ' || r.last_sequence FROM "
                  "(SELECT run, count(*) AS number FROM events GROUP BY run) e "
                  "JOIN runs r ON r.row = e.run WHERE e.number <> r.last_sequence"},
    AuditQuestion{kJournalInvariant,
                  "SELECT 'run ' || id || ': its error is not JSON' FROM runs "
                  "WHERE error IS NOT NULL AND NOT json_valid(error)"},
    AuditQuestion{kLeaseAndFenceShape,
                  "SELECT 'run ' || id || ': its fence is not JSON' FROM runs "
                  "WHERE fence IS NOT NULL AND NOT json_valid(fence)"},
    AuditQuestion{kOrphanInvariant,
                  "SELECT 'run ' || id || ': what it waits for is not JSON' FROM runs "
                  "WHERE waiting IS NOT NULL AND NOT json_valid(waiting)"},
    AuditQuestion{kOrphanInvariant,
                  "SELECT 'run ' || id || ': the deadline that reapers look for is not the one of "
                  "its wait' FROM runs WHERE CASE WHEN waiting IS NULL THEN wait_deadline IS NOT "
                  "NULL WHEN json_valid(waiting) THEN wait_deadline IS NOT json_extract(waiting, "
                  "'$.deadline') ELSE 0 END"},
    AuditQuestion{kOrphanInvariant,
                  "SELECT 'run ' || id || ': no reaper would find its lease in time' FROM runs "
                  "WHERE (lease_key IS NULL) <> (lease_until IS NULL) OR lease_key > lease_until"},
    AuditQuestion{kJournalInvariant,
                  "SELECT 'run ' || id || ': its policy, number ' || policy || ', is not stored' "
                  "FROM runs WHERE policy IS NOT NULL "
                  "AND policy NOT IN (SELECT id FROM policies WHERE json_valid(json))"},
    AuditQuestion{
        "counts of runs",
        "SELECT 'of runs that are ' || status || CASE reason WHEN '' THEN '' ELSE ' (' || reason "
        "|| ')' END || ' the store counts ' || sum(counted) || ', there are ' || sum(present) "
        "FROM (SELECT status, reason, number AS counted, 0 AS present FROM counts UNION ALL "
        "SELECT status, coalesce(reason, ''), 0, count(*) FROM runs GROUP BY 1, 2) "
        "GROUP BY status, reason HAVING sum(counted) <> sum(present)"},
};

}  // namespace

std::vector<Finding> audit_rows(Connection& db) {
  std::vector<Finding> findings;
  for (const auto& question : kAuditQuestions) {
    auto cursor = db.query(question.sql);
    while (cursor.next()) {
      findings.push_back({Finding::Grade::bad, question.invariant, cursor.text(0)});
    }
  }
  return findings;
}

}  // namespace holdfast::sqlite
