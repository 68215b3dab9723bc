// Command line to ParsedLine. CLI11 splits the words; which options there are, how often each may
// stand and how many operands a command takes comes from the table of commands, and so do the
// messages.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.hpp"
#include "cli/args.hpp"
#include "holdfast/failure.hpp"

namespace holdfast {
namespace {

using OptionMap = std::map<std::string, std::vector<std::string>, std::less<>>;

struct Split {
  OptionMap options;
  std::vector<std::string> rest;  ///< operands and unknown options, in order
};

[[noreturn]] void refuse(const CommandText* command, const std::string& text) {
  const auto whose = command == nullptr ? "" : command->name + " ";
  throw RefusedError(Refusal::usage, fmt::format("{}\nSee `holdfast {}--help`.", text, whose));
}

/// Splits `words` by the given options. `stop_at_operand`: the first word that is no option ends
/// it.
Split split(const CommandText* command, const std::vector<const OptionText*>& options,
            std::vector<std::string> words, bool stop_at_operand) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  if (stop_at_operand) app.prefix_command();
  std::map<std::string, CLI::Option*> handles;
  for (const auto* option : options) {
    auto* handle = option->value.empty() ? app.add_flag(option->name)
                                         : app.add_option(option->name)->expected(1);
    // Where nothing but options can stand, one that repeats takes several words: `--queue a b`.
    const bool is_greedy = option->repeats && command != nullptr && command->operand.max == 0;
    handle->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(is_greedy);
    handles[option->name] = handle;
  }
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    refuse(command, fmt::format("{}: a value is missing", text.substr(0, text.find(':'))));
  } catch (const CLI::Error& error) {
    refuse(command, error.what());
  }
  Split result;
  for (const auto* option : options) {
    auto values = handles[option->name]->results();
    if (values.empty()) continue;
    if (values.size() > 1 && !option->repeats && !option->value.empty()) {
      refuse(command, fmt::format("{} is given {} times", option->name, values.size()));
    }
    if (option->value.empty() && values.front() != "true") {
      refuse(command, fmt::format("{} takes no value", option->name));
    }
    result.options[option->name] = std::move(values);
  }
  result.rest = app.remaining();
  return result;
}

std::vector<const OptionText*> pointers(const std::vector<OptionText>& options) {
  std::vector<const OptionText*> all;
  all.reserve(options.size());
  for (const auto& option : options) all.push_back(&option);
  return all;
}

/// `-h` is the one short option.
std::vector<std::string> expand_short_help(std::vector<std::string> words) {
  for (auto& word : words) {
    if (word == "--") break;
    if (word == "-h") word = "--help";
  }
  return words;
}

[[noreturn]] void refuse_unknown_option(const CommandText* command,
                                        const std::vector<const OptionText*>& options,
                                        const std::string& word) {
  const auto name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const auto* option : options) names.push_back(option->name);
  const auto meant = did_you_mean(name, names);
  refuse(command, fmt::format("unknown option {}{}", clean_utf8(name),
                              meant ? fmt::format("; did you mean {}?", *meant) : ""));
}

[[noreturn]] void refuse_unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& command : all_commands()) {
    if (command.group != Group::hidden) names.push_back(command.name);
  }
  const auto meant = did_you_mean(name, names);
  refuse(nullptr, fmt::format("unknown command \"{}\"{}", cut(clean_utf8(name), 80),
                              meant ? fmt::format("; did you mean \"{}\"?", *meant) : ""));
}

std::vector<std::string> operands_of(const CommandText* command,
                                     const std::vector<const OptionText*>& options,
                                     const std::vector<std::string>& rest) {
  std::vector<std::string> operands;
  bool only_operands = false;
  for (const auto& word : rest) {
    if (!only_operands && word == "--") {
      only_operands = true;
    } else if (!only_operands && word.size() > 1 && word.front() == '-') {
      refuse_unknown_option(command, options, word);
    } else {
      operands.push_back(word);
    }
  }
  return operands;
}

void check_operands(const CommandText& command, const std::vector<std::string>& operands) {
  const auto count = static_cast<int>(operands.size());
  const auto& name = command.operand.name;
  if (count < command.operand.min) {
    refuse(&command, fmt::format("{} is missing: {}", name, usage_line(command)));
  }
  if (count > command.operand.max) {
    const auto& surplus = operands[static_cast<std::size_t>(command.operand.max)];
    refuse(&command, fmt::format("\"{}\" is one word too many: {}", cut(clean_utf8(surplus), 80),
                                 usage_line(command)));
  }
  for (const auto& operand : operands) {
    if (operand.empty()) refuse(&command, fmt::format("{} is empty", name));
  }
}

/// Takes the global options out of `options`, later ones over earlier ones.
void take_global(OptionMap& options, ParsedLine& line) {
  const auto take = [&](std::string_view name, std::optional<std::string>& into) {
    const auto found = options.find(name);
    if (found == options.end()) return;
    into = found->second.front();
    options.erase(found);
  };
  take("--config", line.global.config);
  take("--store", line.global.store);
  take("--log-level", line.global.log_level);
  line.global.json |= options.erase("--json") > 0;
  line.help |= options.erase("--help") > 0;
  line.version |= options.erase("--version") > 0;
}

}  // namespace

ParsedLine parse_line(const std::vector<std::string>& words) {
  ParsedLine line;
  auto options = pointers(global_options());
  auto front = split(nullptr, options, expand_short_help(words), true);
  take_global(front.options, line);
  if (front.rest.empty()) return line;
  const auto name = front.rest.front();
  if (name.starts_with('-')) refuse_unknown_option(nullptr, options, name);
  line.command = find_command(name);
  if (line.command == nullptr) refuse_unknown_command(name);

  for (const auto& option : line.command->options) options.push_back(&option);
  auto behind = split(line.command, options,
                      std::vector<std::string>(front.rest.begin() + 1, front.rest.end()), false);
  take_global(behind.options, line);
  if (line.help || line.version) return line;
  auto operands = operands_of(line.command, options, behind.rest);
  check_operands(*line.command, operands);
  line.args = Args(std::move(behind.options), std::move(operands));
  return line;
}

}  // namespace holdfast
