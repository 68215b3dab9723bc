// The table of commands: those by which a person decides.

#include "cli/command.hpp"
#include "cli/commands.hpp"

namespace holdfast {
namespace {

const OptionText kDecider = {"--as", "NAME", "who decides (default: the login name)"};

std::vector<OptionText> decision_options(std::vector<OptionText> first) {
  first.insert(first.end(),
               {{"--turn", "DIGEST", "decide on this turn (default: the one that is pending now)"},
                {"--note", "TEXT", "a remark, kept with the decision"},
                kDecider,
                {"--queue", "", "let workers continue the run"},
                {"--inline", "", "continue the run here, under a lease"}});
  return first;
}

}  // namespace

std::vector<CommandText> decide_commands() {
  const OptionText call = {"--call", "ID", "decide this call of the turn only"};
  return {
      {"approve",
       Group::decide,
       "approve the tool calls that a run waits for",
       {"ID", 1, 1},
       "Approves the pending turn of a waiting run, or one call of it. Interactive runs are "
       "continued here, queued ones are handed back to the workers; --queue and --inline say "
       "otherwise. A decision on a turn that has moved on is refused.",
       decision_options({call}),
       {{"holdfast approve 0198c1f2-7d30-7000-8000-3b6f5a2c9e10 --note \"checked with sales\"",
         "let all calls of the turn run"}},
       approve_call},
      {"deny",
       Group::decide,
       "deny the tool calls that a run waits for",
       {"ID", 1, 1},
       "Denies the pending turn of a waiting run, or one call of it. The model is told, unless the "
       "tool says that a denial ends the run.",
       decision_options({call}),
       {{"holdfast deny 0198c1f2-7d30-7000-8000-3b6f5a2c9e10 --call 1.2 --note \"wrong customer\"",
         "deny the second call"}},
       deny_call},
      {"input",
       Group::decide,
       "give a run the values that it waits for",
       {"ID", 1, 1},
       "Submits values to a run that waits for input. They are checked against the schema first; "
       "values that do not meet it leave the run waiting (exit 2). A run that asks about its "
       "budget takes higher limits of the same names.",
       decision_options({{"--values", "JSON", "the values, a JSON object"},
                         {"--call", "ID", "the call that they are for (there is one)"}}),
       {{"holdfast input 0198c1f2-7d30-7000-8000-3b6f5a2c9e10 --values '{\"amount\": 12}'",
         "fill in one value"},
        {"holdfast input 0198c1f2-7d30-7000-8000-3b6f5a2c9e10 --values '{\"tokens\": 200000}'",
         "raise the limit of a run that asks about its budget; '{\"end\": true}' ends it"}},
       submit_input},
      {"resolve",
       Group::decide,
       "say whether an interrupted write landed",
       {"ID", 1, 1},
       "A write whose outcome is unknown stops a run. After looking, say whether it landed (with "
       "its result) or not; the run then goes on. Not landed is accepted only when whoever "
       "executed "
       "it is known gone or the step's deadline is over (exit 4), unless forced.",
       {{"--landed", "", "the write happened"},
        {"--not-landed", "", "the write did not happen; it is executed again"},
        {"--result", "JSON", "with --landed: what it returned (default null)"},
        {"--step", "KEY", "the step meant (default: the one that is pending now)"},
        {"--force", "", "accept not landed before the step's deadline"},
        kDecider},
       {{"holdfast resolve 0198c1f2-7d30-7000-8000-3b6f5a2c9e10 --landed --result "
         "'{\"ticket\": 4711}'",
         "it happened, and this is its result"},
        {"holdfast resolve 0198c1f2-7d30-7000-8000-3b6f5a2c9e10 --not-landed", "do it again"}},
       resolve_write},
  };
}

}  // namespace holdfast
