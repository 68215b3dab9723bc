#pragma once

// What the engine needs of a database: verbs of the product. Each is one transaction; each change
// of a run appends its events (renewals, fences and presence append none). What a transition does
// is decided in core/transition.hpp. All methods may be called from any thread. Failures are
// StoreError; "did not apply" is a value.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/circuit.hpp"
#include "core/transition.hpp"
#include "env/env.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

struct EnqueueResult {
  enum class Answer { stored, existing, key_conflict, id_conflict } answer = Answer::stored;
  Run run;  ///< as stored; for `existing` the run that has the idempotency key
};

/// A run under this segment's guard.
struct Claimed {
  Run run;  ///< input, definition and policy included
  Lease lease;
};

struct ClaimRequest {
  WorkerId worker;
  std::vector<AgentOffer> agents;
  std::vector<std::string> queues;  ///< empty: all
  int limit = 1;
  std::optional<RunId> only;  ///< inline execution: this run or none
};
struct ClaimResult {
  std::vector<Claimed> runs;
  std::optional<Duration>
      next_due;  ///< how long until a run that this worker could claim falls due
};

struct RenewReport {
  std::vector<Write> answers;  ///< one per lease, in order
  std::vector<Claimed>
      strays;  ///< running rows of this worker that were not named: an unanswered claim's
};

/// What became of an operator's request.
struct ChangeResult {
  enum class Answer { applied, unchanged, not_found, refused } answer = Answer::applied;
  std::optional<Run> run;            ///< as it stands now
  std::string why;                   ///< refused: for people
  std::optional<Claimed> continued;  ///< answered inline: go on with this
};

/// A live process as `workers` shows it.
struct WorkerRow {
  WorkerId id;
  std::string name;
  std::string host;
  int pid = 0;
  WallTime started_at{};
  std::vector<std::string> agents;
  std::vector<std::string> queues;  ///< empty: all
  int slots = 0;
  int busy = 0;
  int stuck = 0;
  std::string presence;  ///< `held`, `off`, or what is wrong with it
  StoreTime seen_at{};   ///< set by the store at each report
  bool is_gone = false;  ///< its presence is proven gone (filled in when read)
};

struct StoreStats {
  std::map<std::string, std::int64_t> by_status;
  std::map<std::string, std::int64_t> by_reason;
  std::int64_t due = 0;
  std::int64_t delayed = 0;
  std::optional<Duration> oldest_due;
  std::map<int, Duration> oldest_due_by_priority;
  std::int64_t leases_held = 0;
  std::int64_t leases_stale = 0;
  std::map<std::string, std::int64_t> due_by_agent;
};

/// Decides on a stale run, inside the reaper's transaction.
using Decider = std::function<Settlement(const Run&)>;

/// This process's own presence: dropped by the operating system when the process dies (spec,
/// section 4).
class PresenceHold {
 public:
  virtual ~PresenceHold() = default;
  /// False once somebody took it away from outside (removed its file): others hold this worker for
  /// gone.
  virtual bool is_intact() { return true; }
};
/// Proof that a worker is gone: its lock, held while its leases are expired.
class PresenceProof {
 public:
  virtual ~PresenceProof() = default;
};
class PresenceBoard {
 public:
  virtual ~PresenceBoard() = default;
  virtual std::unique_ptr<PresenceHold> hold(const Identity&) = 0;
  /// Blocks until a worker seems to have died, `timeout` passed or `stop` was requested; the
  /// suspects.
  virtual std::vector<WorkerId> watch(Duration timeout, const std::stop_token& stop) = 0;
  /// Null while it lives (or while it cannot be told). A worker that left no trace at all is gone.
  /// With the proof goes what showed its death to others: only for who ends its leases meanwhile.
  virtual std::unique_ptr<PresenceProof> prove_gone(const WorkerId&) = 0;
  /// As prove_gone would find at this moment. Changes nothing.
  virtual bool is_gone(const WorkerId&) = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  // Callers
  /// All in one transaction, all or none: where one answer is a conflict, nothing was stored and
  /// the other answers say what would have been.
  virtual std::vector<EnqueueResult> enqueue(std::span<const NewRun>) = 0;
  virtual Claimed start(const NewRun&, const WorkerId&) = 0;  ///< interactive

  // The holder of a claim
  virtual ClaimResult claim(const ClaimRequest&) = 0;
  virtual RenewReport renew(const WorkerId&, std::span<const Lease>) = 0;
  virtual Write fence(const Lease&, const Fence&) = 0;
  virtual Write unfence(const Lease&, const Unfence&) = 0;
  virtual Write record(const Lease&, const StepRecord&) = 0;
  /// Repeatable: a settlement of this very claim that is already there answers `applied`.
  virtual Write settle(const Lease&, const Settlement&) = 0;
  virtual Write acknowledge_cancel(const Lease&) = 0;

  // Reapers
  virtual ReapReport reap(int limit, bool dry_run, const Decider&) = 0;
  virtual int expire_leases_of(const WorkerId&, StoreTime not_renewed_since) = 0;

  // People
  virtual ChangeResult cancel(const RunId&, const Operator&) = 0;
  virtual ChangeResult answer(const Decision&, const Continuation&) = 0;
  virtual std::vector<ChangeResult> redrive(std::span<const RunId>, const Operator&) = 0;
  virtual ChangeResult resolve(const ResolveRequest&) = 0;
  virtual ChangeResult hand_over(const RunId&, bool force, const Operator&) = 0;
  virtual ChangeResult wake(const RunId&, const Operator&) = 0;
  /// At most `limit` runs in one transaction (all of `ids`, where they are named). A dry run counts
  /// all.
  virtual PurgeReport purge(const PurgeRequest&, int limit) = 0;

  // Reading
  virtual std::optional<Run> find(const RunId&) = 0;
  virtual RunPage list(
      const ListFilter&) = 0;  ///< without definitions; inputs and answers included
  virtual std::vector<Event> events(const RunId&, std::int64_t after,
                                    int limit) = 0;  ///< limit 0: all
  virtual std::vector<Event> all_events(std::int64_t& cursor, int limit) = 0;
  virtual StoreStats stats() = 0;

  // Circuits of models (`provider/model`), shared by all processes
  /// May a call be made? A probe is given up after `probe_for`.
  virtual Admission admit_call(const std::string& target, Duration probe_for) = 0;
  virtual void note_call(const std::string& target, const CallEnd&, const CircuitOptions&) = 0;
  virtual std::vector<Circuit> circuits() = 0;

  // Processes
  virtual void report_worker(const WorkerRow&) = 0;
  virtual void forget_worker(const WorkerId&) = 0;
  virtual std::vector<WorkerRow> workers() = 0;
  virtual PresenceBoard* presence() = 0;  ///< null: off; leases decide alone

  /// Returns when a run may have become claimable, `max` has passed, or `stop` is requested.
  virtual void wait_for_work(Duration max, const std::stop_token& stop) = 0;

  virtual StoreTime now() = 0;  ///< the clock that leases are judged by
  virtual WallTime wall_now() = 0;
  virtual void backup(const std::string& file) = 0;
  /// What this kind of store can say of its own health: integrity, version, file system, frozen
  /// writer.
  virtual std::vector<Finding> check() = 0;
  /// Violations that no run shows by itself: rows whose run is missing, journals that hang together
  /// wrongly, columns that contradict each other. Reads everything; empty: none.
  virtual std::vector<Finding> audit() = 0;
};

/// Throws RefusedError (usage), in words that repeat no secret, where `open_store` would for the
/// form of the URL. Opens nothing.
void check_store_url(const std::string& url);

/// `memory:`, `sqlite:PATH` or `postgresql://…`. Throws RefusedError (usage) for other forms,
/// StoreError when it cannot be used.
std::unique_ptr<Store> open_store(const std::string& url, Env&);

/// Opens the store, which brings its schema up to date. The versions before (0: there was none) and
/// after.
MigrationReport migrate_store(const std::string& url, Env&);

}  // namespace holdfast
