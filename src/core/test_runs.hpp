#pragma once

// Runs in every state, for the tests of this module.

#include <array>
#include <string>
#include <variant>

#include "core/transition.hpp"

namespace holdfast::testing_runs {

inline constexpr std::array kStatuses = {Status::queued,
                                         Status::running,
                                         Status::waiting_for_approval,
                                         Status::waiting_for_input,
                                         Status::completed,
                                         Status::failed,
                                         Status::cancelled};

inline const WallTime kWall = WallTime(std::chrono::milliseconds(1'793'608'200'000));
inline const StoreTime kStore = StoreTime(std::chrono::hours(5));
inline const Now kNow = {kWall, kStore};

inline Now after(Duration wait) { return {kWall + wait, kStore + wait}; }

inline Run queued_run() {
  Run run;
  run.id = "run-1";
  run.agent = "triage";
  run.created_at = kWall - std::chrono::hours(1);
  run.available_at = run.created_at;
  run.last_sequence = 1;
  return run;
}

inline Lease lease_of(const Run& run) {
  return {run.id, run.claim, run.claimed_by.value_or("worker-a"), !run.lease_until.has_value()};
}

/// Running under a lease that has half its length left.
inline Run running_run() {
  Run run = queued_run();
  run.status = Status::running;
  run.available_at.reset();
  run.started_at = run.created_at;
  run.claimed_by = "worker-a";
  run.claim = 4;
  run.lease_until = kStore + run.policy.lease / 2;
  run.lease_expires_at = kWall + run.policy.lease / 2;
  return run;
}

inline Run stale_run() {
  Run run = running_run();
  run.lease_until = kStore - Duration(1);
  run.lease_expires_at = kWall - Duration(1);
  return run;
}

inline Run interactive_run() {
  Run run = running_run();
  run.origin = Origin::interactive;
  run.lease_until.reset();
  run.lease_expires_at.reset();
  return run;
}

inline Fence fence(Effect effect, bool has_probe = false, std::int64_t claim = 4) {
  Fence fence;
  fence.step_key = "tool:pay#1";
  fence.name = "tool:pay";
  fence.effect = effect;
  fence.arguments = {{"sum", 7}};
  fence.idempotency_key = "key-1";
  fence.since = kWall - std::chrono::seconds(1);
  fence.timeout = std::chrono::minutes(5);
  fence.deadline = kStore + std::chrono::minutes(4);
  fence.has_probe = has_probe;
  fence.claim = claim;
  return fence;
}
inline Fence unsafe_fence() { return fence(Effect::non_idempotent_write); }

inline Wait approval(int calls = 1) {
  Wait wait;
  wait.turn = "turn-1";
  for (int i = 1; i <= calls; ++i) {
    wait.calls.push_back(
        {std::to_string(i), "tool:pay", Json::object(), Verdict::undecided, false});
  }
  return wait;
}

inline Run waiting_run(int calls = 1) {
  Run run = running_run();
  run.status = Status::waiting_for_approval;
  run.claimed_by.reset();
  run.lease_until.reset();
  run.lease_expires_at.reset();
  run.waiting_for = approval(calls);
  return run;
}

inline Run input_run() {
  Run run = waiting_run();
  run.status = Status::waiting_for_input;
  run.waiting_for->kind = WaitKind::input;
  run.waiting_for->schema = {{"type", "object"}};
  return run;
}

inline Run failed_run() {
  Run run = running_run();
  run.status = Status::failed;
  run.reason = Word<Reason>(Reason::retries_exhausted);
  run.error.emplace();
  run.error->cls = FailureClass::timeout;
  run.error->message = "too slow";
  run.claimed_by.reset();
  run.lease_until.reset();
  run.lease_expires_at.reset();
  run.finished_at = kWall - std::chrono::minutes(1);
  return run;
}

inline Run cancelled_run() {
  Run run = running_run();
  run.status = Status::cancelled;
  run.reason = Word<Reason>(Reason::cancelled);
  run.lease_until.reset();
  run.lease_expires_at.reset();
  run.finished_at = kWall - std::chrono::minutes(1);
  return run;
}

inline Run with(Run run, Fence fence) {
  run.pending = std::move(fence);
  return run;
}

inline bool applied(const Transition& transition) {
  return std::holds_alternative<Change>(transition);
}
inline const Change& change_of(const Transition& transition) {
  return std::get<Change>(transition);
}
/// The kind of a refusal; `terminal`, which nothing produces, where the transition applied.
inline Declined::Kind refusal_of(const Transition& transition) {
  const auto* declined = std::get_if<Declined>(&transition);
  return declined == nullptr ? Declined::Kind::terminal : declined->kind;
}

inline Operator ann() { return {"ann", "because", "op-1"}; }

inline Failure failure(FailureClass cls) {
  Failure failure;
  failure.cls = cls;
  failure.code = "c";
  failure.message = "it went wrong";
  return failure;
}

}  // namespace holdfast::testing_runs
