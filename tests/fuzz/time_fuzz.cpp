// Durations, points of time, and how long servers ask to wait.

#include <cmath>

#include "core/classify.hpp"
#include "core/delay_text.hpp"
#include "fuzz/fuzz.hpp"

using namespace holdfast;
using fuzz::expect;

namespace {

constexpr Duration kCentury = std::chrono::hours(24 * 36'525);

void check_duration(std::string_view text) {
  const auto duration = parse_duration(text);
  if (!duration) return;
  expect(*duration >= Duration::zero() && *duration <= kCentury,
         "a duration is between nothing and a century", text);
  const std::string shown = format_duration(*duration);
  expect(parse_duration(shown) == duration, "a duration is read back as it was", shown);
}

void check_time(std::string_view text) {
  const auto time = parse_time(text);
  if (!time) return;
  const std::string shown = format_time(*time);
  expect(shown.size() == 24, "a time has one length", shown);
  expect(parse_time(shown) == time, "a time is read back as it was", shown);
}

void check_waits(std::string_view text) {
  if (const auto number = parse_number(text)) expect(std::isfinite(*number), "finite", text);
  if (const auto ms = parse_go_duration_ms(text)) expect(std::isfinite(*ms), "finite", text);
  if (const auto ms = find_delay_in_prose_ms(text)) expect(std::isfinite(*ms), "finite", text);
  if (const auto date = parse_http_date(text)) {
    expect(parse_time(format_time(*date)) == date, "a server's date is a time", text);
  }
}

/// Lines of `name: value`.
void check_hint(std::string_view text) {
  Evidence evidence;
  for (std::string_view line : fuzz::split(text, "\n")) {
    const std::string name(fuzz::take_until(line, ": "));
    if (name == "body") {
      evidence.body = line;
    } else {
      evidence.headers[lower_case(name)] = line;
    }
  }
  std::string source;
  const auto hint = delay_hint(evidence, &source);
  expect(hint.has_value() == !source.empty(), "a hint has its source, and only a hint", text);
  if (hint) expect(*hint > Duration::zero() && *hint <= kCentury, "a hint is a wait", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  check_duration(text);
  check_time(text);
  check_waits(text);
  check_hint(text);
  return 0;
}
