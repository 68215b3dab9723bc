#include "agent/turn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/validate.hpp"

namespace holdfast {
namespace {

/// What is not told in every call stands there only where it says something.
Json to_json(const ModelUsage& usage) {
  Json json = {{"prompt_tokens", usage.prompt_tokens},
               {"completion_tokens", usage.completion_tokens},
               {"total_tokens", usage.total_tokens},
               {"cost_usd", usage.cost_usd}};
  if (usage.cached_tokens != 0) json["cached_tokens"] = usage.cached_tokens;
  if (usage.cache_write_tokens != 0) json["cache_write_tokens"] = usage.cache_write_tokens;
  if (usage.reasoning_tokens != 0) json["reasoning_tokens"] = usage.reasoning_tokens;
  if (usage.estimated) json["estimated"] = true;
  return json;
}

ModelUsage parse_usage(const Json& json) {
  ModelUsage usage;
  usage.prompt_tokens = json.at("prompt_tokens").get<std::int64_t>();
  usage.completion_tokens = json.at("completion_tokens").get<std::int64_t>();
  usage.total_tokens = json.at("total_tokens").get<std::int64_t>();
  usage.cost_usd = json.at("cost_usd").get<double>();
  usage.cached_tokens = json.value("cached_tokens", std::int64_t{0});
  usage.cache_write_tokens = json.value("cache_write_tokens", std::int64_t{0});
  usage.reasoning_tokens = json.value("reasoning_tokens", std::int64_t{0});
  usage.estimated = json.value("estimated", false);
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
    if (!parse_json(*call.bad_arguments, limits.depth, &where)) {
      where = "the arguments are not valid JSON" + (where.empty() ? "" : ": " + where);
    } else if (parse_exact_json(*call.bad_arguments, limits.depth, &where)) {
      // They came as a value, not as text: the number's digits are lost already.
      where = "a number in the arguments does not fit in 64 bits; write it as a string";
    }
    planned.problem = where + "; the tool was not called";
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

PlannedCall parse_call(const Json& json) {
  PlannedCall planned;
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

std::size_t json_bytes(const PlannedCall& planned) { return dump_json(call_json(planned)).size(); }

/// The beginning of a text that takes at most `room` bytes as JSON, with a note.
std::string shortened(const std::string& text, std::size_t room) {
  const std::string note =
      fmt::format("\n[cut: the answer has {} bytes, only its beginning is kept]", text.size());
  std::size_t end = std::min(room, text.size());
  for (;;) {
    while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
      --end;
    }
    std::string shown = text.substr(0, end) + note;
    const std::size_t size = dump_json(shown).size();
    if (size <= room || end == 0) return shown;
    end -= std::min(end, std::max<std::size_t>(end - end * room / size, 1));
  }
}

void refuse_large(PlannedCall& planned) {
  constexpr std::size_t kShown = 256;
  const std::string arguments = planned.call.bad_arguments.value_or(dump_json(planned.arguments));
  planned.problem =
      fmt::format("the arguments are too large ({} bytes) to be recorded; the tool was not called",
                  arguments.size());
  planned.call.name = cut(planned.call.name, kShown);
  planned.call.bad_arguments = cut(arguments, kShown);
  planned.call.arguments = Json::object();
  planned.arguments = Json::object();
  planned.asks_approval = planned.asks_input = false;
}

/// Refuses the largest calls until all take at most `room` bytes; what then is still too much was
/// no use of tools.
void fit_calls(std::vector<PlannedCall>& calls, std::size_t room) {
  std::vector<std::pair<std::size_t, std::size_t>> by_size;
  std::size_t total = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    by_size.emplace_back(json_bytes(calls[i]), i);
    total += by_size.back().first + 1;
  }
  std::ranges::sort(by_size, std::greater<>());
  for (const auto& [size, i] : by_size) {
    if (total <= room) return;
    refuse_large(calls[i]);
    total = total - size + json_bytes(calls[i]);
  }
  while (total > room && !calls.empty()) {
    total -= json_bytes(calls.back()) + 1;
    calls.pop_back();
  }
}

void make_storable(Turn& turn, const Limits& limits) {
  const std::size_t limit = limits.result_bytes;
  if (dump_json(to_json(turn)).size() <= limit) return;
  const std::string text = std::exchange(turn.text, {});
  std::vector<PlannedCall> calls = std::exchange(turn.calls, {});
  turn.finish = cut(turn.finish, limits.error_bytes / 4);
  // It tells of the texts and calls as they were.
  turn.opaque = nullptr;
  const std::size_t frame = dump_json(to_json(turn)).size();
  const std::size_t room = limit - std::min(limit, frame);
  fit_calls(calls, room - std::min(room, std::min(dump_json(text).size(), room / 2)));
  turn.calls = std::move(calls);
  // Two bytes of the empty text's quotes are in the size already.
  const std::size_t left = limit + 2 - std::min(limit, dump_json(to_json(turn)).size());
  turn.text = dump_json(text).size() <= left ? text : shortened(text, left);
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
  turn.left_out = reply.left_out;
  turn.leaves_out = reply.was_refused ? reply.left_out : 0;
  for (const ToolCall& call : reply.calls) {
    PlannedCall planned = plan_call(call, terms, limits);
    planned.call.id = fmt::format("{}.{}", number, turn.calls.size() + 1);
    turn.calls.push_back(std::move(planned));
  }
  make_storable(turn, limits);
  return turn;
}

Json to_json(const Turn& turn) {
  Json json = {{"provider", turn.provider}, {"model", turn.model},   {"usage", to_json(turn.usage)},
               {"text", turn.text},         {"finish", turn.finish}, {"calls", Json::array()}};
  if (!turn.opaque.is_null()) json["opaque"] = turn.opaque;
  if (turn.left_out != 0) json["left_out"] = turn.left_out;
  if (turn.leaves_out != 0) json["leaves_out"] = turn.leaves_out;
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
  turn.left_out = json.value("left_out", 0);
  turn.leaves_out = json.value("leaves_out", 0);
  for (const Json& call : json.at("calls")) {
    turn.calls.push_back(parse_call(call));
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
