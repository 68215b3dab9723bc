#include "core/backoff.hpp"

#include <algorithm>
#include <cmath>

namespace holdfast {
namespace {

/// A century in milliseconds: above every cap that makes sense, far below what a clock can add.
constexpr double kLongestMs = 36'525.0 * 86'400'000.0;

double milliseconds(Duration duration) {
  return std::clamp(static_cast<double>(duration.count()), 0.0, kLongestMs);
}

/// `value` within the bounds; what is no number is the lower one.
double bounded(double value, double low, double high) {
  return std::isnan(value) ? low : std::clamp(value, low, high);
}

}  // namespace

Duration backoff(const Policy& policy, int requeue_count, std::optional<Duration> hint,
                 double unit_random) {
  const double base = milliseconds(policy.backoff_base);
  const double cap = milliseconds(policy.backoff_cap);
  // Infinity is fine here: the cap is taken before anything becomes an integer.
  const double factor =
      std::isnan(policy.backoff_factor) ? 1.0 : std::max(1.0, policy.backoff_factor);
  const double growth = std::pow(factor, static_cast<double>(std::max(0, requeue_count)));
  double wait = base == 0.0 ? 0.0 : std::floor(std::min(cap, base * growth));
  if (hint && *hint > Duration::zero()) {
    wait = std::max(wait, std::min(milliseconds(*hint), milliseconds(policy.hint_cap)));
  }
  const double jitter = bounded(policy.jitter, 0.0, 1.0) * bounded(unit_random, 0.0, 1.0);
  return Duration(static_cast<std::int64_t>(wait + std::floor(wait * jitter)));
}

}  // namespace holdfast
