#include "core/run_codec.hpp"

#include <algorithm>
#include <string>

#include "base/text.hpp"
#include "core/lenient.hpp"

namespace holdfast {
namespace {

using lenient::kFarthest;
using lenient::read;

/// The value of the word at `key`; `otherwise` for words that this build does not know.
template <class E>
void read_word(const Json& object, const char* key, E& value, E otherwise) {
  const Json* found = find_member(object, key);
  if (found == nullptr || !found->is_string()) return;
  value = parse_word<E>(found->get_ref<const std::string&>()).value_or(otherwise);
}

Json optional_count(const std::optional<Duration>& value) {
  return value ? Json(value->count()) : Json();
}

Json encode_call(const GatedCall& call) {
  return {{"id", call.id},
          {"name", call.name},
          {"arguments", call.arguments},
          {"decision", to_word(call.decision)},
          {"ends_on_denial", call.ends_on_denial}};
}

GatedCall decode_call(const Json& json) {
  GatedCall call;
  read(json, "id", call.id);
  read(json, "name", call.name);
  read(json, "arguments", call.arguments);
  read_word(json, "decision", call.decision, Verdict::undecided);
  read(json, "ends_on_denial", call.ends_on_denial);
  return call;
}

}  // namespace

Json encode(const Budget& budget) {
  Json json = Json::object();
  if (budget.tokens) json["tokens"] = *budget.tokens;
  if (budget.cost_usd) json["cost_usd"] = *budget.cost_usd;
  if (budget.time) json["time"] = budget.time->count();
  if (budget.model_calls) json["model_calls"] = *budget.model_calls;
  if (budget.tool_calls) json["tool_calls"] = *budget.tool_calls;
  return json;
}

Budget decode_budget(const Json& json) {
  Budget budget;
  const auto read_limit = [&](const char* key, auto& limit) {
    const Json* found = find_member(json, key);
    if (found != nullptr && found->is_number()) read(json, key, limit);
  };
  read_limit("tokens", budget.tokens);
  read_limit("cost_usd", budget.cost_usd);
  read_limit("time", budget.time);
  read_limit("model_calls", budget.model_calls);
  read_limit("tool_calls", budget.tool_calls);
  return budget;
}

Json encode(const Policy& policy) {
  Json json = {{"lease", policy.lease.count()},
               {"margin", policy.margin.count()},
               {"gap_timeout", policy.gap_timeout.count()},
               {"strict_expiry", policy.strict_expiry},
               {"max_requeues", policy.max_requeues},
               {"backoff_base", policy.backoff_base.count()},
               {"backoff_factor", policy.backoff_factor},
               {"backoff_cap", policy.backoff_cap.count()},
               {"jitter", policy.jitter},
               {"max_wait", policy.max_wait.count()},
               {"hint_cap", policy.hint_cap.count()},
               {"retry_unknown", policy.retry_unknown}};
  if (!policy.budget.is_empty()) json["budget"] = encode(policy.budget);
  return json;
}

Policy decode_policy(const Json& json) {
  Policy policy;
  read(json, "lease", policy.lease);
  read(json, "margin", policy.margin);
  read(json, "gap_timeout", policy.gap_timeout);
  read(json, "strict_expiry", policy.strict_expiry);
  read(json, "max_requeues", policy.max_requeues);
  read(json, "backoff_base", policy.backoff_base);
  read(json, "backoff_factor", policy.backoff_factor);
  read(json, "backoff_cap", policy.backoff_cap);
  read(json, "jitter", policy.jitter);
  read(json, "max_wait", policy.max_wait);
  read(json, "hint_cap", policy.hint_cap);
  read(json, "retry_unknown", policy.retry_unknown);
  if (const Json* budget = find_member(json, "budget")) policy.budget = decode_budget(*budget);
  return policy;
}

Json encode(const Failure& failure) {
  return {{"class", to_word(failure.cls)},
          {"code", failure.code},
          {"message", failure.message},
          {"retry_after", optional_count(failure.retry_after)},
          {"delay_source", failure.delay_source},
          {"should_retry", failure.should_retry ? Json(*failure.should_retry) : Json()},
          {"provider", failure.provider},
          {"model", failure.model},
          {"attempted", failure.attempted},
          {"not_started", failure.not_started},
          {"outcome_unknown", failure.outcome_unknown}};
}

Failure decode_failure(const Json& json) {
  Failure failure;
  read_word(json, "class", failure.cls, FailureClass::unknown);
  read(json, "code", failure.code);
  read(json, "message", failure.message);
  read(json, "retry_after", failure.retry_after);
  read(json, "delay_source", failure.delay_source);
  read(json, "should_retry", failure.should_retry);
  read(json, "provider", failure.provider);
  read(json, "model", failure.model);
  read(json, "attempted", failure.attempted);
  read(json, "not_started", failure.not_started);
  read(json, "outcome_unknown", failure.outcome_unknown);
  return failure;
}

Json encode(const Fence& fence) {
  return {{"step", fence.step_key},
          {"name", fence.name},
          {"effect", to_word(fence.effect)},
          {"arguments", fence.arguments},
          {"idempotency_key", fence.idempotency_key},
          {"since", fence.since.time_since_epoch().count()},
          {"deadline", fence.deadline.time_since_epoch().count()},
          {"timeout", fence.timeout.count()},
          {"has_probe", fence.has_probe},
          {"claim", fence.claim}};
}

Fence decode_fence(const Json& json) {
  Fence fence;
  read(json, "step", fence.step_key);
  read(json, "name", fence.name);
  read_word(json, "effect", fence.effect, Effect::non_idempotent_write);
  read(json, "arguments", fence.arguments);
  read(json, "idempotency_key", fence.idempotency_key);
  read(json, "since", fence.since);
  read(json, "deadline", fence.deadline);
  read(json, "timeout", fence.timeout);
  read(json, "has_probe", fence.has_probe);
  read(json, "claim", fence.claim);
  return fence;
}

Json encode(const Wait& wait) {
  Json calls = Json::array();
  for (const GatedCall& call : wait.calls) calls.push_back(encode_call(call));
  return {{"kind", to_word(wait.kind)},
          {"turn", wait.turn},
          {"calls", std::move(calls)},
          {"schema", wait.schema},
          {"prompt", wait.prompt},
          {"timeout", optional_count(wait.timeout)},
          {"deadline", wait.deadline ? Json(wait.deadline->time_since_epoch().count()) : Json()}};
}

Wait decode_wait(const Json& json) {
  Wait wait;
  read_word(json, "kind", wait.kind, WaitKind::approval);
  read(json, "turn", wait.turn);
  if (const Json* calls = find_member(json, "calls"); calls != nullptr && calls->is_array()) {
    for (const Json& call : *calls) wait.calls.push_back(decode_call(call));
  }
  read(json, "schema", wait.schema);
  read(json, "prompt", wait.prompt);
  read(json, "timeout", wait.timeout);
  read(json, "deadline", wait.deadline);
  return wait;
}

Json encode(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.total_tokens},
          {"cost_usd", usage.cost_usd}};
}

Usage decode_usage(const Json& json) {
  Usage usage;
  read(json, "prompt_tokens", usage.prompt_tokens);
  read(json, "completion_tokens", usage.completion_tokens);
  read(json, "total_tokens", usage.total_tokens);
  read(json, "cost_usd", usage.cost_usd);
  for (std::int64_t* count :
       {&usage.prompt_tokens, &usage.completion_tokens, &usage.total_tokens}) {
    *count = std::clamp(*count, -kFarthest, kFarthest);
  }
  return usage;
}

Json encode(const Labels& labels) {
  Json json = Json::object();
  for (const auto& [key, value] : labels) json[key] = value;
  return json;
}

Labels decode_labels(const Json& json) {
  Labels labels;
  if (!json.is_object()) return labels;
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) labels.emplace(key, value.get<std::string>());
  }
  return labels;
}

}  // namespace holdfast
