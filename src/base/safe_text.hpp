#pragma once

// Foreign text on its way to people: what a terminal, or a reader of lines, would take for more
// than letters is written as an escape.

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast {

/// Text from a file, a run, a model or a tool as one line: valid UTF-8, control characters (and
/// those that turn the direction of writing) written as escapes.
std::string safe_line(std::string_view text);

/// The same, keeping line breaks and tabs.
std::string safe_text(std::string_view text);

/// JSON text (valid UTF-8) that a terminal shows as it is: JSON leaves DEL, C1 and direction marks
/// unescaped.
std::string safe_json(std::string_view text);

/// Length in bytes of the character at `at` of valid UTF-8.
std::size_t character_bytes(std::string_view text, std::size_t at);

}  // namespace holdfast
