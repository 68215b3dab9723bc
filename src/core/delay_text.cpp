#include "core/delay_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>

namespace holdfast {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

struct Unit {
  std::string_view name;
  double ms;
};

/// Longer names first: `ms` before `m`.
constexpr std::array<Unit, 18> kUnits{{{"milliseconds", 1},
                                       {"millisecond", 1},
                                       {"seconds", 1000},
                                       {"minutes", 60000},
                                       {"second", 1000},
                                       {"minute", 60000},
                                       {"hours", 3600000},
                                       {"hour", 3600000},
                                       {"secs", 1000},
                                       {"mins", 60000},
                                       {"sec", 1000},
                                       {"min", 60000},
                                       {"ms", 1},
                                       {"us", 0.001},
                                       {"ns", 0.000001},
                                       {"h", 3600000},
                                       {"m", 60000},
                                       {"s", 1000}}};

/// Reads `NUMBER UNIT` repeatedly from the front. Returns nothing when not even one pair is there.
/// `used` says how far it got.
std::optional<double> read_pairs(std::string_view text, bool blanks, std::size_t* used) {
  double total = 0;
  bool any = false;
  std::size_t at = 0;
  while (at < text.size()) {
    double number = 0;
    const char* begin = text.data() + at;
    const char* end = text.data() + text.size();
    auto [rest, problem] = std::from_chars(begin, end, number, std::chars_format::fixed);
    if (problem != std::errc() || !std::isfinite(number)) break;
    std::string_view tail(rest, static_cast<std::size_t>(end - rest));
    if (blanks && tail.starts_with(' ')) tail.remove_prefix(1);
    auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                             [&](const Unit& u) { return tail.starts_with(u.name); });
    if (unit == kUnits.end()) break;
    tail.remove_prefix(unit->name.size());
    // A unit ends where its word ends: "3 sheep" is no time.
    if (!tail.empty() && std::isalpha(static_cast<unsigned char>(tail.front())) != 0) break;
    total += number * unit->ms;
    any = true;
    at = text.size() - tail.size();
  }
  *used = at;
  if (!any || !std::isfinite(total)) return std::nullopt;
  return total;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

std::optional<double> parse_go_duration_ms(std::string_view text) {
  text = trim(text);
  std::size_t used = 0;
  auto total = read_pairs(text, false, &used);
  if (!total || used != text.size()) return std::nullopt;
  return total;
}

std::optional<WallTime> parse_http_date(std::string_view text) {
  const std::string date(trim(text).substr(0, 64));
  std::array<char, 4> month{};
  int day = 0, year = 0, hour = 0, minute = 0, second = 0;
  const char* c = date.c_str();
  if (std::sscanf(c, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT", &day, month.data(), &year,
                  &hour, &minute, &second) != 6 &&
      std::sscanf(c, "%*[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT", &day, month.data(), &year,
                  &hour, &minute, &second) != 6 &&
      std::sscanf(c, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d", month.data(), &day, &hour,
                  &minute, &second, &year) != 6) {
    return std::nullopt;
  }
  if (year < 100) year += year < 70 ? 2000 : 1900;
  static constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::size_t at = kMonths.find(std::string_view(month.data()));
  if (at == std::string_view::npos || at % 3 != 0) return std::nullopt;
  const std::chrono::year_month_day ymd{std::chrono::year(year),
                                        std::chrono::month(static_cast<unsigned>(at / 3 + 1)),
                                        std::chrono::day(static_cast<unsigned>(std::max(day, 0)))};
  if (!ymd.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 60) {
    return std::nullopt;
  }
  return WallTime(std::chrono::sys_days(ymd)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + std::chrono::seconds(second);
}

std::optional<double> find_delay_in_prose_ms(std::string_view text) {
  std::string lower(text.substr(0, 8192));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (std::string_view lead :
       {"try again in ", "try again after ", "retry after ", "retry in ", "wait for ", "wait "}) {
    for (std::size_t at = lower.find(lead); at != std::string::npos;
         at = lower.find(lead, at + 1)) {
      std::size_t used = 0;
      auto ms = read_pairs(std::string_view(lower).substr(at + lead.size()), true, &used);
      if (ms && *ms > 0) return ms;
    }
  }
  return std::nullopt;
}

}  // namespace holdfast
