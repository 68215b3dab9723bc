// The table of commands as help on the terminal, and the commands that print it.

#include <fmt/format.h>

#include <array>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/support.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kWidth = 80;

/// Words in lines of at most kWidth characters, the first behind `first`, the others indented.
std::string wrapped(std::string_view text, std::string first, std::size_t indent) {
  std::string all;
  std::string line = std::move(first);
  bool fresh = true;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!fresh && text_width(line) + 1 + text_width(word) > kWidth) {
      all += line + '\n';
      line = std::string(indent, ' ');
      fresh = true;
    }
    if (!fresh) line += ' ';
    line += word;
    fresh = false;
  }
  return all + line + '\n';
}

std::string option_lines(const std::vector<OptionText>& options) {
  std::size_t widest = 0;
  for (const auto& option : options) {
    widest = std::max(widest, option.name.size() + option.value.size() + 1);
  }
  std::string text;
  for (const auto& option : options) {
    const auto head = option.value.empty() ? option.name : option.name + " " + option.value;
    text += wrapped(option.help, fmt::format("  {:<{}}  ", head, widest), widest + 4);
  }
  return text;
}

}  // namespace

std::string render_overview() {
  std::string text =
      "holdfast: a durable runtime for LLM agent runs\n\n"
      "Usage: holdfast [--config FILE] [--store URL] [--json] [--log-level LEVEL] COMMAND …\n";
  constexpr std::array kGroups = {Group::execute, Group::look, Group::decide, Group::operate,
                                  Group::store};
  for (const auto group : kGroups) {
    text += fmt::format("\n{}\n", title(group));
    for (const auto& command : all_commands()) {
      if (command.group == group) {
        text += fmt::format("  {:<11} {}\n", command.name, command.summary);
      }
    }
  }
  text += "\nOptions (before or behind the command)\n" + option_lines(global_options());
  text += "\nExit codes\n";
  for (const auto& note : exit_code_notes()) {
    text += wrapped(note.text, fmt::format("  {:>3}  ", note.term), 7);
  }
  text +=
      "\nExamples\n  holdfast init && holdfast run hello --input \"What time is it?\"\n"
      "  holdfast enqueue --help\n";
  return text;
}

std::string render_help(const CommandText& command) {
  auto text = fmt::format("Usage: {}\n\n", usage_line(command));
  text += wrapped(command.description, "", 0);
  if (!command.options.empty()) text += "\nOptions\n" + option_lines(command.options);
  text += "\nGlobal options\n" + option_lines(global_options());
  text += "\nExamples\n";
  for (const auto& example : command.examples) {
    text += fmt::format("  # {}\n  {}\n", example.what, example.command);
  }
  return text;
}

int print_help(Invocation& call) {
  if (call.args.operands().empty()) {
    call.out.raw(render_overview());
    return kDone;
  }
  const auto* command = find_command(call.args.operand());
  if (command == nullptr) {
    throw RefusedError(Refusal::usage,
                       fmt::format("unknown command \"{}\"; `holdfast --help` lists them",
                                   clean_utf8(call.args.operand())));
  }
  call.out.raw(render_help(*command));
  return kDone;
}

int print_man(Invocation& call) {
  call.out.raw(call.args.has("--markdown") ? render_markdown() : render_man());
  return kDone;
}

int print_completion(Invocation& call) {
  const auto& shell = call.args.operand();
  if (shell == "bash") {
    call.out.raw(render_bash_completion());
  } else if (shell == "zsh") {
    call.out.raw(render_zsh_completion());
  } else {
    throw RefusedError(Refusal::usage,
                       fmt::format("expected bash or zsh, got \"{}\"", clean_utf8(shell)));
  }
  return kDone;
}

}  // namespace holdfast
