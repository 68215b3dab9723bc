// The table of commands as a manual page and as a document.

#include <fmt/format.h>

#include <array>

#include "cli/command.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {
namespace {

/// Text for roff: backslashes, minus signs, and lines that begin with a control character.
std::string roff(std::string_view text) {
  std::string safe;
  if (!text.empty() && (text.front() == '.' || text.front() == '\'')) safe += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string item(const std::string& head, std::string_view text) {
  return fmt::format(".TP\n{}\n{}\n", head, roff(text));
}

std::string option_items(const std::vector<OptionText>& options) {
  std::string text;
  for (const auto& option : options) {
    auto head = "\\fB" + roff(option.name) + "\\fR";
    if (!option.value.empty()) head += " \\fI" + roff(option.value) + "\\fR";
    text += item(head, option.help);
  }
  return text;
}

std::string note_items(const std::vector<NoteText>& notes) {
  std::string text;
  for (const auto& note : notes) text += item("\\fB" + roff(note.term) + "\\fR", note.text);
  return text;
}

/// For Markdown: characters that would be read as marks or as a table's bars.
std::string markdown(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '*' || c == '_') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string option_table(const std::vector<OptionText>& options) {
  std::string text = "| option | meaning |\n| --- | --- |\n";
  for (const auto& option : options) {
    const auto head = option.value.empty() ? option.name : option.name + " " + option.value;
    text += fmt::format("| `{}` | {} |\n", head, markdown(option.help));
  }
  return text;
}

std::string note_table(std::string_view head, const std::vector<NoteText>& notes) {
  auto text = fmt::format("| {} | meaning |\n| --- | --- |\n", head);
  for (const auto& note : notes)
    text += fmt::format("| `{}` | {} |\n", note.term, markdown(note.text));
  return text;
}

constexpr std::array kShown = {Group::execute, Group::look, Group::decide, Group::operate,
                               Group::store};

}  // namespace

std::string render_man() {
  auto text = fmt::format(
      ".TH HOLDFAST 1 \"\" \"holdfast {}\" \"User Commands\"\n"
      ".SH NAME\nholdfast \\- a durable runtime for LLM agent runs\n"
      ".SH SYNOPSIS\n.B holdfast\n[global options] \\fICOMMAND\\fR [arguments] [options]\n"
      ".SH DESCRIPTION\n"
      "A run is one execution of an agent for one request. It is stored, claimed by a worker under "
      "a lease, executed step by step, and settled. A worker that dies strands nothing: another "
      "one goes on behind the last recorded step.\n"
      "Results go to standard output, everything else to standard error.\n"
      ".SH GLOBAL OPTIONS\nThey stand before or behind the command.\n",
      roff(version()));
  text += option_items(global_options());
  for (const auto group : kShown) {
    text += fmt::format(".SH {}\n", roff(title(group)));
    for (const auto& command : all_commands()) {
      if (command.group != group) continue;
      text += fmt::format(".SS {}\n{}\n", roff(usage_line(command)), roff(command.description));
      text += option_items(command.options);
      text += ".PP\nExamples:\n.PP\n.nf\n.RS\n";
      for (const auto& example : command.examples) text += roff(example.command) + "\n";
      text += ".RE\n.fi\n";
    }
  }
  text += ".SH EXIT STATUS\n" + note_items(exit_code_notes());
  text += ".SH ENVIRONMENT\n" + note_items(environment_notes());
  text += ".SH FILES\n" + note_items(file_notes());
  return text;
}

std::string render_markdown() {
  std::string text =
      "# Command line\n\n"
      "Made by `holdfast man --markdown` from the same table as `--help`, the manual page and the "
      "shell completions.\n\n"
      "`holdfast [--config FILE] [--store URL] [--json] [--log-level LEVEL] COMMAND …`\n\n"
      "Results go to standard output (with `--json` one JSON value, or one per line for streams), "
      "everything else to standard error. Colours and a live line are used on a terminal only.\n\n"
      "## Global options\n\nThey stand before or behind the command.\n\n";
  text += option_table(global_options());
  text += "\n## Exit codes\n\n" + note_table("code", exit_code_notes());
  text += "\nSeveral ids: all are tried, one line each; the first code that is not 0 counts.\n";
  text += "\n## Environment\n\n" + note_table("variable", environment_notes());
  for (const auto group : kShown) {
    text += fmt::format("\n## {}\n", title(group));
    for (const auto& command : all_commands()) {
      if (command.group != group) continue;
      text += fmt::format("\n### {}\n\n`{}`\n\n{}\n", command.name, usage_line(command),
                          markdown(command.description));
      if (!command.options.empty()) text += "\n" + option_table(command.options);
      text += "\n```sh\n";
      for (const auto& example : command.examples) {
        text += fmt::format("# {}\n{}\n", example.what, example.command);
      }
      text += "```\n";
    }
  }
  return text;
}

}  // namespace holdfast
