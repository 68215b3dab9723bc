// What becomes of a step whose work did not return, and of a write that an earlier segment left
// unresolved: the fence rule and the probe (spec, sections 5 and 6).

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "engine/journal.hpp"

namespace holdfast {
namespace {

/// What an exception of a step's work means.
Failure failure_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const FailureError& failure) {
    return failure.failure();
  } catch (const std::exception& other) {
    return make_failure(FailureClass::unknown, "", other.what());
  } catch (...) {
    return make_failure(FailureClass::unknown, "",
                        "something that is no std::exception was thrown");
  }
}

/// Of the event that says what a probe answered.
Json probed_as(const std::string& key, const std::string& name, const char* answer) {
  return {{"key", key}, {"name", name}, {"answer", answer}};
}

}  // namespace

std::optional<Json> Journal::after_failure(const Step& step, const Call& done) {
  Failure failure = failure_of(done.error);
  const bool is_fenced = step.writes() && run_.pending.has_value();
  if (is_fenced && failure.not_started) fence_unstarted_ = true;
  if (is_fenced && step.is_unsafe() && !failure.not_started) {
    // The work has ended, and what it did is not known: whatever the class, the fence decides.
    may_still_run_ = failure.may_still_run;
    if (done.cut == Cut::ending) await_trust();  // leaves: lost, cancelled, or handed back
    if (failure.outcome_unknown || done.cut == Cut::deadline) failure.cls = FailureClass::timeout;
    if (!step.options.probe) fail_write(step, std::move(failure));
    if (!HOLDFAST_GUARD("remote_write_waits", !may_still_run_)) {
      // Whoever claims the run next asks, and waits for the deadline where it hears "not landed".
      probe_is_open_ = true;
      fail_write(step, std::move(failure));
    }
    const ProbeAnswer answer = ask_probe(step);
    if (const auto* landed = std::get_if<Landed>(&answer)) {
      return record(step, StepResult{landed->result, std::nullopt},
                    {NewEvent{EventKind::probed, 0, probed_as(step.key, step.name, "landed")}});
    }
    if (const auto* unknown = std::get_if<Unknown>(&answer)) {
      probed_ = probed_as(step.key, step.name, "unknown");
      failure.message += fmt::format("; its probe does not know: {}", unknown->why);
      fail_write(step, std::move(failure));
    }
    unfence(step, NewEvent{EventKind::probed, 0, probed_as(step.key, step.name, "not_landed")});
    failure.outcome_unknown = false;
    throw FailureError(std::move(failure));
  }
  switch (done.cut) {
    case Cut::none:
      std::rethrow_exception(done.error);
    case Cut::trust:
      await_trust();
      return std::nullopt;
    case Cut::ending:
      await_trust();
      break;
    case Cut::deadline:
      break;
  }
  failure.cls = FailureClass::timeout;
  failure.message = fmt::format("step \"{}\" did not end within {}: {}", step.name,
                                format_duration(step.timeout), failure.message);
  throw FailureError(std::move(failure));
}

void Journal::fail_write(const Step& step, Failure failure) {
  if (failure.message.empty()) failure.message = fmt::format("step \"{}\" failed", step.name);
  failure.outcome_unknown = true;
  write_failure_ = std::move(failure);
  throw FailureError(*write_failure_);
}

ProbeAnswer Journal::ask_probe(const Step& step) {
  for (;;) {
    await_trust();
    ProbeAnswer answer = Unknown{"it was not asked"};
    HOLDFAST_FAILPOINT("probe.before");
    const Call done = call(Effect::read, step, [&](const StepContext& context) {
      answer = step.options.probe(context);
    });
    HOLDFAST_FAILPOINT("probe.after");
    if (done.end == CallEnd::returned) return answer;
    const bool is_repeated =
        done.end == CallEnd::not_started || done.cut == Cut::trust || done.cut == Cut::ending;
    if (is_repeated) continue;
    Failure failure = failure_of(done.error);
    if (failure.not_started && is_retryable(failure.cls)) {
      probe_is_open_ = true;
      failure.not_started = false;  // said of the probe, not of the write
      failure.message =
          fmt::format("the probe of \"{}\" could not be asked: {}", step.name, failure.message);
      fail_write(step, std::move(failure));
    }
    return Unknown{std::move(failure.message)};
  }
}

std::optional<Json> Journal::settle_standing_fence(const Step& step) {
  // One that this segment made is settled by the step that made it.
  if (!run_.is_fenced_unsafe() || run_.pending->claim == run_.claim) return std::nullopt;
  const Fence standing = *run_.pending;
  if (standing.step_key != step.key) {
    Failure failure = make_failure(
        FailureClass::configuration, "journal_mismatch",
        fmt::format("the write \"{}\" ({}) is unresolved, and the task now asks for \"{}\" ({})",
                    standing.name, standing.step_key, step.name, step.key));
    fail_write(step, std::move(failure));
  }
  if (!step.options.probe) {
    fail_write(step, make_failure(FailureClass::configuration, "probe_missing",
                                  fmt::format("the probe of \"{}\" is gone", step.name)));
  }
  for (;;) {
    const ProbeAnswer answer = ask_probe(step);
    if (const auto* landed = std::get_if<Landed>(&answer)) {
      return record(step, StepResult{landed->result, std::nullopt},
                    {NewEvent{EventKind::probed, 0, probed_as(step.key, step.name, "landed")}});
    }
    if (const auto* unknown = std::get_if<Unknown>(&answer)) {
      probed_ = probed_as(step.key, step.name, "unknown");
      fail_write(step, make_failure(FailureClass::timeout, "probe_unknown",
                                    fmt::format("the probe does not know whether \"{}\" landed: {}",
                                                step.name, unknown->why)));
    }
    const Duration early =
        standing.deadline - ask_store(parts_.persistence(), [&] { return parts_.store.now(); });
    if (HOLDFAST_GUARD("probe_waits", early <= Duration::zero())) break;
    // The one that began it may still be at it.
    const WallTime until = wall_now() + early;
    if (!parts_.waits_in_process) {
      leave_by(Sleep{Slept{"", fmt::format("until \"{}\" can be probed", step.name), until}});
    }
    wait_until(until);
  }
  unfence(step, NewEvent{EventKind::probed, 0, probed_as(step.key, step.name, "not_landed")});
  return std::nullopt;
}

}  // namespace holdfast
