// The life of a segment: it begins (enqueue, start, claim), writes (renew, record, fence) and ends
// (settle, acknowledge a cancel).

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

/// What every new row begins with, whatever its maker left in it.
Run blank(const NewRun& request, const Now& now) {
  Run row = request.row;
  row.reason.reset();
  row.answer.reset();
  row.error.reset();
  row.created_at = now.wall;
  row.available_at.reset();
  row.started_at.reset();
  row.finished_at.reset();
  drop_claim(row);
  row.claim = 0;
  row.failing_since.reset();
  row.requeue_count = row.reclaim_count = row.redrive_count = 0;
  row.pending.reset();
  row.iterations = 0;
  row.usage = Usage{};
  row.waiting_for.reset();
  row.has_policy = request.policy_given;
  row.last_sequence = 0;
  row.abandoned = false;
  return row;
}

Json request_payload(const Run& row) {
  // Not by an initializer list, which would copy every text twice more.
  Json payload = Json::object();
  payload["agent"] = row.agent;
  payload["queue"] = row.queue;
  payload["priority"] = row.priority;
  return payload;
}

void clear_fence_of(Run& row, const std::string& step_key) {
  if (row.pending && row.pending->step_key == step_key) row.pending.reset();
}

/// The step's event with what belongs to it.
void append_step(const StepRecord& record, const Lease& lease, Run& row,
                 std::vector<NewEvent>& events) {
  for (const NewEvent& event : record.before) {
    events.push_back(event);
    events.back().claim = lease.claim;
  }
  events.push_back({record.kind, lease.claim, record.payload});
  if (record.usage) row.usage += *record.usage;
  if (record.counts_iteration) ++row.iterations;
}

}  // namespace

Change enqueued(const NewRun& request, const Now& now) {
  Run row = blank(request, now);
  row.status = Status::queued;
  row.origin = Origin::queued;
  row.available_at = request.delay ? later(now.wall, std::max(Duration::zero(), *request.delay))
                                   : std::max(now.wall, request.at.value_or(now.wall));
  Json payload = request_payload(row);
  payload["available_at"] = format_time(*row.available_at);
  return Change{std::move(row), {{EventKind::queued, 0, std::move(payload)}}};
}

Change started(const NewRun& request, const WorkerId& holder, const Now& now) {
  Run row = blank(request, now);
  row.status = Status::running;
  row.origin = Origin::interactive;
  row.started_at = now.wall;
  row.claimed_by = holder;
  row.claim = 1;
  Json payload = request_payload(row);
  payload["worker"] = holder;
  return Change{std::move(row), {{EventKind::started, 1, std::move(payload)}}};
}

Transition claimed(const Run& run, const WorkerId& worker, const AgentOffer& offer,
                   const Now& now) {
  if (auto declined = decline_unknown(run)) return *declined;
  if (!HOLDFAST_GUARD("claim_queued", run.status.is(Status::queued))) {
    return Declined{Declined::Kind::conflict,
                    fmt::format("run {} is {}, not queued", run.id, run.status.text())};
  }
  if (!HOLDFAST_GUARD("claim_due", run.available_at.value_or(now.wall) <= now.wall)) {
    return Declined{Declined::Kind::conflict, fmt::format("run {} is not due before {}", run.id,
                                                          format_time(*run.available_at))};
  }
  if (run.agent != offer.name) {
    return Declined{Declined::Kind::conflict,
                    fmt::format("run {} is one of {}, not of {}", run.id, run.agent, offer.name)};
  }
  if (!HOLDFAST_GUARD("claim_safe", run.is_safe())) {
    return Declined{Declined::Kind::fenced, fmt::format("the outcome of {} of run {} is not known",
                                                        run.pending->name, run.id)};
  }
  Run row = run;
  if (!row.has_policy) {
    row.policy = offer.policy;
    row.has_policy = true;
    if (row.max_requeues < 0) row.max_requeues = row.policy.max_requeues;
  }
  const bool takes_definition = row.definition.is_null() && !offer.definition.is_null();
  if (takes_definition) row.definition = offer.definition;
  row.status = Status::running;
  row.claimed_by = worker;
  ++row.claim;
  give_lease(row, now);
  row.available_at.reset();
  if (!row.started_at) row.started_at = now.wall;
  const std::int64_t claim = row.claim;
  Change change =
      make_change(run, std::move(row), {{EventKind::claimed, claim, {{"worker", worker}}}});
  change.definition_changed = takes_definition;
  return change;
}

Transition renewed(const Run& run, const Lease& lease, const Now& now) {
  if (auto declined = decline_not_mine(run, lease, now)) return *declined;
  Run row = run;
  renew_lease(row, now);
  return make_change(run, std::move(row), {});
}

Transition recorded(const Run& run, const Lease& lease, const StepRecord& record,
                    bool already_recorded, const Now& now) {
  const auto declined = decline_not_mine(run, lease, now);
  const bool is_cancelled = declined && declined->kind == Declined::Kind::cancelled;
  if (declined && !is_cancelled) return *declined;
  Run row = run;
  std::vector<NewEvent> events;
  if (!is_cancelled && record.renews) renew_lease(row, now);
  if (HOLDFAST_GUARD("record_once", !already_recorded)) {
    append_step(record, lease, row, events);
  }
  clear_fence_of(row, record.key);
  return make_change(run, std::move(row), std::move(events));
}

Transition fenced(const Run& run, const Lease& lease, const Fence& fence, const Now& now) {
  if (auto declined = decline_not_mine(run, lease, now)) return *declined;
  Run row = run;
  renew_lease(row, now);
  // After a lost reply the same fence is asked for again: its work has not begun yet.
  const bool is_repeated =
      run.pending && run.pending->step_key == fence.step_key && run.pending->claim == lease.claim;
  if (!HOLDFAST_GUARD("fence_clean", run.is_clean() || is_repeated)) {
    return Declined{Declined::Kind::fenced,
                    fmt::format("run {}: the outcome of {} is not known, so {} must not start",
                                run.id, run.pending->name, fence.name)};
  }
  row.pending = fence;
  row.pending->since = now.wall;
  row.pending->deadline = now.store + fence.timeout;
  row.pending->claim = lease.claim;
  return make_change(run, std::move(row), {});
}

Transition unfenced(const Run& run, const Lease& lease, const Unfence& request, const Now& now) {
  if (auto declined = decline_not_mine(run, lease, now)) return *declined;
  if (!run.pending) return make_change(run, run, {});
  const Fence& fence = *run.pending;
  if (fence.step_key != request.step_key) {
    return Declined{Declined::Kind::conflict,
                    fmt::format("run {}: the fence is of step {}, not of {}", run.id,
                                fence.step_key, request.step_key)};
  }
  if (fence.claim != lease.claim) {
    const bool is_probed = request.event && request.event->kind == EventKind::probed;
    if (!HOLDFAST_GUARD("unfence_probed", is_probed)) {
      return Declined{
          Declined::Kind::fenced,
          fmt::format("run {}: step {} was fenced by an earlier claim", run.id, fence.step_key)};
    }
    if (!HOLDFAST_GUARD("unfence_deadline", fence.deadline <= now.store)) {
      return Declined{
          Declined::Kind::conflict,
          fmt::format("run {}: step {} may still be under way", run.id, fence.step_key)};
    }
  }
  Run row = run;
  row.pending.reset();
  std::vector<NewEvent> events;
  if (request.event) {
    events.push_back(*request.event);
    events.back().claim = lease.claim;
  }
  return make_change(run, std::move(row), std::move(events));
}

namespace {

void settle_queued(Run& row, const Settlement& settlement, const Now& now, Json& payload) {
  const WallTime due = settlement.at ? std::max(now.wall, *settlement.at)
                                     : later(now.wall, settlement.delay.value_or(Duration::zero()));
  make_queued(row, due);
  payload["available_at"] = format_time(due);
  if (settlement.charged) ++row.requeue_count;
  if (settlement.failure) {
    row.error = settlement.failure;
    if (!row.failing_since) row.failing_since = now.wall;
  }
}

void settle_waiting(Run& row, const Settlement& settlement, const Now& now, Json& payload) {
  drop_claim(row);
  row.status = settlement.next;
  row.available_at.reset();
  row.waiting_for = settlement.wait;
  if (!row.waiting_for) return;
  Wait& wait = *row.waiting_for;
  if (wait.timeout) wait.deadline = later(now.wall, *wait.timeout);
  for (GatedCall& call : wait.calls) call.decision = Verdict::undecided;
  payload["deadline"] = wait.deadline ? Json(format_time(*wait.deadline)) : Json();
}

void settle_ended(Run& row, const Settlement& settlement, const Now& now) {
  drop_claim(row);
  row.status = settlement.next;
  row.reason = settlement.reason ? std::optional<Word<Reason>>(*settlement.reason) : std::nullopt;
  row.available_at.reset();
  row.finished_at = now.wall;
  if (settlement.next != Status::completed) return;
  row.answer = settlement.answer;
  row.error.reset();
  row.pending.reset();  // `permitted` has seen that it is clean: what stands may be repeated
}

}  // namespace

Transition settled(const Run& run, const Lease& lease, const Settlement& wanted, const Now& now) {
  if (auto declined = decline_not_mine(run, lease, now)) return *declined;
  Run row = run;
  const bool is_own_fence = row.pending && row.pending->claim == lease.claim;
  if (is_own_fence && wanted.clears_fence) {
    row.pending.reset();
  } else if (is_own_fence && wanted.executor_ended) {
    believe_not_landed_from(row, now.store);
  }
  const Settlement settlement = permitted(row, wanted);
  Json payload = settlement.payload;
  switch (settlement.next) {
    case Status::queued:
      settle_queued(row, settlement, now, payload);
      break;
    case Status::waiting_for_approval:
    case Status::waiting_for_input:
      settle_waiting(row, settlement, now, payload);
      break;
    case Status::failed:
      make_failed(row, settlement, now);
      break;
    case Status::completed:
    case Status::cancelled:
    case Status::running:  // refused by `permitted`
      settle_ended(row, settlement, now);
      break;
  }
  std::vector<NewEvent> events;
  if (!wanted.probed.is_null()) events.push_back({EventKind::probed, lease.claim, wanted.probed});
  events.push_back({settlement.event, lease.claim, std::move(payload)});
  Change change = make_change(run, std::move(row), std::move(events));
  change.answer_changed = settlement.next == Status::completed;
  return change;
}

Transition cancel_acknowledged(const Run& run, const Lease& lease, const Now&) {
  if (auto declined = decline_unknown(run)) return *declined;
  if (!run.status.is(Status::cancelled) || run.claim != lease.claim) {
    return Declined{Declined::Kind::not_mine,
                    fmt::format("run {} is {} at claim {}", run.id, run.status.text(), run.claim)};
  }
  if (!run.claimed_by) {
    return Declined{Declined::Kind::unchanged, fmt::format("run {} has no holder", run.id)};
  }
  if (run.claimed_by != lease.holder) {
    return Declined{Declined::Kind::not_mine, fmt::format("run {} is another's", run.id)};
  }
  Run row = run;
  row.claimed_by.reset();
  return make_change(run, std::move(row), {});
}

}  // namespace holdfast
