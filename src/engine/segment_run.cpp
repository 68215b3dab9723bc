#include "engine/segment_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "base/guard.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

Failed unexpected(std::string message, bool in_agent) {
  Failed end;
  end.in_agent = in_agent;
  end.failure.cls = FailureClass::unknown;
  end.failure.code = "exception";
  end.failure.message = std::move(message);
  return end;
}

/// Runs the handler. The one place that catches what it throws; what it left the journal by is
/// asked there, since a handler may have swallowed it.
SegmentEnd run_handler(Journal& journal, const HandlerEntry& entry) {
  try {
    return Completed{entry.handler(journal)};
  } catch (const FailureError& error) {
    return Failed{error.failure(), false};
  } catch (const EndRun& end) {
    return Ended{end.reason, end.message, end.answer, end.finish};
  } catch (const std::exception& error) {
    return unexpected(error.what(), entry.is_agent);
  } catch (const LeaseLost&) {
  } catch (const Cancelled&) {
  } catch (const Suspend&) {
  } catch (const Sleep&) {
  } catch (const Interrupt&) {
  } catch (...) {
    return unexpected("the task threw something that is no std::exception", entry.is_agent);
  }
  return Interrupted{};  // replaced by what the journal was left by
}

SegmentOutcome acknowledge_cancel(const SegmentParts& parts) {
  const auto answer = persist(parts.persistence(), [&](bool) {
    HOLDFAST_FAILPOINT("acknowledge.before");
    const Write write = parts.store.acknowledge_cancel(parts.segment.lease());
    HOLDFAST_FAILPOINT("acknowledge.after");
    return write;
  });
  return {Outcome::cancelled, answer.has_value()};
}

std::optional<Write> write_settlement(const SegmentParts& parts, const Settlement& settlement,
                                      std::string& error) {
  // A suspension is promised to nobody until it is stored; the verdicts of a handler are kept for
  // as long as the worker lives.
  const bool suspends = settlement.wait.has_value();
  return persist(
      parts.persistence(),
      [&](bool) {
        try {
          HOLDFAST_FAILPOINT("settle.before");
          const Write write = parts.store.settle(parts.segment.lease(), settlement);
          HOLDFAST_FAILPOINT("settle.after");
          return write;
        } catch (const StoreError& failed) {
          error = failed.what();
          throw;
        }
      },
      [&] { return suspends && !parts.segment.is_trusted(); });
}

/// The suspension of an interactive run could not be stored: it fails, and says why.
SegmentOutcome fail_suspension(const SegmentParts& parts, const Run& run,
                               const std::string& error) {
  if (parts.segment.lease().interactive) {
    Failed end;
    end.failure.cls = FailureClass::unknown;
    end.failure.code = "suspend_failed";
    end.failure.message = fmt::format("the store could not keep the question: {}", error);
    std::string again;
    const Settlement failed = decide(run, end, true, parts.env.wall_now(), parts.env.unit_random());
    const auto answer = write_settlement(parts, failed, again);
    return {Outcome::suspend_failed, answer.has_value()};
  }
  return {Outcome::suspend_failed, false};
}

SegmentOutcome settle(const SegmentParts& parts, const Run& run, const Settlement& settlement) {
  std::string error;
  const auto answer = write_settlement(parts, settlement, error);
  if (!answer) {
    if (settlement.wait) return fail_suspension(parts, run, error);
    log(LogLevel::warn, "a run could not be settled; its lease is left to expire",
        {{"run", run.id}, {"outcome", std::string(to_word(settlement.outcome))}, {"error", error}});
    return {Outcome::lease_lost, false};
  }
  switch (*answer) {
    case Write::applied:
      return {settlement.outcome, true};
    case Write::cancelled:
      return acknowledge_cancel(parts);
    case Write::lost:
      return {Outcome::lease_lost, true};
  }
  return {Outcome::lease_lost, true};
}

/// Decides on how the segment ended, and settles it so.
SegmentOutcome conclude(const SegmentParts& parts, Run run, SegmentEnd end, bool fence_unstarted,
                        bool may_still_run = false) {
  const bool interactive = parts.segment.lease().interactive;
  if (fence_unstarted) run.pending.reset();
  Json probed;
  if (auto* failed = std::get_if<Failed>(&end)) {
    probed = std::move(failed->probed);
    failed->failure.message = cut(clean_utf8(failed->failure.message), parts.limits.error_bytes);
  }
  const WallTime now = ask_store(parts.persistence(), [&] { return parts.store.wall_now(); });
  // Somebody waits for it: it goes on at once, or when the other side has said (spec, section 6).
  if (parts.waits_in_process) run.policy.backoff_base = Duration::zero();
  Settlement settlement = decide(run, end, interactive, now, parts.env.unit_random());
  settlement.clears_fence = settlement.clears_fence || fence_unstarted;
  settlement.probed = std::move(probed);
  // Whatever this segment fenced has ended by now, where it ran in this process or below it: the
  // handler has returned.
  if (run.is_fenced_unsafe() && run.pending->claim == run.claim) {
    settlement.executor_ended = !may_still_run;
  }
  return settle(parts, run, settlement);
}

SegmentOutcome execute(const SegmentParts& parts, const HandlerEntry& entry, Run run) {
  Journal journal(parts, std::move(run));
  parts.segment.handler_goes_on();
  SegmentEnd end = run_handler(journal, entry);
  parts.segment.engine_goes_on();
  SegmentOutcome outcome;
  const auto left = journal.leave();
  if (left && std::holds_alternative<LeaseLost>(*left)) {
    outcome = {Outcome::lease_lost, true};
  } else if (left && std::holds_alternative<Cancelled>(*left)) {
    outcome = acknowledge_cancel(parts);
  } else {
    if (left && std::holds_alternative<Suspend>(*left))
      end = Suspended{std::get<Suspend>(*left).wait};
    if (left && std::holds_alternative<Sleep>(*left)) end = std::get<Sleep>(*left).slept;
    if (left && std::holds_alternative<Interrupt>(*left)) end = Interrupted{};
    if (journal.write_failure()) {
      end = Failed{*journal.write_failure(), false, journal.probe_is_open(), journal.probed()};
    }
    outcome = conclude(parts, journal.run(), std::move(end), journal.fence_is_unstarted(),
                       journal.may_still_run());
  }
  journal.observe_end();
  return outcome;
}

constexpr Duration kFirstTurnAway = std::chrono::seconds(1);
constexpr Duration kLongestTurnAway = std::chrono::minutes(1);

/// Doubled with each time that the run was turned away without a step in between.
Duration turn_away_delay(const SegmentParts& parts, const RunId& run) {
  const std::vector<Event> events =
      ask_store(parts.persistence(), [&] { return parts.store.events(run, 0, 0); });
  Duration delay = kFirstTurnAway;
  for (auto it = events.rbegin(); it != events.rend() && delay < kLongestTurnAway; ++it) {
    if (it->kind.is(EventKind::claimed) || it->kind.is(EventKind::woken)) continue;
    if (!it->kind.is(EventKind::released) || !it->payload.contains("message")) break;
    delay *= 2;
  }
  return std::min(delay, kLongestTurnAway);
}

/// Who has no lease has nobody to hand the run to: its handler fails where it has to.
std::optional<SegmentOutcome> turn_away(const SegmentParts& parts, const HandlerEntry& entry,
                                        const Run& run) {
  if (!entry.problem || parts.segment.lease().interactive) return std::nullopt;
  const std::string problem = entry.problem(run);
  if (HOLDFAST_GUARD("turn_away", problem.empty())) return std::nullopt;
  log(LogLevel::warn, "a run is handed back: this process cannot execute it",
      {{"run", run.id}, {"why", problem}});
  return conclude(parts, run, Interrupted{problem, turn_away_delay(parts, run.id)}, false);
}

}  // namespace

SegmentOutcome run_segment(const SegmentParts& parts, const HandlerEntry& entry, Run run) {
  try {
    if (const auto turned_away = turn_away(parts, entry, run)) return *turned_away;
    return execute(parts, entry, std::move(run));
  } catch (const std::exception& error) {
    // Recovery never throws: what it could not write is decided by the reaper.
    log(LogLevel::error, "a segment was given up; its lease is left to expire",
        {{"run", parts.segment.lease().run}, {"error", error.what()}});
    return {Outcome::lease_lost, false};
  }
}

SegmentOutcome release_segment(const SegmentParts& parts, const Run& run) {
  try {
    return conclude(parts, run, Interrupted{}, false);
  } catch (const std::exception& error) {
    log(LogLevel::error, "a run could not be released; its lease is left to expire",
        {{"run", run.id}, {"error", error.what()}});
    return {Outcome::lease_lost, false};
  }
}

}  // namespace holdfast
