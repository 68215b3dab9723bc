#include "cli/args.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "base/text.hpp"
#include "holdfast/failure.hpp"

namespace holdfast {
namespace {

[[noreturn]] void refuse(std::string_view option, std::string_view expected,
                         std::string_view found) {
  throw RefusedError(Refusal::usage, fmt::format("{}: expected {}, got \"{}\"", option, expected,
                                                 cut(clean_utf8(found), 80)));
}

/// The value of one limit of a budget.
template <class T>
T number(const std::string& text, const std::string& value) {
  T result{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc() || end != value.data() + value.size() || !(result > 0)) {
    refuse("--budget", "a number above 0", text);
  }
  return result;
}

}  // namespace

std::optional<std::string> Args::find_text(std::string_view option) const {
  const auto found = options_.find(option);
  if (found == options_.end() || found->second.empty()) return std::nullopt;
  return found->second.front();
}

std::vector<std::string> Args::texts(std::string_view option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? std::vector<std::string>{} : found->second;
}

std::optional<int> Args::find_integer(std::string_view option, int min) const {
  const auto text = find_text(option);
  if (!text) return std::nullopt;
  int value = 0;
  const char* begin = text->data() + (text->starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < min) {
    constexpr int kMost = std::numeric_limits<int>::max();
    refuse(option, fmt::format("a whole number from {} to {}", min, kMost), *text);
  }
  return value;
}

std::optional<Duration> Args::find_duration(std::string_view option) const {
  const auto text = find_text(option);
  if (!text) return std::nullopt;
  const auto duration = parse_duration(*text);
  if (!duration) refuse(option, "a duration such as 500ms, 30s, 10m, 2h or 30d", *text);
  return duration;
}

std::optional<WallTime> Args::find_time(std::string_view option) const {
  const auto text = find_text(option);
  if (!text) return std::nullopt;
  const auto time = parse_time(*text);
  if (!time) {
    refuse(option, "a time with its offset, such as 2026-11-02T08:30:00Z or …T09:30:00+01:00",
           *text);
  }
  return time;
}

std::optional<Json> Args::find_json(std::string_view option, int max_depth) const {
  const auto text = find_text(option);
  if (!text) return std::nullopt;
  std::string problem;
  auto json = parse_exact_json(*text, max_depth, &problem);
  if (!json) {
    throw RefusedError(Refusal::usage, fmt::format("{}: {}", option, problem));
  }
  return json;
}

Labels Args::labels() const {
  Labels labels;
  for (const auto& text : texts("--label")) {
    const auto equals = text.find('=');
    if (equals == text.npos || equals == 0) refuse("--label", "KEY=VALUE", text);
    const auto key = clean_utf8(std::string_view(text).substr(0, equals));
    if (!labels.emplace(key, clean_utf8(std::string_view(text).substr(equals + 1))).second) {
      throw RefusedError(Refusal::usage, fmt::format("--label: \"{}\" is given twice", key));
    }
  }
  return labels;
}

Budget Args::budget() const {
  Budget budget;
  std::set<std::string> seen;
  for (const auto& text : texts("--budget")) {
    const auto equals = std::min(text.find('='), text.size());
    const auto key = text.substr(0, equals);
    const auto value = text.substr(std::min(equals + 1, text.size()));
    if (!seen.insert(key).second) {
      throw RefusedError(Refusal::usage, fmt::format("--budget: \"{}\" is given twice", key));
    }
    if (key == "tokens") {
      budget.tokens = number<std::int64_t>(text, value);
    } else if (key == "cost_usd") {
      budget.cost_usd = number<double>(text, value);
    } else if (key == "time") {
      budget.time = parse_duration(value);
      if (!budget.time) refuse("--budget", "time=DURATION such as time=10m", text);
    } else if (key == "model_calls") {
      budget.model_calls = number<int>(text, value);
    } else if (key == "tool_calls") {
      budget.tool_calls = number<int>(text, value);
    } else {
      refuse("--budget", "KEY=VALUE with tokens, cost_usd, time, model_calls or tool_calls", text);
    }
  }
  return budget;
}

}  // namespace holdfast
