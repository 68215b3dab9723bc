#include "holdfast/words.hpp"

#include <stdexcept>

#include "holdfast/run.hpp"

namespace holdfast {
namespace {

[[noreturn]] void no_such_value() { throw std::logic_error("a value outside its enumeration"); }

/// The value up to `last` whose word is `text`.
template <class E>
std::optional<E> find_word(std::string_view text, E last) {
  for (int value = 0; value <= static_cast<int>(last); ++value) {
    if (to_word(static_cast<E>(value)) == text) return static_cast<E>(value);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_word(Status status) {
  switch (status) {
    case Status::queued:
      return "queued";
    case Status::running:
      return "running";
    case Status::waiting_for_approval:
      return "waiting_for_approval";
    case Status::waiting_for_input:
      return "waiting_for_input";
    case Status::completed:
      return "completed";
    case Status::failed:
      return "failed";
    case Status::cancelled:
      return "cancelled";
  }
  no_such_value();
}

std::string_view to_word(Reason reason) {
  switch (reason) {
    case Reason::completed:
      return "completed";
    case Reason::budget_exhausted:
      return "budget_exhausted";
    case Reason::max_iterations:
      return "max_iterations";
    case Reason::policy_denied:
      return "policy_denied";
    case Reason::approval_denied:
      return "approval_denied";
    case Reason::provider_failed:
      return "provider_failed";
    case Reason::context_truncated:
      return "context_truncated";
    case Reason::retries_exhausted:
      return "retries_exhausted";
    case Reason::not_retryable:
      return "not_retryable";
    case Reason::cancelled:
      return "cancelled";
  }
  no_such_value();
}

std::string_view to_word(Outcome outcome) {
  switch (outcome) {
    case Outcome::completed:
      return "completed";
    case Outcome::awaiting_approval:
      return "awaiting_approval";
    case Outcome::awaiting_input:
      return "awaiting_input";
    case Outcome::suspend_failed:
      return "suspend_failed";
    case Outcome::guardrail_blocked:
      return "guardrail_blocked";
    case Outcome::guardrail_approval_required:
      return "guardrail_approval_required";
    case Outcome::failed:
      return "failed";
    case Outcome::cancelled:
      return "cancelled";
    case Outcome::requeued:
      return "requeued";
    case Outcome::lease_lost:
      return "lease_lost";
    case Outcome::released:
      return "released";
    case Outcome::slept:
      return "slept";
  }
  no_such_value();
}

std::string_view to_word(FailureClass cls) {
  switch (cls) {
    case FailureClass::connection:
      return "connection";
    case FailureClass::timeout:
      return "timeout";
    case FailureClass::rate_limit:
      return "rate_limit";
    case FailureClass::overloaded:
      return "overloaded";
    case FailureClass::server_error:
      return "server_error";
    case FailureClass::circuit_open:
      return "circuit_open";
    case FailureClass::quota_exhausted:
      return "quota_exhausted";
    case FailureClass::auth:
      return "auth";
    case FailureClass::configuration:
      return "configuration";
    case FailureClass::client_error:
      return "client_error";
    case FailureClass::context_length:
      return "context_length";
    case FailureClass::content_policy:
      return "content_policy";
    case FailureClass::unknown:
      return "unknown";
  }
  no_such_value();
}

std::string_view to_word(Effect effect) {
  switch (effect) {
    case Effect::read:
      return "read";
    case Effect::idempotent_write:
      return "idempotent_write";
    case Effect::non_idempotent_write:
      return "non_idempotent_write";
  }
  no_such_value();
}

std::string_view to_word(Origin origin) {
  switch (origin) {
    case Origin::queued:
      return "queued";
    case Origin::interactive:
      return "interactive";
  }
  no_such_value();
}

std::string_view to_word(EventKind kind) {
  switch (kind) {
    case EventKind::queued:
      return "queued";
    case EventKind::started:
      return "started";
    case EventKind::claimed:
      return "claimed";
    case EventKind::model:
      return "model";
    case EventKind::tool:
      return "tool";
    case EventKind::step:
      return "step";
    case EventKind::slept:
      return "slept";
    case EventKind::approval_requested:
      return "approval_requested";
    case EventKind::approved:
      return "approved";
    case EventKind::denied:
      return "denied";
    case EventKind::input_requested:
      return "input_requested";
    case EventKind::input_submitted:
      return "input_submitted";
    case EventKind::expired:
      return "expired";
    case EventKind::requeued:
      return "requeued";
    case EventKind::parked:
      return "parked";
    case EventKind::released:
      return "released";
    case EventKind::reaped:
      return "reaped";
    case EventKind::probed:
      return "probed";
    case EventKind::handed_over:
      return "handed_over";
    case EventKind::woken:
      return "woken";
    case EventKind::cancelled:
      return "cancelled";
    case EventKind::redriven:
      return "redriven";
    case EventKind::resolved:
      return "resolved";
    case EventKind::completed:
      return "completed";
    case EventKind::failed:
      return "failed";
  }
  no_such_value();
}

std::string_view to_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::undecided:
      return "undecided";
    case Verdict::approved:
      return "approved";
    case Verdict::denied:
      return "denied";
    case Verdict::expired:
      return "expired";
  }
  no_such_value();
}

std::string_view to_word(WaitKind kind) {
  switch (kind) {
    case WaitKind::approval:
      return "approval";
    case WaitKind::input:
      return "input";
  }
  no_such_value();
}

template <>
std::optional<Status> parse_word<Status>(std::string_view text) {
  return find_word(text, Status::cancelled);
}
template <>
std::optional<Reason> parse_word<Reason>(std::string_view text) {
  return find_word(text, Reason::cancelled);
}
template <>
std::optional<Outcome> parse_word<Outcome>(std::string_view text) {
  return find_word(text, Outcome::slept);
}
template <>
std::optional<FailureClass> parse_word<FailureClass>(std::string_view text) {
  return find_word(text, FailureClass::unknown);
}
template <>
std::optional<Effect> parse_word<Effect>(std::string_view text) {
  return find_word(text, Effect::non_idempotent_write);
}
template <>
std::optional<Origin> parse_word<Origin>(std::string_view text) {
  return find_word(text, Origin::interactive);
}
template <>
std::optional<EventKind> parse_word<EventKind>(std::string_view text) {
  return find_word(text, EventKind::failed);
}
template <>
std::optional<Verdict> parse_word<Verdict>(std::string_view text) {
  return find_word(text, Verdict::expired);
}
template <>
std::optional<WaitKind> parse_word<WaitKind>(std::string_view text) {
  return find_word(text, WaitKind::input);
}

bool is_terminal(Status status) {
  switch (status) {
    case Status::completed:
    case Status::failed:
    case Status::cancelled:
      return true;
    case Status::queued:
    case Status::running:
    case Status::waiting_for_approval:
    case Status::waiting_for_input:
      return false;
  }
  no_such_value();
}

bool is_waiting(Status status) {
  return status == Status::waiting_for_approval || status == Status::waiting_for_input;
}

bool is_retryable(Reason reason) { return reason == Reason::provider_failed; }

bool is_retryable(FailureClass cls) {
  switch (cls) {
    case FailureClass::connection:
    case FailureClass::timeout:
    case FailureClass::rate_limit:
    case FailureClass::overloaded:
    case FailureClass::server_error:
    case FailureClass::circuit_open:
      return true;
    case FailureClass::quota_exhausted:
    case FailureClass::auth:
    case FailureClass::configuration:
    case FailureClass::client_error:
    case FailureClass::context_length:
    case FailureClass::content_policy:
    case FailureClass::unknown:
      return false;
  }
  no_such_value();
}

}  // namespace holdfast
