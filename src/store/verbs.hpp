#pragma once

// The verbs of the product over the rows of one transaction: load, ask the transition, save. Shared
// by all kinds of store, so that they cannot differ in what they decide.

#include "store/rows.hpp"

namespace holdfast::verbs {

/// All or none: where one is in conflict, nothing is stored.
std::vector<EnqueueResult> enqueue(Rows&, std::span<const NewRun>);
Claimed start(Rows&, const NewRun&, const WorkerId&);

/// Up to `limit` due runs; declined candidates are passed over.
ClaimResult claim(Rows&, const ClaimRequest&);
/// What `claim` would look at: whether anything is due, else when the next run falls due. Reads
/// only.
struct Look {
  bool is_due = false;
  std::optional<Duration> next_due;
};
Look look(Rows&, const ClaimRequest&);

RenewReport renew(Rows&, const WorkerId&, std::span<const Lease>);
Write fence(Rows&, const Lease&, const Fence&);
Write unfence(Rows&, const Lease&, const Unfence&);
Write record(Rows&, const Lease&, const StepRecord&);
Write settle(Rows&, const Lease&, const Settlement&);
Write acknowledge_cancel(Rows&, const Lease&);

/// Waits first, then stale runs, at most `limit` of each.
ReapReport reap(Rows&, int limit, const Decider&);
bool has_any_to_reap(Rows&);
int expire_leases_of(Rows&, const WorkerId&, StoreTime not_renewed_since);

ChangeResult cancel(Rows&, const RunId&, const Operator&);
ChangeResult answer(Rows&, const Decision&, const Continuation&);
ChangeResult redrive(Rows&, const RunId&, const Operator&);
ChangeResult resolve(Rows&, const ResolveRequest&);
ChangeResult hand_over(Rows&, const RunId&, bool force, const Operator&);
ChangeResult wake(Rows&, const RunId&, const Operator&);
PurgeReport purge(Rows&, const PurgeRequest&, int limit);

}  // namespace holdfast::verbs
