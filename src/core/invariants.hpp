#pragma once

// What findings about stored rows are told under (spec, section 10).

namespace holdfast {

inline constexpr char kTerminalInvariant[] = "invariant 2 (terminal is terminal)";
inline constexpr char kOrphanInvariant[] = "invariant 3 (no orphans)";
inline constexpr char kOnceInvariant[] = "invariant 5 (a step is recorded once)";
inline constexpr char kJournalInvariant[] = "invariant 6 (the journal gives the row)";
inline constexpr char kBudgetInvariant[] = "invariant 7 (budget and claims)";
inline constexpr char kFoundInvariant[] = "invariant 9 (no run is lost)";
inline constexpr char kLeaseAndFenceShape[] = "shape of lease and fence";

}  // namespace holdfast
