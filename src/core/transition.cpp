// The state table, and what all transitions share.

#include "core/transition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/guard.hpp"
#include "core/transition_detail.hpp"

namespace holdfast {
namespace {

bool is_settled_by_holder(const Event& event) {
  const auto kind = event.kind.known();
  if (!kind) return false;
  switch (*kind) {
    case EventKind::completed:
    case EventKind::failed:
    case EventKind::requeued:
    case EventKind::parked:
    case EventKind::released:
    case EventKind::approval_requested:
    case EventKind::input_requested:
      return true;
    case EventKind::slept:
      // A sleep that was waited for in place ends no segment.
      return event.payload.is_object() && event.payload.contains("available_at");
    case EventKind::cancelled:
      // A cancel by a person names its actor.
      return event.payload.is_object() && !event.payload.contains("actor");
    case EventKind::queued:
    case EventKind::started:
    case EventKind::claimed:
    case EventKind::model:
    case EventKind::tool:
    case EventKind::step:
    case EventKind::approved:
    case EventKind::denied:
    case EventKind::input_submitted:
    case EventKind::expired:
    case EventKind::reaped:
    case EventKind::probed:
    case EventKind::handed_over:
    case EventKind::woken:
    case EventKind::redriven:
    case EventKind::resolved:
      return false;
  }
  return false;
}

}  // namespace

bool may_follow(Status before, Status after) {
  switch (before) {
    case Status::queued:
      return after == Status::queued || after == Status::running || after == Status::cancelled;
    case Status::running:
      return true;
    case Status::waiting_for_approval:
    case Status::waiting_for_input:
      return after == before || after == Status::queued || after == Status::running ||
             after == Status::failed || after == Status::cancelled;
    case Status::completed:
      return false;
    case Status::failed:
      return after == Status::queued;
    case Status::cancelled:
      return after == Status::cancelled;
  }
  return false;
}

bool segment_already_settled(std::span<const Event> events, std::int64_t claim) {
  bool settled = false;
  for (const Event& event : events) {
    if (event.claim != claim) continue;
    if (event.kind.is(EventKind::reaped) || event.kind.is(EventKind::handed_over)) return false;
    settled = settled || is_settled_by_holder(event);
  }
  return settled;
}

bool operation_already_done(std::span<const Event> events, std::string_view operation) {
  if (operation.empty()) return false;
  return std::any_of(events.begin(), events.end(), [&](const Event& event) {
    if (!event.payload.is_object()) return false;
    const auto found = event.payload.find("operation");
    return found != event.payload.end() && found->is_string() &&
           found->get_ref<const std::string&>() == operation;
  });
}

namespace detail {

Change make_change(const Run& before, Run after, std::vector<NewEvent> events) {
  const auto from = before.status.known();
  const auto to = after.status.known();
  if (!from || !to || !may_follow(*from, *to)) {
    throw std::logic_error(fmt::format("run {}: {} may not follow {}", before.id,
                                       after.status.text(), before.status.text()));
  }
  return Change{std::move(after), std::move(events)};
}

std::optional<Declined> decline_unknown(const Run& run) {
  if (run.status.known()) return std::nullopt;
  return Declined{Declined::Kind::unknown_word,
                  fmt::format("run {} has the status {}, which this version does not know; use a "
                              "newer holdfast",
                              run.id, in_quotes(run.status))};
}

std::optional<Declined> decline_not_mine(const Run& run, const Lease& lease, const Now& now) {
  if (auto declined = decline_unknown(run)) return declined;
  const bool holds = HOLDFAST_GUARD("mine_holder", run.claimed_by == lease.holder) &&
                     HOLDFAST_GUARD("mine_claim", run.claim == lease.claim);
  if (run.status.is(Status::cancelled) && holds) {
    return Declined{Declined::Kind::cancelled, fmt::format("run {} was cancelled", run.id)};
  }
  if (!HOLDFAST_GUARD("mine_status", run.status.is(Status::running)) || !holds) {
    return Declined{Declined::Kind::not_mine,
                    fmt::format("run {} is {} at claim {}, no longer held at claim {} by {}",
                                run.id, run.status.text(), run.claim, lease.claim, lease.holder)};
  }
  if (run.policy.strict_expiry && run.lease_until && *run.lease_until < now.store) {
    return Declined{Declined::Kind::not_mine,
                    fmt::format("the lease of run {} is over and strict_expiry is on", run.id)};
  }
  return std::nullopt;
}

void give_lease(Run& row, const Now& now) {
  row.lease_until = now.store + row.policy.lease;
  row.lease_expires_at = later(now.wall, row.policy.lease);
  row.lease_lost_by_presence = false;
}

void renew_lease(Run& row, const Now& now) {
  if (row.lease_until) give_lease(row, now);
}

void drop_claim(Run& row) {
  row.claimed_by.reset();
  row.lease_until.reset();
  row.lease_expires_at.reset();
  row.lease_lost_by_presence = false;
}

void make_queued(Run& row, WallTime available_at) {
  drop_claim(row);
  row.status = Status::queued;
  row.origin = Origin::queued;
  row.available_at = available_at;
  row.waiting_for.reset();
}

void make_failed(Run& row, const Settlement& settlement, const Now& now) {
  drop_claim(row);
  row.status = Status::failed;
  row.reason = settlement.reason ? std::optional<Word<Reason>>(*settlement.reason) : std::nullopt;
  row.error = settlement.failure;
  row.available_at.reset();
  row.waiting_for.reset();
  row.finished_at = now.wall;
}

Settlement permitted(const Run& row, const Settlement& wanted) {
  bool fits = true;
  switch (wanted.next) {
    case Status::queued:
      fits = wanted.event == EventKind::parked ? row.is_clean() : row.is_safe();
      break;
    case Status::waiting_for_approval:
    case Status::waiting_for_input:
    case Status::completed:
      fits = row.is_clean();
      break;
    case Status::failed:
    case Status::cancelled:
      break;
    case Status::running:
      throw std::logic_error(fmt::format("run {}: a settlement leaves it running", row.id));
  }
  if (!HOLDFAST_GUARD("settle_fence", fits)) {
    Settlement settlement = fence_forbids(row, wanted.failure);
    settlement.executor_ended = wanted.executor_ended;
    return settlement;
  }
  if (wanted.charged && !HOLDFAST_GUARD("settle_budget", row.requeue_count < row.max_requeues)) {
    Settlement settlement = wanted;
    settlement.next = Status::failed;
    settlement.reason = Reason::retries_exhausted;
    settlement.event = EventKind::failed;
    settlement.outcome = Outcome::failed;
    settlement.charged = false;
    settlement.payload = failure_payload(wanted.failure.value_or(Failure{}), false);
    settlement.payload["reason"] = to_word(Reason::retries_exhausted);
    return settlement;
  }
  return wanted;
}

void believe_not_landed_from(Run& row, StoreTime when) {
  if (row.pending) row.pending->deadline = std::min(row.pending->deadline, when);
}

WallTime later(WallTime time, Duration wait) {
  constexpr WallTime kLast = std::chrono::sys_days{std::chrono::year{9999} / 12 / 31};
  if (time >= kLast || wait >= kLast - time) return kLast;
  return time + wait;
}

Json operator_payload(const Operator& by) {
  return {{"actor", by.actor},
          {"note", by.note.empty() ? Json() : Json(by.note)},
          {"operation", by.operation.empty() ? Json() : Json(by.operation)}};
}

std::string in_quotes(const Word<Status>& status) { return fmt::format("\"{}\"", status.text()); }

}  // namespace detail
}  // namespace holdfast
