#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "holdfast/time.hpp"
#include "holdfast/words.hpp"

namespace holdfast {

/// What went wrong in a piece of work, in the terms that recovery needs (spec, section 6).
struct Failure {
  FailureClass cls = FailureClass::unknown;
  std::string
      code;  ///< short and stable, made for programs: `rate_limit_exceeded`, `exit_3`; may be empty
  std::string message;  ///< made for people: what, which, what to do next; cut to the limit before
                        ///< it is stored

  /// How long the other side asked to wait; a lower bound of the backoff. Empty: it said nothing
  /// usable.
  std::optional<Duration> retry_after;
  std::string delay_source;  ///< what decided the delay: `retry-after`, `retry-after-ms`, `body`,
                             ///< `backoff`, …

  /// The other side's explicit word on retrying; decides about requeueing in place of the class.
  std::optional<bool> should_retry;

  std::string provider;  ///< which provider and model failed; empty for other work
  std::string model;

  /// False when nothing was called at all (all circuits open): such a failure parks the run,
  /// uncharged.
  bool attempted = true;

  /// The write is known not to have started (the program could not be executed): its fence may be
  /// cleared.
  bool not_started = false;

  /// A write's outcome cannot be known from here (timeout, death by signal): the fence rule
  /// decides.
  bool outcome_unknown = false;

  /// What the write asked of may still be at it, though this process waits no longer: another
  /// machine, or a server that lives on. Nobody believes "not landed" before the step's deadline.
  bool may_still_run = false;

  friend bool operator==(const Failure&, const Failure&) = default;
};

/// A failure with these three and nothing else.
inline Failure make_failure(FailureClass cls, std::string code, std::string message) {
  Failure failure;
  failure.cls = cls;
  failure.code = std::move(code);
  failure.message = std::move(message);
  return failure;
}

/// Thrown by steps, tools and providers: a failure of the work, as opposed to a bug or a store that
/// is down.
class FailureError : public std::exception {
 public:
  explicit FailureError(Failure failure) : failure_(std::move(failure)) {}
  const Failure& failure() const { return failure_; }
  const char* what() const noexcept override { return failure_.message.c_str(); }

 private:
  Failure failure_;
};

/// The store cannot be used, or its answer is not known (spec, section 12: exit code 1).
class StoreError : public std::exception {
 public:
  /// Where retrying makes no sense (a folder, not a database, newer than this build) `permanent` is
  /// true.
  StoreError(std::string message, bool permanent)
      : message_(std::move(message)), permanent_(permanent) {}
  const char* what() const noexcept override { return message_.c_str(); }
  bool permanent() const { return permanent_; }

 private:
  std::string message_;
  bool permanent_;
};

/// What a caller asked for cannot be done: the exit code of section 12 says why.
enum class Refusal {
  usage =
      2,  ///< malformed value, out of range, over a limit, values against a schema, configuration
  not_found = 3,  ///< an id, agent or tool that does not exist
  conflict = 4    ///< the run is not in a state that allows it
};

/// Thrown by `Runtime` for a request that it refuses. The message names the thing and the remedy.
class RefusedError : public std::exception {
 public:
  RefusedError(Refusal refusal, std::string message)
      : refusal_(refusal), message_(std::move(message)) {}
  Refusal refusal() const { return refusal_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Refusal refusal_;
  std::string message_;
};

}  // namespace holdfast
