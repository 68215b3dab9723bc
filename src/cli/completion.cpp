// The table of commands as completions for bash and zsh.

#include <fmt/format.h>

#include "cli/command.hpp"

namespace holdfast {
namespace {

std::string names_of(const std::vector<OptionText>& options) {
  std::string names;
  for (const auto& option : options) names += (names.empty() ? "" : " ") + option.name;
  return names;
}

std::string command_names() {
  std::string names;
  for (const auto& command : all_commands()) {
    if (command.group != Group::hidden) names += (names.empty() ? "" : " ") + command.name;
  }
  return names;
}

/// What can stand behind an option: words, a file, or something that a shell cannot know.
std::string bash_values(const OptionText& option) {
  if (!option.choices.empty()) {
    return fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))", option.choices);
  }
  return option.value == "FILE" ? "_holdfast_files" : "COMPREPLY=()";
}

std::string bash_value_cases(const std::vector<OptionText>& options) {
  std::string cases;
  for (const auto& option : options) {
    if (option.value.empty()) continue;
    cases += fmt::format("        {}) {}; return ;;\n", option.name, bash_values(option));
  }
  return cases;
}

std::string bash_operands(const CommandText& command) {
  if (command.operand.name == "FILE") return "_holdfast_files";
  if (command.operand.name == "SHELL") return "COMPREPLY=($(compgen -W 'bash zsh' -- \"$cur\"))";
  return "COMPREPLY=()";
}

/// Inside single quotes and brackets of an _arguments spec.
std::string zsh_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\'') {
      safe += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      safe += std::string("\\") + c;
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string zsh_spec(const OptionText& option) {
  auto spec =
      fmt::format("'{}{}[{}]", option.repeats ? "*" : "", option.name, zsh_text(option.help));
  if (!option.value.empty()) {
    spec += fmt::format(":{}:", zsh_text(option.value));
    if (!option.choices.empty()) {
      spec += fmt::format("({})", option.choices);
    } else if (option.value == "FILE") {
      spec += "_files";
    }
  }
  return spec + "'";
}

std::string zsh_operands(const CommandText& command) {
  const auto& operand = command.operand;
  if (operand.name.empty()) return "";
  // Where a shell cannot know the words it is told so: beside an empty action no option is
  // completed.
  const auto action = operand.name == "FILE"    ? "_files"
                      : operand.name == "SHELL" ? "(bash zsh)"
                                                : "()";
  return fmt::format(" '{}:{}:{}'", operand.max == 1 ? "1" : "*", operand.name, action);
}

}  // namespace

std::string render_bash_completion() {
  std::string text =
      "# bash completion for holdfast\n"
      "_holdfast_files() {\n"
      "  compopt -o filenames 2>/dev/null\n"
      "  mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
      "}\n"
      "_holdfast() {\n"
      "  local cur prev word command=''\n"
      "  COMPREPLY=()\n"
      "  cur=${COMP_WORDS[COMP_CWORD]}\n"
      "  prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      // Bash cuts --option=value into three words.
      "  if [[ $cur == = ]]; then\n"
      "    cur=''\n"
      "  elif [[ $prev == = ]]; then\n"
      "    prev=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  fi\n"
      "  local skip=0\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    if ((skip)); then skip=0; continue; fi\n"
      "    case $word in\n"
      "      --config|--store|--log-level) skip=1 ;;\n"
      "      -*) ;;\n"
      "      *) command=$word; break ;;\n"
      "    esac\n"
      "  done\n"
      "  case $prev in\n";
  for (const auto& option : global_options()) {
    if (!option.value.empty()) {
      text += fmt::format("    {}) {}; return ;;\n", option.name, bash_values(option));
    }
  }
  text += "  esac\n  case $command in\n";
  text += fmt::format("    '') COMPREPLY=($(compgen -W \"{} {}\" -- \"$cur\")) ;;\n",
                      command_names(), names_of(global_options()));
  for (const auto& command : all_commands()) {
    if (command.group == Group::hidden) continue;
    text += fmt::format("    {})\n", command.name);
    const auto cases = bash_value_cases(command.options);
    if (!cases.empty()) text += "      case $prev in\n" + cases + "      esac\n";
    text += fmt::format(
        "      if [[ $cur == -* ]]; then\n"
        "        COMPREPLY=($(compgen -W \"{} {}\" -- \"$cur\"))\n"
        "      else\n"
        "        {}\n"
        "      fi ;;\n",
        names_of(command.options), names_of(global_options()), bash_operands(command));
  }
  return text + "  esac\n}\ncomplete -F _holdfast holdfast\n";
}

std::string render_zsh_completion() {
  std::string globals;
  for (const auto& option : global_options()) globals += " " + zsh_spec(option);
  std::string text =
      "#compdef holdfast\n_holdfast() {\n  local context state line\n  typeset -A "
      "opt_args\n";
  text +=
      fmt::format("  _arguments -C{} '1:command:->command' '*::argument:->argument'\n", globals);
  text += "  case $state in\n    command)\n      local -a commands=(\n";
  for (const auto& command : all_commands()) {
    if (command.group == Group::hidden) continue;
    text += fmt::format("        '{}:{}'\n", command.name, zsh_text(command.summary));
  }
  text += "      )\n      _describe command commands ;;\n    argument)\n      case $line[1] in\n";
  for (const auto& command : all_commands()) {
    if (command.group == Group::hidden) continue;
    std::string specs;
    for (const auto& option : command.options) specs += " " + zsh_spec(option);
    text += fmt::format("        {}) _arguments{}{}{} ;;\n", command.name, globals, specs,
                        zsh_operands(command));
  }
  return text +
         "      esac ;;\n  esac\n}\n"
         "if [[ $funcstack[1] == _holdfast ]]; then\n"
         "  _holdfast \"$@\"\nelse\n  compdef _holdfast holdfast\nfi\n";
}

}  // namespace holdfast
