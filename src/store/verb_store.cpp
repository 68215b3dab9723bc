#include "store/verb_store.hpp"

#include <algorithm>
#include <optional>

namespace holdfast {
namespace {

/// How many stale runs one transaction of a sweep handles: the others get their turn in between.
constexpr int kReapedAtOnce = 200;

Foresight of_run(const RunId& id) {
  Foresight foresight;
  foresight.runs.push_back(id);
  return foresight;
}

Foresight of_new(std::span<const NewRun> runs) {
  Foresight foresight;
  for (const NewRun& run : runs) {
    foresight.runs.push_back(run.row.id);
    if (run.row.idempotency_key) foresight.keys.push_back(*run.row.idempotency_key);
  }
  return foresight;
}

Foresight of_claim(const ClaimRequest& request) {
  if (request.only) return of_run(*request.only);
  Foresight foresight;
  foresight.claim = &request;
  return foresight;
}

Foresight of_leases(const WorkerId& worker, std::span<const Lease> leases) {
  Foresight foresight;
  foresight.holder = worker;
  for (const Lease& lease : leases) foresight.runs.push_back(lease.run);
  return foresight;
}

}  // namespace

template <class Verb>
auto VerbStore::write(const Verb& verb, const Foresight& foresight)
    -> decltype(verb(std::declval<Rows&>())) {
  std::optional<decltype(verb(std::declval<Rows&>()))> result;
  transact([&](Rows& rows) { result.emplace(verb(rows)); }, foresight);
  return std::move(*result);
}

std::vector<EnqueueResult> VerbStore::enqueue(std::span<const NewRun> runs) {
  HOLDFAST_FAILPOINT("store.enqueue.before");
  auto results = write([&](Rows& rows) { return verbs::enqueue(rows, runs); }, of_new(runs));
  HOLDFAST_FAILPOINT("store.enqueue.after");
  return results;
}

Claimed VerbStore::start(const NewRun& run, const WorkerId& holder) {
  HOLDFAST_FAILPOINT("store.start.before");
  auto claimed = write([&](Rows& rows) { return verbs::start(rows, run, holder); },
                       of_new(std::span(&run, 1)));
  HOLDFAST_FAILPOINT("store.start.after");
  return claimed;
}

verbs::Look VerbStore::look(const ClaimRequest& request) {
  verbs::Look seen;
  consult([&](Rows& rows) { seen = verbs::look(rows, request); });
  return seen;
}

/// An idle worker's look takes no write lock.
ClaimResult VerbStore::claim(const ClaimRequest& request) {
  about_to_look();
  const verbs::Look seen = look(request);
  if (!seen.is_due) return {{}, seen.next_due};
  HOLDFAST_FAILPOINT("store.claim.before");
  auto result = write([&](Rows& rows) { return verbs::claim(rows, request); }, of_claim(request));
  HOLDFAST_FAILPOINT("store.claim.after");
  return result;
}

RenewReport VerbStore::renew(const WorkerId& worker, std::span<const Lease> leases) {
  HOLDFAST_FAILPOINT("store.renew.before");
  auto report = write([&](Rows& rows) { return verbs::renew(rows, worker, leases); },
                      of_leases(worker, leases));
  HOLDFAST_FAILPOINT("store.renew.after");
  return report;
}

Write VerbStore::fence(const Lease& lease, const Fence& fence) {
  HOLDFAST_FAILPOINT("store.fence.before");
  const Write answer =
      write([&](Rows& rows) { return verbs::fence(rows, lease, fence); }, of_run(lease.run));
  HOLDFAST_FAILPOINT("store.fence.after");
  return answer;
}

Write VerbStore::unfence(const Lease& lease, const Unfence& unfence) {
  HOLDFAST_FAILPOINT("store.unfence.before");
  const Write answer =
      write([&](Rows& rows) { return verbs::unfence(rows, lease, unfence); }, of_run(lease.run));
  HOLDFAST_FAILPOINT("store.unfence.after");
  return answer;
}

Write VerbStore::record(const Lease& lease, const StepRecord& step) {
  HOLDFAST_FAILPOINT("store.record.before");
  const Write answer =
      write([&](Rows& rows) { return verbs::record(rows, lease, step); }, of_run(lease.run));
  HOLDFAST_FAILPOINT("store.record.after");
  return answer;
}

Write VerbStore::settle(const Lease& lease, const Settlement& settlement) {
  HOLDFAST_FAILPOINT("store.settle.before");
  const Write answer =
      write([&](Rows& rows) { return verbs::settle(rows, lease, settlement); }, of_run(lease.run));
  HOLDFAST_FAILPOINT("store.settle.after");
  return answer;
}

Write VerbStore::acknowledge_cancel(const Lease& lease) {
  HOLDFAST_FAILPOINT("store.acknowledge_cancel.before");
  const Write answer =
      write([&](Rows& rows) { return verbs::acknowledge_cancel(rows, lease); }, of_run(lease.run));
  HOLDFAST_FAILPOINT("store.acknowledge_cancel.after");
  return answer;
}

ReapReport VerbStore::reap(int limit, bool dry_run, const Decider& decider) {
  ReapReport total;
  if (dry_run) {
    consult([&](Rows& rows) { total = verbs::reap(rows, limit, decider); });
    return total;
  }
  bool has_any = false;
  consult([&](Rows& rows) { has_any = verbs::has_any_to_reap(rows); });
  for (int left = limit; has_any && left > 0; left -= kReapedAtOnce) {
    HOLDFAST_FAILPOINT("store.reap.before");
    const ReapReport some = write(
        [&](Rows& rows) { return verbs::reap(rows, std::min(left, kReapedAtOnce), decider); });
    HOLDFAST_FAILPOINT("store.reap.after");
    total.requeued += some.requeued;
    total.dead_lettered += some.dead_lettered;
    total.skipped += some.skipped;
    total.expired += some.expired;
    total.full = some.full;
    if (!some.full) break;
  }
  return total;
}

int VerbStore::expire_leases_of(const WorkerId& worker, StoreTime not_renewed_since) {
  HOLDFAST_FAILPOINT("store.expire_leases.before");
  const int count =
      write([&](Rows& rows) { return verbs::expire_leases_of(rows, worker, not_renewed_since); });
  HOLDFAST_FAILPOINT("store.expire_leases.after");
  return count;
}

ChangeResult VerbStore::cancel(const RunId& id, const Operator& by) {
  HOLDFAST_FAILPOINT("store.cancel.before");
  auto result = write([&](Rows& rows) { return verbs::cancel(rows, id, by); }, of_run(id));
  HOLDFAST_FAILPOINT("store.cancel.after");
  return result;
}

ChangeResult VerbStore::answer(const Decision& decision, const Continuation& go_on) {
  HOLDFAST_FAILPOINT("store.answer.before");
  auto result =
      write([&](Rows& rows) { return verbs::answer(rows, decision, go_on); }, of_run(decision.run));
  HOLDFAST_FAILPOINT("store.answer.after");
  return result;
}

std::vector<ChangeResult> VerbStore::redrive(std::span<const RunId> ids, const Operator& by) {
  HOLDFAST_FAILPOINT("store.redrive.before");
  Foresight foresight;
  foresight.runs.assign(ids.begin(), ids.end());
  auto results = write(
      [&](Rows& rows) {
        std::vector<ChangeResult> all;
        for (const RunId& id : ids) all.push_back(verbs::redrive(rows, id, by));
        return all;
      },
      foresight);
  HOLDFAST_FAILPOINT("store.redrive.after");
  return results;
}

ChangeResult VerbStore::resolve(const ResolveRequest& request) {
  HOLDFAST_FAILPOINT("store.resolve.before");
  auto result =
      write([&](Rows& rows) { return verbs::resolve(rows, request); }, of_run(request.run));
  HOLDFAST_FAILPOINT("store.resolve.after");
  return result;
}

ChangeResult VerbStore::hand_over(const RunId& id, bool force, const Operator& by) {
  HOLDFAST_FAILPOINT("store.hand_over.before");
  auto result =
      write([&](Rows& rows) { return verbs::hand_over(rows, id, force, by); }, of_run(id));
  HOLDFAST_FAILPOINT("store.hand_over.after");
  return result;
}

ChangeResult VerbStore::wake(const RunId& id, const Operator& by) {
  HOLDFAST_FAILPOINT("store.wake.before");
  auto result = write([&](Rows& rows) { return verbs::wake(rows, id, by); }, of_run(id));
  HOLDFAST_FAILPOINT("store.wake.after");
  return result;
}

PurgeReport VerbStore::purge(const PurgeRequest& request, int limit) {
  if (request.dry_run) {
    PurgeReport report;
    consult([&](Rows& rows) { report = verbs::purge(rows, request, limit); });
    return report;
  }
  HOLDFAST_FAILPOINT("store.purge.before");
  auto report = write([&](Rows& rows) { return verbs::purge(rows, request, limit); });
  HOLDFAST_FAILPOINT("store.purge.after");
  return report;
}

/// Closed or open: a look suffices. What becomes the probe is written.
Admission VerbStore::admit_call(const std::string& target, Duration probe_for) {
  Admission admission;
  const auto ask = [&](Rows& rows) {
    Circuit circuit = rows.find_circuit(target);
    admission = admit(circuit, rows.now().store, probe_for);
    if (admission.is_probe) rows.save_circuit(circuit);
    return admission;
  };
  consult([&](Rows& rows) { ask(rows); });
  if (!admission.is_probe) return admission;
  HOLDFAST_FAILPOINT("store.admit_call.before");
  admission = write(ask);
  HOLDFAST_FAILPOINT("store.admit_call.after");
  return admission;
}

/// An answer where nothing was wrong writes nothing.
void VerbStore::note_call(const std::string& target, const CallEnd& end,
                          const CircuitOptions& options) {
  bool is_changed = false;
  const auto tell = [&](Rows& rows) {
    const Circuit before = rows.find_circuit(target);
    Circuit circuit = before;
    note(circuit, end, options, rows.now().store);
    is_changed = circuit != before;
    if (is_changed) rows.save_circuit(circuit);
    return is_changed;
  };
  consult([&](Rows& rows) { tell(rows); });
  if (!is_changed) return;
  HOLDFAST_FAILPOINT("store.note_call.before");
  write(tell);
  HOLDFAST_FAILPOINT("store.note_call.after");
}

}  // namespace holdfast
