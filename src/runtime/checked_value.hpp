#pragma once

#include <cstddef>
#include <string_view>

#include "holdfast/json.hpp"

namespace holdfast {

/// Refuses (usage) a value that a person gave which is larger or nested deeper than the limits
/// allow (spec, section 11 `[limits]`). `name` is what it is called in the message.
void check_value(std::string_view name, const Json& value, std::size_t max_bytes, int max_depth);

}  // namespace holdfast
