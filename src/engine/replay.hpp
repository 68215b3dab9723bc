#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "holdfast/context.hpp"
#include "holdfast/run.hpp"

namespace holdfast {

/// A completed step as the journal holds it.
struct RecordedStep {
  std::string key;
  std::string name;
  bool is_sleep = false;
  Json result;
  WallTime until{};    ///< of a sleep
  bool woken = false;  ///< of a sleep: a person ended it
  bool taken = false;  ///< this segment's handler has come past it
};

/// What a person said on a pending turn.
struct Answers {
  std::vector<std::optional<Verdict>> verdicts;  ///< in the order of the question's calls
  std::optional<Json> values;
  bool expired = false;
  std::string actor;
  std::string note;
};

/// The journal of the earlier segments, consumed in order (spec, section 5 "Identity of a step").
/// The executing thread only; no I/O.
class Replay {
 public:
  Replay() = default;
  explicit Replay(const std::vector<Event>&);

  /// The key of the next step of that name: its own, else the name with a running number. Throws
  /// FailureError (configuration) for a key that was used before in this segment.
  std::string next_key(std::string_view name, const std::string& own_key);

  /// The recorded step of that key, taken; null: the step is live. Throws FailureError
  /// (configuration), naming both, where another step stands at this place.
  const RecordedStep* take(const std::string& key, std::string_view name, bool has_own_key,
                           bool is_sleep);

  /// What was decided on a turn. Denied and expired decisions of an earlier drive do not count.
  Answers find_answers(const std::string& turn, const std::vector<GatedCall>&) const;

  /// The present drive, as far as it is recorded.
  struct Drive {
    int tool_calls = 0;
    int earlier_model_calls = 0;       ///< of the drives before
    std::optional<WallTime> begun_at;  ///< its first claim
    Duration waited{};                 ///< for people
  };
  const Drive& drive() const { return drive_; }

  /// Is there a step of that name at the next place, or under that key?
  bool holds(std::string_view name, const std::string& own_key) const;

  /// When the newest claim was written, on the store's wall clock.
  std::optional<WallTime> claimed_at() const { return claimed_at_; }

 private:
  void count(const Event&, EventKind);
  void add_step(const Event&);
  void add_sleep(const Event&);

  std::vector<RecordedStep> steps_;
  std::unordered_map<std::string, std::size_t> by_key_;
  std::size_t cursor_ = 0;
  std::unordered_map<std::string, int> numbers_;
  std::unordered_set<std::string> used_;
  std::vector<Event> decisions_;
  std::int64_t newest_redrive_ = 0;
  std::int64_t newest_step_ = 0;
  std::optional<WallTime> claimed_at_;
  Drive drive_;
  int model_calls_ = 0;
  std::optional<WallTime> waits_since_;
};

/// `fetch#2`: a key made from the name and a running number.
bool is_automatic_key(std::string_view key, std::string_view name);

/// The event's payload of a completed step, and back. What `result_of` returns equals what was
/// given to `step_payload`.
Json step_payload(StepKind, const std::string& name, const std::string& key, Effect,
                  const Json& arguments, const Json& result);
Json result_of(EventKind, const Json& payload);

/// The digest of a pending turn: run, place, calls with final arguments, schema, terms.
std::string turn_digest(const RunId&, const Question&);

}  // namespace holdfast
