// The table of commands: those that execute runs.

#include "cli/command.hpp"
#include "cli/commands.hpp"

namespace holdfast {
namespace {

std::vector<OptionText> input_options() {
  return {{"--input", "TEXT", "the request, as text"},
          {"--input-file", "FILE", "the request from a file, as text; - reads standard input"},
          {"--input-json", "JSON", "the request as a JSON value"},
          {"--label", "KEY=VALUE", "attach a label", true},
          {"--budget", "KEY=VALUE",
           "limit tokens, cost_usd, time, model_calls or tool_calls of this run; may be repeated "
           "(default: the agent's)",
           true}};
}

std::vector<OptionText> with_input(std::vector<OptionText> more) {
  auto options = input_options();
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

}  // namespace

std::vector<CommandText> execute_commands() {
  return {
      {"init",
       Group::execute,
       "write a starter configuration that needs no key",
       {},
       "Writes holdfast.toml (or the file that --config names) with a scripted provider, its "
       "script "
       "and a sample tool beside it, so that run and worker work at once, without a key and "
       "without "
       "a network. It never overwrites: if one of the files exists, nothing is written (exit 4).",
       {},
       {{"holdfast init", "write the starter files into this folder"},
        {"holdfast run hello --input \"What time is it?\"", "try them"}},
       write_starter},
      {"run",
       Group::execute,
       "execute an agent here and print its answer",
       {"AGENT", 1, 1},
       "Executes a run interactively, in this process. Steps are told on standard error as they "
       "happen, the answer goes to standard output. The first Ctrl-C cancels the run at its next "
       "boundary: what is under way is finished first, and a run whose last step that was "
       "completes. The second leaves it as it is (handover gives it to the workers). Exit code 5: "
       "the run waits for a person.",
       input_options(),
       {{"holdfast run triage --input \"My printer is on fire\"", "ask and wait for the answer"},
        {"holdfast run triage --input-file - < ticket.txt", "the request from standard input"}},
       run_agent},
      {"enqueue",
       Group::execute,
       "store a run for the workers and print its id",
       {"AGENT", 1, 1},
       "Stores a queued run and prints its id (with --json the run). With --inline the run is also "
       "claimed and executed here, under a lease, with the retries of a worker, and its answer is "
       "printed.",
       with_input(
           {{"--priority", "N", "higher is claimed first; may be negative (default 0)"},
            {"--delay", "DURATION", "not before this time has passed"},
            {"--at", "TIME", "not before this time (RFC 3339 with an offset)"},
            {"--idempotency-key", "KEY",
             "same key and content: the same run, whatever its state; other content: exit 4"},
            {"--max-requeues", "N", "budget of retries; 0: none (default: the agent's)"},
            {"--queue", "QUEUE", "the queue (default: the agent's)"},
            {"--inline", "", "execute it here, under a lease"}}),
       {{"holdfast enqueue triage --input \"My printer is on fire\" --label team=ops",
         "store a run"},
        {"holdfast enqueue report --input weekly --at 2026-11-02T06:00:00+01:00 "
         "--idempotency-key report-45",
         "once, not before Monday morning"}},
       enqueue_run},
      {"worker",
       Group::execute,
       "execute queued runs until stopped",
       {},
       "Claims and executes queued runs of the configured agents, and reaps runs of workers that "
       "died. SIGTERM or SIGINT: claim no more, let steps reach their boundary within the grace, "
       "hand the runs back, exit 0. A second signal: stop at once.",
       {{"--concurrency", "N", "runs executed at the same time (default 8)"},
        {"--queue", "QUEUE",
         "serve these queues: one or several words, may be repeated (default: all)", true},
        {"--name", "NAME", "a name shown beside the worker's identity"},
        {"--drain", "", "stop when no run is claimable now and none is in progress"},
        {"--grace", "DURATION", "time for steps to reach their boundary (default 30s)"}},
       {{"holdfast worker --concurrency 16", "serve all queues"},
        {"holdfast worker --queue mail reports --drain", "empty two queues and stop"}},
       run_worker},
  };
}

}  // namespace holdfast
