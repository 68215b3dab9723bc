#pragma once

// Waiting times as servers write them. Pure; nothing here throws.

#include <optional>
#include <string_view>

#include "holdfast/time.hpp"

namespace holdfast {

/// A finite decimal number that fills the text; surrounding blanks are allowed.
std::optional<double> parse_number(std::string_view text);

/// Durations like `6m0s`, `1.873s`, `120ms`, in milliseconds. Not plain numbers.
std::optional<double> parse_go_duration_ms(std::string_view text);

/// HTTP dates in their three forms.
std::optional<WallTime> parse_http_date(std::string_view text);

/// A wait in a sentence: "try again in 3.2s", "retry after 37 seconds", "wait 5 minutes".
std::optional<double> find_delay_in_prose_ms(std::string_view text);

}  // namespace holdfast
