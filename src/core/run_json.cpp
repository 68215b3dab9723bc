// The JSON that people and programs see (spec, section 12).

#include "base/text.hpp"
#include "core/run_codec.hpp"
#include "holdfast/run.hpp"

namespace holdfast {
namespace {

Json time_or_null(const std::optional<WallTime>& time) {
  return time ? Json(format_time(*time)) : Json();
}

template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json pending_json(const Fence& fence) {
  return {{"step", fence.step_key},
          {"name", fence.name},
          {"effect", to_word(fence.effect)},
          {"arguments", readable_json(fence.arguments)},
          {"idempotency_key", fence.idempotency_key},
          {"since", format_time(fence.since)},
          {"claim", fence.claim}};
}

Json call_json(const GatedCall& call) {
  return {
      {"id", call.id},
      {"name", call.name},
      {"arguments", call.arguments},
      {"decision", call.decision == Verdict::undecided ? Json() : Json(to_word(call.decision))}};
}

Json wait_json(const Wait& wait) {
  Json json = {{"kind", to_word(wait.kind)},
               {"turn", wait.turn},
               {"deadline", time_or_null(wait.deadline)},
               {"prompt", wait.prompt.empty() ? Json() : Json(wait.prompt)}};
  switch (wait.kind) {
    case WaitKind::approval: {
      Json calls = Json::array();
      for (const GatedCall& call : wait.calls) calls.push_back(call_json(call));
      json["calls"] = std::move(calls);
      break;
    }
    case WaitKind::input:
      json["schema"] = wait.schema;
      break;
  }
  return json;
}

Json error_json(const Failure& failure) {
  return {{"class", to_word(failure.cls)}, {"message", failure.message}, {"code", failure.code}};
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  prompt_tokens += other.prompt_tokens;
  completion_tokens += other.completion_tokens;
  total_tokens += other.total_tokens;
  cost_usd += other.cost_usd;
  return *this;
}

Json to_json(const Run& run) {
  Json json = {{"id", run.id},
               {"agent", run.agent},
               {"queue", run.queue},
               {"status", run.status.text()},
               {"reason", run.reason ? Json(run.reason->text()) : Json()},
               {"origin", run.origin.text()},
               {"priority", run.priority},
               {"input", readable_json(run.input)},
               {"answer", run.answer ? readable_json(*run.answer) : Json()},
               {"error", run.error ? error_json(*run.error) : Json()},
               {"created_at", format_time(run.created_at)},
               {"available_at", time_or_null(run.available_at)},
               {"started_at", time_or_null(run.started_at)},
               {"finished_at", time_or_null(run.finished_at)},
               {"claimed_by", value_or_null(run.claimed_by)},
               {"claim", run.claim},
               {"lease_expires_at", time_or_null(run.lease_expires_at)},
               {"requeue_count", run.requeue_count},
               {"max_requeues", run.max_requeues < 0 ? Json() : Json(run.max_requeues)},
               {"reclaim_count", run.reclaim_count},
               {"redrive_count", run.redrive_count},
               {"pending_effect", run.pending ? Json(to_word(run.pending->effect)) : Json()},
               {"pending", run.pending ? pending_json(*run.pending) : Json()},
               {"iterations", run.iterations},
               {"usage", encode(run.usage)},
               {"waiting_for", run.waiting_for ? wait_json(*run.waiting_for) : Json()},
               {"labels", encode(run.labels)},
               {"abandoned", run.abandoned}};
  if (!run.finish.empty()) json["finish"] = run.finish;
  return json;
}

Json to_json(const Event& event) {
  return {{"run", event.run},          {"sequence", event.sequence},
          {"kind", event.kind.text()}, {"at", format_time(event.at)},
          {"claim", event.claim},      {"payload", readable_json(event.payload)}};
}

}  // namespace holdfast
