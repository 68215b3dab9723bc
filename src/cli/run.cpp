// `run` and `enqueue`: new runs.

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/format.hpp"
#include "cli/support.hpp"

namespace holdfast {
namespace {

/// Without a configuration there are no agents at all; say where one was looked for.
void need_agents(Invocation& call) {
  if (call.host.config_file()) return;
  throw RefusedError(Refusal::not_found,
                     fmt::format("there is no agent \"{}\": no configuration was found (--config, "
                                 "$HOLDFAST_CONFIG, ./holdfast.toml); `holdfast init` writes one",
                                 cut(clean_utf8(call.args.operand()), 80)));
}

RunRequest request_of(Invocation& call) {
  RunRequest request;
  request.agent = clean_utf8(call.args.operand());
  request.labels = call.args.labels();
  request.budget = call.args.budget();
  need_agents(call);
  request.input = input_of(call);
  return request;
}

}  // namespace

int run_agent(Invocation& call) {
  const auto request = request_of(call);
  Progress progress(call.out);
  auto& runtime = call.host.runtime();
  const StopOnSignal stop(call, "leaves the run as it is");
  return progress.finish(runtime.run(request, progress.observer(), stop.token()), stop);
}

int enqueue_run(Invocation& call) {
  const auto& args = call.args;
  const auto priority = args.find_integer("--priority", std::numeric_limits<int>::min());
  const auto max_requeues = args.find_integer("--max-requeues", 0);
  const auto delay = args.find_duration("--delay");
  const auto at = args.find_time("--at");
  if (delay && at) {
    throw RefusedError(Refusal::usage, "give --delay or --at, not both");
  }
  auto request = request_of(call);
  request.priority = priority.value_or(0);
  request.max_requeues = max_requeues;
  request.delay = delay;
  request.at = at;
  request.queue = args.find_text("--queue");
  request.idempotency_key = args.find_text("--idempotency-key");
  auto& runtime = call.host.runtime();
  if (!args.has("--inline")) {
    const auto run = runtime.enqueue(request);
    print_run(call, run, safe_line(run.id));
    return kDone;
  }
  Progress progress(call.out);
  const StopOnSignal stop(call, "leaves the run to the workers");
  return progress.finish(runtime.run_inline(request, progress.observer(), stop.token()), stop);
}

}  // namespace holdfast
