// The table of commands: those that operators use.

#include "cli/command.hpp"
#include "cli/commands.hpp"

namespace holdfast {
namespace {

const OptionText kOperator = {"--as", "NAME", "who does it (default: the login name)"};
const OptionText kDryRun = {"--dry-run", "", "only say what would be done"};
constexpr const char* kFailureReasons =
    "max_iterations policy_denied approval_denied provider_failed context_truncated "
    "retries_exhausted not_retryable";

}  // namespace

std::vector<CommandText> operate_commands() {
  return {
      {"cancel",
       Group::operate,
       "cancel runs",
       {"ID", 1, kMany},
       "Cancels runs, at once and whatever they do. A second cancel changes nothing and succeeds; "
       "a run that ended otherwise is refused (exit 4).",
       {kOperator},
       {{"holdfast cancel 0198c1f2-7d30-7000-8000-3b6f5a2c9e10", "stop a run"}},
       cancel_runs},
      {"redrive",
       Group::operate,
       "put failed runs back on the queue",
       {"ID", 0, kMany},
       "Puts failed runs back on the queue, oldest first, with new budgets; recorded steps are not "
       "executed again. By id, by filter, or --all of them. A run with a write of unknown outcome "
       "is refused (by filter: skipped): resolve it. Prints how many were matched, moved and "
       "skipped.",
       {{"--reason", "REASON", "runs that failed for this reason", false, kFailureReasons},
        {"--agent", "AGENT", "runs of this agent"},
        {"--label", "KEY=VALUE", "runs with this label; may be repeated", true},
        {"--limit", "N", "at most so many"},
        {"--all", "", "every failed run"},
        kDryRun,
        kOperator},
       {{"holdfast redrive 0198c1f2-7d30-7000-8000-3b6f5a2c9e10", "one run"},
        {"holdfast redrive --reason retries_exhausted --agent triage --dry-run",
         "see what an outage left behind"}},
       redrive_runs},
      {"handover",
       Group::operate,
       "give an interactive run whose process is gone to the workers",
       {"ID", 1, 1},
       "Gives an interactive run to the workers. Its process must be gone; --force does not ask.",
       {{"--force", "", "also when its process is not known to be gone"}, kOperator},
       {{"holdfast handover 0198c1f2-7d30-7000-8000-3b6f5a2c9e10", "let workers finish it"}},
       hand_over_run},
      {"wake",
       Group::operate,
       "make a delayed run available now",
       {"ID", 1, 1},
       "Makes a queued run that is delayed or backing off available now.",
       {kOperator},
       {{"holdfast wake 0198c1f2-7d30-7000-8000-3b6f5a2c9e10", "do not wait any longer"}},
       wake_run},
      {"reap",
       Group::operate,
       "decide on runs whose worker is gone",
       {},
       "Handles runs whose lease is over, longest expired first, prints how many were requeued, "
       "dead-lettered and skipped, and exits. Where one of them may be held by a worker that "
       "lives, that worker is first given one heartbeat and a margin to renew. Workers do this by "
       "themselves; a timer may do it too.",
       {{"--limit", "N", "at most so many in one sweep (default: reaper.limit, 50)"},
        {"--all", "", "sweep until nothing is left"},
        kDryRun},
       {{"holdfast reap --all", "from cron or a systemd timer"},
        {"holdfast reap --dry-run", "see what is stale"}},
       reap_runs},
      {"purge",
       Group::operate,
       "delete old runs",
       {"ID", 0, kMany},
       "Deletes runs with their journals: terminal ones older than their retention, and waiting or "
       "abandoned ones older than the longer retention. Never queued ones. With one of the two "
       "ages the other kind is left alone; with neither the configuration decides, for named runs "
       "too. A named run whose write may have landed goes only with an age. Says how many of each "
       "status.",
       {{"--older-than", "DURATION", "terminal runs that ended longer ago than this"},
        {"--unfinished-older-than", "DURATION",
         "waiting and abandoned runs whose last event is older than this"},
        kDryRun},
       {{"holdfast purge --older-than 30d --dry-run", "see what would go"},
        {"holdfast purge", "as [retention] says"},
        {"holdfast purge 0198c1f2-7d30-7000-8000-3b6f5a2c9e10 --older-than 0s",
         "this one, however young"}},
       purge_runs},
  };
}

std::vector<CommandText> store_commands() {
  return {
      {"verify",
       Group::store,
       "check the invariants over the store",
       {},
       "Reads every run and its journal and prints each violation of what must always hold, and "
       "which rules rows cannot show. Exit code 1 if there is a violation.",
       {},
       {{"holdfast verify", "after a crash, or in a nightly job"}},
       verify_store},
      {"doctor",
       Group::store,
       "check configuration, store, providers, tools and clock",
       {},
       "Checks the setup and says what to mend. It spends nothing. Exit code 1 if something is "
       "bad, "
       "2 if the configuration cannot be used.",
       {},
       {{"holdfast doctor", "before the first run"}},
       examine_setup},
      {"backup",
       Group::store,
       "copy a store while it is in use",
       {"FILE", 1, 1},
       "Writes a consistent copy of a SQLite store to FILE. It never overwrites (exit 4).",
       {},
       {{"holdfast backup holdfast-monday.db", "while workers go on"}},
       backup_store},
      {"migrate",
       Group::store,
       "bring the store's schema up to date",
       {},
       "Brings the schema of the store up to date and prints the versions before and after. A "
       "store "
       "that is newer than this program is refused.",
       {},
       {{"holdfast migrate --store sqlite:/var/lib/holdfast/runs.db", "after an upgrade"}},
       migrate_store},
      {"completion",
       Group::store,
       "print shell completions",
       {"SHELL", 1, 1},
       "Prints a completion script for bash or zsh.",
       {},
       {{"holdfast completion bash > /etc/bash_completion.d/holdfast", "for bash"},
        {"holdfast completion zsh > ~/.zfunc/_holdfast", "for zsh"}},
       print_completion},
      {"help",
       Group::hidden,
       "show help for a command",
       {"COMMAND", 0, 1},
       "Shows what --help shows.",
       {},
       {{"holdfast help enqueue", "the same as holdfast enqueue --help"}},
       print_help},
      {"man",
       Group::hidden,
       "print the manual page, or the same as Markdown",
       {},
       "Prints the manual page in roff, made from the same source as --help.",
       {{"--markdown", "", "the same as a Markdown document"}},
       {{"holdfast man > holdfast.1", "write the manual page"}},
       print_man},
  };
}

}  // namespace holdfast
