#pragma once

// What the transitions share. Private to core.

#include <optional>
#include <string>
#include <vector>

#include "core/transition.hpp"

namespace holdfast::detail {

/// How long after its process a guardian may take to end a tool (spec, section 5 "Not landed").
inline constexpr Duration kGuardianTime = std::chrono::seconds(2);

/// Not in a state that allows it.
inline Declined conflict(std::string why) { return {Declined::Kind::conflict, std::move(why)}; }

/// The change from `before` to `after`. Throws std::logic_error where the state table forbids it:
/// better stop than write a wrong row.
Change make_change(const Run& before, Run after, std::vector<NewEvent> events);

/// A run whose status a newer build wrote.
std::optional<Declined> decline_unknown(const Run&);

/// Nothing where the run is this segment's; else why it is not (spec, section 3 "mine").
std::optional<Declined> decline_not_mine(const Run&, const Lease&, const Now&);

/// A worker segment's lease starts anew; interactive ones stay without.
void renew_lease(Run&, const Now&);
void give_lease(Run&, const Now&);
/// No holder and no lease, as between segments.
void drop_claim(Run&);

/// Available at a time, for workers. Nothing is waited for.
void make_queued(Run&, WallTime available_at);
void make_failed(Run&, const Settlement&, const Now&);

/// The settlement, or a dead letter where the row's fence or budget forbids it.
Settlement permitted(const Run&, const Settlement&);

/// "Not landed" may be believed from `when` on.
void believe_not_landed_from(Run&, StoreTime when);

/// `time + wait`, staying within what can be written as a date.
WallTime later(WallTime time, Duration wait);

/// {actor, note, operation}
Json operator_payload(const Operator&);

std::string in_quotes(const Word<Status>&);

}  // namespace holdfast::detail
