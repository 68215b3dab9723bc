#include "core/decide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/backoff.hpp"

namespace holdfast {
namespace {

constexpr Duration kProbeOfCircuit = std::chrono::seconds(30);

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

std::string times(int count) { return count == 1 ? "once" : fmt::format("{} times", count); }

/// Who failed, and how: `provider main answered rate_limit (429)`.
std::string culprit(const Failure& failure) {
  std::string what(to_word(failure.cls));
  if (!failure.code.empty()) what += fmt::format(" ({})", failure.code);
  return failure.provider.empty() ? fmt::format("the run failed with {}", what)
                                  : fmt::format("provider {} answered {}", failure.provider, what);
}

Settlement dead_letter(Reason reason, Failure failure) {
  Settlement settlement;
  settlement.next = Status::failed;
  settlement.reason = reason;
  settlement.event = EventKind::failed;
  settlement.outcome = Outcome::failed;
  settlement.payload = failure_payload(failure, false);
  settlement.payload["reason"] = to_word(reason);
  settlement.failure = std::move(failure);
  return settlement;
}

/// Back on the queue, uncharged: what a sleep and a graceful stop have in common.
Settlement handed_back(EventKind event, Outcome outcome, Json payload) {
  Settlement settlement;
  settlement.next = Status::queued;
  settlement.event = event;
  settlement.outcome = outcome;
  settlement.payload = std::move(payload);
  return settlement;
}

Settlement requeue(const Run& run, Failure failure, double unit_random) {
  const Duration own = backoff(run.policy, run.requeue_count, std::nullopt, 0);
  const Duration hinted = backoff(run.policy, run.requeue_count, failure.retry_after, 0);
  if (hinted <= own || failure.delay_source.empty()) failure.delay_source = "backoff";
  Settlement settlement;
  settlement.next = Status::queued;
  settlement.event = EventKind::requeued;
  settlement.outcome = Outcome::requeued;
  settlement.charged = true;
  settlement.delay = backoff(run.policy, run.requeue_count, failure.retry_after, unit_random);
  settlement.payload = failure_payload(failure, true);
  settlement.failure = std::move(failure);
  return settlement;
}

/// Nothing was called: wait for the next probe of a circuit, up to `max_wait` since the first
/// failure of this drive.
Settlement park(const Run& run, Failure failure, WallTime now, double unit_random) {
  const Duration waited = std::max(Duration::zero(), now - run.failing_since.value_or(now));
  if (HOLDFAST_GUARD("park_bound", waited < run.policy.max_wait)) {
    Policy policy = run.policy;
    policy.backoff_base = Duration::zero();
    const bool hinted = failure.retry_after && *failure.retry_after > Duration::zero();
    if (!hinted) failure.delay_source = "circuit";
    const Duration wait =
        backoff(policy, 0, hinted ? failure.retry_after : kProbeOfCircuit, unit_random);
    Settlement settlement;
    settlement.next = Status::queued;
    settlement.event = EventKind::parked;
    settlement.outcome = Outcome::requeued;
    // The last look is due when the bound is over, not after it.
    settlement.delay = std::min(wait, run.policy.max_wait - waited);
    settlement.payload = failure_payload(failure, false);
    settlement.failure = std::move(failure);
    return settlement;
  }
  failure.message = fmt::format("no provider could be called for {} s; last: {}",
                                std::chrono::duration_cast<std::chrono::seconds>(waited).count(),
                                failure.message);
  return dead_letter(Reason::retries_exhausted, std::move(failure));
}

bool is_worth_a_retry(const Run& run, const Failed& end) {
  const Failure& failure = end.failure;
  if (failure.should_retry) return *failure.should_retry;
  if (failure.cls == FailureClass::unknown) return !end.in_agent && run.policy.retry_unknown;
  return is_retryable(failure.cls);
}

bool is_parked(const Failure& failure) {
  return !failure.attempted && (failure.cls == FailureClass::circuit_open ||
                                failure.cls == FailureClass::quota_exhausted);
}

bool has_own_fence(const Run& run) { return run.pending && run.pending->claim == run.claim; }

/// A handler that came to an end of its own has left the step that it was in. A stopped or lost one
/// says nothing about the work.
bool saw_its_work_end(const SegmentEnd& end) {
  if (const auto* failed = std::get_if<Failed>(&end)) return !failed->failure.may_still_run;
  return !std::holds_alternative<Interrupted>(end) && !std::holds_alternative<WorkerLost>(end);
}

bool has_budget(const Run& run) {
  return HOLDFAST_GUARD("decide_budget", run.requeue_count < run.max_requeues);
}

/// The text of a spent budget: who used it up, then the last failure.
std::string exhausted(const Run& run, const Failure& last) {
  const int failures = run.requeue_count - run.reclaim_count + 1;
  std::string text = fmt::format("{} {}", culprit(last), times(std::max(1, failures)));
  if (run.reclaim_count > 0)
    text += fmt::format(", its worker was lost {}", times(run.reclaim_count));
  return last.message.empty() ? text : fmt::format("{}; last: {}", text, last.message);
}

Settlement decide_interactive_failure(const Failure& failure) {
  const Reason reason = failure.cls == FailureClass::context_length ? Reason::context_truncated
                                                                    : Reason::provider_failed;
  return dead_letter(reason, failure);
}

/// Recovery rules 2 to 4 of spec, section 6: no unsafe fence stands.
Settlement decide_failure(const Run& run, const Failed& end, bool interactive, WallTime now,
                          double unit_random) {
  if (interactive) return decide_interactive_failure(end.failure);
  if (is_parked(end.failure) && end.failure.should_retry != false) {
    return park(run, end.failure, now, unit_random);
  }
  if (!is_worth_a_retry(run, end)) return dead_letter(Reason::not_retryable, end.failure);
  if (!has_budget(run)) {
    Failure failure = end.failure;
    failure.message = exhausted(run, end.failure);
    return dead_letter(Reason::retries_exhausted, std::move(failure));
  }
  return requeue(run, end.failure, unit_random);
}

Settlement on(const Run& run, const Completed& end) {
  if (!HOLDFAST_GUARD("decide_completed_clean", run.is_clean())) {
    return fence_forbids(run, std::nullopt);
  }
  Settlement settlement;
  settlement.next = Status::completed;
  settlement.reason = Reason::completed;
  settlement.event = EventKind::completed;
  settlement.outcome = Outcome::completed;
  settlement.answer = end.answer;
  settlement.payload = {{"reason", to_word(Reason::completed)}, {"answer", end.answer}};
  if (!end.finish.empty()) settlement.payload["finish"] = end.finish;
  return settlement;
}

Settlement on(const Run& run, const Ended& end) {
  if (end.reason == Reason::cancelled) {
    Settlement settlement;
    settlement.next = Status::cancelled;
    settlement.reason = Reason::cancelled;
    settlement.event = EventKind::cancelled;
    settlement.outcome = Outcome::cancelled;
    settlement.payload = {{"note", text_or_null(end.message)}};
    return settlement;
  }
  if (!run.is_clean()) return fence_forbids(run, std::nullopt);
  if (end.reason == Reason::completed || end.reason == Reason::budget_exhausted) {
    Settlement settlement = on(run, Completed{end.answer.value_or(Json()), end.finish});
    settlement.reason = end.reason;
    settlement.payload["reason"] = to_word(end.reason);
    if (!end.message.empty()) settlement.payload["message"] = end.message;
    return settlement;
  }
  Failure failure;
  failure.code = to_word(end.reason);
  failure.message = end.message;
  return dead_letter(end.reason, std::move(failure));
}

Settlement on(const Run& run, const Failed& end, bool interactive, WallTime now,
              double unit_random) {
  const bool clears = has_own_fence(run) && end.failure.not_started;
  const bool asks_later = end.probe_is_open && run.is_safe() && !interactive;
  Settlement settlement =
      HOLDFAST_GUARD("decide_fence_first", run.is_clean() || clears || asks_later)
          ? decide_failure(run, end, interactive, now, unit_random)
          : fence_forbids(run, end.failure);
  settlement.clears_fence = clears;
  return settlement;
}

Settlement on(const Run& run, const Suspended& end) {
  if (!run.is_clean()) return fence_forbids(run, std::nullopt);
  const Wait& wait = end.wait;
  const bool is_approval = wait.kind == WaitKind::approval;
  Settlement settlement;
  settlement.next = is_approval ? Status::waiting_for_approval : Status::waiting_for_input;
  settlement.event = is_approval ? EventKind::approval_requested : EventKind::input_requested;
  settlement.outcome = is_approval ? Outcome::awaiting_approval : Outcome::awaiting_input;
  settlement.wait = wait;
  Json calls = Json::array();
  for (const GatedCall& call : wait.calls) {
    calls.push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  }
  settlement.payload = {{"turn", wait.turn},
                        {"calls", std::move(calls)},
                        {"schema", wait.schema},
                        {"prompt", text_or_null(wait.prompt)}};
  return settlement;
}

Settlement on(const Run& run, const Slept& end) {
  if (!run.is_safe()) return fence_forbids(run, std::nullopt);
  // As the journal records a sleep that is waited for in place.
  Settlement settlement =
      handed_back(EventKind::slept, Outcome::slept,
                  {{"key", end.key}, {"name", end.name}, {"until", format_time(end.until)}});
  settlement.at = end.until;
  return settlement;
}

Settlement on(const Run& run, const Interrupted& end) {
  if (!run.is_safe()) return fence_forbids(run, std::nullopt);
  Json payload = Json::object();
  if (!end.why.empty()) payload["message"] = end.why;
  Settlement settlement = handed_back(EventKind::released, Outcome::released, std::move(payload));
  settlement.delay = end.delay;
  return settlement;
}

Settlement on(const Run& run, const WorkerLost& end) {
  const std::string step =
      run.pending ? fmt::format(" at step {}", run.pending->name) : std::string();
  Failure failure;
  failure.code = "worker_lost";
  failure.message = fmt::format("worker {} was lost{}", end.worker, step);
  if (!HOLDFAST_GUARD("decide_lost_safe", run.is_safe())) return fence_forbids(run, failure);
  if (!has_budget(run)) {
    const int failures = run.requeue_count - run.reclaim_count;
    std::string text = fmt::format("worker lost {}{}", times(run.reclaim_count + 1), step);
    if (failures > 0) text += fmt::format(", the run failed {} besides", times(failures));
    failure.message = fmt::format("{}; last: {}", text, end.worker);
    return dead_letter(Reason::retries_exhausted, std::move(failure));
  }
  Settlement settlement =
      handed_back(EventKind::reaped, Outcome::requeued, failure_payload(failure, true));
  settlement.charged = true;
  settlement.delay = Duration::zero();
  settlement.failure = std::move(failure);
  return settlement;
}

}  // namespace

Json failure_payload(const Failure& failure, bool charged) {
  return {{"class", to_word(failure.cls)},
          {"code", text_or_null(failure.code)},
          {"message", failure.message},
          {"provider", text_or_null(failure.provider)},
          {"model", text_or_null(failure.model)},
          {"charged", charged},
          {"available_at", nullptr},
          {"delay_source", text_or_null(failure.delay_source)}};
}

Settlement fence_forbids(const Run& run, const std::optional<Failure>& after) {
  Failure failure = after.value_or(Failure{});
  if (!after) failure.code = "unknown_outcome";
  const std::string step = run.pending ? run.pending->name : std::string("a write");
  std::string text = fmt::format("the outcome of {} is not known", step);
  if (run.pending) text += fmt::format(" (step {})", run.pending->step_key);
  if (!failure.message.empty()) text += fmt::format(": {}", failure.message);
  text += fmt::format(
      "; look whether it took effect, then `holdfast resolve {} --landed` or `--not-landed`",
      run.id);
  failure.message = std::move(text);
  return dead_letter(Reason::not_retryable, std::move(failure));
}

Settlement decide(const Run& run, const SegmentEnd& end, bool interactive, WallTime now,
                  double unit_random) {
  Settlement settlement = std::visit(
      [&](const auto& how) {
        if constexpr (std::is_same_v<std::decay_t<decltype(how)>, Failed>) {
          return on(run, how, interactive, now, unit_random);
        } else {
          return on(run, how);
        }
      },
      end);
  settlement.executor_ended = has_own_fence(run) && saw_its_work_end(end);
  return settlement;
}

}  // namespace holdfast
