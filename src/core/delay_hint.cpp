#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "core/classify.hpp"
#include "core/delay_text.hpp"
#include "core/error_body.hpp"

namespace holdfast {
namespace {

/// Longer hints are cut here, so that no later sum overflows.
constexpr double kMaxMs = 100.0 * 365 * 24 * 3600 * 1000;

std::optional<Duration> to_hint(std::optional<double> ms) {
  if (!ms || !std::isfinite(*ms) || *ms <= 0) return std::nullopt;
  return Duration(static_cast<Duration::rep>(std::ceil(std::min(*ms, kMaxMs))));
}

std::optional<Duration> to_hint(WallTime until, std::optional<WallTime> now) {
  // Against the response's own clock; ours may be wrong by hours.
  if (!now || until <= *now) return std::nullopt;
  return to_hint(static_cast<double>((until - *now).count()));
}

const std::string* find(const Evidence& evidence, const std::string& name) {
  auto header = evidence.headers.find(name);
  return header == evidence.headers.end() ? nullptr : &header->second;
}

std::optional<Duration> reset_hint(const std::string& text, std::optional<WallTime> now) {
  if (auto ms = parse_go_duration_ms(text)) return to_hint(ms);
  if (auto number = parse_number(text)) {
    // Vendors write seconds to wait, epoch seconds or epoch milliseconds.
    if (*number < 1e9) return to_hint(*number * 1000);
    if (*number > 1e14) return std::nullopt;
    const double epoch_ms = *number < 1e11 ? *number * 1000 : *number;
    return to_hint(WallTime(Duration(static_cast<Duration::rep>(epoch_ms))), now);
  }
  if (auto time = parse_time(text)) return to_hint(*time, now);
  return std::nullopt;
}

/// The latest reset among the buckets that are empty.
std::optional<Duration> bucket_hint(const Evidence& evidence, std::optional<WallTime> now,
                                    std::string* source) {
  std::optional<Duration> latest;
  for (const auto& [name, value] : evidence.headers) {
    const std::size_t at = name.find("remaining");
    if (at == std::string::npos || name.find("ratelimit") == std::string::npos) continue;
    if (parse_number(value) != 0.0) continue;
    std::string reset_name = name;
    reset_name.replace(at, 9, "reset");
    const std::string* reset = find(evidence, reset_name);
    if (reset == nullptr) continue;
    auto hint = reset_hint(*reset, now);
    if (hint && (!latest || *hint > *latest)) {
      latest = hint;
      *source = reset_name;
    }
  }
  return latest;
}

std::optional<Duration> header_hint(const Evidence& evidence, std::optional<WallTime> now,
                                    std::string* source) {
  if (const std::string* ms = find(evidence, "retry-after-ms")) {
    *source = "retry-after-ms";
    if (auto hint = to_hint(parse_number(*ms))) return hint;
  }
  if (const std::string* after = find(evidence, "retry-after")) {
    *source = "retry-after";
    if (auto seconds = parse_number(*after)) {
      if (auto hint = to_hint(*seconds * 1000)) return hint;
    } else if (auto date = parse_http_date(*after)) {
      if (auto hint = to_hint(*date, now)) return hint;
    }
  }
  return std::nullopt;
}

std::optional<Duration> find_hint(const Evidence& evidence, std::string* source) {
  std::optional<WallTime> now;
  if (const std::string* date = find(evidence, "date")) now = parse_http_date(*date);
  if (auto hint = header_hint(evidence, now, source)) return hint;

  const ErrorBody body = read_error_body(evidence.body, {});
  *source = "body";
  if (auto hint = to_hint(body.retry_after_ms)) return hint;
  if (auto hint = bucket_hint(evidence, now, source)) return hint;
  *source = "text";
  if (!body.is_html) return to_hint(find_delay_in_prose_ms(body.text));
  return std::nullopt;
}

}  // namespace

std::optional<Duration> delay_hint(const Evidence& evidence, std::string* source) {
  std::string used;
  auto hint = find_hint(evidence, &used);
  if (source != nullptr) *source = hint ? used : std::string();
  return hint;
}

}  // namespace holdfast
