#include "core/validate.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>

#include "base/text.hpp"
#include "core/json_schema.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMaxNameBytes = 128;
constexpr std::size_t kMaxKeyBytes = 256;
constexpr std::size_t kMaxLabels = 32;
constexpr std::size_t kMaxLabelKeyBytes = 64;
constexpr std::size_t kMaxLabelValueBytes = 256;
constexpr Duration kMaxDelay = std::chrono::hours(24 * 366 * 100);
constexpr int kMaxRequeues = 1000000;

[[noreturn]] void refuse(const std::string& message) {
  throw RefusedError(Refusal::usage, message);
}

/// Text that people and programs type: not empty, bounded, valid UTF-8, no control characters.
void check_text(const std::string& field, const std::string& value, std::size_t limit) {
  if (value.empty()) refuse(field + " is empty; give it a value or leave it out");
  if (value.size() > limit) {
    refuse(field + " has " + std::to_string(value.size()) + " bytes; at most " +
           std::to_string(limit) + " are allowed");
  }
  const bool has_control = std::any_of(value.begin(), value.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u < 0x20 || u == 0x7F;
  });
  if (has_control) refuse(field + " holds a control character or line break; remove it");
  if (clean_utf8(value) != value) refuse(field + " is not valid UTF-8; send it as UTF-8");
}

void check_input(const Json& input, const Limits& limits) {
  // Depth first: printing the value recurses.
  if (depth_of(input, limits.depth) > limits.depth) {
    refuse("input is nested deeper than " + std::to_string(limits.depth) +
           " levels ([limits] depth); flatten it or send it as text");
  }
  const std::size_t size = size_of_value(input);
  if (size > limits.request_bytes) {
    refuse("input has " + std::to_string(size) + " bytes; at most " +
           std::to_string(limits.request_bytes) +
           " are allowed ([limits] request): pass a reference to the data instead");
  }
}

bool is_uuid(const std::string& id) {
  if (id.size() != 36) return false;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = id[i];
    const bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (is_dash ? c != '-' : !is_hex) return false;
  }
  return true;
}

void check_labels(const Labels& labels) {
  if (labels.size() > kMaxLabels) {
    refuse("labels: there are " + std::to_string(labels.size()) + "; at most " +
           std::to_string(kMaxLabels) + " are allowed");
  }
  for (const auto& [key, value] : labels) {
    const bool is_plain = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ||
             c == '/' || c == ':';
    });
    if (!is_plain || key.size() > kMaxLabelKeyBytes) {
      refuse("label `" + cut(clean_utf8(key), kMaxLabelKeyBytes) +
             "`: a key is 1 to 64 letters, digits and any of _ - . / :");
    }
    if (!value.empty()) check_text("label `" + key + "`", value, kMaxLabelValueBytes);
  }
}

void check_times(const RunRequest& request) {
  if (request.delay && request.at) {
    refuse("delay and at were both given; use one of them");
  }
  if (request.delay && *request.delay < Duration::zero()) {
    refuse("delay is negative; use 0s or more, such as 30s or 2h");
  }
  if (request.delay && *request.delay > kMaxDelay) {
    refuse("delay is longer than a hundred years; use a shorter one");
  }
  using namespace std::chrono;
  constexpr WallTime first{sys_days(year(1970) / 1 / 1)};
  constexpr WallTime last{sys_days(year(9999) / 1 / 1)};
  if (request.at && (*request.at < first || *request.at >= last)) {
    refuse("at lies outside the years 1970 to 9998; give a time like 2026-11-02T08:30:00Z");
  }
}

}  // namespace

std::size_t size_of_value(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().size();
  return dump_json(value).size();
}

void check_name(const std::string& field, const std::string& value) {
  check_text(field, value, kMaxNameBytes);
}

void check_request(const RunRequest& request, const Limits& limits) {
  check_name("agent", request.agent);
  check_input(request.input, limits);
  if (request.id && !is_uuid(*request.id)) {
    refuse("id `" + cut(clean_utf8(*request.id), 64) +
           "` is not a UUID in lower case, like 0198c2a4-7d1e-7c3a-9f00-1b2c3d4e5f60; leave it out "
           "to have one made");
  }
  if (request.queue) check_text("queue", *request.queue, kMaxNameBytes);
  if (request.idempotency_key) {
    check_text("idempotency key", *request.idempotency_key, kMaxKeyBytes);
  }
  check_times(request);
  if (request.max_requeues && (*request.max_requeues < 0 || *request.max_requeues > kMaxRequeues)) {
    refuse("max_requeues is " + std::to_string(*request.max_requeues) + "; use 0 (no retries) to " +
           std::to_string(kMaxRequeues));
  }
  check_labels(request.labels);
}

}  // namespace holdfast
