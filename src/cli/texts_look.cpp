// The table of commands: those that show runs and processes.

#include "cli/command.hpp"
#include "cli/commands.hpp"

namespace holdfast {
namespace {

constexpr const char* kStatuses =
    "queued running waiting_for_approval waiting_for_input completed failed cancelled";
constexpr const char* kReasons =
    "completed budget_exhausted max_iterations policy_denied approval_denied provider_failed "
    "context_truncated retries_exhausted not_retryable cancelled";

}  // namespace

std::vector<CommandText> look_commands() {
  return {
      {"list",
       Group::look,
       "list runs, newest first",
       {},
       "Lists runs. A queued run whose agent no live worker serves is marked \"no worker\". With "
       "--json: {\"runs\": […], \"next\": CURSOR or null}.",
       {{"--status", "STATUS", "only runs with this status", false, kStatuses},
        {"--reason", "REASON", "only runs that ended for this reason", false, kReasons},
        {"--agent", "AGENT", "only runs of this agent"},
        {"--queue", "QUEUE", "only runs of this queue"},
        {"--label", "KEY=VALUE", "only runs with this label; may be repeated", true},
        {"--limit", "N", "at most so many (default 50)"},
        {"--after", "CURSOR", "go on behind a page before, with the same filter"}},
       {{"holdfast list --status failed", "what needs a look"},
        {"holdfast list --agent triage --label team=ops --json", "for programs"}},
       list_runs},
      {"show",
       Group::look,
       "show a run",
       {"ID", 1, 1},
       "Shows one run: state, request, answer, error, what it waits for, a write that is pending. "
       "With --json, `finish` is there only where the answer is not whole: `length`, cut at the "
       "model's token limit.",
       {},
       {{"holdfast show 0198c1f2-7d30-7000-8000-3b6f5a2c9e10", "one run"}},
       show_run},
      {"events",
       Group::look,
       "show what happened to a run",
       {"ID", 0, 1},
       "Prints the run's journal in order. With --json one array; with --follow one object per "
       "line, until the run has ended and nothing more can come. With --all the events of every "
       "run, in the order they were committed.",
       {{"--after", "N", "only events behind this sequence number"},
        {"--follow", "", "go on as events come, also after a restart of the store's server"},
        {"--all", "", "every run's events; no ID then"}},
       {{"holdfast events 0198c1f2-7d30-7000-8000-3b6f5a2c9e10", "the history of a run"},
        {"holdfast events --all --follow --json", "a feed for other programs"}},
       show_events},
      {"wait",
       Group::look,
       "wait until runs end or wait for a person",
       {"ID", 1, kMany},
       "Waits until each run is terminal or waits for a person, and prints one line for each. Exit "
       "code 1: one ended failed or cancelled, or the time was over; 5: one waits for a person.",
       {{"--timeout", "DURATION", "wait no longer than this, over all ids (default: for ever)"}},
       {{"holdfast wait 0198c1f2-7d30-7000-8000-3b6f5a2c9e10 --timeout 10m",
         "at most ten minutes"}},
       wait_for_runs},
      {"why",
       Group::look,
       "say in plain words where a run stands",
       {"ID", 1, 1},
       "Says where the run stands, what it waits for, what happened to it, what will happen next "
       "and when, and what a person could do, as commands. With --json the facts too.",
       {},
       {{"holdfast why 0198c1f2-7d30-7000-8000-3b6f5a2c9e10", "ask about a run"}},
       explain_run},
      {"stats",
       Group::look,
       "count runs, leases and workers",
       {},
       "Counts runs by status and reason, those due and delayed, the age of the oldest due run, "
       "leases held and stale, and runs that no live worker serves.",
       {},
       {{"holdfast stats", "for people"}, {"holdfast stats --json", "for programs"}},
       show_stats},
      {"workers",
       Group::look,
       "show live processes",
       {},
       "Shows the processes that execute runs: slots in use and stuck, presence, queues, agents.",
       {},
       {{"holdfast workers", "who is there"}},
       show_workers},
  };
}

}  // namespace holdfast
