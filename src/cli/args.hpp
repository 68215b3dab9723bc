#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "holdfast/run.hpp"

namespace holdfast {

/// What was written behind one command, checked against its entry in the table. The typed getters
/// throw RefusedError (usage) that names the option and what is expected.
class Args {
 public:
  Args() = default;
  Args(std::map<std::string, std::vector<std::string>, std::less<>> options,
       std::vector<std::string> operands)
      : options_(std::move(options)), operands_(std::move(operands)) {}

  const std::vector<std::string>& operands() const { return operands_; }
  const std::string& operand() const { return operands_.front(); }

  bool has(std::string_view option) const { return options_.contains(option); }
  std::optional<std::string> find_text(std::string_view option) const;
  std::vector<std::string> texts(std::string_view option) const;
  std::optional<int> find_integer(std::string_view option, int min) const;
  std::optional<Duration> find_duration(std::string_view option) const;
  std::optional<WallTime> find_time(std::string_view option) const;
  std::optional<Json> find_json(std::string_view option, int max_depth) const;
  Labels labels() const;
  Budget budget() const;  ///< of --budget KEY=VALUE

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> options_;
  std::vector<std::string> operands_;
};

/// The options that stand before or after any command.
struct GlobalOptions {
  std::optional<std::string> config;
  std::optional<std::string> store;
  std::optional<std::string> log_level;
  bool json = false;
};

struct ParsedLine {
  GlobalOptions global;
  bool help = false;
  bool version = false;
  const CommandText* command = nullptr;  ///< null: none was named
  Args args;
};

/// Understands a command line (without the program's name). Throws RefusedError (usage).
ParsedLine parse_line(const std::vector<std::string>& words);

}  // namespace holdfast
