#pragma once

// The commands' texts: one table, the source of --help, of the manual page, of docs/command-line.md
// and of the shell completions, and of what the parser accepts.

#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

class Args;
class Host;
class Output;

/// What a command works with. `args` are checked against its entry in the table.
struct Invocation {
  const Args& args;
  Host& host;
  Output& out;
};

/// An option of a command. Without `value` it is a flag.
struct OptionText {
  std::string name;   ///< `--input`
  std::string value;  ///< `TEXT`; empty: a flag
  std::string help;
  bool repeats = false;
  std::string choices = {};  ///< words that a shell can complete, separated by spaces
};

/// What stands on the line besides options.
struct OperandText {
  std::string name;  ///< `AGENT`, `ID`; empty: the command takes none
  int min = 0;
  int max = 0;  ///< kMany: any number
};
inline constexpr int kMany = 1'000'000;

struct ExampleText {
  std::string command;
  std::string what;
};

/// The groups of `holdfast --help`, in its order.
enum class Group { execute, look, decide, operate, store, hidden };
std::string_view title(Group);

struct CommandText {
  std::string name;
  Group group;
  std::string summary;  ///< one line
  OperandText operand;
  std::string description;
  std::vector<OptionText> options;
  std::vector<ExampleText> examples;
  int (*function)(Invocation&);
};

/// All commands in the order of `--help`.
const std::vector<CommandText>& all_commands();
const CommandText* find_command(std::string_view name);
/// Options that stand before or after any command.
const std::vector<OptionText>& global_options();
/// Words that explain exit codes, files and variables, for the manual page and the document.
struct NoteText {
  std::string term;
  std::string text;
};
const std::vector<NoteText>& exit_code_notes();
const std::vector<NoteText>& environment_notes();
const std::vector<NoteText>& file_notes();

/// `holdfast run AGENT [options]`
std::string usage_line(const CommandText&);

// The table's parts, by group.
std::vector<CommandText> execute_commands();
std::vector<CommandText> look_commands();
std::vector<CommandText> decide_commands();
std::vector<CommandText> operate_commands();
std::vector<CommandText> store_commands();

// Renderings of the table.
std::string render_overview();
std::string render_help(const CommandText&);
std::string render_man();
std::string render_markdown();
std::string render_bash_completion();
std::string render_zsh_completion();

}  // namespace holdfast
