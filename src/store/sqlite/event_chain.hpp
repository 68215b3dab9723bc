#pragma once

// The events of one run, newest first: each names the position of the one before it.

#include <cstdint>

#include "store/sqlite/db.hpp"
#include "store/sqlite/statements.hpp"

namespace holdfast::sqlite {

struct ChainedEvent {
  std::int64_t position;
  const Cursor& at;  ///< sequence, kind, at, claim, payload
};

/// Calls `visit` for the event at `position` and those before it, until it says false. A link that
/// leads nowhere ends the walk: `verify` finds the gap.
template <class Visit>
void walk_back(Connection& db, std::int64_t position, const Visit& visit) {
  while (position > 0) {
    auto cursor = db.query(kEventAt, position);
    if (!cursor.next() || !visit(ChainedEvent{position, cursor})) return;
    const std::int64_t previous = cursor.number(5);
    position = previous < position ? previous : 0;
  }
}

}  // namespace holdfast::sqlite
