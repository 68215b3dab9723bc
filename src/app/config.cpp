#include "app/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "app/config_sections.hpp"
#include "base/safe_text.hpp"
#include "base/text.hpp"
#include "store/store.hpp"

namespace holdfast {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxFileBytes = 16u << 20;

std::string read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw RefusedError(Refusal::usage,
                       fmt::format("{}: is a folder, not a configuration file", path));
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    throw RefusedError(Refusal::usage,
                       fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  std::string text;
  char buffer[4096];
  while (stream.read(buffer, sizeof buffer) || stream.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kMaxFileBytes) {
      throw RefusedError(Refusal::usage, fmt::format("{}: larger than {} MiB; not a configuration "
                                                     "file",
                                                     path, kMaxFileBytes >> 20));
    }
  }
  return text;
}

bool is_in_postgres(const std::string& url) { return url.starts_with("postgres"); }

void read_store(TableReader& file, const std::string& folder, RuntimeOptions& options) {
  auto table = file.find_table("store");
  if (!table) return;
  table->read("url", options.store_url);
  if (table->has("url")) {
    const std::string prefix = "sqlite:";
    if (options.store_url.starts_with(prefix)) {
      options.store_url = prefix + resolve_path(folder, options.store_url.substr(prefix.size()));
    }
    try {
      check_store_url(options.store_url);
    } catch (const RefusedError& error) {
      table->refuse("url", error.what());
    }
  }
  table->finish();
}

void read_reaper(TableReader& file, RuntimeOptions& options) {
  auto table = file.find_table("reaper");
  if (!table) return;
  table->read("interval", options.reaper_interval, milliseconds(0));
  table->read("limit", options.reaper_limit, 1, 100000);
  table->finish();
}

void read_retention(TableReader& file, RuntimeOptions& options) {
  auto table = file.find_table("retention");
  if (!table) return;
  table->read("terminal", options.retention_terminal, milliseconds(0));
  table->read("unfinished", options.retention_unfinished, milliseconds(0));
  if (options.retention_unfinished < options.retention_terminal) {
    table->refuse(
        table->has("unfinished") ? "unfinished" : "terminal",
        fmt::format("unfinished runs are kept at least as long as terminal ones: expected "
                    "unfinished ({}) to be at least terminal ({})",
                    format_duration(options.retention_unfinished),
                    format_duration(options.retention_terminal)));
  }
  table->finish();
}

void read_circuit(TableReader& file, CircuitOptions& circuit) {
  auto table = file.find_table("circuit");
  if (!table) return;
  table->read("threshold", circuit.threshold, 1, 1000000);
  table->read("open", circuit.open, milliseconds(1));
  table->read("quota_open", circuit.quota_open, milliseconds(1));
  table->finish();
}

void read_limits(TableReader& file, Limits& limits) {
  auto table = file.find_table("limits");
  if (!table) return;
  table->read_size("request", limits.request_bytes);
  table->read_size("result", limits.result_bytes);
  table->read_size("error", limits.error_bytes);
  table->read("depth", limits.depth, 1, 512);
  table->finish();
}

/// `[lease]`, with the keys that belong to the process and not to a run.
void read_process_lease(TableReader& file, RuntimeOptions& options,
                        std::optional<Duration>& heartbeat) {
  auto table = file.find_table("lease");
  if (!table) return;
  read_lease(*table, options.policy);
  table->read("heartbeat", heartbeat, milliseconds(0));
  table->read("presence_interval", options.presence_interval, milliseconds(1));
  if (heartbeat && *heartbeat * 2 >= options.policy.lease) {
    table->refuse("heartbeat",
                  fmt::format("expected less than half of the lease ({}), found {}",
                              format_duration(options.policy.lease), format_duration(*heartbeat)));
  }
  table->finish();
}

/// Without a heartbeat in the file: the default, or a third of the shortest lease where that is
/// less, so that a short lease alone is a whole setting.
Duration default_heartbeat(const RuntimeOptions& options) {
  Duration shortest = options.policy.lease;
  for (const auto& agent : options.agents) {
    if (agent.policy) shortest = std::min(shortest, agent.policy->lease);
  }
  return std::max(milliseconds(1), std::min(RuntimeOptions{}.heartbeat, shortest / 3));
}

/// A given heartbeat must suit the lease of every agent that has its own.
void check_heartbeat(TableReader& file, const RuntimeOptions& options, Duration heartbeat) {
  for (auto& [name, table] : file.named_tables("agents")) {
    const auto agent = std::ranges::find(options.agents, name, &AgentSpec::name);
    auto lease = table.has("lease") ? table.find_table("lease") : std::nullopt;
    if (!lease || agent == options.agents.end() || !agent->policy) continue;
    if (heartbeat * 2 < agent->policy->lease) continue;
    lease->refuse("duration",
                  fmt::format("expected more than twice the process's heartbeat ({}), found {}; "
                              "lower [lease] heartbeat or lengthen this lease",
                              format_duration(heartbeat), format_duration(agent->policy->lease)));
  }
}

std::string parse_error_text(const toml::parse_error& error, const std::string& file) {
  // The library quotes the characters of the file as they are.
  return fmt::format("{}:{}: not TOML: {} (column {})", file, error.source().begin.line,
                     safe_line(error.description()), error.source().begin.column);
}

}  // namespace

RuntimeOptions parse_configuration(std::string_view text, const std::string& file_name,
                                   const std::string& folder) {
  toml::table root;
  try {
    root = toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    throw RefusedError(Refusal::usage, parse_error_text(error, file_name));
  }
  ConfigProblems problems(file_name);
  TableReader file(root, "", problems);
  RuntimeOptions options;
  std::optional<Duration> heartbeat;
  read_store(file, folder, options);
  if (is_in_postgres(options.store_url)) options.presence_interval = milliseconds(250);
  read_process_lease(file, options, heartbeat);
  if (auto retry = file.find_table("retry")) read_retry(*retry, options.policy);
  read_reaper(file, options);
  read_retention(file, options);
  read_circuit(file, options.circuit);
  read_limits(file, options.limits);
  read_providers(file, folder, options, problems);
  read_http_hosts(file, options, problems);
  read_tools(file, folder, options, problems);
  read_agents(file, options, problems);
  options.heartbeat = heartbeat.value_or(default_heartbeat(options));
  if (heartbeat) check_heartbeat(file, options, *heartbeat);
  file.finish();
  problems.throw_if_any();
  return options;
}

Configuration load_configuration(const ConfigSources& sources) {
  Configuration configuration;
  std::error_code error;
  std::optional<std::string> file = sources.config_option;
  std::string named_by = "--config";
  if (!file && sources.config_env && !sources.config_env->empty()) {
    file = sources.config_env;
    named_by = "$HOLDFAST_CONFIG";
  }
  if (file) {
    if (!std::filesystem::exists(*file, error)) {
      throw RefusedError(Refusal::usage,
                         fmt::format("{}: no such file (named by {})", *file, named_by));
    }
  } else if (std::filesystem::exists(kConfigFile, error)) {
    file = kConfigFile;
  }
  if (file) {
    const auto folder = std::filesystem::path(*file).parent_path().string();
    configuration.options = parse_configuration(read_file(*file), *file, folder);
    configuration.file = file;
  }
  if (sources.store_option) {
    configuration.options.store_url = *sources.store_option;
  } else if (sources.store_env && !sources.store_env->empty()) {
    configuration.options.store_url = *sources.store_env;
  }
  return configuration;
}

}  // namespace holdfast
