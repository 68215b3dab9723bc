// Runs whose worker is gone (spec, sections 4 "Presence" and 7).

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/transition.hpp"
#include "core/transition_detail.hpp"

namespace holdfast {

using namespace detail;  // NOLINT(google-build-using-namespace)

namespace {

Json reaped_payload(const Run& run, bool by_presence) {
  return {{"worker", run.claimed_by ? Json(*run.claimed_by) : Json()},
          {"expired_at", run.lease_expires_at ? Json(format_time(*run.lease_expires_at)) : Json()},
          {"cause", by_presence ? "presence" : "lease"},
          {"step", run.pending ? Json(run.pending->name) : Json()}};
}

}  // namespace

bool is_stale(const Run& run, const Now& now) {
  return run.status.is(Status::running) && run.lease_until && *run.lease_until <= now.store;
}

Transition reaped(const Run& run, const Settlement& wanted, bool by_presence, const Now& now) {
  if (auto declined = decline_unknown(run)) return *declined;
  // A row without a lease is never reaped, whatever is switched off for a test.
  if (!run.status.is(Status::running) || !run.lease_until ||
      !HOLDFAST_GUARD("reap_stale", is_stale(run, now))) {
    return Declined{Declined::Kind::conflict,
                    fmt::format("run {} is not stale (any more)", run.id)};
  }
  by_presence = by_presence || run.lease_lost_by_presence;
  const Settlement settlement = permitted(run, wanted);
  const std::int64_t claim = run.claim;
  Json payload = reaped_payload(run, by_presence);
  if (settlement.failure) {
    payload["class"] = to_word(settlement.failure->cls);
    payload["code"] = settlement.failure->code;
    payload["message"] = settlement.failure->message;
  }
  Run row = run;
  if (by_presence) believe_not_landed_from(row, now.store + kGuardianTime);
  if (settlement.next == Status::queued) {
    const WallTime due = later(now.wall, settlement.delay.value_or(Duration::zero()));
    make_queued(row, due);
    ++row.requeue_count;
    ++row.reclaim_count;
    if (settlement.failure) row.error = settlement.failure;
    payload["available_at"] = format_time(due);
    return make_change(run, std::move(row), {{EventKind::reaped, claim, std::move(payload)}});
  }
  if (settlement.next != Status::failed) {
    return Declined{Declined::Kind::conflict,
                    fmt::format("run {}: a reaper only requeues or dead-letters", run.id)};
  }
  make_failed(row, settlement, now);
  payload["reason"] = row.reason ? Json(row.reason->text()) : Json();
  return make_change(run, std::move(row),
                     {{EventKind::reaped, claim, std::move(payload)},
                      {EventKind::failed, claim, settlement.payload}});
}

Transition lease_expired_by_presence(const Run& run, const WorkerId& worker,
                                     StoreTime not_renewed_since, const Now& now) {
  if (auto declined = decline_unknown(run)) return *declined;
  if (!run.status.is(Status::running) || !run.lease_until || run.claimed_by != worker) {
    return Declined{Declined::Kind::not_mine,
                    fmt::format("run {} is not leased to {}", run.id, worker)};
  }
  if (run.lease_lost_by_presence) {
    return Declined{Declined::Kind::unchanged, fmt::format("the lease of {} is over", run.id)};
  }
  const StoreTime renewed_at = *run.lease_until - run.policy.lease;
  if (!HOLDFAST_GUARD("presence_not_renewed", renewed_at <= not_renewed_since)) {
    return Declined{Declined::Kind::conflict,
                    fmt::format("run {} was renewed after its holder seemed gone", run.id)};
  }
  Run row = run;
  if (*row.lease_until > now.store) {
    row.lease_until = now.store;
    row.lease_expires_at = now.wall;
  }
  row.lease_lost_by_presence = true;
  return make_change(run, std::move(row), {});
}

}  // namespace holdfast
