#include "agent/definition.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "agent/agent_loop.hpp"

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

Json tool_definition(const ToolSpec& spec) {
  return {{"name", spec.name},
          {"description", spec.description},
          {"parameters", spec.parameters},
          {"effect", to_word(spec.effect)},
          {"timeout_ms", spec.timeout.count()},
          {"approval", spec.approval},
          {"approval_timeout_ms", milliseconds(spec.approval_timeout)},
          {"end_on_denial", spec.end_on_denial},
          {"input_schema", spec.input_schema},
          {"has_probe", spec.has_probe()}};
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

Json agent_definition(const AgentSpec& spec, const Toolbox& tools) {
  Json definition = {{"system", spec.system},
                     {"models", spec.models},
                     {"fallback_on", Json::array()},
                     {"max_iterations", spec.max_iterations},
                     {"approval_timeout_ms", milliseconds(spec.approval_timeout)},
                     {"tools", Json::array()}};
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
    terms.approval_timeout = optional_duration(json, "approval_timeout_ms");
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

}  // namespace holdfast
