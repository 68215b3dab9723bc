#pragma once

// Every statement of the store, by name; `@.` stands for the schema. `runs` is read in the order of
// the columns below.
//
// Beyond plain SQL: FOR UPDATE SKIP LOCKED, arrays with unnest, recursive queries that seek over
// the groups of an index, and the numbers and snapshots of transactions for the order of events.

namespace holdfast::postgres {

#define HOLDFAST_PG_RUN(alias)                                                                     \
  alias "row, " alias "id, " alias "agent, " alias "queue, " alias "status, " alias                \
        "reason, " alias "origin, " alias "rank, " alias "created_at, " alias                      \
        "available_at, " alias "started_at, " alias "finished_at, " alias "claimed_by, " alias     \
        "claim, " alias "lease_until, " alias "lease_key, " alias "lease_lost_by_presence, " alias \
        "failing_since, " alias "requeue_count, " alias "max_requeues, " alias                     \
        "reclaim_count, " alias "redrive_count, " alias "iterations, " alias                       \
        "prompt_tokens, " alias "completion_tokens, " alias "total_tokens, " alias                 \
        "cost_usd, " alias "policy, " alias "error, " alias "fence, " alias "waiting, " alias      \
        "last_sequence"

/// Behind a run `r` joined with its data `d`; the definition last, so that listings leave it out.
#define HOLDFAST_PG_COLD                                                                        \
  ", d.input, d.answer, d.idempotency_key, (SELECT json_object_agg(l.key, l.value)::text FROM " \
  "@.labels l WHERE l.run = r.id)"

/// The server's clock in milliseconds.
#define HOLDFAST_PG_CLOCK "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
/// The same as it stood when the statement came, fit for an index. `$n` takes its place in tests.
#define HOLDFAST_PG_NOW(n) \
  "coalesce($" n "::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)"

// Transactions
/// Time limits well under a lease; a client that freezes in the midst of a transaction lets its
/// locks go; and plans that are made once and do not change while the tables grow. For a session,
/// or behind a pooler for one transaction.
#define HOLDFAST_PG_SETTINGS(is_local)                                     \
  "SELECT set_config('statement_timeout', '8000', " is_local               \
  "), set_config('lock_timeout', '4000', " is_local                        \
  "), set_config('idle_in_transaction_session_timeout', '5000', " is_local \
  "), set_config('plan_cache_mode', 'force_generic_plan', " is_local       \
  "), set_config('standard_conforming_strings', 'on', " is_local           \
  "), set_config('enable_seqscan', 'off', " is_local                       \
  "), set_config('enable_hashjoin', 'off', " is_local                      \
  "), set_config('enable_mergejoin', 'off', " is_local "), set_config('jit', 'off', " is_local ")"
inline constexpr char kSessionSettings[] = HOLDFAST_PG_SETTINGS("false");
inline constexpr char kLocalSettings[] = HOLDFAST_PG_SETTINGS("true");
/// For what reads a table whole.
inline constexpr char kFreePlans[] =
    "SELECT set_config('statement_timeout', '60000', true), set_config('enable_seqscan', 'on', "
    "true), set_config('enable_hashjoin', 'on', true), set_config('enable_mergejoin', 'on', true)";
inline constexpr char kBegin[] = "BEGIN";
inline constexpr char kClock[] = "SELECT " HOLDFAST_PG_CLOCK;
/// A commit is never cut short: one that was may stand all the same.
inline constexpr char kUntimed[] = "SELECT set_config('statement_timeout', '0', true)";
inline constexpr char kCommit[] = "COMMIT";

// Rows
inline constexpr char kLockRuns[] = "SELECT " HOLDFAST_PG_RUN(
    "r.") " FROM @.runs r WHERE r.id = ANY($1::uuid[]) ORDER BY r.id FOR UPDATE";
inline constexpr char kSeeRuns[] =
    "SELECT " HOLDFAST_PG_RUN("r.") " FROM @.runs r WHERE r.id = ANY($1::uuid[]) ORDER BY r.id";
inline constexpr char kLoadCold[] =
    "SELECT d.input, d.answer, d.idempotency_key, "
    "(SELECT json_object_agg(l.key, l.value)::text FROM @.labels l WHERE l.run = d.run), "
    "d.definition FROM @.run_data d WHERE d.run = $1::uuid";
inline constexpr char kFindRun[] = "SELECT " HOLDFAST_PG_RUN("r.") HOLDFAST_PG_COLD
    ", d.definition, " HOLDFAST_PG_CLOCK
    " FROM @.runs r JOIN @.run_data d ON d.run = r.id "
    "WHERE r.id = $1::uuid";
inline constexpr char kFindKeys[] =
    "SELECT idempotency_key, run, content_digest FROM @.run_data "
    "WHERE idempotency_key = ANY($1::text[])";
inline constexpr char kContentDigest[] =
    "SELECT content_digest FROM @.run_data WHERE run = $1::uuid";

#define HOLDFAST_PG_WRITTEN                                                                   \
  "id, agent, queue, status, reason, origin, rank, created_at, available_at, started_at, "    \
  "finished_at, claimed_by, claim, lease_until, lease_key, lease_lost_by_presence, "          \
  "failing_since, requeue_count, max_requeues, reclaim_count, redrive_count, iterations, "    \
  "prompt_tokens, completion_tokens, total_tokens, cost_usd, policy, error, fence, waiting, " \
  "wait_deadline, last_sequence"
// Arrays become rows in the list of columns and not behind FROM, where each would be kept first.
#define HOLDFAST_PG_ARRAYS                                                               \
  "unnest($1::uuid[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), "     \
  "unnest($5::text[]), unnest($6::text[]), unnest($7::bigint[]), unnest($8::bigint[]), " \
  "unnest($9::bigint[]), unnest($10::bigint[]), unnest($11::bigint[]), "                 \
  "unnest($12::text[]), unnest($13::bigint[]), unnest($14::bigint[]), "                  \
  "unnest($15::bigint[]), unnest($16::bigint[]), unnest($17::bigint[]), "                \
  "unnest($18::bigint[]), unnest($19::bigint[]), unnest($20::bigint[]), "                \
  "unnest($21::bigint[]), unnest($22::bigint[]), unnest($23::bigint[]), "                \
  "unnest($24::bigint[]), unnest($25::bigint[]), unnest($26::float8[]), "                \
  "unnest($27::bigint[]), unnest($28::text[]), unnest($29::text[]), "                    \
  "unnest($30::text[]), unnest($31::bigint[]), unnest($32::bigint[])"
inline constexpr char kInsertRuns[] =
    "INSERT INTO @.runs (" HOLDFAST_PG_WRITTEN ") SELECT " HOLDFAST_PG_ARRAYS;
/// What is on the queue for the first time: everything else is as it begins.
inline constexpr char kInsertQueued[] =
    "INSERT INTO @.runs (status, origin, claim, lease_lost_by_presence, requeue_count, "
    "reclaim_count, redrive_count, iterations, prompt_tokens, completion_tokens, total_tokens, "
    "cost_usd, last_sequence, id, agent, queue, rank, created_at, available_at, max_requeues, "
    "policy) SELECT 'queued', 'queued', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, unnest($1::uuid[]), "
    "unnest($2::text[]), unnest($3::text[]), unnest($4::bigint[]), unnest($5::bigint[]), "
    "unnest($6::bigint[]), unnest($7::bigint[]), unnest($8::bigint[])";
inline constexpr char kUpdateRuns[] =
    "UPDATE @.runs r SET status = u.status, reason = u.reason, origin = u.origin, "
    "available_at = u.available_at, started_at = u.started_at, finished_at = u.finished_at, "
    "claimed_by = u.claimed_by, claim = u.claim, lease_until = u.lease_until, "
    "lease_key = u.lease_key, lease_lost_by_presence = u.lease_lost_by_presence, "
    "failing_since = u.failing_since, requeue_count = u.requeue_count, "
    "max_requeues = u.max_requeues, reclaim_count = u.reclaim_count, "
    "redrive_count = u.redrive_count, iterations = u.iterations, "
    "prompt_tokens = u.prompt_tokens, completion_tokens = u.completion_tokens, "
    "total_tokens = u.total_tokens, cost_usd = u.cost_usd, policy = u.policy, error = u.error, "
    "fence = u.fence, waiting = u.waiting, wait_deadline = u.wait_deadline, "
    "last_sequence = u.last_sequence FROM (SELECT " HOLDFAST_PG_ARRAYS ") AS u(" HOLDFAST_PG_WRITTEN
    ") WHERE r.id = u.id";
/// What a claim or an ordinary end changes.
inline constexpr char kUpdateTurns[] =
    "UPDATE @.runs r SET status = u.status, reason = u.reason, available_at = u.available_at, "
    "started_at = u.started_at, finished_at = u.finished_at, claimed_by = u.claimed_by, "
    "claim = u.claim, lease_until = u.lease_until, lease_key = u.lease_key, "
    "iterations = u.iterations, prompt_tokens = u.prompt_tokens, "
    "completion_tokens = u.completion_tokens, total_tokens = u.total_tokens, "
    "cost_usd = u.cost_usd, policy = u.policy, fence = u.fence, last_sequence = u.last_sequence "
    "FROM (SELECT unnest($1::uuid[]), unnest($2::text[]), unnest($3::text[]), "
    "unnest($4::bigint[]), unnest($5::bigint[]), unnest($6::bigint[]), unnest($7::text[]), "
    "unnest($8::bigint[]), unnest($9::bigint[]), unnest($10::bigint[]), unnest($11::bigint[]), "
    "unnest($12::bigint[]), unnest($13::bigint[]), unnest($14::bigint[]), unnest($15::float8[]), "
    "unnest($16::bigint[]), unnest($17::text[]), unnest($18::bigint[])) "
    "AS u(id, status, reason, available_at, started_at, finished_at, claimed_by, claim, "
    "lease_until, lease_key, iterations, prompt_tokens, completion_tokens, total_tokens, cost_usd, "
    "policy, fence, last_sequence) WHERE r.id = u.id";
/// What a step or a renewal changes: no index is touched.
inline constexpr char kUpdateSteps[] =
    "UPDATE @.runs r SET lease_until = u.lease_until, iterations = u.iterations, "
    "prompt_tokens = u.prompt_tokens, completion_tokens = u.completion_tokens, "
    "total_tokens = u.total_tokens, cost_usd = u.cost_usd, fence = u.fence, "
    "last_sequence = u.last_sequence FROM (SELECT unnest($1::uuid[]), unnest($2::bigint[]), "
    "unnest($3::bigint[]), unnest($4::bigint[]), unnest($5::bigint[]), unnest($6::bigint[]), "
    "unnest($7::float8[]), unnest($8::text[]), unnest($9::bigint[])) "
    "AS u(id, lease_until, iterations, prompt_tokens, completion_tokens, total_tokens, cost_usd, "
    "fence, last_sequence) WHERE r.id = u.id";
inline constexpr char kInsertData[] =
    "INSERT INTO @.run_data (run, input, answer, definition, idempotency_key, content_digest) "
    "SELECT unnest($1::uuid[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), "
    "unnest($5::text[]), unnest($6::text[])";
inline constexpr char kInsertLabels[] =
    "INSERT INTO @.labels (run, key, value) "
    "SELECT unnest($1::uuid[]), unnest($2::text[]), unnest($3::text[])";
inline constexpr char kUpdateAnswers[] =
    "UPDATE @.run_data d SET answer = u.answer FROM (SELECT unnest($1::uuid[]), "
    "unnest($2::text[])) "
    "AS u(id, answer) WHERE d.run = u.id";
inline constexpr char kUpdateDefinitions[] =
    "UPDATE @.run_data d SET definition = u.definition FROM (SELECT unnest($1::uuid[]), "
    "unnest($2::text[])) "
    "AS u(id, definition) WHERE d.run = u.id";
inline constexpr char kEraseRuns[] = "DELETE FROM @.runs WHERE id = ANY($1::uuid[])";
inline constexpr char kEraseData[] = "DELETE FROM @.run_data WHERE run = ANY($1::uuid[])";
inline constexpr char kEraseLabels[] = "DELETE FROM @.labels WHERE run = ANY($1::uuid[])";
inline constexpr char kEraseEvents[] = "DELETE FROM @.events WHERE run = ANY($1::uuid[])";

// Policies, named by their content
inline constexpr char kLoadPolicies[] =
    "SELECT id, json FROM @.policies WHERE id = ANY($1::bigint[])";
inline constexpr char kInsertPolicies[] =
    "INSERT INTO @.policies (id, json) SELECT * FROM unnest($1::bigint[], $2::text[]) "
    "ON CONFLICT DO NOTHING";

// Events
/// The event before may be of a transaction that got its number later and was done sooner: then the
/// position is taken from it, which is refused as a double, and tried again with a later number.
inline constexpr char kInsertEvents[] =
    "INSERT INTO @.events (position, run, sequence, kind, at, claim, operation, payload) "
    "SELECT greatest(b.base + u.number, CASE WHEN u.sequence > 1 THEN (SELECT p.position FROM "
    "@.events p WHERE p.run = u.run AND p.sequence = u.sequence - 1) END), u.run, u.sequence, "
    "u.kind, $8::bigint, u.claim, u.operation, "
    "u.payload FROM (SELECT value::bigint + (pg_current_xact_id()::text::bigint << 20) AS base "
    "FROM @.meta WHERE key = 'position_base') b, (SELECT unnest($1::bigint[]), unnest($2::uuid[]), "
    "unnest($3::bigint[]), unnest($4::text[]), unnest($5::bigint[]), unnest($6::text[]), "
    "unnest($7::text[])) "
    "AS u(number, run, sequence, kind, claim, operation, payload)";
inline constexpr char kJournal[] =
    "SELECT sequence, kind, at, claim, payload FROM @.events WHERE run = $1::uuid "
    "AND claim >= $2::bigint ORDER BY sequence";
inline constexpr char kEvents[] =
    "SELECT sequence, kind, at, claim, payload FROM @.events WHERE run = $1::uuid "
    "AND sequence > $2::bigint ORDER BY sequence LIMIT $3::bigint";
/// Nothing of a transaction that began before one which still runs: that one may stand before it.
inline constexpr char kAllEvents[] =
    "SELECT e.sequence, e.kind, e.at, e.claim, e.payload, e.position, e.run FROM @.events e "
    "WHERE e.position > $1::bigint AND e.position < (SELECT value::bigint FROM @.meta "
    "WHERE key = 'position_base') + "
    "(pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20) "
    "ORDER BY e.position LIMIT $2::bigint";
/// Whether something stands there that such a one holds back.
inline constexpr char kHeldEvents[] =
    "SELECT EXISTS (SELECT 1 FROM @.events WHERE position > $1::bigint)";
inline constexpr char kHasOperation[] =
    "SELECT 1 FROM @.events WHERE run = $1::uuid AND operation = $2::text LIMIT 1";
inline constexpr char kLastEventAt[] =
    "SELECT at FROM @.events WHERE run = $1::uuid ORDER BY sequence DESC LIMIT 1";

// The queue: seeks over groups of one agent, queue and rank (the priority, negated)
#define HOLDFAST_PG_GROUPS                                                                    \
  "WITH RECURSIVE walk(agent, queue, rank) AS ("                                              \
  "SELECT s.agent, s.queue, s.rank FROM unnest($1::text[]) a(name), LATERAL (SELECT agent, "  \
  "queue, rank FROM @.runs WHERE status = 'queued' AND agent = a.name ORDER BY queue, rank "  \
  "LIMIT 1) s UNION ALL SELECT s.agent, s.queue, s.rank FROM walk w, LATERAL (SELECT agent, " \
  "queue, rank FROM @.runs WHERE status = 'queued' AND agent = w.agent "                      \
  "AND (queue, rank) > (w.queue, w.rank) ORDER BY queue, rank LIMIT 1) s), "                  \
  "wanted AS (SELECT * FROM walk WHERE $2::text[] IS NULL OR queue = ANY($2::text[])) "
inline constexpr char kClaimable[] = HOLDFAST_PG_GROUPS
    "SELECT " HOLDFAST_PG_RUN("r.") HOLDFAST_PG_COLD ", d.definition FROM wanted g, LATERAL "
    "(SELECT * FROM @.runs WHERE status = 'queued' AND agent = g.agent AND queue = g.queue "
    "AND rank = g.rank AND available_at <= " HOLDFAST_PG_NOW("3")
    " ORDER BY available_at, id LIMIT $4::bigint FOR UPDATE SKIP LOCKED) r "
    "JOIN @.run_data d ON d.run = r.id ORDER BY r.rank, r.available_at, r.id LIMIT $4::bigint";
inline constexpr char kNextDue[] = HOLDFAST_PG_GROUPS
    "SELECT min(n.available_at) FROM wanted g, LATERAL "
    "(SELECT available_at FROM @.runs WHERE status = 'queued' AND agent = g.agent "
    "AND queue = g.queue AND rank = g.rank AND available_at > " HOLDFAST_PG_NOW(
        "3") " ORDER BY available_at LIMIT 1) n";
/// The first of all that are queued, and the clock.
inline constexpr char kLook[] = HOLDFAST_PG_GROUPS
    "SELECT (SELECT min(n.available_at) FROM wanted g, LATERAL "
    "(SELECT available_at FROM @.runs WHERE status = 'queued' AND agent = g.agent "
    "AND queue = g.queue AND rank = g.rank ORDER BY available_at LIMIT 1) n), " HOLDFAST_PG_CLOCK;

// Leases, waits and ends
inline constexpr char kLeasedBy[] =
    "SELECT id FROM @.runs WHERE claimed_by = $1::text AND status = 'running' "
    "AND lease_until IS NOT NULL ORDER BY row";
inline constexpr char kStale[] = "SELECT " HOLDFAST_PG_RUN("r.")
    " FROM @.runs r WHERE r.lease_key <= $1::bigint AND r.lease_until <= $1::bigint "
    "AND r.status = 'running' ORDER BY r.lease_until, r.row LIMIT $2::bigint";
inline constexpr char kLockStale[] = "SELECT " HOLDFAST_PG_RUN("r.")
    " FROM @.runs r WHERE r.lease_key <= $1::bigint AND r.lease_until <= $1::bigint "
    "AND r.status = 'running' ORDER BY r.lease_until, r.row LIMIT $2::bigint "
    "FOR UPDATE SKIP LOCKED";
inline constexpr char kOverdueWaits[] = "SELECT " HOLDFAST_PG_RUN("r.")
    " FROM @.runs r WHERE r.wait_deadline <= $1::bigint "
    "AND r.status IN ('waiting_for_approval', 'waiting_for_input') "
    "ORDER BY r.wait_deadline, r.row LIMIT $2::bigint";
inline constexpr char kLockOverdueWaits[] = "SELECT " HOLDFAST_PG_RUN("r.")
    " FROM @.runs r WHERE r.wait_deadline <= $1::bigint "
    "AND r.status IN ('waiting_for_approval', 'waiting_for_input') "
    "ORDER BY r.wait_deadline, r.row LIMIT $2::bigint FOR UPDATE SKIP LOCKED";
/// Is there anything that the two above find? With the server's clock: one statement of an idle
/// sweep instead of three.
inline constexpr char kAnyToReap[] =
    "WITH n AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint "
    "AS now) SELECT EXISTS (SELECT 1 FROM @.runs r WHERE r.lease_key <= (SELECT now FROM n) AND "
    "r.lease_until <= (SELECT now FROM n) AND r.status = 'running') OR EXISTS (SELECT 1 FROM "
    "@.runs r WHERE r.wait_deadline <= (SELECT now FROM n) AND r.status IN "
    "('waiting_for_approval', 'waiting_for_input'))";
inline constexpr char kEnded[] = "SELECT " HOLDFAST_PG_RUN("r.")
    " FROM @.runs r WHERE r.finished_at IS NOT NULL AND r.finished_at <= $1::bigint "
    "AND r.status IN ('completed', 'failed', 'cancelled') "
    "ORDER BY r.finished_at, r.id LIMIT $2::bigint";
inline constexpr char kUnfinished[] =
    "SELECT id FROM ("
    "SELECT row, id FROM @.runs WHERE status IN ('waiting_for_approval', 'waiting_for_input') "
    "UNION ALL SELECT row, id FROM @.runs WHERE claimed_by IS NOT NULL AND status = 'running' "
    "AND lease_until IS NULL) u ORDER BY row";

/// Fails where the role may not read.
inline constexpr char kCanRead[] =
    "SELECT 1 FROM @.runs r, @.run_data d, @.labels l, @.events e, @.policies p, @.workers w, "
    "@.presences s WHERE false";

// Counts
inline constexpr char kCounts[] =
    "SELECT status, reason, count(*) FROM @.runs GROUP BY status, reason";
inline constexpr char kQueuedGroups[] =
    "SELECT agent, rank, count(*) FILTER (WHERE available_at <= " HOLDFAST_PG_NOW("1")
    "), count(*) FILTER (WHERE available_at > " HOLDFAST_PG_NOW("1")
    "), min(available_at) FROM @.runs WHERE status = 'queued' GROUP BY agent, queue, rank";
inline constexpr char kLeaseCounts[] =
    "SELECT count(*), count(*) FILTER (WHERE lease_until <= " HOLDFAST_PG_NOW(
        "1") ") FROM @.runs WHERE lease_key IS NOT NULL AND status = 'running'";

// Processes
inline constexpr char kReportWorker[] =
    "INSERT INTO @.workers AS w (id, seen_at, json) VALUES ($1::text, $2::bigint, $3::text) "
    "ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, json = excluded.json";
inline constexpr char kForgetWorker[] = "DELETE FROM @.workers WHERE id = $1::text";
inline constexpr char kWorkers[] = "SELECT id, seen_at, json FROM @.workers ORDER BY id";

// Circuits. One that is to be changed is locked, so it has to be there.
inline constexpr char kMakeCircuit[] =
    "INSERT INTO @.circuits (target, json) VALUES ($1::text, '{}') ON CONFLICT DO NOTHING";
inline constexpr char kLockCircuit[] =
    "SELECT json FROM @.circuits WHERE target = $1::text FOR UPDATE";
inline constexpr char kFindCircuit[] = "SELECT json FROM @.circuits WHERE target = $1::text";
inline constexpr char kSaveCircuit[] =
    "UPDATE @.circuits SET json = $2::text WHERE target = $1::text";
inline constexpr char kCircuits[] = "SELECT target, json FROM @.circuits ORDER BY target";

// Presence. `server` is the start of this very server: other locks were lost with another.
#define HOLDFAST_PG_SERVER "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint"
#define HOLDFAST_PG_LOCK_OF(worker) "hashtextextended('holdfast @. worker ' || " worker ", 0)"
inline constexpr char kTryPresence[] =
    "SELECT pg_try_advisory_lock(" HOLDFAST_PG_LOCK_OF("$1::text") ")";
inline constexpr char kSayPresence[] =
    "INSERT INTO @.presences (worker, server, lock_key, state) VALUES ($1::text, "
    HOLDFAST_PG_SERVER ", " HOLDFAST_PG_LOCK_OF("$1::text") ", $2::text) ON CONFLICT (worker) "
    "DO UPDATE SET server = excluded.server, state = excluded.state";
inline constexpr char kEndPresence[] = "DELETE FROM @.presences WHERE worker = $1::text";
inline constexpr char kDropPresence[] =
    "SELECT pg_advisory_unlock(" HOLDFAST_PG_LOCK_OF("$1::text") ")";
/// Whose lock nobody holds though this server gave it to them.
#define HOLDFAST_PG_LOST                                                                       \
  "p.state = 'held' AND p.server = " HOLDFAST_PG_SERVER                                        \
  " AND NOT EXISTS (SELECT 1 FROM pg_locks "                                                   \
  "k WHERE k.locktype = 'advisory' AND k.objsubid = 1 AND k.granted AND k.database = (SELECT " \
  "oid FROM pg_database WHERE datname = current_database()) AND k.classid::bigint = "          \
  "((p.lock_key >> 32) & 4294967295) AND k.objid::bigint = (p.lock_key & 4294967295))"
inline constexpr char kLostPresences[] =
    "SELECT p.worker FROM @.presences p WHERE " HOLDFAST_PG_LOST " ORDER BY p.worker";
/// `lost`, `live`, or no row where it left no trace.
inline constexpr char kPresencesOf[] =
    "SELECT p.worker, " HOLDFAST_PG_LOST " FROM @.presences p WHERE p.worker = ANY($1::text[])";
inline constexpr char kMayBury[] =
    "SELECT 1 FROM @.presences WHERE worker = $1::text AND (state <> 'held' OR server "
    "<> " HOLDFAST_PG_SERVER ")";
/// What was left by those who held a lock of a server that has ended since, and hold no run.
inline constexpr char kTidyPresences[] =
    "DELETE FROM @.presences p WHERE p.server <> " HOLDFAST_PG_SERVER
    " AND NOT EXISTS (SELECT 1 FROM @.runs r WHERE r.claimed_by = p.worker)";
inline constexpr char kTryWatch[] =
    "SELECT pg_try_advisory_lock(hashtextextended('holdfast @. watch', 0))";
/// Whether nobody watches, and how many may. Holds the lock no longer than it takes to say so.
inline constexpr char kMayWatch[] =
    "SELECT pg_try_advisory_xact_lock(hashtextextended('holdfast @. watch', 0)), "
    "(SELECT count(*) FROM @.presences WHERE state = 'held')";

}  // namespace holdfast::postgres
