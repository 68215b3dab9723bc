#pragma once

#include <string>

#include "cli/output.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// The colour of a status, for people.
Colour colour_of(const Word<Status>&);

/// `0198… failed (retries_exhausted)`: one line about a run's state. Safe to print.
std::string state_line(const Run&);

/// What happened, in words: `tool:pay done (non_idempotent_write) → {"ok":true}`. Safe to print.
std::string event_text(const Event&);

/// `12 2026-11-02T08:30:00.000Z claimed by host-1`, with colours for results.
std::string event_line(const Event&, const Output&);

/// The answer as text: a string as it is, else JSON.
std::string answer_text(const Json&);

/// `3m 20s`, `2d 4h`: the two largest units.
std::string age_text(Duration);

}  // namespace holdfast
