#include "core/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace holdfast {
namespace {

template <class T>
void take_limit(const Json& answer, const char* key, std::optional<T>& limit) {
  const Json* found = find_member(answer, key);
  if (found != nullptr && found->is_number()) limit = found->get<T>();
}

}  // namespace

std::string spent_text(const Budget& budget, const Spent& spent, Spender spender) {
  const auto is_spent = [](const auto& limit, const auto& used) { return limit && used >= *limit; };
  const auto text = [](const auto& limit, const char* unit, const auto& used) {
    return fmt::format("the budget of {} {} is used up ({})", limit, unit, used);
  };
  if (is_spent(budget.tokens, spent.usage.total_tokens)) {
    return text(*budget.tokens, "tokens", spent.usage.total_tokens);
  }
  if (is_spent(budget.cost_usd, spent.usage.cost_usd)) {
    return text(*budget.cost_usd, "US dollars", fmt::format("{:.4f}", spent.usage.cost_usd));
  }
  if (is_spent(budget.time, spent.time)) {
    return fmt::format("the budget of {} of time is used up ({})", format_duration(*budget.time),
                       format_duration(spent.time));
  }
  if (spender == Spender::model && is_spent(budget.model_calls, spent.model_calls)) {
    return text(*budget.model_calls, "model calls", spent.model_calls);
  }
  if (spender == Spender::tool && is_spent(budget.tool_calls, spent.tool_calls)) {
    return text(*budget.tool_calls, "tool calls", spent.tool_calls);
  }
  return {};
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

Json budget_schema() {
  const Json count = {{"type", "integer"}, {"minimum", 1}, {"maximum", 2147483647}};
  return {{"type", "object"},
          {"properties",
           {{"tokens", {{"type", "integer"}, {"minimum", 1}, {"maximum", std::int64_t{1} << 53}}},
            {"cost_usd", {{"type", "number"}, {"exclusiveMinimum", 0}}},
            {"time", {{"type", "string"}, {"pattern", "^[0-9]{1,12}(ms|s|m|h|d)$"}}},
            {"model_calls", count},
            {"tool_calls", count},
            {"end", {{"type", "boolean"}}}}},
          {"examples", Json::array({{{"tokens", 200000}}})},
          {"minProperties", 1},
          {"additionalProperties", false}};
}

void raise(Budget& budget, const Json& answer) {
  take_limit(answer, "tokens", budget.tokens);
  take_limit(answer, "cost_usd", budget.cost_usd);
  take_limit(answer, "model_calls", budget.model_calls);
  take_limit(answer, "tool_calls", budget.tool_calls);
  if (const auto time = parse_duration(text_member(answer, "time"))) budget.time = time;
}

bool ends(const Json& answer) {
  const Json* end = find_member(answer, "end");
  return end != nullptr && end->is_boolean() && end->get<bool>();
}

}  // namespace holdfast
