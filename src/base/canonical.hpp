#pragma once

#include <string>

#include "holdfast/json.hpp"

namespace holdfast {

/// A text that two values share only when they are the same: whatever the order of members, the
/// way that a number was written, or the escapes in a text. Lengths are said before contents, so
/// that nothing has to be escaped; numbers that are no integers of 64 bits are the bits of a
/// double. The function `canonical` of a PostgreSQL store makes the same text.
std::string canonical_text(const Json&);

}  // namespace holdfast
