#pragma once

#include <optional>

#include "holdfast/run.hpp"

namespace holdfast {

/// How long to wait before a charged retry: `min(cap, base * factor^requeue_count)`, raised to the
/// other side's hint (itself capped by `hint_cap`; none, zero and negative ones do not count), plus
/// up to `jitter` of it. Finite and positive for every count and policy; never below base or hint,
/// never above the caps plus their jitter (spec, section 6).
Duration backoff(const Policy&, int requeue_count, std::optional<Duration> hint,
                 double unit_random);

}  // namespace holdfast
