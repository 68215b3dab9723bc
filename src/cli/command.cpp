#include "cli/command.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast {
namespace {

std::vector<CommandText> make_table() {
  std::vector<CommandText> all;
  for (auto* part :
       {execute_commands, look_commands, decide_commands, operate_commands, store_commands}) {
    auto commands = part();
    all.insert(all.end(), commands.begin(), commands.end());
  }
  return all;
}

}  // namespace

std::string_view title(Group group) {
  switch (group) {
    case Group::execute:
      return "Execute runs";
    case Group::look:
      return "See what happens";
    case Group::decide:
      return "Decide as a person";
    case Group::operate:
      return "Operate";
    case Group::store:
      return "Store and setup";
    case Group::hidden:
      return "";
  }
  return "";
}

const std::vector<CommandText>& all_commands() {
  static const std::vector<CommandText> kTable = make_table();
  return kTable;
}

const CommandText* find_command(std::string_view name) {
  const auto& all = all_commands();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const CommandText& command) { return command.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const std::vector<OptionText>& global_options() {
  static const std::vector<OptionText> kOptions = {
      {"--config", "FILE", "the configuration file (default: $HOLDFAST_CONFIG, ./holdfast.toml)"},
      {"--store", "URL", "the store (default: $HOLDFAST_STORE, the file, sqlite:holdfast.db)"},
      {"--json", "", "results as JSON: one value, or one per line for streams"},
      {"--log-level", "LEVEL",
       "what is logged to standard error: debug, info, warn, error, off (default: info for worker, "
       "else warn)",
       false, "debug info warn error off"},
      {"--help", "", "show help (also -h)"},
      {"--version", "", "show the versions of holdfast and SQLite"}};
  return kOptions;
}

const std::vector<NoteText>& exit_code_notes() {
  static const std::vector<NoteText> kNotes = {
      {"0", "done"},
      {"1",
       "it failed: the store cannot be used, or the run ended failed or cancelled (run, "
       "enqueue --inline, wait, inline continuations), or a wait was over, or verify or doctor "
       "found something bad"},
      {"2",
       "wrong usage or configuration: a malformed value, a number out of range, over a limit, "
       "values against a schema"},
      {"3", "an id, agent or tool that does not exist"},
      {"4",
       "the run is not in a state that allows it, an idempotency key was used with other "
       "content, or a file exists that would be overwritten"},
      {"5", "suspended: the run waits for a person"},
      {"130", "left at once: a run by its second interrupt, a worker by its third signal"},
      {"141", "standard output was closed by its reader"}};
  return kNotes;
}

const std::vector<NoteText>& environment_notes() {
  static const std::vector<NoteText> kNotes = {
      {"HOLDFAST_CONFIG", "the configuration file, where --config is not given"},
      {"HOLDFAST_STORE", "the store, where --store is not given"},
      {"NO_COLOR", "if set and not empty, no colours are used"}};
  return kNotes;
}

const std::vector<NoteText>& file_notes() {
  static const std::vector<NoteText> kNotes = {
      {"holdfast.toml", "the configuration in the working folder"},
      {"holdfast.db", "the default store in the working folder"}};
  return kNotes;
}

std::string usage_line(const CommandText& command) {
  auto line = fmt::format("holdfast {}", command.name);
  const auto& operand = command.operand;
  if (!operand.name.empty()) {
    const auto many = operand.max == kMany ? "…" : "";
    line += operand.min == 0 ? fmt::format(" [{}{}]", operand.name, many)
                             : fmt::format(" {}{}", operand.name, many);
  }
  return line + " [options]";
}

}  // namespace holdfast
