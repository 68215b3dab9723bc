#pragma once

// What many histories together must have seen, by the names of the tally. A history that never
// meets a thing says nothing about it.

#include <array>

#include "sim/violations.hpp"

namespace holdfast::sim {

inline constexpr std::array kWanted = {
    // work
    "call: read",
    "call: idempotent_write",
    "call: non_idempotent_write",
    kBesideAnother,
    "event: probed",
    "event: slept",
    "queue: default",
    "queue: side",
    "enqueued with a key",
    "enqueued with a key that is known",
    // callers and people
    "event: started",
    "event: approved",
    "event: denied",
    "event: input_submitted",
    "event: expired",
    "event: cancelled",
    "event: redriven",
    "event: resolved",
    "event: handed_over",
    "event: woken",
    "a caller is stopped",
    "a worker is stopped",
    // what goes wrong
    "fault: kill",
    "fault: freeze",
    "fault: freeze beyond the lease",
    "fault: drop_presence",
    "fault: a living worker is suspected",
    "fault: store_error",
    "fault: store_error before a call",
    "fault: store_error after a call",
    "fault: store_slow",
    "fault: jump_wall",
    "fault: suspend",
    "started anew under its name",
    // what models say; circuits open by themselves
    "model: auth",
    "model: client_error",
    "model: configuration",
    "model: connection",
    "model: content_policy",
    "model: context_length",
    "model: overloaded",
    "model: quota_exhausted",
    "model: rate_limit",
    "model: server_error",
    "model: timeout",
    "model: garbage",
    // what becomes of it
    "event: parked",
    "event: requeued",
    "event: released",
    "event: reaped",
    "event: failed",
    "event: completed",
    "healed",
};

}  // namespace holdfast::sim
