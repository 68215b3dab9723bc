#include "agent/turn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/validate.hpp"

namespace holdfast {
namespace {

Json to_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.total_tokens},
          {"cost_usd", usage.cost_usd}};
}

Usage parse_usage(const Json& json) {
  Usage usage;
  usage.prompt_tokens = json.at("prompt_tokens").get<std::int64_t>();
  usage.completion_tokens = json.at("completion_tokens").get<std::int64_t>();
  usage.total_tokens = json.at("total_tokens").get<std::int64_t>();
  usage.cost_usd = json.at("cost_usd").get<double>();
  return usage;
}

/// Above the call's arguments stand the reply, its calls, the call.
constexpr int kLevelsAbove = 4;

bool is_too_deep(const Json& json, int levels) {
  if (!json.is_structured()) return false;
  return levels <= 0 || std::any_of(json.begin(), json.end(), [&](const Json& inner) {
           return is_too_deep(inner, levels - 1);
         });
}

std::string unknown_tool(const std::string& name, const AgentTerms& terms) {
  std::vector<std::string> names;
  for (const ToolTerms& tool : terms.tools) names.push_back(tool.name);
  const std::optional<std::string> meant = did_you_mean(name, names);
  return fmt::format("there is no tool named '{}'{}; {}", cut(name, 64),
                     meant ? fmt::format(", did you mean '{}'?", *meant) : "",
                     names.empty() ? "there are no tools"
                                   : fmt::format("the tools are: {}", fmt::join(names, ", ")));
}

PlannedCall plan_call(const ToolCall& call, const AgentTerms& terms, const Limits& limits) {
  PlannedCall planned;
  planned.call = call;
  planned.call.name = clean_utf8(call.name);
  if (call.bad_arguments) {
    planned.call.bad_arguments = clean_utf8(*call.bad_arguments);
    planned.call.arguments = Json::object();
  }
  // Models leave the arguments out where a tool takes none.
  if (planned.call.arguments.is_null()) planned.call.arguments = Json::object();
  planned.arguments = planned.call.arguments;
  if (is_too_deep(planned.call.arguments, limits.depth - kLevelsAbove)) {
    planned.call.arguments = Json::object();
    planned.arguments = planned.call.arguments;
    planned.call.bad_arguments = cut(dump_json(call.arguments), limits.error_bytes);
    planned.problem = "the arguments are nested too deep; the tool was not called";
    return planned;
  }
  const ToolTerms* tool = terms.find(planned.call.name);
  if (!tool) {
    planned.problem = unknown_tool(planned.call.name, terms);
    return planned;
  }
  if (call.bad_arguments) {
    std::string where;
    parse_json(*call.bad_arguments, limits.depth, &where);
    planned.problem = fmt::format("the arguments are not valid JSON{}{}; the tool was not called",
                                  where.empty() ? "" : ": ", where);
    return planned;
  }
  if (!planned.call.arguments.is_object()) {
    planned.problem = "the arguments must be a JSON object; the tool was not called";
    return planned;
  }
  planned.arguments = with_defaults(tool->parameters, planned.call.arguments);
  planned.problem = argument_problem(*tool, planned.arguments, limits);
  planned.asks_input = !planned.problem && tool->wants_input();
  planned.asks_approval = !planned.problem && tool->approval;
  return planned;
}

Json call_json(const PlannedCall& planned) {
  Json json = {{"id", planned.call.id}, {"name", planned.call.name}};
  if (planned.call.bad_arguments) {
    json["bad_arguments"] = *planned.call.bad_arguments;
  } else {
    json["arguments"] = planned.call.arguments;
  }
  if (planned.arguments != planned.call.arguments) json["final"] = planned.arguments;
  if (planned.problem) json["problem"] = *planned.problem;
  if (planned.asks_approval) json["approval"] = true;
  if (planned.asks_input) json["input"] = true;
  return json;
}

PlannedCall parse_call(const Json& json, int index) {
  PlannedCall planned;
  planned.index = index;
  planned.call.id = json.at("id").get<std::string>();
  planned.call.name = json.at("name").get<std::string>();
  if (json.contains("bad_arguments")) {
    planned.call.bad_arguments = json["bad_arguments"].get<std::string>();
    planned.call.arguments = Json::object();
  } else {
    planned.call.arguments = json.at("arguments");
  }
  planned.arguments = json.contains("final") ? json["final"] : planned.call.arguments;
  if (json.contains("problem")) planned.problem = json["problem"].get<std::string>();
  planned.asks_approval = json.value("approval", false);
  planned.asks_input = json.value("input", false);
  return planned;
}

/// The keys that a schema declares.
std::set<std::string> declared_keys(const Json& schema) {
  std::set<std::string> keys;
  const auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return keys;
  for (const auto& item : properties->items()) keys.insert(item.key());
  return keys;
}

}  // namespace

Message Turn::message() const {
  Message message;
  message.role = Message::Role::assistant;
  message.text = text;
  for (const PlannedCall& planned : calls) message.calls.push_back(planned.call);
  message.opaque = opaque;
  message.made_by = provider + "/" + model;
  return message;
}

Turn plan_turn(int number, const ModelReply& reply, const AgentTerms& terms, const Limits& limits) {
  Turn turn;
  turn.number = number;
  turn.provider = reply.provider;
  turn.model = reply.model;
  turn.text = clean_utf8(reply.text);
  turn.finish = reply.finish;
  turn.usage = reply.usage;
  turn.opaque = reply.opaque;
  for (const ToolCall& call : reply.calls) {
    PlannedCall planned = plan_call(call, terms, limits);
    planned.index = static_cast<int>(turn.calls.size()) + 1;
    planned.call.id = fmt::format("{}.{}", number, planned.index);
    turn.calls.push_back(std::move(planned));
  }
  return turn;
}

Json to_json(const Turn& turn) {
  Json json = {{"provider", turn.provider}, {"model", turn.model},   {"usage", to_json(turn.usage)},
               {"text", turn.text},         {"finish", turn.finish}, {"calls", Json::array()}};
  if (!turn.opaque.is_null()) json["opaque"] = turn.opaque;
  for (const PlannedCall& planned : turn.calls) json["calls"].push_back(call_json(planned));
  return json;
}

Turn parse_turn(int number, const Json& json) {
  Turn turn;
  turn.number = number;
  turn.provider = json.at("provider").get<std::string>();
  turn.model = json.at("model").get<std::string>();
  turn.text = json.at("text").get<std::string>();
  turn.finish = json.at("finish").get<std::string>();
  turn.usage = parse_usage(json.at("usage"));
  if (json.contains("opaque")) turn.opaque = json["opaque"];
  for (const Json& call : json.at("calls")) {
    turn.calls.push_back(parse_call(call, static_cast<int>(turn.calls.size()) + 1));
  }
  return turn;
}

std::optional<std::string> argument_problem(const ToolTerms& tool, const Json& arguments,
                                            const Limits& limits) {
  const std::vector<std::string> errors = schema_errors(tool.parameters, arguments);
  if (HOLDFAST_GUARD("agent_arguments_fit", errors.empty())) return std::nullopt;
  return cut(
      fmt::format("the arguments do not meet the schema of '{}': {}; the tool was not called",
                  tool.name, fmt::join(errors, "; ")),
      limits.error_bytes);
}

Json merged_input(const ToolTerms& tool, Json arguments, const Json& values) {
  if (!values.is_object()) return arguments;
  const Json filled = with_defaults(tool.input_schema, values);
  for (const std::string& key : declared_keys(tool.input_schema)) {
    if (filled.contains(key)) arguments[key] = filled[key];
  }
  return arguments;
}

std::optional<std::string> merged_problem(const ToolTerms& tool, const Json& arguments,
                                          const Limits& limits) {
  Json own = arguments;
  const std::set<std::string> parameters = declared_keys(tool.parameters);
  for (const std::string& key : declared_keys(tool.input_schema)) {
    if (!parameters.contains(key)) own.erase(key);
  }
  return argument_problem(tool, own, limits);
}

}  // namespace holdfast
