#include "app/config_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "app/config_parts.hpp"
#include "base/text.hpp"
#include "core/budget.hpp"
#include "core/validate.hpp"

namespace holdfast {
namespace {

using std::chrono::milliseconds;

void check_base_url(const TableReader& table, const std::string& url) {
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    table.refuse("base_url", "expected an address that begins with http:// or https://");
    return;
  }
  const auto host = url.substr(url.find("//") + 2);
  if (host.empty() || host.front() == '/' || host.front() == ':') {
    table.refuse("base_url", "expected a host after http:// or https://");
  } else if (host.substr(0, host.find('/')).find('@') != host.npos) {
    table.refuse("base_url",
                 "holds a user or password; secrets come from the environment only: "
                 "use api_key_env");
  }
}

void read_prices(TableReader& table, ProviderSpec& spec) {
  for (auto& [model, price] : table.named_tables("prices")) {
    Price& entry = spec.prices[model];
    price.read("input", entry.input, 0, 1e6);
    price.read("output", entry.output, 0, 1e6);
    const auto read_other = [&price = price](const char* key, std::optional<double>& value) {
      if (price.has(key)) price.read(key, value.emplace(), 0, 1e6);
    };
    read_other("cached", entry.cached);
    read_other("cache_write", entry.cache_write);
    price.finish();
  }
}

void read_windows(TableReader& table, ProviderSpec& spec) {
  auto windows = table.find_table("context_window");
  if (!windows) return;
  for (const std::string& model : windows->keys()) {
    int tokens = 1;
    windows->read(model, tokens, 1, 1000000000);
    spec.context_window[model] = tokens;
  }
  windows->finish();
}

void read_provider(TableReader& table, const std::string& folder, ProviderSpec& spec,
                   ConfigProblems& problems) {
  if (!is_name_of(spec.name, "_-.")) {
    problems.add(table.line(), "providers." + spec.name,
                 "a provider's name has letters, digits, '_', '-' and '.' only");
  }
  table.read("kind", spec.kind);
  check_word(table, "kind", spec.kind, {"openai", "anthropic", "gemini", "ollama", "scripted"}, {});
  table.read("base_url", spec.base_url);
  table.read("api", spec.api);
  check_word(table, "api", spec.api, {"chat", "responses"}, {});
  if (spec.kind != "openai" && table.has("api")) {
    table.refuse("api", "only a provider of kind \"openai\" has a choice of APIs");
  }
  table.read("max_tokens", spec.max_tokens, 1, 10000000);
  if (spec.kind != "anthropic" && table.has("max_tokens")) {
    table.refuse("max_tokens", "only a provider of kind \"anthropic\" needs a limit");
  }
  table.read("api_key_env", spec.api_key_env);
  if (!spec.api_key_env.empty() && !is_variable_name(spec.api_key_env)) {
    // The text is not shown: it may be the key itself.
    table.refuse("api_key_env",
                 "expected the name of an environment variable (letters, digits and '_'), not the "
                 "key itself");
  }
  table.read("stream", spec.stream);
  table.read("native_schema", spec.native_schema);
  table.read("timeout", spec.timeout, kShortest);
  table.read("connect_timeout", spec.connect_timeout, kShortest);
  table.read("first_byte_timeout", spec.first_byte_timeout, kShortest);
  table.read("idle_timeout", spec.idle_timeout, kShortest);
  read_headers(table, spec.headers, "use api_key_env = \"NAME_OF_A_VARIABLE\"", problems);
  read_prices(table, spec);
  read_windows(table, spec);
  table.read("script", spec.script);
  if (!spec.script.empty()) spec.script = resolve_path(folder, spec.script);

  if (spec.kind == "scripted" && spec.script.empty()) {
    table.refuse("script", "missing; a scripted provider needs the path of its JSON file");
  }
  if (spec.kind != "scripted" && !spec.script.empty()) {
    table.refuse("script", "only a provider of kind \"scripted\" has a script");
  }
  if (spec.kind == "openai" && spec.base_url.empty()) {
    table.refuse("base_url", "missing; expected an address such as \"https://api.openai.com/v1\"");
  } else if (!spec.base_url.empty()) {
    check_base_url(table, spec.base_url);
  }
  table.finish("use api_key_env = \"NAME_OF_A_VARIABLE\"");
}

/// The entry with this name, or a problem at the line that names it.
template <class Spec>
void check_name(const std::vector<Spec>& specs, const std::string& name, std::string_view what,
                unsigned line, const std::string& key, ConfigProblems& problems) {
  std::vector<std::string> names;
  names.reserve(specs.size());
  for (const auto& spec : specs) names.push_back(spec.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const auto meant = did_you_mean(name, names);
  problems.add(line, key,
               fmt::format("no such {} \"{}\"; {}", what, name,
                           meant ? fmt::format("did you mean \"{}\"?", *meant)
                                 : fmt::format("add [{}s.{}] or mend the name", what, name)));
}

void read_models(TableReader& table, AgentSpec& spec, const RuntimeOptions& options,
                 ConfigProblems& problems) {
  std::vector<TextAt> models;
  table.read("models", models);
  const auto key = table.full_name("models");
  if (!table.has("models")) {
    table.refuse("models", "missing; expected a list such as [\"main/gpt-5-mini\"]");
  } else if (models.empty()) {
    table.refuse("models", "expected at least one \"provider/model\"");
  }
  for (const auto& item : models) {
    const auto slash = item.text.find('/');
    if (slash == item.text.npos || slash == 0 || slash + 1 == item.text.size()) {
      problems.add(item.line, key,
                   fmt::format("expected \"provider/model\", found \"{}\"", cut(item.text, 60)));
      continue;
    }
    check_name(options.providers, item.text.substr(0, slash), "provider", item.line, key, problems);
    spec.models.push_back(item.text);
  }
}

void read_budget(TableReader& agent, AgentSpec& spec, const RuntimeOptions& options) {
  std::string word = "stop";
  agent.read("on_budget", word);
  check_word(agent, "on_budget", word, {"stop", "ask"}, {});
  spec.on_budget = word == "ask" ? OnBudget::ask : OnBudget::stop;
  auto table = agent.find_table("budget");
  if (!table) return;
  const auto read_count = [&](const char* key, auto& limit) {
    int count = 1;
    table->read(key, count, 1);
    if (table->has(key)) limit = count;
  };
  read_count("tokens", spec.budget.tokens);
  read_count("model_calls", spec.budget.model_calls);
  read_count("tool_calls", spec.budget.tool_calls);
  table->read("time", spec.budget.time, kShortest);
  double cost_usd = 1;
  table->read("cost_usd", cost_usd, 1e-6, 1e9);
  if (table->has("cost_usd")) spec.budget.cost_usd = cost_usd;
  const auto unpriced = unpriced_models(spec.models, options.providers);
  if (spec.budget.cost_usd && !unpriced.empty()) {
    table->refuse("cost_usd", fmt::format("{} has no price: {}", unpriced.front(),
                                          price_remedy(unpriced.front())));
  }
  table->finish();
}

void read_agent(TableReader& table, AgentSpec& spec, const RuntimeOptions& options,
                ConfigProblems& problems) {
  if (!is_name_of(spec.name, "_-.")) {
    problems.add(table.line(), "agents." + spec.name,
                 "an agent's name has at most 64 letters, digits, '_', '-' and '.'");
  }
  read_models(table, spec, options, problems);
  table.read("system", spec.system);
  std::vector<TextAt> tools;
  table.read("tools", tools);
  for (const auto& item : tools) {
    const auto key = table.full_name("tools");
    check_name(options.tools, item.text, "tool", item.line, key, problems);
    if (std::find(spec.tools.begin(), spec.tools.end(), item.text) != spec.tools.end()) {
      problems.add(item.line, key, fmt::format("names \"{}\" twice", item.text));
    }
    spec.tools.push_back(item.text);
  }
  table.read_json("answer_schema", spec.answer_schema);
  if (!spec.answer_schema.is_null()) check_schema(table, "answer_schema", spec.answer_schema);
  table.read("max_iterations", spec.max_iterations, 1, 100000);
  table.read("max_repeats", spec.max_repeats, 0, 100000);
  if (spec.max_repeats == 1) {
    table.refuse("max_repeats", "expected 0 (no limit) or at least 2: one turn is no repetition");
  }
  read_budget(table, spec, options);
  table.read("parallel_reads", spec.parallel_reads, 1, 64);
  table.read("queue", spec.queue);
  if (!is_name_of(spec.queue, "_-.")) {
    table.refuse("queue", "expected at most 64 letters, digits, '_', '-' and '.'");
  }
  std::vector<TextAt> classes;
  table.read("fallback_on", classes);
  for (const auto& item : classes) {
    if (const auto cls = parse_word<FailureClass>(item.text)) {
      spec.fallback_on.push_back(*cls);
    } else {
      problems.add(item.line, table.full_name("fallback_on"),
                   fmt::format("no such failure class \"{}\"; expected words such as auth, "
                               "configuration, context_length, content_policy",
                               cut(item.text, 60)));
    }
  }
  table.read("approval_timeout", spec.approval_timeout, kShortest);
  Policy policy = options.policy;
  if (auto retry = table.find_table("retry")) read_retry(*retry, policy);
  if (auto lease = table.find_table("lease")) {
    for (const auto* key : {"heartbeat", "presence_interval"}) {
      if (lease->has(key)) {
        lease->refuse(key, "belongs to the process and not to an agent; set it in [lease]");
        std::optional<Duration> ignored;
        lease->read(key, ignored, milliseconds(0));
      }
    }
    read_lease(*lease, policy);
    lease->finish();
  }
  if (policy != options.policy) spec.policy = policy;
  table.finish();
}

}  // namespace

std::string resolve_path(const std::string& folder, const std::string& path) {
  if (folder.empty() || path.empty() || path.front() == '/') return path;
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

void read_retry(TableReader table, Policy& policy) {
  table.read("max_requeues", policy.max_requeues, 0, 1000000);
  table.read("backoff_base", policy.backoff_base, milliseconds(0));
  table.read("backoff_factor", policy.backoff_factor, 1, 1000);
  table.read("backoff_cap", policy.backoff_cap, milliseconds(0));
  table.read("jitter", policy.jitter, 0, 1);
  table.read("max_wait", policy.max_wait, milliseconds(0));
  table.read("hint_cap", policy.hint_cap, milliseconds(0));
  table.read("retry_unknown", policy.retry_unknown);
  table.finish();
}

void read_lease(TableReader& table, Policy& policy) {
  table.read("duration", policy.lease, milliseconds(10));
  std::optional<Duration> margin;
  table.read("margin", margin, kShortest);
  if (margin && *margin * 3 > policy.lease) {
    table.refuse("margin", fmt::format("expected at most a third of the lease ({}), found {}",
                                       format_duration(policy.lease), format_duration(*margin)));
  } else if (margin) {
    policy.margin = *margin;
  }
  table.read("gap_timeout", policy.gap_timeout, kShortest);
  table.read("strict_expiry", policy.strict_expiry);
}

void read_providers(TableReader& file, const std::string& folder, RuntimeOptions& options,
                    ConfigProblems& problems) {
  for (auto& [name, table] : file.named_tables("providers")) {
    ProviderSpec spec;
    spec.name = name;
    read_provider(table, folder, spec, problems);
    options.providers.push_back(std::move(spec));
  }
}

void read_agents(TableReader& file, RuntimeOptions& options, ConfigProblems& problems) {
  for (auto& [name, table] : file.named_tables("agents")) {
    AgentSpec spec;
    spec.name = name;
    read_agent(table, spec, options, problems);
    options.agents.push_back(std::move(spec));
  }
}

}  // namespace holdfast
