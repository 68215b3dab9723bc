#pragma once

#include <chrono>
#include <cstdint>

namespace holdfast {

/// A length of time. Everything in Holdfast counts in milliseconds.
using Duration = std::chrono::milliseconds;

/// A point of civil time (UTC), for display and for due times: `available_at`, `created_at` and the
/// like.
using WallTime = std::chrono::sys_time<Duration>;

/// The clock that a store judges leases and step deadlines by (spec, section 3 "Clocks"). For
/// SQLite and memory it is the time since the machine's boot, suspension included; no jump of the
/// wall clock touches it.
struct StoreClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<StoreClock>;
  static constexpr bool is_steady = true;
};
using StoreTime = std::chrono::time_point<StoreClock, Duration>;

}  // namespace holdfast
