// What operators do to runs: cancel, hand over, resolve, redrive, wake, purge (spec, sections 3 and
// 8).

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/transition.hpp"
#include "core/transition_detail.hpp"

namespace holdfast {

using namespace detail;  // NOLINT(google-build-using-namespace)

namespace {

/// A failed run begins a new drive: counts and budgets from zero, agent taken anew, journal kept.
void drive_anew(Run& row, const Now& now) {
  make_queued(row, now.wall);
  row.reason.reset();
  row.error.reset();
  row.finished_at.reset();
  row.failing_since.reset();
  row.requeue_count = 0;
  row.reclaim_count = 0;
  ++row.redrive_count;
  row.iterations = 0;
  row.usage = Usage{};
  row.definition = nullptr;
}

/// The event that the step itself would have appended.
NewEvent landed_event(const Run& run, const Json& result) {
  const Fence& fence = *run.pending;
  const EventKind kind = fence.name.starts_with("tool:") ? EventKind::tool : EventKind::step;
  return {kind,
          run.claim,
          {{"name", fence.name},
           {"key", fence.step_key},
           {"effect", to_word(fence.effect)},
           {"arguments", fence.arguments},
           {"result", result}}};
}

std::optional<Declined> decline_resolve(const Run& run, const ResolveRequest& request,
                                        const Now& now) {
  if (auto declined = decline_unknown(run)) return declined;
  if (!HOLDFAST_GUARD("resolve_failed", run.status.is(Status::failed))) {
    return conflict(fmt::format("run {} is {}, not failed", run.id, run.status.text()));
  }
  if (!run.is_fenced_unsafe()) {
    return conflict(fmt::format("run {} has no write of unknown outcome", run.id));
  }
  const Fence& fence = *run.pending;
  if (!HOLDFAST_GUARD("resolve_step", !request.step || *request.step == fence.step_key)) {
    return conflict(fmt::format("run {}: the write of unknown outcome is step {}, not {}", run.id,
                                fence.step_key, *request.step));
  }
  if (!request.landed && !request.force &&
      !HOLDFAST_GUARD("resolve_deadline", fence.deadline <= now.store)) {
    const WallTime when = later(now.wall, fence.deadline - now.store);
    return conflict(fmt::format(
        "run {}: {} may still be under way; \"not landed\" is accepted from {} on "
        "(in {}), or with --force",
        run.id, fence.name, format_time(when), format_duration(fence.deadline - now.store)));
  }
  return std::nullopt;
}

}  // namespace

Transition cancelled(const Run& run, const Operator& by, const Now& now) {
  if (auto declined = decline_unknown(run)) return *declined;
  if (run.status.is(Status::cancelled)) {
    return Declined{Declined::Kind::unchanged, fmt::format("run {} is cancelled", run.id)};
  }
  if (!HOLDFAST_GUARD("cancel_not_terminal", !is_terminal(*run.status.known()))) {
    return conflict("it has ended already");
  }
  Run row = run;
  row.status = Status::cancelled;
  row.reason = Word<Reason>(Reason::cancelled);
  row.lease_until.reset();
  row.lease_expires_at.reset();
  row.lease_lost_by_presence = false;
  row.available_at.reset();
  row.waiting_for.reset();
  row.finished_at = now.wall;
  return make_change(run, std::move(row),
                     {{EventKind::cancelled, run.claim, operator_payload(by)}});
}

Transition handed_over(const Run& run, bool process_gone, bool force, const Operator& by,
                       const Now& now) {
  if (auto declined = decline_unknown(run)) return *declined;
  if (!run.status.is(Status::running)) {
    return conflict(fmt::format("run {} is {}, not running", run.id, run.status.text()));
  }
  if (!HOLDFAST_GUARD("hand_over_unleased", !run.lease_until)) {
    return conflict(
        fmt::format("run {} is held under a lease by {}; if that worker dies, it is "
                    "taken over by itself",
                    run.id, run.claimed_by.value_or("a worker")));
  }
  if (!HOLDFAST_GUARD("hand_over_gone", process_gone || force)) {
    return conflict(
        fmt::format("the process of run {} ({}) is not known to be gone; --force hands "
                    "it over all the same",
                    run.id, run.claimed_by.value_or("unknown")));
  }
  Json payload = operator_payload(by);
  payload["worker"] = run.claimed_by ? Json(*run.claimed_by) : Json();
  payload["forced"] = !process_gone;
  Run row = run;
  if (process_gone) believe_not_landed_from(row, now.store + kGuardianTime);
  row.origin = Origin::queued;
  std::vector<NewEvent> events;
  if (run.is_safe()) {
    make_queued(row, now.wall);
    payload["available_at"] = format_time(now.wall);
    events.push_back({EventKind::handed_over, run.claim, std::move(payload)});
  } else {
    const Settlement settlement = fence_forbids(run, std::nullopt);
    make_failed(row, settlement, now);
    events.push_back({EventKind::handed_over, run.claim, std::move(payload)});
    events.push_back({EventKind::failed, run.claim, settlement.payload});
  }
  return make_change(run, std::move(row), std::move(events));
}

Transition resolved(const Run& run, const ResolveRequest& request, const Now& now) {
  if (auto declined = decline_resolve(run, request, now)) return *declined;
  std::vector<NewEvent> events;
  if (request.landed) events.push_back(landed_event(run, request.result));
  Json payload = operator_payload(request.by);
  payload["landed"] = request.landed;
  payload["step"] = run.pending->step_key;
  payload["available_at"] = format_time(now.wall);
  events.push_back({EventKind::resolved, run.claim, std::move(payload)});
  Run row = run;
  row.pending.reset();
  drive_anew(row, now);
  Change change = make_change(run, std::move(row), std::move(events));
  change.definition_changed = true;
  return change;
}

Transition redriven(const Run& run, const Operator& by, const Now& now) {
  if (auto declined = decline_unknown(run)) return *declined;
  if (!HOLDFAST_GUARD("redrive_failed", run.status.is(Status::failed))) {
    return conflict(fmt::format("run {} is {}, not failed", run.id, run.status.text()));
  }
  if (!HOLDFAST_GUARD("redrive_safe", run.is_safe())) {
    return Declined{Declined::Kind::fenced,
                    fmt::format("run {}: the outcome of {} is not known; `holdfast resolve {}` "
                                "with --landed or --not-landed first",
                                run.id, run.pending->name, run.id)};
  }
  Json payload = operator_payload(by);
  payload["available_at"] = format_time(now.wall);
  Run row = run;
  drive_anew(row, now);
  Change change =
      make_change(run, std::move(row), {{EventKind::redriven, run.claim, std::move(payload)}});
  change.definition_changed = true;
  return change;
}

Transition woken(const Run& run, const Operator& by, const Now& now) {
  if (auto declined = decline_unknown(run)) return *declined;
  if (!run.status.is(Status::queued)) {
    return conflict(fmt::format("run {} is {}, not queued", run.id, run.status.text()));
  }
  if (!run.available_at || *run.available_at <= now.wall) {
    return conflict(fmt::format("it is available already, since {}",
                                format_time(run.available_at.value_or(run.created_at))));
  }
  Json payload = operator_payload(by);
  payload["available_at"] = format_time(now.wall);
  Run row = run;
  row.available_at = now.wall;
  return make_change(run, std::move(row), {{EventKind::woken, run.claim, std::move(payload)}});
}

bool may_purge(const Run& run, WallTime last_event, bool process_gone, const PurgeRequest& request,
               const Now& now) {
  const auto status = run.status.known();
  if (!status) return false;
  if (!request.ids.empty() &&
      std::find(request.ids.begin(), request.ids.end(), run.id) == request.ids.end()) {
    return false;
  }
  const auto is_older = [&](WallTime time, const std::optional<Duration>& age) {
    return age && time <= now.wall - *age;
  };
  if (request.spares_unknown_writes && run.is_fenced_unsafe()) return false;
  switch (*status) {
    case Status::completed:
    case Status::failed:
    case Status::cancelled:
      return is_older(run.finished_at.value_or(last_event), request.older_than);
    case Status::waiting_for_approval:
    case Status::waiting_for_input:
      return is_older(last_event, request.unfinished_older_than);
    case Status::running:
      return !run.lease_until && process_gone &&
             is_older(last_event, request.unfinished_older_than);
    case Status::queued:
      return false;
  }
  return false;
}

}  // namespace holdfast
