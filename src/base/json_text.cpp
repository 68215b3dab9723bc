// JSON as it comes from outside: nested without end, cut off, with bytes that are no text. Parsing
// neither recurses nor throws; nesting is counted while the value is built.

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "base/safe_text.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

/// Builds a value from the parser's events and stops at `max_depth` open brackets.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(int max_depth, bool is_exact) : max_depth_(max_depth), is_exact_(is_exact) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    if (is_exact_ && text.find_first_of(".eE") == string_t::npos) {
      problem_ = fmt::format("the number {} does not fit in 64 bits; write it as a string",
                             cut(text, kMaxShownDigits));
      return false;
    }
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The library quotes what it read last: of any length, ending within a character.
    problem_ = fmt::format("not JSON at byte {}: {}", position,
                           cut(safe_line(error.what()), kMaxShownError));
    return false;
  }

  Json take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  Json* place(Json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    Json& slot = parent[key_];
    slot = std::move(value);
    return &slot;
  }
  bool add(Json&& value) {
    place(std::move(value));
    return true;
  }
  bool open(Json&& value) {
    if (static_cast<int>(open_.size()) >= max_depth_) {
      problem_ = fmt::format("nested deeper than {} levels", max_depth_);
      return false;
    }
    // Pointers into the values above stay good: only the innermost one grows while it is open.
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  static constexpr std::size_t kMaxShownDigits = 100;
  static constexpr std::size_t kMaxShownError = 300;

  int max_depth_;
  bool is_exact_;
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  std::string problem_;
};

/// The code unit of `\uXXXX` at `at`, or nothing.
std::optional<unsigned> escaped_unit(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return std::nullopt;
  unsigned value = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const char c = text[i];
    const char folded = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    if (folded >= '0' && folded <= '9') {
      value = value * 16 + static_cast<unsigned>(folded - '0');
    } else if (folded >= 'a' && folded <= 'f') {
      value = value * 16 + static_cast<unsigned>(folded - 'a') + 10;
    } else {
      return std::nullopt;
    }
  }
  return value;
}

/// Halves of surrogate pairs that were escaped alone become the replacement character.
std::string mend_surrogates(std::string text) {
  std::size_t at = text.find('\\');
  while (at != std::string::npos) {
    const auto unit = escaped_unit(text, at);
    std::size_t next = at + (unit ? 6 : 2);
    if (unit && *unit >= 0xD800 && *unit <= 0xDFFF) {
      const auto second = escaped_unit(text, at + 6);
      if (*unit <= 0xDBFF && second && *second >= 0xDC00 && *second <= 0xDFFF) {
        next = at + 12;
      } else {
        text.replace(at, 6, "\\ufffd");
      }
    }
    at = next < text.size() ? text.find('\\', next) : std::string::npos;
  }
  return text;
}

std::optional<Json> build(Builder builder, std::string_view text, std::string* problem) {
  const std::string clean = mend_surrogates(clean_utf8(text));
  if (Json::sax_parse(clean, &builder)) return builder.take();
  if (problem != nullptr) *problem = builder.problem();
  return std::nullopt;
}

/// Text that stands between quotes as it is.
bool needs_no_escape(std::string_view text) {
  return std::ranges::all_of(
      text, [](unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

std::string dump_by_library(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void append_text(std::string& out, const std::string& text) {
  if (needs_no_escape(text)) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += dump_by_library(text);
  }
}

/// The library's text in a fraction of its time where nothing needs care: every event and every
/// stored part of a run passes here, most of them under the writers' lock.
void append_json(std::string& out, const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      out += "null";
      return;
    case Json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      return;
    case Json::value_t::number_integer:
      fmt::format_to(std::back_inserter(out), FMT_COMPILE("{}"), value.get<std::int64_t>());
      return;
    case Json::value_t::number_unsigned:
      fmt::format_to(std::back_inserter(out), FMT_COMPILE("{}"), value.get<std::uint64_t>());
      return;
    case Json::value_t::string:
      append_text(out, value.get_ref<const std::string&>());
      return;
    case Json::value_t::array: {
      char separator = '[';
      for (const Json& element : value) {
        out += std::exchange(separator, ',');
        append_json(out, element);
      }
      if (separator == '[') out += separator;
      out += ']';
      return;
    }
    case Json::value_t::object: {
      char separator = '{';
      for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
        out += std::exchange(separator, ',');
        append_text(out, key);
        out += ':';
        append_json(out, member);
      }
      if (separator == '{') out += separator;
      out += '}';
      return;
    }
    case Json::value_t::discarded:
      append_json(out, readable_json(value));
      return;
    case Json::value_t::number_float:
    case Json::value_t::binary:
      out += dump_by_library(value);
      return;
  }
}

}  // namespace

std::optional<Json> parse_json(std::string_view text, int max_depth, std::string* problem) {
  return build(Builder(max_depth, false), text, problem);
}

std::optional<Json> parse_exact_json(std::string_view text, int max_depth, std::string* problem) {
  return build(Builder(max_depth, true), text, problem);
}

Json readable_json(const Json& value) {
  if (!value.is_discarded()) return value;
  return {{"damaged", "what the store holds here is not JSON"}};
}

std::string dump_json(const Json& value) {
  std::string text;
  append_json(text, value);
  return text;
}

}  // namespace holdfast
