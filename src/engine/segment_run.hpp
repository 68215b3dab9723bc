#pragma once

#include "engine/handlers.hpp"
#include "engine/journal.hpp"

namespace holdfast {

/// How a segment ended, and whether the store knows.
struct SegmentOutcome {
  Outcome outcome = Outcome::lease_lost;
  /// False: the last write was never answered, and the row may still be running in this holder's
  /// name; its lease is left to expire.
  bool answered = true;
};

/// One segment from its claim to its outcome: the handler from the top, then `decide`, then the one
/// write that settles it. A leased run that this process cannot execute is handed back uncharged,
/// each time for longer, so that another worker takes it. Never throws.
SegmentOutcome run_segment(const SegmentParts&, const HandlerEntry&, Run);

/// Hands a claimed run back that nothing was done for.
SegmentOutcome release_segment(const SegmentParts&, const Run&);

}  // namespace holdfast
