#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "holdfast/run.hpp"

namespace holdfast {

/// What a probe found out about a write that was interrupted (spec, section 5 "Probe").
struct Landed {
  Json result;
};
struct NotLanded {};
struct Unknown {
  std::string why;
};
using ProbeAnswer = std::variant<Landed, NotLanded, Unknown>;

/// What a step's work is given while it runs.
struct StepContext {
  std::string key;              ///< of the step, unique in the run
  std::string idempotency_key;  ///< stable for run and step, over all its repetitions
  Duration timeout{};           ///< what is left of the step's deadline when the work starts
  std::stop_token
      stop;        ///< requested when the step must end: cancel, lost lease, deadline, shutdown
  RunId run = {};  ///< whose step it is
};

/// What a step returns: its recorded result, and what it cost.
struct StepResult {
  Json result;
  std::optional<Usage> usage;
};

enum class StepKind { step, model, tool };

/// How a step is to be treated. The defaults suit a read that finishes within five minutes.
struct StepOptions {
  StepKind kind = StepKind::step;
  Effect effect = Effect::read;
  Json arguments;                   ///< recorded with the fence and the event, shown to people
  std::optional<Duration> timeout;  ///< default: model 10 min, others 5 min (spec, section 4)
  std::string key;                  ///< empty: the name with a running number (`fetch#2`)

  /// Asked after an interruption of a non-idempotent write. Empty: a person must look.
  std::function<ProbeAnswer(const StepContext&)> probe;
};

/// What a person is asked. `key` names the place in the run; with the calls it makes the turn's
/// digest.
struct Question {
  WaitKind kind = WaitKind::input;
  std::string key;
  std::vector<GatedCall> calls;
  Json schema;
  std::string prompt;
  std::optional<Duration> timeout;
  /// What else the answer is given on, as a digest (of the tools as they are defined, say): where
  /// it is another one, an earlier answer counts no more. Not shown; may be empty.
  std::string terms = {};
  /// Is the schema part of what is asked? Else it tells of the moment (what is used up by now,
  /// say): asked again with another one, the question is the same, and an answer that was given
  /// counts.
  bool schema_counts = true;
};

/// What the person said. For approvals one verdict per call, in the order of the question.
struct Reply {
  std::vector<Verdict> verdicts;
  Json values;           ///< input: what was submitted; null when it expired
  bool expired = false;  ///< the deadline passed and nobody decided
  std::string actor;
  std::string note;
};

/// Ends a run from inside its handler with a reason of its own (`max_iterations`,
/// `approval_denied`, `budget_exhausted`, …). Thrown, not derived from std::exception: a handler's
/// catch-all for errors lets it pass.
struct EndRun {
  Reason reason;
  std::string message;
  std::optional<Json> answer;  ///< `budget_exhausted`: the partial answer
  /// How the answer of a completed run ended, where it is not whole: `length`, cut at a token
  /// limit.
  std::string finish = {};
};

/// What the present drive of a run has used up, counted from its journal: a segment that takes over
/// counts on. A redrive begins anew.
struct Spent {
  Usage usage;
  int model_calls = 0;
  int tool_calls = 0;
  Duration time{};              ///< since its first claim, waits for people left out
  int earlier_model_calls = 0;  ///< recorded by the drives before
};

/// Runs once, and returns what is to be recorded.
using StepWork = std::function<StepResult(const StepContext&)>;

/// One of several steps that may run at the same time (RunContext::read_all).
struct ReadStep {
  std::string name;
  StepOptions options;
  StepWork work;
};

/// The durable side of a running task. A handler runs from the top in every segment; steps that are
/// recorded return their recorded results at once, the first missing one runs (spec, section 5).
///
/// Used by the handler's own thread only. `step`, `sleep` and `ask` leave the handler by internal
/// types that do not derive from std::exception when the run was lost, cancelled, suspended or
/// interrupted: let them pass.
class RunContext {
 public:
  virtual ~RunContext() = default;

  /// The run as it was claimed: id, agent, input, labels, definition.
  virtual const Run& run() const = 0;

  using Work = StepWork;

  /// Runs `work` once and records its result, or returns what is recorded. What `work` throws ends
  /// the step without a record; FailureError carries the class that recovery needs.
  virtual Json step(std::string_view name, const StepOptions& options, const Work& work) = 0;

  /// Steps that only read, at most `at_once` of them at the same time; their results in the order
  /// given. Each is recorded as it ends, and needs a key of its own in its options (none that looks
  /// like a name with a running number). Their work runs on threads of the runtime. When one fails,
  /// no further one begins; those that run come to their ends and are recorded before the failure
  /// is thrown (of several, the first in the order given).
  virtual std::vector<Json> read_all(const std::vector<ReadStep>& reads, int at_once);

  /// A step that only reads.
  Json step(std::string_view name, const std::function<Json()>& work) {
    return step(name, StepOptions{}, [&](const StepContext&) {
      return StepResult{work(), std::nullopt};
    });
  }

  /// Puts the run to sleep; no slot is held. The due time is absolute and journaled.
  virtual void sleep(std::string_view name, Duration) = 0;
  virtual void sleep_until(std::string_view name, WallTime) = 0;

  /// Asks a person and suspends until there is an answer.
  virtual Reply ask(const Question&) = 0;

  /// Asks for values that meet a JSON Schema.
  Json ask_input(std::string_view name, Json schema, std::string prompt) {
    Question question;
    question.key = std::string(name);
    question.schema = std::move(schema);
    question.prompt = std::move(prompt);
    return ask(question).values;
  }

  /// Asks the store for its clock.
  virtual Spent spent() const = 0;

  /// Does the journal hold the step that `step` would be asked for next under this name, or under a
  /// key of its own?
  virtual bool is_recorded(std::string_view name, const std::string& key = {}) const = 0;

  /// Requested when the segment should come to its end.
  virtual std::stop_token stop_token() const = 0;
};

inline std::vector<Json> RunContext::read_all(const std::vector<ReadStep>& reads, int) {
  std::vector<Json> results;
  for (const ReadStep& read : reads) results.push_back(step(read.name, read.options, read.work));
  return results;
}

/// A task: what is executed for a run of its name. Returns the answer.
using Handler = std::function<Json(RunContext&)>;

}  // namespace holdfast
