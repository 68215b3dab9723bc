#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast {

/// One line of foreign text that may be shown, logged and stored: valid UTF-8, no control
/// characters, runs of blanks made one, things that look like keys replaced by `[redacted]`, at
/// most `limit` bytes, with a note of how much was cut.
std::string excerpt(std::string_view text, std::size_t limit);

}  // namespace holdfast
