#include "agent/definition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "agent/agent_loop.hpp"
#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/budget.hpp"
#include "core/run_codec.hpp"

namespace holdfast {
namespace {

Json milliseconds(const std::optional<Duration>& duration) {
  return duration ? Json(duration->count()) : Json();
}

std::optional<Duration> optional_duration(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return std::nullopt;
  return Duration(it->get<Duration::rep>());
}

/// Names and values hold no null characters.
std::string env_digest(const std::map<std::string, std::string>& env) {
  std::string text;
  for (const auto& [name, value] : env) {
    text.append(name).append(1, '\0').append(value).append(1, '\0');
  }
  return sha256_hex(text);
}

/// A program that is named by a path starts at its configuration's folder.
std::vector<std::string> resolved(const std::vector<std::string>& command,
                                  const std::string& folder) {
  std::vector<std::string> whole = command;
  if (whole.empty() || folder.empty()) return whole;
  std::string& program = whole.front();
  if (program.starts_with('/') || program.find('/') == std::string::npos) return whole;
  while (program.starts_with("./")) program.erase(0, program.find_first_not_of('/', 1));
  program = folder + (folder.ends_with('/') ? "" : "/") + program;
  return whole;
}

Json http_definition(const HttpToolSpec& http) {
  return {{"method", http.method},         {"url", http.url},
          {"headers", http.headers},       {"header_env", http.header_env},
          {"bearer_env", http.bearer_env}, {"connect_timeout_ms", http.connect_timeout.count()}};
}

HttpToolSpec parse_http(const Json& json) {
  HttpToolSpec http;
  http.method = json.at("method").get<std::string>();
  http.url = json.at("url").get<std::string>();
  http.headers = json.at("headers").get<std::map<std::string, std::string>>();
  http.header_env = json.at("header_env").get<std::map<std::string, std::string>>();
  http.bearer_env = json.at("bearer_env").get<std::string>();
  http.connect_timeout = Duration(json.at("connect_timeout_ms").get<Duration::rep>());
  return http;
}

Json tool_definition(const ToolSpec& spec) {
  const auto kind = [&] {
    if (spec.http) return "http";
    return spec.command.empty() ? "function" : "command";
  };
  Json json = {{"name", spec.name},
               {"description", spec.description},
               {"parameters", spec.parameters},
               {"effect", to_word(spec.effect)},
               {"timeout_ms", spec.timeout.count()},
               {"approval", spec.approval},
               {"approval_timeout_ms", milliseconds(spec.approval_timeout)},
               {"end_on_denial", spec.end_on_denial},
               {"input_schema", spec.input_schema},
               {"has_probe", spec.has_probe()},
               {"kind", kind()},
               {"command", resolved(spec.command, spec.working_folder)},
               {"probe", resolved(spec.probe_command, spec.working_folder)},
               {"folder", spec.working_folder},
               {"pass_env", spec.pass_env},
               {"env_digest", env_digest(spec.env)}};
  if (spec.http) json["http"] = http_definition(*spec.http);
  return json;
}

/// What a person who approves a call relies on: not how the tool is described or asked about.
std::string execution_digest(const Json& json) {
  Json executed = Json::object();
  for (const char* key :
       {"name", "effect", "kind", "command", "folder", "pass_env", "env_digest"}) {
    executed[key] = json.at(key);
  }
  if (json.contains("http")) executed["http"] = json["http"];
  return sha256_hex(dump_json(executed));
}

ToolTerms parse_tool(const Json& json) {
  ToolTerms tool;
  tool.name = json.at("name").get<std::string>();
  tool.description = json.at("description").get<std::string>();
  tool.parameters = json.at("parameters");
  // An effect that a newer build wrote is treated with the greatest care.
  tool.effect = parse_word<Effect>(json.at("effect").get<std::string>())
                    .value_or(Effect::non_idempotent_write);
  tool.timeout = Duration(json.at("timeout_ms").get<Duration::rep>());
  tool.approval = json.at("approval").get<bool>();
  tool.approval_timeout = optional_duration(json, "approval_timeout_ms");
  tool.end_on_denial = json.at("end_on_denial").get<bool>();
  tool.input_schema = json.at("input_schema");
  tool.has_probe = json.at("has_probe").get<bool>();
  tool.is_command = json.at("kind") == "command";
  if (json.contains("http")) tool.http = parse_http(json["http"]);
  tool.command = json.at("command").get<std::vector<std::string>>();
  tool.probe_command = json.at("probe").get<std::vector<std::string>>();
  tool.folder = json.at("folder").get<std::string>();
  tool.pass_env = json.at("pass_env").get<std::vector<std::string>>();
  tool.env_digest = json.at("env_digest").get<std::string>();
  tool.digest = execution_digest(json);
  return tool;
}

}  // namespace

const ToolTerms* AgentTerms::find(const std::string& name) const {
  const auto it = std::find_if(tools.begin(), tools.end(),
                               [&](const ToolTerms& tool) { return tool.name == name; });
  return it == tools.end() ? nullptr : &*it;
}

std::vector<ToolDefinition> AgentTerms::tool_definitions() const {
  std::vector<ToolDefinition> definitions;
  for (const ToolTerms& tool : tools) {
    definitions.push_back({tool.name, tool.description, tool.parameters});
  }
  return definitions;
}

std::optional<Duration> AgentTerms::wait_for(const ToolTerms& tool) const {
  return tool.approval_timeout ? tool.approval_timeout : approval_timeout;
}

Json agent_definition(const AgentSpec& spec, const Toolbox& tools,
                      const std::vector<ProviderSpec>& providers) {
  Json definition = {{"system", spec.system},
                     {"models", spec.models},
                     {"fallback_on", Json::array()},
                     {"max_iterations", spec.max_iterations},
                     {"max_repeats", spec.max_repeats},
                     {"parallel_reads", spec.parallel_reads},
                     {"approval_timeout_ms", milliseconds(spec.approval_timeout)},
                     {"tools", Json::array()}};
  if (!spec.answer_schema.is_null()) definition["answer_schema"] = spec.answer_schema;
  if (!spec.budget.is_empty()) definition["budget"] = encode(spec.budget);
  if (spec.on_budget == OnBudget::ask) definition["on_budget"] = "ask";
  if (const auto unpriced = unpriced_models(spec.models, providers); !unpriced.empty()) {
    definition["unpriced"] = unpriced;
  }
  for (const FailureClass cls : spec.fallback_on) definition["fallback_on"].push_back(to_word(cls));
  for (const std::string& name : spec.tools) {
    const ToolSpec* tool = tools.find(name);
    if (!tool) {
      throw RefusedError(
          Refusal::usage,
          fmt::format("agent '{}' names the tool '{}', which does not exist: declare it", spec.name,
                      name));
    }
    definition["tools"].push_back(tool_definition(*tool));
  }
  return definition;
}

AgentTerms parse_definition(const Json& json) {
  try {
    AgentTerms terms;
    terms.system = json.at("system").get<std::string>();
    terms.models = json.at("models").get<std::vector<std::string>>();
    for (const Json& word : json.at("fallback_on")) {
      if (const auto cls = parse_word<FailureClass>(word.get<std::string>())) {
        terms.fallback_on.push_back(*cls);
      }
    }
    terms.max_iterations = json.at("max_iterations").get<int>();
    terms.parallel_reads = json.value("parallel_reads", terms.parallel_reads);
    terms.approval_timeout = optional_duration(json, "approval_timeout_ms");
    // Younger than the first definitions: what is not there is not limited.
    terms.max_repeats = json.value("max_repeats", 0);
    terms.answer_schema = json.value("answer_schema", Json());
    terms.budget = decode_budget(json.value("budget", Json::object()));
    if (json.value("on_budget", "stop") == "ask") terms.on_budget = OnBudget::ask;
    terms.unpriced = json.value("unpriced", std::vector<std::string>{});
    for (const Json& tool : json.at("tools")) terms.tools.push_back(parse_tool(tool));
    return terms;
  } catch (const Json::exception& error) {
    Failure failure;
    failure.cls = FailureClass::configuration;
    failure.code = "bad_definition";
    failure.message = fmt::format(
        "the agent's definition stored with this run cannot be read ({}); redrive takes it anew",
        error.what());
    throw FailureError(std::move(failure));
  }
}

void fail_configuration(std::string code, std::string message) {
  Failure failure;
  failure.cls = FailureClass::configuration;
  failure.code = std::move(code);
  failure.message = std::move(message);
  failure.not_started = true;
  throw FailureError(std::move(failure));
}

std::string execution_problem(const Json& definition, const Toolbox& tools) {
  if (definition.is_null()) return {};
  try {
    for (const ToolTerms& tool : parse_definition(definition).tools) {
      if (std::string problem = tool_problem(tool, tools); !problem.empty()) return problem;
    }
  } catch (const FailureError&) {
    // What cannot be read is no better anywhere else: the segment says so.
  }
  return {};
}

std::string model_problem(const Json& definition, const ModelChain& chain) {
  if (definition.is_null()) return {};
  try {
    return chain.lack(parse_definition(definition).models);
  } catch (const FailureError&) {
    return {};  // as above
  }
}

std::string tool_problem(const ToolTerms& terms, const Toolbox& tools) {
  const ToolSpec* spec = tools.find(terms.name);
  const bool needs_probe_function = terms.has_probe && terms.probe_command.empty();
  const bool is_carried = terms.is_command || terms.http;
  if (!spec) {
    if (!is_carried || needs_probe_function) {
      return fmt::format("tool '{}' is not one of this process's tools", terms.name);
    }
    if (terms.env_digest == env_digest({})) return {};
    return fmt::format("tool '{}' is not configured in this process, so its `env` is not known",
                       terms.name);
  }
  if (!is_carried && (!spec->command.empty() || spec->http)) {
    return fmt::format("tool '{}' is no function in this process; the run's is one", terms.name);
  }
  if (needs_probe_function && !spec->probe) {
    return fmt::format("tool '{}' has no probe function in this process", terms.name);
  }
  return {};
}

ToolSpec executable(const ToolTerms& terms, const Toolbox& tools) {
  if (const std::string problem = tool_problem(terms, tools); !problem.empty()) {
    fail_configuration("tool_missing", problem + ": give it back to this process, then redrive");
  }
  const ToolSpec* spec = tools.find(terms.name);
  ToolSpec own = spec ? *spec : ToolSpec{};
  own.name = terms.name;
  own.effect = terms.effect;
  own.timeout = terms.timeout;
  if (!terms.is_command && !terms.http && terms.probe_command.empty()) return own;
  if (!HOLDFAST_GUARD("tool_env_same", env_digest(own.env) == terms.env_digest)) {
    fail_configuration(
        "tool_env_changed",
        fmt::format("tool '{}' has another `env` in this configuration than when the run "
                    "took its definition, so it was not started: put it back, or redrive, "
                    "which takes the new definition",
                    terms.name));
  }
  own.probe_command = terms.probe_command;
  own.pass_env = terms.pass_env;
  own.working_folder = terms.folder;
  if (!own.probe_command.empty()) own.probe = nullptr;
  if (terms.is_command || terms.http) {
    own.function = nullptr;
    own.command = terms.command;
    own.http = terms.http;
  }
  return own;
}

}  // namespace holdfast
