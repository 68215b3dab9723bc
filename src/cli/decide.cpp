// `approve`, `deny`, `input`, `resolve`: a person's words about a run.

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/format.hpp"
#include "cli/support.hpp"

namespace holdfast {
namespace {

Decision::Continue continuation_of(const Args& args) {
  const bool queue = args.has("--queue");
  const bool inline_segment = args.has("--inline");
  if (queue && inline_segment) {
    throw RefusedError(Refusal::usage, "give --queue or --inline, not both");
  }
  if (queue) return Decision::Continue::queue;
  return inline_segment ? Decision::Continue::inline_segment : Decision::Continue::by_origin;
}

/// Shows what is being decided, so that a decision without --turn is one on what was read.
void show_wait(Output& out, const Wait& wait) {
  for (const auto& gated : wait.calls) {
    out.note(fmt::format("call {}: {} {}", safe_line(gated.id), safe_line(gated.name),
                         safe_line(dump_json(gated.arguments))));
  }
}

/// Takes the decision and tells what became of the run.
int take(Invocation& call, Decision decision) {
  const auto& args = call.args;
  decision.run = args.operand();
  decision.by = operator_of(call);
  decision.go_on = continuation_of(args);
  decision.call = args.find_text("--call");
  decision.turn = args.find_text("--turn");
  auto& runtime = call.host.runtime();
  if (!decision.turn) {
    const auto run = runtime.get(decision.run);
    if (run.waiting_for) {
      decision.turn = run.waiting_for->turn;
      show_wait(call.out, *run.waiting_for);
    }
  }
  Progress progress(call.out);
  const StopOnSignal stop(call, "leaves the run as it is");
  const auto result = runtime.decide(decision, progress.observer(), stop.token());
  if (result.segment) return progress.finish(*result.segment, stop);
  print_run(call, result.run, state_line(result.run));
  return kDone;
}

}  // namespace

int approve_call(Invocation& call) {
  Decision decision;
  decision.kind = DecisionKind::approve;
  return take(call, std::move(decision));
}

int deny_call(Invocation& call) {
  Decision decision;
  decision.kind = DecisionKind::deny;
  return take(call, std::move(decision));
}

int submit_input(Invocation& call) {
  Decision decision;
  decision.kind = DecisionKind::input;
  auto values = call.args.find_json("--values", call.host.options().limits.depth);
  if (!values) {
    throw RefusedError(Refusal::usage,
                       "--values is missing: expected a JSON object such as "
                       "'{\"amount\": 12}'");
  }
  decision.values = std::move(*values);
  return take(call, std::move(decision));
}

int resolve_write(Invocation& call) {
  const auto& args = call.args;
  ResolveRequest request;
  request.run = args.operand();
  request.landed = args.has("--landed");
  if (request.landed == args.has("--not-landed")) {
    throw RefusedError(Refusal::usage,
                       "say what became of the write: --landed or --not-landed (one of them)");
  }
  if (auto result = args.find_json("--result", call.host.options().limits.depth)) {
    if (!request.landed) {
      throw RefusedError(Refusal::usage, "--result goes with --landed: what the write returned");
    }
    request.result = std::move(*result);
  }
  request.force = args.has("--force");
  request.step = args.find_text("--step");
  request.by = operator_of(call);
  auto& runtime = call.host.runtime();
  if (!request.step) {
    const auto run = runtime.get(request.run);
    if (run.pending) {
      request.step = run.pending->step_key;
      call.out.note(fmt::format("step {}: {} {}", safe_line(run.pending->step_key),
                                safe_line(run.pending->name),
                                safe_line(dump_json(run.pending->arguments))));
    }
  }
  const auto run = runtime.resolve(request);
  print_run(call, run, state_line(run));
  return kDone;
}

}  // namespace holdfast
