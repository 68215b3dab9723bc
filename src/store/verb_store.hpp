#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/guard.hpp"
#include "store/rows.hpp"
#include "store/verbs.hpp"

namespace holdfast {

/// What a verb is going to look at, so that a store may fetch it in one go. A hint: the verb may
/// look at other rows, too.
struct Foresight {
  std::vector<RunId> runs;
  std::vector<std::string> keys;        ///< of idempotency
  std::optional<WorkerId> holder;       ///< its leases
  const ClaimRequest* claim = nullptr;  ///< what it may take
};

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
  Admission admit_call(const std::string& target, Duration probe_for) override;
  void note_call(const std::string& target, const CallEnd&, const CircuitOptions&) override;

 protected:
  using Work = std::function<void(Rows&)>;

  /// One write transaction; returns when it is durable. `work` may run again after a rollback, so
  /// it sets its results and does not add to them.
  virtual void transact(const Work& work, const Foresight&) = 0;
  /// A look at the rows as they are; what is saved is forgotten.
  virtual void consult(const Work& work) = 0;
  /// Before this thread looks for work: what falls due from now on ends its next wait.
  virtual void about_to_look() = 0;
  /// Whether anything is due, else when the next run falls due; takes no lock.
  virtual verbs::Look look(const ClaimRequest&);

 private:
  template <class Verb>
  auto write(const Verb& verb, const Foresight& foresight = {})
      -> decltype(verb(std::declval<Rows&>()));
};

}  // namespace holdfast
