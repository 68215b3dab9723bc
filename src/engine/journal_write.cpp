// The guarded writes of a live step: fence, work, record.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/run_codec.hpp"
#include "engine/journal.hpp"

namespace holdfast {
namespace {

EventKind event_kind(StepKind kind) {
  switch (kind) {
    case StepKind::step:
      return EventKind::step;
    case StepKind::model:
      return EventKind::model;
    case StepKind::tool:
      return EventKind::tool;
  }
  return EventKind::step;
}

/// From its deadline to its certain end a tool has two seconds (SIGTERM, then SIGKILL), and its end
/// takes a moment more: nobody believes "not landed" before.
constexpr Duration kEndingTime = std::chrono::seconds(3);
/// Of that, what may pass between the fence and the write that it is for.
constexpr Duration kStartingTime = std::chrono::seconds(1);

}  // namespace

void Journal::fence(const Step& step) {
  Fence fence;
  fence.step_key = step.key;
  fence.name = step.name;
  fence.effect = step.options.effect;
  fence.arguments = step.options.arguments;
  fence.idempotency_key = fmt::format("{}:{}", run_.id, step.key);
  fence.timeout = step.timeout + kEndingTime;
  fence.has_probe = static_cast<bool>(step.options.probe);
  fence.claim = run_.claim;
  StoreTime sent{};
  bool was_repeated = false;
  const auto answer = persist(parts_.persistence(), [&](bool is_retry) {
    was_repeated = is_retry;
    sent = parts_.env.store_now();
    if (!is_retry) fenced_at_ = sent;
    HOLDFAST_FAILPOINT("fence.before");
    const Write write = parts_.store.fence(parts_.segment.lease(), fence);
    HOLDFAST_FAILPOINT("fence.after");
    return write;
  });
  // Also where no reply came: the fence may stand, and its write has not started.
  run_.pending = fence;
  fence_unstarted_ = true;
  if (!answer) leave_by(Interrupt{});
  check(*answer, "fencing a step", step);
  parts_.segment.renewed(sent);
  fence_unstarted_ = false;
}

void Journal::unfence(const Step& step, std::optional<NewEvent> event) {
  const Unfence request{run_.pending->step_key, std::move(event)};
  const auto answer = persist(parts_.persistence(), [&](bool) {
    HOLDFAST_FAILPOINT("unfence.before");
    const Write write = parts_.store.unfence(parts_.segment.lease(), request);
    HOLDFAST_FAILPOINT("unfence.after");
    return write;
  });
  if (!answer) leave_by(Interrupt{});
  check(*answer, "clearing a fence", step);
  run_.pending.reset();
  fence_unstarted_ = false;
  if (request.event) observe_later();
}

void Journal::drop_unstarted_fence() {
  if (!fence_unstarted_ || !run_.pending) return;
  const StepOptions options;
  unfence(Step{run_.pending->step_key, run_.pending->name, options, Duration::zero()},
          std::nullopt);
}

Journal::Call Journal::call(Effect effect, const Step& step,
                            const std::function<void(const StepContext&)>& body) {
  in_step_ = true;
  Call done = call_at(0, effect, step, body);
  in_step_ = false;
  return done;
}

Journal::Call Journal::call_at(int place, Effect effect, const Step& step,
                               const std::function<void(const StepContext&)>& body) {
  Call done;
  Duration limit = step.timeout;
  if (effect != Effect::read) {
    // The fence's deadline has been running since it was sent, and the write must end before it.
    const Duration late = parts_.env.store_now() - fenced_at_ - kStartingTime;
    limit -= std::max(late, Duration::zero());
    if (!HOLDFAST_GUARD("fence_fresh", limit >= step.timeout / 2)) return done;
  }
  const auto stop = parts_.segment.begin_step(effect, limit, place);
  if (!stop) return done;
  parts_.keep_alive.look_before(parts_.env.store_now() + limit);
  const StepContext context{step.key, fmt::format("{}:{}", run_.id, step.key), limit, *stop};
  try {
    body(context);
    done.end = CallEnd::returned;
  } catch (...) {
    done.end = CallEnd::threw;
    done.error = std::current_exception();
  }
  done.cut = parts_.segment.end_step(place);
  return done;
}

std::optional<Write> Journal::write_step(StepRecord& record) {
  StoreTime sent{};
  auto answer = persist(parts_.persistence(), [&](bool is_retry) {
    record.is_retry = is_retry;
    sent = parts_.env.store_now();
    HOLDFAST_FAILPOINT("record.before");
    const Write write = parts_.store.record(parts_.segment.lease(), record);
    HOLDFAST_FAILPOINT("record.after");
    return write;
  });
  if (answer == Write::applied) {
    // An earlier try may be the one that applied: then nothing is known of this one's renewal.
    if (!record.is_retry) parts_.segment.renewed(sent);
    if (run_.pending && run_.pending->step_key == record.key) run_.pending.reset();
  }
  if (answer == Write::applied || answer == Write::cancelled) {
    observe_later();
    observe();
  }
  return answer;
}

Json Journal::storable(const Step& step, const Json& result) const {
  if (result.is_null() || result.is_boolean() || result.is_number_integer()) return result;
  // What is returned now is what a later segment will read: the text decides.
  std::string text = dump_json(result);
  std::string problem;
  if (text.size() <= parts_.limits.result_bytes) {
    if (auto parsed = parse_json(text, parts_.limits.depth, &problem)) return *parsed;
  } else {
    problem =
        fmt::format("it has {} bytes, the limit is {}", text.size(), parts_.limits.result_bytes);
  }
  if (step.writes()) {
    // It happened, whatever its result looks like.
    return {{"cut", cut(text, parts_.limits.result_bytes)},
            {"note", "the result was cut: " + problem}};
  }
  throw FailureError(make_failure(
      FailureClass::client_error, "result_refused",
      fmt::format("the result of step \"{}\" cannot be recorded: {}", step.name, problem)));
}

Json Journal::record(const Step& step, StepResult result, std::vector<NewEvent> before) {
  Json kept = storable(step, result.result);
  StepRecord record;
  record.kind = event_kind(step.options.kind);
  record.key = step.key;
  record.payload = step_payload(step.options.kind, step.name, step.key, step.options.effect,
                                step.options.arguments, kept);
  if (result.usage && !record.payload.contains("usage")) {
    // Folding the events gives the row: what a step cost stands in its event.
    if (!record.payload.contains("result")) {
      record.payload = {{"name", step.name}, {"key", step.key}, {"result", kept}};
    }
    record.payload["usage"] = encode(*result.usage);
  }
  record.usage = result.usage;
  record.counts_iteration = step.options.kind == StepKind::model;
  record.before = std::move(before);
  const auto answer = write_step(record);
  if (answer != Write::applied && answer != Write::cancelled && step.writes()) {
    log(LogLevel::error, "the result of a write could not be recorded",
        {{"run", run_.id},
         {"step", step.name},
         {"key", step.key},
         {"result", cut(dump_json(kept), 1024)}});
  }
  if (!answer) leave_by(Interrupt{});
  check(*answer, "recording a step", step);
  if (result.usage) spent_.usage += *result.usage;
  spent_.model_calls += step.options.kind == StepKind::model;
  spent_.tool_calls += step.options.kind == StepKind::tool;
  return kept;
}

}  // namespace holdfast
