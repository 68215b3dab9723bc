#include "core/error_body.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "core/delay_text.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMaxParsedBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxHeadBytes = 8192;
constexpr std::size_t kMaxWordBytes = 200;
constexpr std::size_t kMaxWords = 16;
constexpr int kMaxLevel = 6;

bool starts_like_html(std::string_view body) {
  std::size_t at = body.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (at == std::string_view::npos) return false;
  std::string head(body.substr(at, 16));
  std::transform(head.begin(), head.end(), head.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return head.starts_with("<!doctype") || head.starts_with("<html") || head.starts_with("<head");
}

class Reader {
 public:
  explicit Reader(ErrorBody* out) : out_(*out) {}

  void read(const Json& value, int level) {
    if (level > kMaxLevel) return;
    if (value.is_string()) {
      read_text(value.get_ref<const std::string&>(), level);
    } else if (value.is_array()) {
      if (!value.empty()) read(value.front(), level + 1);
    } else if (value.is_object()) {
      read_object(value, level);
    }
  }

 private:
  static const Json* find(const Json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
  }

  static void add(std::vector<std::string>* words, const Json* value) {
    if (value == nullptr || !value->is_string() || words->size() >= kMaxWords) return;
    const auto& word = value->get_ref<const std::string&>();
    if (!word.empty()) words->push_back(word.substr(0, kMaxWordBytes));
  }

  void add_status(const Json* value) {
    if (value == nullptr || out_.status) return;
    double number = 0;
    if (value->is_number()) {
      number = value->get<double>();
    } else if (value->is_string()) {
      const auto& text = value->get_ref<const std::string&>();
      if (text.size() != 3) return;
      std::from_chars(text.data(), text.data() + 3, number);
    }
    if (number >= 400 && number < 600) out_.status = static_cast<int>(number);
  }

  static bool is_number(const Json& value) {
    if (value.is_number()) return true;
    if (!value.is_string()) return false;
    const auto& text = value.get_ref<const std::string&>();
    return !text.empty() && std::all_of(text.begin(), text.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
  }

  /// A code is a word, or an HTTP status written as a number; other numbers say nothing in general.
  void add_code(const Json* value) {
    if (value == nullptr) return;
    if (is_number(*value)) {
      add_status(value);
    } else {
      add(&out_.codes, value);
    }
  }

  void add_wait(const Json* value, double unit_ms) {
    if (value == nullptr || out_.retry_after_ms) return;
    std::optional<double> ms;
    if (value->is_number()) {
      ms = value->get<double>() * unit_ms;
    } else if (value->is_string()) {
      const auto& text = value->get_ref<const std::string&>();
      ms = parse_number(text);
      if (ms) {
        *ms *= unit_ms;
      } else {
        ms = parse_go_duration_ms(text);
      }
    }
    if (ms && std::isfinite(*ms) && *ms > 0) out_.retry_after_ms = ms;
  }

  void read_text(const std::string& text, int level) {
    // Gateways put the upstream's JSON into a string.
    if (text.starts_with('{') || text.starts_with('[')) {
      if (auto inner = parse_json(text); inner && inner->is_structured()) {
        read(*inner, level + 1);
        if (!out_.text.empty()) return;
      }
    }
    if (out_.text.empty()) out_.text = text;
  }

  static bool any_filtered(const Json& value, int level) {
    if (level > kMaxLevel) return false;
    if (const Json* filtered = find(value, "filtered");
        filtered != nullptr && filtered->is_boolean() && filtered->get<bool>()) {
      return true;
    }
    if (!value.is_structured()) return false;
    return std::any_of(value.begin(), value.end(),
                       [&](const Json& item) { return any_filtered(item, level + 1); });
  }

  void read_details(const Json& details) {
    if (details.is_object()) {
      add_code(find(details, "error_code"));
      add_code(find(details, "code"));
      add_code(find(details, "reason"));
      return;
    }
    if (!details.is_array()) return;
    std::size_t seen = 0;
    for (const Json& detail : details) {
      if (++seen > kMaxWords) break;
      add(&out_.codes, find(detail, "reason"));
      add_wait(find(detail, "retryDelay"), 1000);
      const Json* violations = find(detail, "violations");
      if (violations == nullptr || !violations->is_array()) continue;
      for (const Json& violation : *violations) add(&out_.codes, find(violation, "quotaId"));
    }
  }

  void read_metadata(const Json& metadata) {
    add(&out_.codes, find(metadata, "limit_source"));
    add(&out_.codes, find(metadata, "error_type"));
    if (find(metadata, "flagged_input") != nullptr) out_.codes.emplace_back("flagged_input");
    read_waits(metadata);
  }

  void read_waits(const Json& object) {
    add_wait(find(object, "retry_after_ms"), 1);
    add_wait(find(object, "retry_after"), 1000);
    add_wait(find(object, "retry_after_seconds"), 1000);
    add_wait(find(object, "retryDelay"), 1000);
  }

  /// Answers with status 200 that are none: the reason is at the end of the answer.
  void read_answer(const Json& object, int level) {
    for (const char* key : {"finish_reason", "finishReason", "stop_reason", "blockReason"}) {
      add(&out_.endings, find(object, key));
    }
    if (const Json* incomplete = find(object, "incomplete_details")) {
      add(&out_.endings, find(*incomplete, "reason"));
    }
    for (const char* key : {"choices", "candidates", "promptFeedback", "response"}) {
      if (const Json* part = find(object, key); part != nullptr && part->is_structured()) {
        read(*part, level + 1);
      }
    }
    for (const char* key :
         {"prompt_filter_results", "content_filter_results", "content_filter_result"}) {
      if (const Json* filter = find(object, key); filter != nullptr && any_filtered(*filter, 0)) {
        out_.codes.emplace_back("content_filter");
      }
    }
    if (const Json* message = find(object, "message")) {
      if (const Json* refusal = find(*message, "refusal");
          refusal != nullptr && refusal->is_string() &&
          !refusal->get_ref<const std::string&>().empty()) {
        out_.endings.emplace_back("refusal");
      }
    }
  }

  void read_object(const Json& object, int level) {
    if (const Json* details = find(object, "details")) read_details(*details);
    if (const Json* metadata = find(object, "metadata")) read_metadata(*metadata);
    for (const char* key : {"innererror", "error", "errors"}) {
      if (const Json* inner = find(object, key)) read(*inner, level + 1);
    }
    if (object.size() == 1 && object.begin().value().is_object() &&
        object.begin().key().ends_with("Exception")) {
      out_.codes.push_back(object.begin().key().substr(0, kMaxWordBytes));
      read(object.begin().value(), level + 1);
    }
    add_code(find(object, "code"));
    add_code(find(object, "error_code"));
    add_code(find(object, "error_name"));
    add_status(find(object, "originalStatusCode"));
    add_status(find(object, "raw_status_code"));
    add_status(find(object, "status"));
    add(&out_.types, find(object, "type"));
    add(&out_.types, find(object, "status"));
    read_waits(object);
    read_answer(object, level);
    for (const char* key : {"message", "msg", "detail", "error_description", "title"}) {
      const Json* text = find(object, key);
      if (text == nullptr) continue;
      if (text->is_string()) {
        read_text(text->get_ref<const std::string&>(), level);
      } else if (text->is_array() && !text->empty()) {
        read(text->front(), level + 1);
      }
    }
  }

  ErrorBody& out_;
};

/// The title of a page is what a person would read aloud.
std::string title_of(std::string_view page) {
  const std::string head(page.substr(0, kMaxHeadBytes));
  std::string lower = head;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t open = lower.find("<title>");
  if (open == std::string::npos) return {};
  const std::size_t close = lower.find("</title>", open);
  if (close == std::string::npos) return {};
  return head.substr(open + 7, close - open - 7);
}

}  // namespace

ErrorBody read_error_body(std::string_view body, std::string_view content_type) {
  ErrorBody out;
  if (body.empty()) return out;
  std::optional<Json> json;
  if (body.size() <= kMaxParsedBytes) json = parse_json(body);
  if (json) {
    out.is_json = true;
    Reader(&out).read(*json, 0);
    return out;
  }
  out.is_html = starts_like_html(body) || content_type.find("text/html") != std::string_view::npos;
  out.text = out.is_html ? title_of(body) : std::string(body);
  return out;
}

}  // namespace holdfast
