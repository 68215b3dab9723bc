#include "core/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace holdfast {
namespace {

template <class T>
void raise_to(std::optional<T>& limit, const T& given) {
  limit = std::max(limit.value_or(given), given);
}

template <class T>
void take_limit(const Json& answer, const char* key, std::optional<T>& limit) {
  const Json* found = find_member(answer, key);
  if (found != nullptr && found->is_number()) raise_to(limit, found->get<T>());
}

/// What a person might give: as much again, beyond what is used.
Json twice(const Budget& budget, const Spent& spent, const std::string& key) {
  if (key == "tokens") return spent.usage.total_tokens + *budget.tokens;
  if (key == "cost_usd") return spent.usage.cost_usd + *budget.cost_usd;
  if (key == "model_calls") return spent.model_calls + *budget.model_calls;
  if (key == "tool_calls") return spent.tool_calls + *budget.tool_calls;
  const Duration time = spent.time + *budget.time;
  return fmt::format("{}m", std::chrono::ceil<std::chrono::minutes>(time).count());
}

}  // namespace

std::vector<SpentLimit> spent_limits(const Budget& budget, const Spent& spent, Spender spender) {
  std::vector<SpentLimit> limits;
  const auto look = [&](const char* key, const auto& limit, const auto& used, auto&& text) {
    if (!limit || used < *limit) return;
    limits.push_back(
        {key, fmt::format("the budget of {} is used up ({})", text(*limit), text(used))});
  };
  const auto counted = [](const char* unit) {
    return [unit](std::int64_t n) { return fmt::format("{} {}{}", n, unit, n == 1 ? "" : "s"); };
  };
  look("tokens", budget.tokens, spent.usage.total_tokens, counted("token"));
  look("cost_usd", budget.cost_usd, spent.usage.cost_usd,
       [](double usd) { return fmt::format("{:.6g} US dollars", usd); });
  look("time", budget.time, spent.time,
       [](Duration time) { return format_duration(time) + " of time"; });
  if (spender == Spender::model) {
    look("model_calls", budget.model_calls, spent.model_calls, counted("model call"));
  } else {
    look("tool_calls", budget.tool_calls, spent.tool_calls, counted("tool call"));
  }
  return limits;
}

Budget merged(const Budget& own, const Budget& of_agent) {
  Budget both = own;
  const auto fill = [](auto& limit, const auto& other) {
    if (!limit) limit = other;
  };
  fill(both.tokens, of_agent.tokens);
  fill(both.cost_usd, of_agent.cost_usd);
  fill(both.time, of_agent.time);
  fill(both.model_calls, of_agent.model_calls);
  fill(both.tool_calls, of_agent.tool_calls);
  return both;
}

std::string budget_problem(const Budget& budget) {
  if (budget.tokens && *budget.tokens < 1) return "tokens must be at least 1";
  if (budget.cost_usd && (!std::isfinite(*budget.cost_usd) || *budget.cost_usd <= 0)) {
    return "cost_usd must be more than 0";
  }
  if (budget.time && *budget.time <= Duration::zero()) return "time must be longer than 0s";
  if (budget.model_calls && *budget.model_calls < 1) return "model_calls must be at least 1";
  if (budget.tool_calls && *budget.tool_calls < 1) return "tool_calls must be at least 1";
  return {};
}

std::vector<std::string> unpriced_models(const std::vector<std::string>& models,
                                         const std::vector<ProviderSpec>& providers) {
  std::vector<std::string> unpriced;
  for (const std::string& target : models) {
    const auto slash = std::min(target.find('/'), target.size());
    const auto provider =
        std::ranges::find(providers, target.substr(0, slash), &ProviderSpec::name);
    if (provider == providers.end() || slash == target.size()) continue;
    if (!provider->prices.contains(target.substr(slash + 1))) unpriced.push_back(target);
  }
  return unpriced;
}

std::string price_remedy(const std::string& target) {
  const auto slash = std::min(target.find('/'), target.size());
  return fmt::format("add {} = {{ input = …, output = … }} to [providers.{}] prices",
                     dump_json(target.substr(std::min(slash + 1, target.size()))),
                     target.substr(0, slash));
}

Json budget_schema(const Budget& budget, const Spent& spent,
                   const std::vector<SpentLimit>& limits) {
  Json properties = {{"end", {{"enum", {true}}}}};
  const auto count = [&](const char* key, const auto& limit, std::int64_t used, std::int64_t most) {
    if (!limit) return;
    const std::int64_t least = std::max<std::int64_t>(*limit, used + 1);
    properties[key] = {{"type", "integer"}, {"minimum", least}, {"maximum", most}};
  };
  constexpr std::int64_t kMostCalls = 2147483647;
  count("tokens", budget.tokens, spent.usage.total_tokens, std::int64_t{1} << 53);
  count("model_calls", budget.model_calls, spent.model_calls, kMostCalls);
  count("tool_calls", budget.tool_calls, spent.tool_calls, kMostCalls);
  if (budget.cost_usd) {
    const double least = std::max(*budget.cost_usd, spent.usage.cost_usd);
    properties["cost_usd"] = {{"type", "number"}, {"exclusiveMinimum", least}, {"maximum", 1e9}};
  }
  // A text cannot be compared here: one that is too short is asked about again.
  if (budget.time) {
    properties["time"] = {{"type", "string"}, {"pattern", "^[0-9]{1,9}(ms|s|m|h|d)$"}};
  }
  Json needed = Json::array();
  Json example = Json::object();
  for (const SpentLimit& limit : limits) {
    needed.push_back(limit.key);
    example[limit.key] = twice(budget, spent, limit.key);
  }
  return {{"type", "object"},
          {"properties", properties},
          {"if", {{"not", {{"required", {"end"}}}}}},
          {"then", {{"required", needed}}},
          {"examples", Json::array({example})},
          {"additionalProperties", false}};
}

void raise(Budget& budget, const Json& answer) {
  take_limit(answer, "tokens", budget.tokens);
  take_limit(answer, "cost_usd", budget.cost_usd);
  take_limit(answer, "model_calls", budget.model_calls);
  take_limit(answer, "tool_calls", budget.tool_calls);
  if (const auto time = parse_duration(text_member(answer, "time"))) raise_to(budget.time, *time);
}

bool ends(const Json& answer) {
  const Json* end = find_member(answer, "end");
  return end != nullptr && end->is_boolean() && end->get<bool>();
}

}  // namespace holdfast
