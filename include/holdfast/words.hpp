#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {

/// Where a run stands (spec, section 2). The last three are terminal.
enum class Status {
  queued,
  running,
  waiting_for_approval,
  waiting_for_input,
  completed,
  failed,
  cancelled
};

/// Why a terminal run ended (spec, section 2).
enum class Reason {
  completed,
  budget_exhausted,
  max_iterations,
  policy_denied,
  approval_denied,
  provider_failed,
  context_truncated,
  retries_exhausted,
  not_retryable,
  cancelled
};

/// How a segment ended, told to whoever ran it (spec, section 2).
enum class Outcome {
  completed,
  awaiting_approval,
  awaiting_input,
  suspend_failed,
  guardrail_blocked,
  guardrail_approval_required,
  failed,
  cancelled,
  requeued,
  lease_lost,
  released,
  slept
};

/// What kind of failure it was; everything that decides on retry, fallback or circuit asks the
/// class (spec, section 6).
enum class FailureClass {
  connection,
  timeout,
  rate_limit,
  overloaded,
  server_error,
  circuit_open,
  quota_exhausted,
  auth,
  configuration,
  client_error,
  context_length,
  content_policy,
  unknown
};

/// What repeating a step would do to the world (spec, section 5).
enum class Effect { read, idempotent_write, non_idempotent_write };

/// Who executes a run: workers under a lease, or the process that started it.
enum class Origin { queued, interactive };

/// The kinds of events in a run's journal (spec, section 5 "Events").
enum class EventKind {
  queued,
  started,
  claimed,
  model,
  tool,
  step,
  slept,
  approval_requested,
  approved,
  denied,
  input_requested,
  input_submitted,
  expired,
  requeued,
  parked,
  released,
  reaped,
  probed,
  handed_over,
  woken,
  cancelled,
  redriven,
  resolved,
  completed,
  failed
};

/// The word for a value, the same in SQL, JSON, command line and C++. Never empty.
std::string_view to_word(Status);
std::string_view to_word(Reason);
std::string_view to_word(Outcome);
std::string_view to_word(FailureClass);
std::string_view to_word(Effect);
std::string_view to_word(Origin);
std::string_view to_word(EventKind);

/// The value of a word, or nothing for a word that this build does not know. Defined for the enums
/// above.
template <class E>
std::optional<E> parse_word(std::string_view text);
template <>
std::optional<Status> parse_word<Status>(std::string_view text);
template <>
std::optional<Reason> parse_word<Reason>(std::string_view text);
template <>
std::optional<Outcome> parse_word<Outcome>(std::string_view text);
template <>
std::optional<FailureClass> parse_word<FailureClass>(std::string_view text);
template <>
std::optional<Effect> parse_word<Effect>(std::string_view text);
template <>
std::optional<Origin> parse_word<Origin>(std::string_view text);
template <>
std::optional<EventKind> parse_word<EventKind>(std::string_view text);

/// A word read back from a store: what this build knows as an `E`, and the text itself where a
/// newer build wrote something else (spec, section 2). Consumers need a default arm.
template <class E>
class Word {
 public:
  Word(E value) : text_(to_word(value)), known_(value) {}  // NOLINT(google-explicit-constructor)
  explicit Word(std::string text) : text_(std::move(text)), known_(parse_word<E>(text_)) {}

  const std::string& text() const { return text_; }
  std::optional<E> known() const { return known_; }
  bool is(E value) const { return known_ == value; }

  friend bool operator==(const Word&, const Word&) = default;

 private:
  std::string text_;
  std::optional<E> known_;
};

/// Completed, failed and cancelled. An unknown word is not terminal and not anything else either.
bool is_terminal(Status);

/// Both kinds of waiting for a person.
bool is_waiting(Status);

/// True for `provider_failed` alone: the failure of an interactive run, which its caller may simply
/// try again.
bool is_retryable(Reason);

/// Retryable by its class (spec, section 6, first table).
bool is_retryable(FailureClass);

}  // namespace holdfast
