// A person's answer to a run that waits for one (spec, section 8).

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/guard.hpp"
#include "core/validate.hpp"
#include "runtime/checked_value.hpp"
#include "runtime/front.hpp"

namespace holdfast {
namespace {

std::string_view verb_of(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::approve:
      return "approve";
    case DecisionKind::deny:
      return "deny";
    case DecisionKind::input:
      return "give input to";
  }
  return {};
}

[[noreturn]] void refuse_conflict(const Run& run, DecisionKind kind, const std::string& why,
                                  WallTime now) {
  throw RefusedError(Refusal::conflict,
                     fmt::format("cannot {} run {}, which is {}: {}; {}", verb_of(kind), run.id,
                                 run.status.text(), why, help_for(run, now)));
}

void need_waiting_for_this(const Run& run, DecisionKind kind, WallTime now) {
  const bool is_input = kind == DecisionKind::input;
  const auto wanted = is_input ? Status::waiting_for_input : Status::waiting_for_approval;
  if (run.status.is(wanted) && run.waiting_for) return;
  refuse_conflict(
      run, kind, is_input ? "it does not wait for input" : "it does not wait for an approval", now);
}

void need_call(const Run& run, const Decision& decision) {
  if (!decision.call) return;
  const auto& calls = run.waiting_for->calls;
  std::vector<std::string> ids;
  for (const auto& call : calls) ids.push_back(call.id);
  if (std::find(ids.begin(), ids.end(), *decision.call) != ids.end()) return;
  throw RefusedError(Refusal::not_found,
                     fmt::format("run {} has no pending call \"{}\"; pending: {}", run.id,
                                 *decision.call, fmt::join(ids, ", ")));
}

/// Before anything is claimed: values that do not fit leave the run waiting.
void need_fitting_values(const Run& run, const Json& values, const Limits& limits) {
  check_value("values", values, limits.request_bytes, limits.depth);
  const auto& schema = run.waiting_for->schema;
  const auto errors = schema_errors(schema.is_null() ? Json::object() : schema, values);
  if (HOLDFAST_GUARD("decide_values_fit", errors.empty())) return;
  throw RefusedError(Refusal::usage,
                     fmt::format("these values do not fit what run {} asks for: {}; `holdfast show "
                                 "{}` has the schema",
                                 run.id, fmt::join(errors, "; "), run.id));
}

bool continues_inline(const Run& run, Decision::Continue go_on) {
  switch (go_on) {
    case Decision::Continue::by_origin:
      return run.origin.is(Origin::interactive);
    case Decision::Continue::queue:
      return false;
    case Decision::Continue::inline_segment:
      return true;
  }
  return false;
}

}  // namespace

DecisionResult Front::decide(const Decision& decision, const Observer& observer,
                             std::stop_token stop) {
  const auto run = get(decision.run);
  const auto now = store_->wall_now();
  need_waiting_for_this(run, decision.kind, now);
  if (decision.turn && *decision.turn != run.waiting_for->turn) {
    refuse_conflict(run, decision.kind,
                    fmt::format("the turn {} has moved on, what is pending now is {}",
                                *decision.turn, run.waiting_for->turn),
                    now);
  }
  need_call(run, decision);
  if (decision.kind == DecisionKind::input) {
    need_fitting_values(run, decision.values, options_.limits);
  }

  auto guarded = decision;
  guarded.turn = run.waiting_for->turn;
  guarded.by = minted(decision.by);
  Continuation continuation;
  std::unique_ptr<InlineExecutor> executor;
  if (continues_inline(run, decision.go_on)) {
    need_executable(run);
    begin_to_execute();
    executor = make_inline_executor(env_, *store_, handlers_, engine_options());
    // Who started it goes on without a lease, as it began (spec, section 2 "interactive segment").
    continuation = {true, executor->id(), run.origin.is(Origin::interactive)};
  }
  auto change = until_answered(env_, [&](bool) { return store_->answer(guarded, continuation); });
  DecisionResult result{applied_run(run.id, change, verb_of(decision.kind)), std::nullopt};
  // Not continued: other calls of the turn are still undecided.
  if (!executor || !change.continued) return result;
  result.segment = drive(*executor, std::move(change.continued), run, observer, stop);
  result.run = result.segment->run;
  return result;
}

}  // namespace holdfast
