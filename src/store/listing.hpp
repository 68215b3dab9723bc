#pragma once

// What listings of all kinds of store have in common: the cursor of a page.

#include <cstdint>
#include <optional>
#include <string>

#include "holdfast/runtime.hpp"

namespace holdfast {

/// Behind which run the next page begins. Newest first: the row alone. Oldest first: when it
/// finished (0: not yet), then its id. Its text carries a digest of the filter too.
struct ListCursor {
  std::int64_t row = 0;
  std::int64_t finished_at = 0;
  RunId id;
};

std::string format_cursor(const ListFilter&, const ListCursor&);
/// Throws RefusedError (usage) for text that is no cursor, or one of another filter.
std::optional<ListCursor> parse_cursor(const ListFilter&);

}  // namespace holdfast
