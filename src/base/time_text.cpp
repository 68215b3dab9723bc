// Durations and points of time as text: `30s`, `2026-11-02T08:30:00.000Z`.

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "base/text.hpp"

namespace holdfast {
namespace {

using std::chrono::days;

struct Unit {
  std::string_view word;
  std::int64_t milliseconds;
};
constexpr std::array<Unit, 5> kUnits = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

/// A century: what is longer is a mistake, and a sum of a few still fits every clock.
constexpr std::int64_t kLongestMs = std::int64_t{36'525} * 86'400'000;

/// What four digits of a year can tell.
constexpr WallTime kFirstTime{std::chrono::sys_days{std::chrono::year{0} / 1 / 1}};
constexpr WallTime kLastTime{std::chrono::sys_days{std::chrono::year{9999} / 12 / 31} + days(1) -
                             Duration(1)};

/// Reads exactly `digits` digits at the front of `text` and moves past them.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

/// `.123456` as milliseconds, rounded up: a due time is never early.
std::optional<int> take_fraction(std::string_view& text) {
  if (!take(text, ".")) return 0;
  int value = 0;
  std::size_t digits = 0;
  bool more = false;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    const int digit = text.front() - '0';
    if (digits < 3) {
      value = value * 10 + digit;
    } else if (digit != 0) {
      more = true;
    }
    ++digits;
    text.remove_prefix(1);
  }
  if (digits == 0) return std::nullopt;
  for (std::size_t i = digits; i < 3; ++i) value *= 10;
  return value + (more ? 1 : 0);
}

/// `Z`, `+02:00`, `-07:30` as minutes; the whole rest of the text.
std::optional<int> take_offset(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  if (text.size() != 6) return std::nullopt;
  const int sign = text.front() == '-' ? -1 : 1;
  if (!take(text, "+-")) return std::nullopt;
  const auto hours = take_number(text, 2);
  if (!hours || !take(text, ":")) return std::nullopt;
  const auto minutes = take_number(text, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  return sign * (*hours * 60 + *minutes);
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || text.front() == '-' || count < 0) return std::nullopt;
  const std::string_view word = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : kUnits) {
    if (word != unit.word) continue;
    if (count > kLongestMs / unit.milliseconds) return std::nullopt;
    return Duration(count * unit.milliseconds);
  }
  return std::nullopt;
}

std::string format_duration(Duration duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0s";
  for (const Unit& unit : kUnits) {
    if (count % unit.milliseconds == 0) {
      return fmt::format("{}{}", count / unit.milliseconds, unit.word);
    }
  }
  return fmt::format("{}ms", count);
}

std::optional<WallTime> parse_time(std::string_view text) {
  const auto year = take_number(text, 4);
  if (!year || !take(text, "-")) return std::nullopt;
  const auto month = take_number(text, 2);
  if (!month || !take(text, "-")) return std::nullopt;
  const auto day = take_number(text, 2);
  if (!day || !take(text, "Tt ")) return std::nullopt;
  const auto hour = take_number(text, 2);
  if (!hour || !take(text, ":")) return std::nullopt;
  const auto minute = take_number(text, 2);
  if (!minute || !take(text, ":")) return std::nullopt;
  const auto second = take_number(text, 2);
  if (!second) return std::nullopt;
  const auto fraction = take_fraction(text);
  const auto offset = take_offset(text);
  if (!fraction || !offset) return std::nullopt;
  // 60: a leap second, which civil time counts as the next one.
  if (*hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return std::nullopt;
  const WallTime time = WallTime(std::chrono::sys_days{date}) + std::chrono::hours(*hour) +
                        std::chrono::minutes(*minute - *offset) + std::chrono::seconds(*second) +
                        Duration(*fraction);
  if (time < kFirstTime || time > kLastTime) return std::nullopt;
  return time;
}

std::string format_time(WallTime time) {
  // A damaged row may hold any number; years have four digits.
  time = std::clamp(time, kFirstTime, kLastTime);
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{time - day};
  return fmt::format(FMT_COMPILE("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z"),
                     static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

}  // namespace holdfast
