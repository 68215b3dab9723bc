#include "cli/args.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/text.hpp"
#include "holdfast/failure.hpp"

namespace holdfast {
namespace {

[[noreturn]] void refuse(std::string_view option, std::string_view expected,
                         std::string_view found) {
  throw RefusedError(Refusal::usage, fmt::format("{}: expected {}, got \"{}\"", option, expected,
                                                 cut(clean_utf8(found), 80)));
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
    refuse(option,
           min == std::numeric_limits<int>::min()
               ? std::string("a whole number")
               : fmt::format("a whole number of at least {}", min),
           *text);
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

}  // namespace holdfast
