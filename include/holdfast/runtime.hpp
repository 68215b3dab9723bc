#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "holdfast/agent.hpp"
#include "holdfast/context.hpp"
#include "holdfast/run.hpp"

namespace holdfast {

/// Sizes above which something is refused or cut (spec, section 11 `[limits]`).
struct Limits {
  std::size_t request_bytes = 1u << 20;
  std::size_t result_bytes = 1u << 20;
  std::size_t error_bytes = 4096;
  int depth = 64;
};

/// When a model of a provider is left alone for a while (spec, sections 6 and 11 `[circuit]`).
struct CircuitOptions {
  int threshold = 5;                               ///< failures in a row, of classes that trip it
  Duration open = std::chrono::seconds(30);        ///< then one call tries, a probe
  Duration quota_open = std::chrono::minutes(15);  ///< the same, where money or quota is gone
};

/// Everything that configures a Runtime; mirrors `holdfast.toml` (spec, section 11).
struct RuntimeOptions {
  std::string store_url = "sqlite:holdfast.db";
  Policy policy;
  Duration heartbeat =
      std::chrono::seconds(20);  ///< keep-alive interval; zero: renew at step boundaries only
  Duration presence_interval = std::chrono::milliseconds(100);
  Duration reaper_interval = std::chrono::seconds(5);  ///< zero: no reaper and no presence watching
  int reaper_limit = 50;
  Duration retention_terminal = std::chrono::hours(24 * 30);
  Duration retention_unfinished = std::chrono::hours(24 * 90);
  CircuitOptions circuit;
  Limits limits;
  std::vector<ProviderSpec> providers;
  std::vector<ToolSpec> tools;
  std::vector<std::string> http_hosts;  ///< that tools may speak to; empty: all
  std::vector<AgentSpec> agents;
};

/// How a C++ task is offered to runs.
struct TaskOptions {
  std::string queue = "default";
  std::optional<Policy> policy;
};

/// What a worker is to do (spec, section 12 `worker`).
struct WorkerSettings {
  int concurrency = 8;
  std::vector<std::string> queues;  ///< empty: all
  std::string name;                 ///< shown beside the worker's identity
  bool drain = false;  ///< stop when no run is claimable for it now and none is in progress
  Duration grace = std::chrono::seconds(30);
  bool with_reaper = true;
};

/// A running worker. `stop` and `stop_now` may be called from any thread; `join` returns when it
/// has ended. The destructor stops gracefully and joins.
class WorkerHandle {
 public:
  virtual ~WorkerHandle() = default;
  virtual void
  stop() = 0;  ///< claim no more, let steps reach their boundary within the grace, release
  virtual void stop_now() = 0;  ///< interrupt what is in flight at once
  virtual void join() = 0;
  virtual const WorkerId& id() const = 0;
};

/// How a segment ended for whoever ran it, and the run as it stands then.
struct SegmentResult {
  Outcome outcome;
  Run run;
};

/// Sees events as they are recorded, on the thread that executes. Must not throw.
using Observer = std::function<void(const Event&)>;

/// Who does something, for the event. `operation` makes a repeated call harmless; empty: minted
/// here.
struct Operator {
  std::string actor;
  std::string note;
  std::string operation;
};

struct ListFilter {
  std::optional<std::string> status;
  std::optional<std::string> reason;
  std::optional<std::string> agent;
  std::optional<std::string> queue;
  Labels labels;
  bool oldest_first = false;  ///< by finished_at, else by id; default: newest created first
  std::optional<WallTime> ended_before;  ///< finished_at at or before
  int limit = 50;
  std::optional<std::string> after;  ///< cursor of the page before
};
struct RunPage {
  std::vector<Run> runs;
  std::optional<std::string> next;
};

struct ReapReport {
  int requeued = 0;
  int dead_lettered = 0;
  int skipped = 0;
  int expired = 0;    ///< waits whose deadline was over
  bool full = false;  ///< the limit was reached: there may be more
};

enum class DecisionKind { approve, deny, input };

/// A person's decision (spec, section 8).
struct Decision {
  RunId run;
  DecisionKind kind = DecisionKind::approve;
  std::optional<std::string>
      turn;  ///< digest that the person saw; none: what is pending now, guarded
  std::optional<std::string> call;  ///< decide one call only
  Json values;                      ///< input
  Operator by;
  enum class Continue { by_origin, queue, inline_segment } go_on = Continue::by_origin;
};
struct DecisionResult {
  Run run;
  std::optional<SegmentResult> segment;  ///< where it was continued inline
};

struct ResolveRequest {
  RunId run;
  bool landed = false;
  Json result;  ///< landed: the step's result; null without one
  std::optional<std::string>
      step;  ///< key that the person was shown; none: what is pending now, guarded
  bool force = false;
  Operator by;
};

struct BulkReport {
  int matched = 0;
  int moved = 0;
  int skipped = 0;
  std::vector<RunId> ids;  ///< the moved ones
};

struct PurgeRequest {
  std::vector<RunId> ids;  ///< empty: by age
  std::optional<Duration> older_than;
  std::optional<Duration> unfinished_older_than;
  bool dry_run = false;
  bool spares_unknown_writes = false;  ///< runs with a write of unknown outcome stay
};
struct PurgeReport {
  std::map<std::string, int> by_status;
  int total = 0;
  int unknown_writes = 0;  ///< of these: with a write that may have landed, which nobody resolved
};

/// One finding of `verify` or `doctor`.
struct Finding {
  enum class Grade { ok, warning, bad } grade = Grade::ok;
  std::string subject;  ///< what was looked at, or the invariant that is broken
  std::string text;     ///< what was seen, with ids, and what to do
};

/// The front door: everything that the command line and the HTTP API can do, as calls. Thread-safe.
/// Throws RefusedError for what the caller can mend, StoreError when the store cannot be used.
class Runtime {
 public:
  /// Opens the store (creating it where that is allowed) and checks the options.
  static std::unique_ptr<Runtime> open(RuntimeOptions options);
  virtual ~Runtime() = default;

  /// Makes a C++ task available to runs under its name. Before workers start.
  virtual void register_task(const std::string& name, Handler handler,
                             TaskOptions options = {}) = 0;

  virtual Run enqueue(const RunRequest&) = 0;
  virtual std::vector<Run> enqueue(std::span<const RunRequest>) = 0;  ///< all or none

  /// Executes in this thread as an interactive segment. `stop`: cancel at the next boundary.
  virtual SegmentResult run(const RunRequest&, const Observer&, std::stop_token stop) = 0;

  /// Stores, claims and executes in this thread under a lease (spec, section 6 "Inline execution").
  virtual SegmentResult run_inline(const RunRequest&, const Observer&, std::stop_token stop) = 0;

  /// The worker must have ended before this Runtime does.
  virtual std::unique_ptr<WorkerHandle> start_worker(const WorkerSettings&) = 0;

  virtual ReapReport reap(int limit, bool dry_run) = 0;  ///< one sweep

  virtual Run get(const RunId&) = 0;  ///< RefusedError not_found
  virtual RunPage list(const ListFilter&) = 0;
  virtual std::vector<Event> events(const RunId&, std::int64_t after, int limit) = 0;
  /// Every run's events in the order they were committed; `cursor` is moved behind the last one
  /// returned.
  virtual std::vector<Event> all_events(std::int64_t& cursor, int limit) = 0;
  /// Returns when the run is terminal or waiting, or the time is over; the run as it stands then.
  virtual Run wait(const RunId&, std::optional<Duration> timeout, std::stop_token stop) = 0;

  virtual Run cancel(const RunId&, const Operator&) = 0;
  virtual DecisionResult decide(const Decision&, const Observer&, std::stop_token stop) = 0;
  virtual Run redrive(const RunId&, const Operator&) = 0;
  /// Failed runs that match, oldest first, those that had failed when the call began. `limit` 0:
  /// all. The operation makes a repeated call move no run twice.
  virtual BulkReport redrive_all(const ListFilter&, bool dry_run, const Operator&) = 0;
  virtual Run resolve(const ResolveRequest&) = 0;
  virtual Run hand_over(const RunId&, bool force, const Operator&) = 0;
  virtual Run wake(const RunId&, const Operator&) = 0;
  /// Without an age the retention decides, for named runs too; a named one whose write may have
  /// landed then stays.
  virtual PurgeReport purge(const PurgeRequest&) = 0;

  virtual Json stats() = 0;
  virtual Json workers() = 0;
  virtual Json why(const RunId&) = 0;  ///< {"text": …, "commands": […], and the facts behind them}
  virtual std::vector<Finding> verify() = 0;
  virtual std::vector<Finding> doctor() = 0;
  virtual void backup(const std::string& file) = 0;

  virtual const RuntimeOptions& options() const = 0;
};

/// Brings the schema of a store up to date, or only reports. Returns the versions before and after.
struct MigrationReport {
  int before = 0;
  int after = 0;
};
MigrationReport migrate(const std::string& store_url);

/// The version of this build: `0.1.0`.
const char* version();

}  // namespace holdfast
