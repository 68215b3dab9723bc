// Runs that are executed in the caller's own thread.

#include <fmt/format.h>

#include <algorithm>

#include "base/guard.hpp"
#include "runtime/front.hpp"

namespace holdfast {
namespace {

/// How a run that nobody here executes any more came out. Nothing while it still goes on.
std::optional<Outcome> outcome_of(const Run& run) {
  const auto status = run.status.known();
  if (!status) return std::nullopt;
  switch (*status) {
    case Status::completed:
      return Outcome::completed;
    case Status::failed:
      return Outcome::failed;
    case Status::cancelled:
      return Outcome::cancelled;
    case Status::waiting_for_approval:
      return Outcome::awaiting_approval;
    case Status::waiting_for_input:
      return Outcome::awaiting_input;
    case Status::queued:
    case Status::running:
      return std::nullopt;
  }
  return std::nullopt;
}

/// Does the run stay with this process after such an outcome? What is back on the queue does: an
/// inline execution goes on until the run's own end.
bool goes_on(Outcome outcome) {
  switch (outcome) {
    case Outcome::requeued:
    case Outcome::released:
    case Outcome::slept:
    case Outcome::lease_lost:
      return true;
    case Outcome::completed:
    case Outcome::awaiting_approval:
    case Outcome::awaiting_input:
    case Outcome::suspend_failed:
    case Outcome::guardrail_blocked:
    case Outcome::guardrail_approval_required:
    case Outcome::failed:
    case Outcome::cancelled:
      return false;
  }
  return false;
}

constexpr Duration kShortestLook = std::chrono::milliseconds(50);
constexpr Duration kLongestLook = std::chrono::milliseconds(250);

}  // namespace

void Front::need_executable(const Run& run) const {
  const HandlerEntry& handler = get_handler(run.agent);
  if (!handler.problem) return;
  Run defined = run;
  if (defined.definition.is_null()) defined.definition = handler.offer.definition;
  const std::string problem = handler.problem(defined);
  if (problem.empty()) return;
  throw RefusedError(Refusal::usage,
                     fmt::format("agent \"{}\" cannot be executed here: {}", run.agent, problem));
}

SegmentResult Front::run(const RunRequest& request, const Observer& observer,
                         std::stop_token stop) {
  auto wanted = make_new_run(request);
  need_executable(wanted.row);
  // A start is a claim too: what the segment executes is copied into the run now.
  wanted.row.definition = get_handler(request.agent).offer.definition;
  begin_to_execute();
  const auto executor = make_inline_executor(env_, *store_, handlers_, engine_options());
  auto started = until_answered(env_, [&](bool) { return store_->start(wanted, executor->id()); });
  auto result = executor->execute(std::move(started), observer, stop);
  fill_in_finish(result.run);
  return result;
}

SegmentResult Front::run_inline(const RunRequest& request, const Observer& observer,
                                std::stop_token stop) {
  const auto wanted = make_new_run(request);
  need_executable(wanted.row);
  begin_to_execute();
  const auto executor = make_inline_executor(env_, *store_, handlers_, engine_options());
  const auto stored = store_new({wanted}).front().run;
  return drive(*executor, std::nullopt, stored, observer, stop);
}

std::optional<Claimed> Front::claim_here(const WorkerId& worker, const Run& run) {
  ClaimRequest request;
  request.worker = worker;
  request.agents = {get_handler(run.agent).offer};
  request.only = run.id;
  return until_answered(env_, [&](bool repeated) -> std::optional<Claimed> {
    if (repeated) {
      // The claim whose reply was lost may have applied: then the run is held in our name.
      auto found = store_->find(run.id);
      if (found && found->status.is(Status::running) && found->claimed_by == worker) {
        Lease lease{found->id, found->claim, worker, false};
        return Claimed{std::move(*found), std::move(lease)};
      }
    }
    auto claimed = store_->claim(request).runs;
    if (claimed.empty()) return std::nullopt;
    return std::move(claimed.front());
  });
}

/// Executes segment after segment until the run ends or waits for a person; follows it where
/// another worker has it. A stop request cancels a run that is between two segments, as the
/// executor does within one; a run that somebody else executes is only left alone.
SegmentResult Front::drive(InlineExecutor& executor, std::optional<Claimed> claimed,
                           const Run& start, const Observer& observer,
                           const std::stop_token& stop) {
  auto look = kShortestLook;
  while (true) {
    if (claimed) {
      auto result = executor.execute(std::move(*claimed), observer, stop);
      claimed.reset();
      if (!goes_on(result.outcome)) {
        fill_in_finish(result.run);
        return result;
      }
      look = kShortestLook;
    }
    auto run = get(start.id);
    if (const auto outcome = outcome_of(run)) return {*outcome, std::move(run)};
    const bool is_queued = run.status.is(Status::queued);
    if (stop.stop_requested()) {
      if (!is_queued) return {Outcome::lease_lost, std::move(run)};
      const auto change = store_->cancel(run.id, minted({"", "stopped by its caller", ""}));
      if (change.answer == ChangeResult::Answer::applied) return {Outcome::cancelled, *change.run};
      continue;
    }
    if (is_queued && (claimed = claim_here(executor.id(), run))) continue;
    auto pause = look;
    if (is_queued && run.available_at) {
      const auto until_due = *run.available_at - store_->wall_now();
      pause = std::clamp<Duration>(until_due, Duration(1), look);
    }
    env_.sleep_for(pause, stop);
    look = std::min(look * 2, kLongestLook);
  }
}

}  // namespace holdfast
