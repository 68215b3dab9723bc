#pragma once

#include <functional>
#include <utility>

#include "base/guard.hpp"
#include "store/rows.hpp"
#include "store/verbs.hpp"

namespace holdfast {

/// What all kinds of store have in common: each verb is one transaction over rows.
class VerbStore : public Store {
 public:
  std::vector<EnqueueResult> enqueue(std::span<const NewRun>) override;
  Claimed start(const NewRun&, const WorkerId&) override;
  ClaimResult claim(const ClaimRequest&) override;
  RenewReport renew(const WorkerId&, std::span<const Lease>) override;
  Write fence(const Lease&, const Fence&) override;
  Write unfence(const Lease&, const Unfence&) override;
  Write record(const Lease&, const StepRecord&) override;
  Write settle(const Lease&, const Settlement&) override;
  Write acknowledge_cancel(const Lease&) override;
  ReapReport reap(int limit, bool dry_run, const Decider&) override;
  int expire_leases_of(const WorkerId&, StoreTime not_renewed_since) override;
  ChangeResult cancel(const RunId&, const Operator&) override;
  ChangeResult answer(const Decision&, const Continuation&) override;
  std::vector<ChangeResult> redrive(std::span<const RunId>, const Operator&) override;
  ChangeResult resolve(const ResolveRequest&) override;
  ChangeResult hand_over(const RunId&, bool force, const Operator&) override;
  ChangeResult wake(const RunId&, const Operator&) override;
  PurgeReport purge(const PurgeRequest&, int limit) override;

 protected:
  using Work = std::function<void(Rows&)>;

  /// One write transaction; returns when it is durable. `work` may run again after a rollback, so
  /// it sets its results and does not add to them.
  virtual void transact(const Work& work) = 0;
  /// A look at the rows as they are; what is saved is forgotten.
  virtual void consult(const Work& work) = 0;
  /// Before this thread looks for work: what falls due from now on ends its next wait.
  virtual void about_to_look() = 0;

 private:
  template <class Verb>
  auto write(const Verb& verb) -> decltype(verb(std::declval<Rows&>()));
};

}  // namespace holdfast
