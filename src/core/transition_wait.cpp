// What a waiting run waits for is decided by a person, or nobody decides in time (spec, section 8).

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

EventKind event_of(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::approve:
      return EventKind::approved;
    case DecisionKind::deny:
      return EventKind::denied;
    case DecisionKind::input:
      return EventKind::input_submitted;
  }
  return EventKind::denied;
}

Status status_for(DecisionKind kind) {
  return kind == DecisionKind::input ? Status::waiting_for_input : Status::waiting_for_approval;
}

bool is_over(const Wait& wait, const Now& now) {
  return wait.deadline && *wait.deadline <= now.wall;
}

bool is_undecided(const Wait& wait) {
  return std::any_of(wait.calls.begin(), wait.calls.end(),
                     [](const GatedCall& call) { return call.decision == Verdict::undecided; });
}

std::optional<Declined> decline_decision(const Run& run, const Decision& decision, const Now& now) {
  if (auto declined = decline_unknown(run)) return declined;
  if (!HOLDFAST_GUARD("answer_waiting", run.status.is(status_for(decision.kind))) ||
      !run.waiting_for) {
    return conflict(fmt::format("run {} is {}, not {}", run.id, run.status.text(),
                                to_word(status_for(decision.kind))));
  }
  const Wait& wait = *run.waiting_for;
  if (!HOLDFAST_GUARD("answer_turn", !decision.turn || *decision.turn == wait.turn)) {
    return conflict(
        fmt::format("run {} now waits for another turn ({}); look at it again", run.id, wait.turn));
  }
  if (!HOLDFAST_GUARD("answer_deadline", !is_over(wait, now))) {
    return conflict(fmt::format("run {}: too late, the time to decide ended at {}", run.id,
                                format_time(*wait.deadline)));
  }
  return std::nullopt;
}

/// Stores the verdict with the calls it is about; their ids and verdicts for the event. Nothing
/// where there is no such undecided call.
std::optional<Json> decide_calls(Wait& wait, const Decision& decision) {
  const Verdict verdict = decision.kind == DecisionKind::deny ? Verdict::denied : Verdict::approved;
  Json decided = Json::array();
  for (GatedCall& call : wait.calls) {
    if (decision.call && call.id != *decision.call) continue;
    if (!HOLDFAST_GUARD("answer_once", call.decision == Verdict::undecided)) continue;
    call.decision = verdict;
    decided.push_back({{"id", call.id}, {"decision", to_word(verdict)}});
  }
  if (decided.empty() && (decision.call || !wait.calls.empty())) return std::nullopt;
  return decided;
}

Declined decline_call(const Run& run, const Decision& decision) {
  if (!decision.call) return conflict(fmt::format("run {}: every call is decided", run.id));
  const auto& calls = run.waiting_for->calls;
  const auto found = std::find_if(calls.begin(), calls.end(),
                                  [&](const GatedCall& call) { return call.id == *decision.call; });
  if (found == calls.end()) {
    return conflict(fmt::format("run {} waits for no call {}", run.id, *decision.call));
  }
  return conflict(fmt::format("call {} of run {} is {} already", *decision.call, run.id,
                              to_word(found->decision)));
}

void continue_inline(Run& row, const Continuation& how, const Now& now,
                     std::vector<NewEvent>& events) {
  row.waiting_for.reset();
  row.available_at.reset();
  row.status = Status::running;
  row.claimed_by = how.worker;
  ++row.claim;
  if (!how.interactive) {
    row.origin = Origin::queued;
    give_lease(row, now);
  }
  events.push_back({EventKind::claimed, row.claim, {{"worker", how.worker}}});
}

}  // namespace

Transition answered(const Run& run, const Decision& decision, const Continuation& how,
                    const Now& now) {
  if (auto declined = decline_decision(run, decision, now)) return *declined;
  Run row = run;
  const auto decided = decide_calls(*row.waiting_for, decision);
  if (!decided) return decline_call(run, decision);
  Json payload = operator_payload(decision.by);
  payload["turn"] = row.waiting_for->turn;
  payload["calls"] = *decided;
  if (decision.kind == DecisionKind::input) payload["values"] = decision.values;
  std::vector<NewEvent> events;
  events.push_back({event_of(decision.kind), run.claim, std::move(payload)});
  if (!is_undecided(*row.waiting_for)) {
    if (how.inline_segment) {
      continue_inline(row, how, now, events);
    } else {
      make_queued(row, now.wall);
    }
  }
  return make_change(run, std::move(row), std::move(events));
}

Transition wait_expired(const Run& run, const Now& now) {
  if (auto declined = decline_unknown(run)) return *declined;
  const auto status = run.status.known();
  if (!is_waiting(*status) || !run.waiting_for ||
      !HOLDFAST_GUARD("wait_over", is_over(*run.waiting_for, now))) {
    return conflict(fmt::format("run {} waits for nothing whose time is over", run.id));
  }
  const Wait& wait = *run.waiting_for;
  Json calls = Json::array();
  std::string ending;
  for (const GatedCall& call : wait.calls) {
    if (call.decision == Verdict::undecided) {
      calls.push_back({{"id", call.id}, {"decision", to_word(Verdict::expired)}});
    }
    if (call.ends_on_denial && call.decision != Verdict::approved) ending = call.name;
  }
  std::vector<NewEvent> events;
  events.push_back({EventKind::expired, run.claim, {{"turn", wait.turn}, {"calls", calls}}});
  Run row = run;
  if (ending.empty()) {
    make_queued(row, now.wall);
    return make_change(run, std::move(row), std::move(events));
  }
  Settlement settlement;
  settlement.reason = Reason::approval_denied;
  settlement.failure.emplace();
  settlement.failure->code = to_word(Reason::approval_denied);
  settlement.failure->message =
      fmt::format("{} was not approved in time, and a denial ends the run", ending);
  make_failed(row, settlement, now);
  Json payload = failure_payload(*settlement.failure, false);
  payload["reason"] = to_word(Reason::approval_denied);
  events.push_back({EventKind::failed, run.claim, std::move(payload)});
  return make_change(run, std::move(row), std::move(events));
}

}  // namespace holdfast
