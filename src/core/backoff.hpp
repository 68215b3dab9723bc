#pragma once

#include <optional>

#include "holdfast/run.hpp"

namespace holdfast {

/// How long to wait before a charged retry: `min(cap, base * factor^requeue_count)`, raised to the
/// other side's hint (itself capped by `hint_cap`; none, zero and negative ones do not count), plus
/// up to `jitter` of it. Finite and never negative for every count and policy (zero only with a
/// base of zero); never below base (or cap, if that is smaller) or hint, never above the caps plus
/// their jitter, which is at most the wait itself (spec, section 6).
Duration backoff(const Policy&, int requeue_count, std::optional<Duration> hint,
                 double unit_random);

}  // namespace holdfast
