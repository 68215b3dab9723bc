#pragma once

// Every statement of the store, by name. `runs` is read in the order of kRunColumns (run_row.cpp).

namespace holdfast::sqlite {

#define HOLDFAST_RUN_COLUMNS                                                                     \
  "row, id, agent, queue, status, reason, origin, priority, created_at, available_at, "          \
  "started_at, finished_at, claimed_by, claim, lease_until, lease_key, lease_lost_by_presence, " \
  "failing_since, requeue_count, max_requeues, reclaim_count, redrive_count, iterations, "       \
  "prompt_tokens, completion_tokens, total_tokens, cost_usd, policy, error, fence, waiting, "    \
  "last_sequence, last_position"

// Rows
inline constexpr char kLoad[] = "SELECT " HOLDFAST_RUN_COLUMNS " FROM runs WHERE id = ?1";
inline constexpr char kNewestId[] = "SELECT id FROM runs ORDER BY id DESC LIMIT 1";
inline constexpr char kLoadData[] =
    "SELECT input, answer, definition, idempotency_key FROM run_data WHERE run = ?1";
inline constexpr char kLoadLabels[] = "SELECT key, value FROM labels WHERE run = ?1";
inline constexpr char kFindKey[] =
    "SELECT r.id, d.content_digest FROM run_data d JOIN runs r ON r.row = d.run "
    "WHERE d.idempotency_key = ?1";
inline constexpr char kContentDigest[] = "SELECT content_digest FROM run_data WHERE run = ?1";
inline constexpr char kInsert[] =
    "INSERT INTO runs (id, agent, queue, status, reason, origin, priority, created_at, "
    "available_at, started_at, finished_at, claimed_by, claim, lease_until, lease_key, "
    "lease_lost_by_presence, failing_since, requeue_count, max_requeues, reclaim_count, "
    "redrive_count, iterations, prompt_tokens, completion_tokens, total_tokens, cost_usd, policy, "
    "error, fence, waiting, wait_deadline, last_sequence, last_position) VALUES "
    "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14, ?15, ?16, ?17, ?18, ?19, "
    "?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)";
inline constexpr char kInsertData[] =
    "INSERT INTO run_data (run, input, definition, idempotency_key, content_digest) "
    "VALUES (?1, ?2, ?3, ?4, ?5)";
inline constexpr char kInsertLabel[] = "INSERT INTO labels (run, key, value) VALUES (?1, ?2, ?3)";
/// What a step changes: no index is touched.
inline constexpr char kUpdateStep[] =
    "UPDATE runs SET lease_until = ?2, iterations = ?3, prompt_tokens = ?4, "
    "completion_tokens = ?5, total_tokens = ?6, cost_usd = ?7, fence = ?8, last_sequence = ?9, "
    "last_position = ?10 WHERE row = ?1";
inline constexpr char kUpdate[] =
    "UPDATE runs SET status = ?2, reason = ?3, origin = ?4, available_at = ?5, started_at = ?6, "
    "finished_at = ?7, claimed_by = ?8, claim = ?9, lease_until = ?10, lease_key = ?11, "
    "lease_lost_by_presence = ?12, failing_since = ?13, requeue_count = ?14, max_requeues = ?15, "
    "reclaim_count = ?16, redrive_count = ?17, iterations = ?18, prompt_tokens = ?19, "
    "completion_tokens = ?20, total_tokens = ?21, cost_usd = ?22, policy = ?23, error = ?24, "
    "fence = ?25, waiting = ?26, wait_deadline = ?27, last_sequence = ?28, last_position = ?29 "
    "WHERE row = ?1";
inline constexpr char kUpdateAnswer[] = "UPDATE run_data SET answer = ?2 WHERE run = ?1";
inline constexpr char kUpdateDefinition[] = "UPDATE run_data SET definition = ?2 WHERE run = ?1";
inline constexpr char kEraseRun[] = "DELETE FROM runs WHERE row = ?1";
inline constexpr char kEraseData[] = "DELETE FROM run_data WHERE run = ?1";
inline constexpr char kEraseLabels[] = "DELETE FROM labels WHERE run = ?1";
inline constexpr char kEraseEvent[] = "DELETE FROM events WHERE position = ?1";

// Policies
inline constexpr char kLoadPolicy[] = "SELECT json FROM policies WHERE id = ?1";
inline constexpr char kFindPolicy[] = "SELECT id FROM policies WHERE json = ?1";
inline constexpr char kInsertPolicy[] = "INSERT INTO policies (json) VALUES (?1)";

// Events
inline constexpr char kInsertEvent[] =
    "INSERT INTO events (position, run, sequence, kind, at, claim, previous, payload) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
inline constexpr char kLastPosition[] = "SELECT max(position) FROM events";
inline constexpr char kEventAt[] =
    "SELECT sequence, kind, at, claim, payload, previous FROM events WHERE position = ?1";
inline constexpr char kFindChain[] =
    "SELECT row, last_position, last_sequence FROM runs WHERE id = ?1";
inline constexpr char kChainFrom[] =
    "SELECT position FROM events INDEXED BY events_by_run WHERE run = ?1 AND sequence >= ?2 "
    "AND sequence % 64 = 0 ORDER BY sequence LIMIT 1";
inline constexpr char kAllEvents[] =
    "SELECT e.sequence, e.kind, e.at, e.claim, e.payload, e.position, r.id FROM events e "
    "JOIN runs r ON r.row = e.run WHERE e.position > ?1 ORDER BY e.position LIMIT ?2";
inline constexpr char kLastEventAt[] =
    "SELECT e.at FROM runs r JOIN events e ON e.position = r.last_position WHERE r.row = ?1";

// The queue: seeks over groups of one agent, queue and priority
inline constexpr char kFirstQueue[] =
    "SELECT queue FROM runs INDEXED BY runs_queued WHERE status = 'queued' AND agent = ?1 "
    "ORDER BY queue LIMIT 1";
inline constexpr char kNextQueue[] =
    "SELECT queue FROM runs INDEXED BY runs_queued WHERE status = 'queued' AND agent = ?1 "
    "AND queue > ?2 ORDER BY queue LIMIT 1";
inline constexpr char kNextPriority[] =
    "SELECT priority FROM runs INDEXED BY runs_queued WHERE status = 'queued' AND agent = ?1 "
    "AND queue = ?2 AND priority < ?3 ORDER BY priority DESC LIMIT 1";
inline constexpr char kDueInGroup[] =
    "SELECT id, available_at FROM runs INDEXED BY runs_queued WHERE status = 'queued' "
    "AND agent = ?1 AND queue = ?2 AND priority = ?3 AND available_at <= ?4 "
    "ORDER BY available_at, id LIMIT ?5";
inline constexpr char kNextDueInGroup[] =
    "SELECT available_at FROM runs INDEXED BY runs_queued WHERE status = 'queued' "
    "AND agent = ?1 AND queue = ?2 AND priority = ?3 AND available_at > ?4 "
    "ORDER BY available_at LIMIT 1";

// Leases, waits and ends
inline constexpr char kLeasedBy[] =
    "SELECT id FROM runs INDEXED BY runs_held WHERE claimed_by = ?1 AND status = 'running' "
    "AND lease_until IS NOT NULL ORDER BY row";
inline constexpr char kLeaseHolders[] =
    "SELECT DISTINCT claimed_by FROM runs INDEXED BY runs_held WHERE claimed_by IS NOT NULL "
    "AND lease_until IS NOT NULL";
inline constexpr char kLeasesByKey[] =
    "SELECT row, id, lease_until, lease_key FROM runs INDEXED BY runs_leased "
    "WHERE lease_key <= ?1 AND status = 'running' ORDER BY lease_key, row LIMIT ?2";
inline constexpr char kSetLeaseKey[] = "UPDATE runs SET lease_key = ?2 WHERE row = ?1";
inline constexpr char kStale[] =
    "SELECT id FROM runs INDEXED BY runs_leased WHERE lease_key <= ?1 AND lease_until <= ?1 "
    "AND status = 'running' ORDER BY lease_until, row LIMIT ?2";
inline constexpr char kOverdueWaits[] =
    "SELECT id FROM runs INDEXED BY runs_waiting WHERE waiting IS NOT NULL "
    "AND wait_deadline <= ?1 AND status IN ('waiting_for_approval', 'waiting_for_input') "
    "ORDER BY wait_deadline, row LIMIT ?2";
inline constexpr char kEnded[] =
    "SELECT id FROM runs INDEXED BY runs_finished WHERE finished_at IS NOT NULL "
    "AND finished_at <= ?1 AND status IN ('completed', 'failed', 'cancelled') "
    "ORDER BY finished_at, id LIMIT ?2";
inline constexpr char kUnfinishedWaiting[] =
    "SELECT row, id FROM runs INDEXED BY runs_waiting WHERE waiting IS NOT NULL "
    "AND status IN ('waiting_for_approval', 'waiting_for_input')";
inline constexpr char kUnfinishedRunning[] =
    "SELECT row, id FROM runs INDEXED BY runs_held WHERE claimed_by IS NOT NULL "
    "AND status = 'running' AND lease_until IS NULL";

// Another boot: every holder of a lease is gone, and every writing work has ended
inline constexpr char kExpireAllLeases[] =
    "UPDATE runs SET lease_until = 0, lease_key = 0, lease_lost_by_presence = 1 "
    "WHERE lease_key IS NOT NULL";
inline constexpr char kEndAllFences[] =
    "UPDATE runs SET fence = json_set(fence, '$.deadline', 0) WHERE fence IS NOT NULL";
inline constexpr char kCloseAllCircuits[] = "DELETE FROM circuits";

// Counts
inline constexpr char kAddCount[] =
    "INSERT INTO counts (status, reason, number) VALUES (?1, ?2, ?3) "
    "ON CONFLICT DO UPDATE SET number = number + excluded.number";
inline constexpr char kCounts[] = "SELECT status, reason, number FROM counts WHERE number <> 0";
inline constexpr char kQueuedGroups[] =
    "SELECT agent, priority, sum(available_at <= ?1), sum(available_at > ?1), min(available_at) "
    "FROM runs INDEXED BY runs_queued WHERE status = 'queued' GROUP BY agent, queue, priority";
inline constexpr char kLeaseCounts[] =
    "SELECT count(*), sum(lease_until <= ?1) FROM runs INDEXED BY runs_leased "
    "WHERE lease_key IS NOT NULL AND status = 'running'";

// Processes and the store itself
inline constexpr char kReportWorker[] =
    "INSERT INTO workers (id, seen_at, json) VALUES (?1, ?2, ?3) "
    "ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at, json = excluded.json";
inline constexpr char kForgetWorker[] = "DELETE FROM workers WHERE id = ?1";
inline constexpr char kWorkers[] = "SELECT id, seen_at, json FROM workers ORDER BY id";
inline constexpr char kFindCircuit[] = "SELECT json FROM circuits WHERE target = ?1";
inline constexpr char kSaveCircuit[] =
    "INSERT INTO circuits (target, json) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET json = "
    "excluded.json";
inline constexpr char kCircuits[] = "SELECT target, json FROM circuits ORDER BY target";
inline constexpr char kGetStoreId[] = "SELECT value FROM meta WHERE key = 'store_id'";
inline constexpr char kMarkLog[] =
    "UPDATE meta SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE key = 'log_mark'";
inline constexpr char kGetMeta[] = "SELECT value FROM meta WHERE key = ?1";
inline constexpr char kSetMeta[] =
    "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = "
    "excluded.value";

}  // namespace holdfast::sqlite
