#include "runtime/check_options.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "core/budget.hpp"
#include "core/validate.hpp"
#include "tool/check_spec.hpp"
#include "tool/url_template.hpp"

namespace holdfast {
namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& problem) {
  throw RefusedError(Refusal::usage, fmt::format("{}: {}", key, problem));
}

void need_positive(const std::string& key, Duration value) {
  if (value <= Duration::zero()) {
    refuse(key, fmt::format("must be longer than 0s, got {}ms", value.count()));
  }
}

void need_not_negative(const std::string& key, Duration value) {
  if (value < Duration::zero()) {
    refuse(key, fmt::format("must not be negative, got {}ms", value.count()));
  }
}

void need_at_least_one(const std::string& key, std::int64_t value) {
  if (value < 1) refuse(key, fmt::format("must be at least 1, got {}", value));
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const auto& one : all) names.push_back(one.name);
  return names;
}

void need_name(const std::string& table, const std::string& name) {
  if (name.empty()) refuse(table, "an entry has no name");
  const bool printable = std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (!printable || name.size() > 200) {
    refuse(table, fmt::format("the name {} must be 1 to 200 characters without control characters",
                              dump_json(Json(clean_utf8(name)))));
  }
}

void need_unique(const std::string& table, const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const auto& name : names) {
    need_name(table, name);
    if (!seen.insert(name).second) refuse(fmt::format("{}.{}", table, name), "is defined twice");
  }
}

std::string dangling(const std::string& what, const std::string& name,
                     const std::vector<std::string>& known) {
  auto text = fmt::format("there is no {} \"{}\"", what, clean_utf8(name));
  if (const auto meant = did_you_mean(name, known)) {
    text += fmt::format("; did you mean \"{}\"?", *meant);
  } else if (known.empty()) {
    text += fmt::format("; no {} is defined", what);
  } else {
    text += fmt::format("; defined: {}", fmt::join(known, ", "));
  }
  return text;
}

void check_provider_spec(const ProviderSpec& provider) {
  const auto place = "providers." + provider.name;
  need_positive(place + ".timeout", provider.timeout);
  need_positive(place + ".connect_timeout", provider.connect_timeout);
  need_positive(place + ".first_byte_timeout", provider.first_byte_timeout);
  need_positive(place + ".idle_timeout", provider.idle_timeout);
  if (provider.name.find('/') != std::string::npos) {
    refuse(place, "a provider's name has no slash: models are named provider/model");
  }
  for (const auto& [model, price] : provider.prices) {
    const bool sane = std::isfinite(price.input) && std::isfinite(price.output) &&
                      price.input >= 0 && price.output >= 0;
    if (sane) continue;
    refuse(fmt::format("{}.prices.{}", place, model), "prices are numbers that are not negative");
  }
  for (const auto& [model, tokens] : provider.context_window) {
    if (tokens >= 1) continue;
    refuse(fmt::format("{}.context_window.{}", place, model), "must be at least 1 token");
  }
}

// What model APIs take as a function's name.
bool is_tool_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

void check_declared_tool(const ToolSpec& tool) {
  const auto place = "tools." + tool.name;
  if (!is_tool_name(tool.name)) {
    refuse(place, "a tool's name has 1 to 64 letters, digits, - and _, as model APIs ask");
  }
  need_positive(place + ".timeout", tool.timeout);
  if (tool.approval_timeout) need_positive(place + ".approval_timeout", *tool.approval_timeout);
  if (const auto problem = schema_problem(tool.parameters); !problem.empty()) {
    refuse(place + ".parameters", problem);
  }
  if (!tool.input_schema.is_null()) {
    if (const auto problem = schema_problem(tool.input_schema); !problem.empty()) {
      refuse(place + ".input", problem);
    }
  }
  const bool is_command = !tool.command.empty();
  const int ways = (is_command ? 1 : 0) + (tool.http ? 1 : 0) + (tool.function ? 1 : 0);
  if (ways != 1) refuse(place, "needs a command, an HTTP call or a function, one of them");
  if (is_command && tool.command.front().empty()) {
    refuse(place + ".command", "names no program");
  }
  check_tool_spec(tool);
}

void check_models(const std::string& place, const AgentSpec& agent,
                  const std::vector<std::string>& providers) {
  if (agent.models.empty()) {
    refuse(place + ".models", "needs at least one model, as \"provider/model\"");
  }
  for (const auto& model : agent.models) {
    const auto slash = model.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == model.size()) {
      refuse(place + ".models",
             fmt::format("\"{}\" must have the form \"provider/model\"", clean_utf8(model)));
    }
    const auto provider = model.substr(0, slash);
    if (std::find(providers.begin(), providers.end(), provider) == providers.end()) {
      refuse(place + ".models", dangling("provider", provider, providers));
    }
  }
}

void check_agent(const AgentSpec& agent, const RuntimeOptions& options,
                 const std::vector<std::string>& providers, const std::vector<std::string>& tools) {
  const auto place = "agents." + agent.name;
  check_models(place, agent, providers);
  std::set<std::string> used;
  for (const auto& tool : agent.tools) {
    if (std::find(tools.begin(), tools.end(), tool) == tools.end()) {
      refuse(place + ".tools", dangling("tool", tool, tools));
    }
    if (!used.insert(tool).second) {
      refuse(place + ".tools", fmt::format("names \"{}\" twice", tool));
    }
  }
  if (!agent.answer_schema.is_null()) {
    if (const auto problem = schema_problem(agent.answer_schema); !problem.empty()) {
      refuse(place + ".answer_schema", problem);
    }
  }
  need_at_least_one(place + ".max_iterations", agent.max_iterations);
  if (agent.max_repeats < 0 || agent.max_repeats == 1) {
    refuse(place + ".max_repeats", "must be 0 (no limit) or at least 2");
  }
  if (const auto problem = budget_problem(agent.budget); !problem.empty()) {
    refuse(place + ".budget", problem);
  }
  const auto unpriced = unpriced_models(agent.models, options.providers);
  if (agent.budget.cost_usd && !unpriced.empty()) {
    refuse(place + ".budget.cost_usd",
           fmt::format("{} has no price: {}", unpriced.front(), price_remedy(unpriced.front())));
  }
  need_at_least_one(place + ".parallel_reads", agent.parallel_reads);
  if (agent.queue.empty()) refuse(place + ".queue", "must not be empty");
  if (agent.approval_timeout) need_positive(place + ".approval_timeout", *agent.approval_timeout);
  if (agent.policy) check_policy(place + ".", *agent.policy, options.heartbeat);
}

}  // namespace

void check_policy(const std::string& place, const Policy& policy, Duration heartbeat) {
  const auto lease = place + "lease.";
  const auto retry = place + "retry.";
  need_positive(lease + "duration", policy.lease);
  if (heartbeat * 2 >= policy.lease) {
    refuse(lease + "duration",
           fmt::format("the heartbeat (lease.heartbeat, {}) must be shorter than half of this "
                       "lease ({})",
                       format_duration(heartbeat), format_duration(policy.lease)));
  }
  // A larger margin would end the trust in a lease before its next renewal is due.
  if (policy.margin >= Duration::zero() && policy.margin + heartbeat >= policy.lease) {
    refuse(lease + "margin",
           fmt::format("the margin ({}) and the heartbeat ({}) together must be shorter than the "
                       "lease ({})",
                       format_duration(policy.margin), format_duration(heartbeat),
                       format_duration(policy.lease)));
  }
  need_positive(lease + "gap_timeout", policy.gap_timeout);
  if (policy.max_requeues < 0) {
    refuse(retry + "max_requeues", fmt::format("must be 0 or more, got {}", policy.max_requeues));
  }
  need_not_negative(retry + "backoff_base", policy.backoff_base);
  need_not_negative(retry + "backoff_cap", policy.backoff_cap);
  need_not_negative(retry + "max_wait", policy.max_wait);
  need_not_negative(retry + "hint_cap", policy.hint_cap);
  if (!std::isfinite(policy.backoff_factor) || policy.backoff_factor < 1) {
    refuse(retry + "backoff_factor",
           fmt::format("must be a number of at least 1, got {}", policy.backoff_factor));
  }
  if (!std::isfinite(policy.jitter) || policy.jitter < 0 || policy.jitter > 1) {
    refuse(retry + "jitter", fmt::format("must be between 0 and 1, got {}", policy.jitter));
  }
}

void check_options(const RuntimeOptions& options) {
  if (options.store_url.empty()) refuse("store.url", "must not be empty");
  need_not_negative("lease.heartbeat", options.heartbeat);
  check_policy("", options.policy, options.heartbeat);
  need_positive("lease.presence_interval", options.presence_interval);
  need_not_negative("reaper.interval", options.reaper_interval);
  need_at_least_one("reaper.limit", options.reaper_limit);
  need_not_negative("retention.terminal", options.retention_terminal);
  need_not_negative("retention.unfinished", options.retention_unfinished);
  need_at_least_one("circuit.threshold", options.circuit.threshold);
  need_positive("circuit.open", options.circuit.open);
  need_positive("circuit.quota_open", options.circuit.quota_open);
  need_at_least_one("limits.request", static_cast<std::int64_t>(options.limits.request_bytes));
  need_at_least_one("limits.result", static_cast<std::int64_t>(options.limits.result_bytes));
  need_at_least_one("limits.error", static_cast<std::int64_t>(options.limits.error_bytes));
  need_at_least_one("limits.depth", options.limits.depth);

  const auto providers = names_of(options.providers);
  const auto tools = names_of(options.tools);
  need_unique("providers", providers);
  need_unique("tools", tools);
  need_unique("agents", names_of(options.agents));
  for (const auto& provider : options.providers) check_provider_spec(provider);
  for (const auto& tool : options.tools) check_declared_tool(tool);
  for (const auto& host : options.http_hosts) {
    if (const auto problem = host_entry_problem(host); !problem.empty()) {
      refuse("http.hosts", problem);
    }
  }
  for (const auto& agent : options.agents) check_agent(agent, options, providers, tools);
}

}  // namespace holdfast
