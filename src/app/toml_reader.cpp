#include "app/toml_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/safe_text.hpp"
#include "base/text.hpp"
#include "holdfast/failure.hpp"

namespace holdfast {
namespace {

/// A value as a person would recognise it in the file; long ones are cut.
std::string show_value(const toml::node& node) {
  if (const auto* text = node.as_string()) return fmt::format("\"{}\"", cut(text->get(), 60));
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  return "a date or time";
}

/// Bytes of `64`, `64B`, `4KiB`, `1MiB`, `2GiB`.
std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::array<std::pair<std::string_view, int>, 5> kUnits = {
      {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}}};
  for (const auto& [name, shift] : kUnits) {
    if (unit != name) continue;
    if (count > (std::uint64_t{1} << 40 >> shift)) return std::nullopt;
    return count << shift;
  }
  return std::nullopt;
}

/// TOML as JSON. Dates have no counterpart; nothing is returned where one stands.
std::optional<Json> to_json_value(const toml::node& node) {
  if (const auto* text = node.as_string()) return Json(text->get());
  if (const auto* number = node.as_integer()) return Json(number->get());
  if (const auto* flag = node.as_boolean()) return Json(flag->get());
  if (const auto* number = node.as_floating_point()) {
    if (!std::isfinite(number->get())) return std::nullopt;
    return Json(number->get());
  }
  if (const auto* list = node.as_array()) {
    Json json = Json::array();
    for (const auto& item : *list) {
      auto value = to_json_value(item);
      if (!value) return std::nullopt;
      json.push_back(std::move(*value));
    }
    return json;
  }
  if (const auto* table = node.as_table()) {
    Json json = Json::object();
    for (const auto& [key, item] : *table) {
      auto value = to_json_value(item);
      if (!value) return std::nullopt;
      json[std::string(key.str())] = std::move(*value);
    }
    return json;
  }
  return std::nullopt;
}

}  // namespace

bool names_a_secret(std::string_view key) {
  std::string word;
  for (const char c : key) {
    word += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  constexpr std::array kWhole = {"key", "apikey", "token", "secret", "password", "passwd"};
  for (const std::string_view whole : kWhole) {
    if (word == whole) return true;
  }
  constexpr std::array kEnds = {"api_key", "apikey",    "access_key", "secret_key", "_token",
                                "_secret", "_password", "_passwd",    "private_key"};
  return std::any_of(kEnds.begin(), kEnds.end(),
                     [&](std::string_view end) { return word.ends_with(end); });
}

void ConfigProblems::add(unsigned line, std::string_view key, std::string_view text) {
  // Names and values of the file may hold anything.
  lines_.emplace_back(line, fmt::format("{}:{}: {}{}{}", file_, line, safe_line(key),
                                        key.empty() ? "" : ": ", safe_line(text)));
}

void ConfigProblems::throw_if_any() const {
  if (lines_.empty()) return;
  auto sorted = lines_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::string all;
  for (const auto& [line, text] : sorted) {
    if (!all.empty()) all += '\n';
    all += text;
  }
  throw RefusedError(Refusal::usage, all);
}

unsigned TableReader::line_of(std::string_view key) const {
  for (const auto& [name, node] : *table_) {
    if (name.str() == key) return name.source().begin.line;
  }
  return line();
}

std::vector<std::string> TableReader::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : *table_) keys.emplace_back(key.str());
  return keys;
}

std::string TableReader::full_name(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const toml::node* TableReader::find(std::string_view key) {
  known_.emplace_back(key);
  return table_->get(key);
}

void TableReader::refuse(std::string_view key, std::string_view text) const {
  problems_->add(line_of(key), full_name(key), text);
}

void TableReader::expected(std::string_view key, std::string_view what,
                           const toml::node& found) const {
  // What stands where a secret's name is expected may be the secret itself.
  const bool hide = key.ends_with("_env") || names_a_secret(key);
  refuse(key, hide ? fmt::format("expected {}", what)
                   : fmt::format("expected {}, found {}", what, show_value(found)));
}

void TableReader::read(std::string_view key, std::string& into) {
  const auto* node = find(key);
  if (node == nullptr) return;
  if (const auto* text = node->as_string()) {
    into = text->get();
  } else {
    expected(key, "a text in quotes", *node);
  }
}

void TableReader::read(std::string_view key, bool& into) {
  const auto* node = find(key);
  if (node == nullptr) return;
  if (const auto* flag = node->as_boolean()) {
    into = flag->get();
  } else {
    expected(key, "true or false", *node);
  }
}

void TableReader::read(std::string_view key, int& into, int min, int max) {
  const auto* node = find(key);
  if (node == nullptr) return;
  const auto* number = node->as_integer();
  if (number != nullptr && number->get() >= min && number->get() <= max) {
    into = static_cast<int>(number->get());
  } else {
    expected(key, fmt::format("a whole number from {} to {}", min, max), *node);
  }
}

void TableReader::read(std::string_view key, double& into, double min, double max) {
  const auto* node = find(key);
  if (node == nullptr) return;
  const auto number = node->value<double>();
  if (number && node->is_number() && *number >= min && *number <= max) {
    into = *number;
  } else {
    expected(key, fmt::format("a number from {} to {}", min, max), *node);
  }
}

void TableReader::read(std::string_view key, Duration& into, Duration min) {
  std::optional<Duration> duration;
  read(key, duration, min);
  if (duration) into = *duration;
}

void TableReader::read(std::string_view key, std::optional<Duration>& into, Duration min) {
  const auto* node = find(key);
  if (node == nullptr) return;
  const auto* text = node->as_string();
  const auto duration = text != nullptr ? parse_duration(text->get()) : std::nullopt;
  if (!duration) {
    expected(key, "a duration in quotes, such as \"500ms\", \"30s\", \"10m\", \"2h\" or \"30d\"",
             *node);
  } else if (*duration < min) {
    expected(key, fmt::format("a duration of at least {}", format_duration(min)), *node);
  } else {
    into = *duration;
  }
}

void TableReader::read_size(std::string_view key, std::size_t& into) {
  const auto* node = find(key);
  if (node == nullptr) return;
  std::optional<std::uint64_t> size;
  if (const auto* text = node->as_string()) size = parse_size(text->get());
  if (const auto* number = node->as_integer(); number != nullptr && number->get() > 0) {
    size = static_cast<std::uint64_t>(number->get());
  }
  if (size && *size >= 1 && *size <= (std::uint64_t{1} << 30)) {
    into = static_cast<std::size_t>(*size);
  } else {
    expected(key, "a size from 1 byte to \"1GiB\", such as \"4KiB\" or \"1MiB\"", *node);
  }
}

void TableReader::read(std::string_view key, std::vector<TextAt>& into) {
  const auto* node = find(key);
  if (node == nullptr) return;
  const auto* list = node->as_array();
  if (list == nullptr) {
    expected(key, "a list of texts, such as [\"a\", \"b\"]", *node);
    return;
  }
  std::vector<TextAt> texts;
  for (const auto& item : *list) {
    const auto* text = item.as_string();
    if (text == nullptr) {
      problems_->add(item.source().begin.line, full_name(key),
                     fmt::format("expected a list of texts, found {} in it", show_value(item)));
      return;
    }
    texts.push_back({text->get(), item.source().begin.line});
  }
  into = std::move(texts);
}

void TableReader::read(std::string_view key, std::vector<std::string>& into) {
  std::vector<TextAt> texts;
  if (!has(key)) {
    find(key);
    return;
  }
  read(key, texts);
  into.clear();
  into.reserve(texts.size());
  for (auto& item : texts) into.push_back(std::move(item.text));
}

void TableReader::read(std::string_view key, std::vector<std::pair<std::string, TextAt>>& into) {
  const auto* node = find(key);
  if (node == nullptr) return;
  const auto* table = node->as_table();
  if (table == nullptr) {
    expected(key, "a table of texts, such as { NAME = \"value\" }", *node);
    return;
  }
  for (const auto& [name, item] : *table) {
    const auto* text = item.as_string();
    if (text == nullptr) {
      problems_->add(name.source().begin.line, fmt::format("{}.{}", full_name(key), name.str()),
                     "expected a text in quotes");
      continue;
    }
    into.emplace_back(std::string(name.str()), TextAt{text->get(), name.source().begin.line});
  }
}

void TableReader::read_json(std::string_view key, Json& into) {
  const auto* node = find(key);
  if (node == nullptr) return;
  if (!node->is_table()) {
    expected(key, "a table (a JSON Schema)", *node);
    return;
  }
  auto json = to_json_value(*node);
  if (json) {
    into = std::move(*json);
  } else {
    refuse(key, "holds a date or a number that JSON does not have; write it as a text");
  }
}

std::optional<TableReader> TableReader::find_table(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* table = node->as_table()) return TableReader(*table, full_name(key), *problems_);
  expected(key, "a table", *node);
  return std::nullopt;
}

std::vector<std::pair<std::string, TableReader>> TableReader::named_tables(std::string_view key) {
  std::vector<std::pair<std::string, TableReader>> tables;
  auto group = find_table(key);
  if (!group) return tables;
  for (const auto& [name, node] : *group->table_) {
    if (const auto* table = node.as_table()) {
      tables.emplace_back(std::string(name.str()),
                          TableReader(*table, group->full_name(name.str()), *problems_));
    } else {
      group->expected(name.str(), fmt::format("a table, [{}.NAME]", full_name(key)), node);
    }
  }
  // In the order of the file: that is the order a person sees them in.
  std::stable_sort(tables.begin(), tables.end(),
                   [](const auto& a, const auto& b) { return a.second.line() < b.second.line(); });
  return tables;
}

void TableReader::finish(std::string_view remedy) {
  for (const auto& [name, node] : *table_) {
    const std::string key(name.str());
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    if (names_a_secret(key)) {
      refuse(key, fmt::format("secrets are not read from this file, only from the environment{}{}",
                              remedy.empty() ? "" : ": ", remedy));
      continue;
    }
    const auto meant = did_you_mean(key, known_);
    auto names = known_;
    std::sort(names.begin(), names.end());
    // A table that is read in two passes is known twice.
    names.erase(std::unique(names.begin(), names.end()), names.end());
    refuse(key, meant ? fmt::format("unknown key; did you mean \"{}\"?", *meant)
                      : fmt::format("unknown key; expected one of {}", fmt::join(names, ", ")));
  }
}

}  // namespace holdfast
