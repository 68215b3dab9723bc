#include "env/env.hpp"

#include <fmt/format.h>

namespace holdfast {

double Env::unit_random() {
  // 53 random bits are all that a double in [0, 1) can hold.
  return static_cast<double>(random() >> 11) * 0x1.0p-53;
}

RunId Env::new_id() {
  // UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 random bits. They are drawn afresh for
  // every id, so that neither a frozen clock nor a fork nor another thread can repeat one.
  const auto millis = static_cast<std::uint64_t>(wall_now().time_since_epoch().count());
  const std::uint64_t high = random();
  const std::uint64_t low = random();
  return fmt::format("{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}", (millis >> 16) & 0xffffffffu,
                     millis & 0xffffu, high & 0xfffu, 0x8000u | ((high >> 12) & 0x3fffu),
                     low & 0xffffffffffffu);
}

}  // namespace holdfast
