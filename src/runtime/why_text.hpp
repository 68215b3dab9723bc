#pragma once

// The words and the parts of a journal that `why` is made of. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "holdfast/run.hpp"

namespace holdfast {

/// A length of time as people say it: one unit, rounded down.
std::string spoken(Duration);
/// `in 25 s (2026-11-02T08:30:00.000Z)`, `3 min ago (…)`
std::string moment(WallTime at, WallTime now);
/// As one word of a shell.
std::string shell_word(std::string_view text);
/// A value, cut to what fits into a sentence.
std::string brief(const Json&);
/// By name; none where the schema has none.
Json properties_of(const Json& schema);
/// A value of the type that a schema asks for, to be replaced by the one who types it.
Json example_of(const Json& schema);
/// An object with one for each property.
Json example_values(const Json& schema);
/// The text at a key of an event's payload; other values as JSON, absent ones empty.
std::string text_at(const Json& payload, const char* key);

/// `rate_limit (rate_limit_exceeded) from main/gpt-5-mini: Too many requests`, of a failure or of
/// an event's payload.
std::string failure_text(const Failure&);
std::string failure_text(const Json& payload);

/// What failed, and which workers were lost, since the run was last put back by a person.
Json failures_of_drive(const std::vector<Event>&);
Json reclaims_of_drive(const std::vector<Event>&);
/// {"key", "at"} of the newest recorded step, or null.
Json last_step(const std::vector<Event>&);

}  // namespace holdfast
