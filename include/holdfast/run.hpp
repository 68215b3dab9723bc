#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/failure.hpp"
#include "holdfast/json.hpp"
#include "holdfast/time.hpp"
#include "holdfast/words.hpp"

namespace holdfast {

using RunId = std::string;  ///< UUIDv7 in its text form, made by the caller before the insert
using WorkerId =
    std::string;  ///< host, process id, start time and a random part; safe as a file name
using Labels = std::map<std::string, std::string>;

/// What one drive of a run may use up; none: no limit. Looked at before each call of a model or a
/// tool.
struct Budget {
  std::optional<std::int64_t> tokens;
  std::optional<double> cost_usd;  ///< by the prices of the models
  std::optional<Duration> time;    ///< since its first claim, waits for people left out
  std::optional<int> model_calls;
  std::optional<int> tool_calls;

  bool is_empty() const { return *this == Budget{}; }
  friend bool operator==(const Budget&, const Budget&) = default;
};

/// What a run's recovery and lease follow; stored with the run (spec, section 3 "Policy"; defaults:
/// section 11).
struct Policy {
  Duration lease = std::chrono::seconds(60);
  Duration margin = Duration(
      -1);  ///< self-fencing margin; negative: a tenth of the lease, within 500 ms … a third
  Duration gap_timeout = std::chrono::minutes(5);
  bool strict_expiry = false;  ///< a late renewal or settle by the true owner is refused too
  int max_requeues = 3;
  Duration backoff_base = std::chrono::seconds(30);
  double backoff_factor = 2.0;
  Duration backoff_cap = std::chrono::minutes(10);
  double jitter = 0.1;
  Duration max_wait = std::chrono::hours(24);
  Duration hint_cap = std::chrono::hours(1);
  bool retry_unknown = true;  ///< is an exception of unknown kind from the handler retried?
  Budget budget;              ///< of this run; what it leaves open is the agent's

  friend bool operator==(const Policy&, const Policy&) = default;
};

/// Tokens and money, neutral over providers.
struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t total_tokens = 0;
  double cost_usd = 0;

  Usage& operator+=(const Usage&);
  friend bool operator==(const Usage&, const Usage&) = default;
};

/// The record, made before a writing step runs, that it is in flight (spec, section 2).
struct Fence {
  std::string step_key;  ///< unique in the run: `tool:pay#2.1`
  std::string name;      ///< for people: `tool:pay`
  Effect effect = Effect::non_idempotent_write;
  Json arguments;
  std::string idempotency_key;
  WallTime since{};  ///< set by the store
  /// From when "not landed" may be believed, on the store's clock: a little after the
  /// step's own time limit (docs/decisions, 0013), or earlier where its executor is known gone (see
  /// core/transition.hpp, `resolved`). Set by the store from `timeout`.
  StoreTime deadline{};
  Duration timeout{};  ///< the step's own time limit and that margin, counted from the fence
  bool has_probe = false;
  std::int64_t claim = 0;  ///< of the segment that made it; set by the store

  /// A non-idempotent write that nobody has resolved.
  bool is_unsafe() const { return effect == Effect::non_idempotent_write; }
  friend bool operator==(const Fence&, const Fence&) = default;
};

enum class Verdict { undecided, approved, denied, expired };

/// A gated tool call that a person decides on.
struct GatedCall {
  std::string id;  ///< as in the model's event and as `--call` takes it: `1.2`
  std::string name;
  Json arguments;
  Verdict decision = Verdict::undecided;
  bool ends_on_denial = false;  ///< the tool says `on_denial = "end"`
  friend bool operator==(const GatedCall&, const GatedCall&) = default;
};

enum class WaitKind { approval, input };

/// Their words: `undecided` (shown as null), `approved`, …; `approval`, `input`.
std::string_view to_word(Verdict);
std::string_view to_word(WaitKind);
template <>
std::optional<Verdict> parse_word<Verdict>(std::string_view text);
template <>
std::optional<WaitKind> parse_word<WaitKind>(std::string_view text);

/// What a waiting run waits for (spec, section 8).
struct Wait {
  WaitKind kind = WaitKind::approval;
  std::string turn;                  ///< digest of the pending turn
  std::vector<GatedCall> calls;      ///< approval: the gated calls; input: the one call that asks
  Json schema;                       ///< input: JSON Schema of the values; else null
  std::string prompt;                ///< what to show a person; may be empty
  std::optional<Duration> timeout;   ///< how long to wait; none: for ever
  std::optional<WallTime> deadline;  ///< set by the store from `timeout`
  friend bool operator==(const Wait&, const Wait&) = default;
};

/// A run as everybody sees it (fields and meaning: spec, section 12 "JSON of a run").
struct Run {
  RunId id;
  std::string agent;
  std::string queue = "default";
  Word<Status> status = Status::queued;
  std::optional<Word<Reason>> reason;
  Word<Origin> origin = Origin::queued;
  int priority = 0;
  Json input;
  std::optional<Json> answer;
  /// How the answer ended where it is not whole (`length`: cut at a token limit); else empty. Told
  /// by `Runtime::get`, from the run's last event.
  std::string finish;
  std::optional<Failure> error;
  WallTime created_at{};
  std::optional<WallTime> available_at;
  std::optional<WallTime> started_at;
  std::optional<WallTime> finished_at;
  std::optional<WorkerId> claimed_by;
  std::int64_t claim = 0;
  std::optional<StoreTime> lease_until;      ///< on the store's clock: what leases are judged by
  std::optional<WallTime> lease_expires_at;  ///< the same for display
  bool lease_lost_by_presence = false;       ///< the lease was ended because its holder is gone
  std::optional<WallTime> failing_since;     ///< first failure of this drive: bounds parking
  int requeue_count = 0;
  int max_requeues = 3;  ///< negative without a policy: the policy's, from the first claim on
  int reclaim_count = 0;
  int redrive_count = 0;
  std::optional<Fence> pending;
  int iterations = 0;
  Usage usage;
  std::optional<Wait> waiting_for;
  Labels labels;
  std::optional<std::string> idempotency_key;
  Policy policy;
  bool has_policy = true;  ///< false: `policy` is filled in at the first claim
  Json definition;  ///< system text, models, tools as copied at the first claim; null for tasks
  std::int64_t last_sequence = 0;  ///< number of its newest event
  bool abandoned = false;          ///< interactive, and its process is proven gone

  bool is_fenced_unsafe() const { return pending && pending->is_unsafe(); }
  /// No unsafe fence stands.
  bool is_clean() const { return !is_fenced_unsafe(); }
  /// No unsafe fence without a probe stands.
  bool is_safe() const { return !is_fenced_unsafe() || pending->has_probe; }
};

/// One entry of a run's journal. Sequences are 1, 2, 3, … per run (spec, section 5 "Events").
struct Event {
  RunId run;
  std::int64_t sequence = 0;
  Word<EventKind> kind = EventKind::queued;
  WallTime at{};
  std::int64_t claim = 0;
  Json payload;
};

/// The JSON of section 12, as printed by `show --json`, `list --json` and the HTTP API.
Json to_json(const Run&);
Json to_json(const Event&);

/// A request for a new run. What is left empty takes the agent's or the global default.
struct RunRequest {
  std::string agent;
  Json input;
  std::optional<RunId> id;  ///< own UUIDv7, for callers that must be able to ask again
  std::optional<std::string> queue;
  int priority = 0;               ///< higher first
  std::optional<Duration> delay;  ///< not before now + delay
  std::optional<WallTime> at;     ///< not before; excludes `delay`
  std::optional<std::string> idempotency_key;
  std::optional<int> max_requeues;  ///< 0 is allowed
  Budget budget;                    ///< what it leaves open is the agent's
  Labels labels;
};

}  // namespace holdfast
