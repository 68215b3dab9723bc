#include "provider/chat_wire.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "base/text.hpp"

namespace holdfast {
namespace {

/// Names that every target takes: `^[a-zA-Z0-9_-]{1,64}$`.
std::string wire_name(const std::string& name) {
  const bool is_plain =
      !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
      });
  if (is_plain) return name;
  std::string out;
  for (char c : name.substr(0, 55)) {
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return out + "_" + sha256_hex(name).substr(0, 8);
}

/// Our call ids as every target takes them (one wants nine letters and digits): numbered by their
/// place in the history, which only grows.
class CallIds {
 public:
  std::string made(const std::string& ours) {
    std::string number = std::to_string(++count_);
    if (number.size() < 5) number.insert(0, 5 - number.size(), '0');
    return by_ours_[ours] = "call" + number;
  }
  std::string answered(const std::string& ours) const {
    auto found = by_ours_.find(ours);
    return found == by_ours_.end() ? "call00000" : found->second;
  }

 private:
  int count_ = 0;
  std::map<std::string, std::string> by_ours_;
};

Json render_call(const ToolCall& call, CallIds* ids) {
  // Some servers parse the arguments of the history again: what was not JSON goes back inside JSON.
  const Json arguments =
      call.bad_arguments ? Json{{"unreadable_arguments", *call.bad_arguments}} : call.arguments;
  return Json{{"id", ids->made(call.id)},
              {"type", "function"},
              {"function",
               {{"name", wire_name(call.name)},
                {"arguments", arguments.is_null() ? "{}" : dump_json(arguments)}}}};
}

Json render_message(const Message& message, CallIds* ids) {
  switch (message.role) {
    case Message::Role::system:
      return Json{{"role", "system"}, {"content", message.text}};
    case Message::Role::user:
      return Json{{"role", "user"}, {"content", message.text}};
    case Message::Role::tool:
      return Json{{"role", "tool"},
                  {"tool_call_id", ids->answered(message.call_id)},
                  {"content", message.text}};
    case Message::Role::assistant:
      break;
  }
  Json out{{"role", "assistant"}, {"content", message.text}};
  if (!message.calls.empty()) {
    if (message.text.empty()) out["content"] = nullptr;
    for (const ToolCall& call : message.calls) out["tool_calls"].push_back(render_call(call, ids));
  }
  return out;
}

Json render_tool(const ToolDefinition& tool) {
  Json parameters = tool.parameters.is_object() ? tool.parameters : Json{{"type", "object"}};
  if (parameters.value("type", Json()) == "object" && !parameters.contains("properties")) {
    parameters["properties"] = Json::object();  // wanted by strict servers
  }
  return Json{{"type", "function"},
              {"function",
               {{"name", wire_name(tool.name)},
                {"description", tool.description},
                {"parameters", std::move(parameters)}}}};
}

std::string shape_of(const Json* value) {
  if (value == nullptr) return "missing";
  if (value->is_array() && value->empty()) return "an empty list";
  return value->type_name();
}

std::optional<Malformed> read_calls(const Json& message, RawReply* out) {
  const Json* calls = find_member(message, "tool_calls");
  if (calls != nullptr && !calls->is_null()) {
    if (!calls->is_array()) return Malformed{"tool_calls is " + shape_of(calls)};
    for (const Json& call : *calls) {
      const Json* function = find_member(call, "function");
      if (function == nullptr || !function->is_object()) {
        return Malformed{"a tool call's function is " + shape_of(function)};
      }
      RawCall raw{text_member(call, "id"), text_member(*function, "name"), {}};
      if (raw.name.empty()) return Malformed{"a tool call has no name"};
      const Json* arguments = find_member(*function, "arguments");
      if (arguments != nullptr && arguments->is_string()) {
        raw.arguments = arguments->get<std::string>();
      } else if (arguments != nullptr && !arguments->is_null()) {
        raw.arguments = dump_json(*arguments);
        raw.is_rounded = holds_rounded(*arguments);
      }
      out->calls.push_back(std::move(raw));
    }
  }
  // The older form: one call, no id.
  if (const Json* call = find_member(message, "function_call");
      call != nullptr && call->is_object() && out->calls.empty()) {
    RawCall raw{{}, text_member(*call, "name"), text_member(*call, "arguments")};
    if (raw.name.empty()) return Malformed{"function_call has no name"};
    out->calls.push_back(std::move(raw));
  }
  return std::nullopt;
}

std::int64_t token_count(const Json& usage, const char* key) {
  const Json* found = find_member(usage, key);
  if (found == nullptr || !found->is_number()) return 0;
  const double number = found->get<double>();
  if (!std::isfinite(number) || number < 0) return 0;
  return static_cast<std::int64_t>(std::min(number, 1e15));
}

}  // namespace

std::string render_chat_request(const std::string& model, const ModelRequest& request,
                                bool stream) {
  Json body{{"model", model}, {"messages", Json::array()}};
  CallIds ids;
  for (const Message& message : request.messages) {
    body["messages"].push_back(render_message(message, &ids));
  }
  for (const ToolDefinition& tool : request.tools) body["tools"].push_back(render_tool(tool));
  if (stream) {
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
  }
  return dump_json(body);
}

std::variant<RawReply, Malformed> read_chat_answer(const Json& answer) {
  if (!answer.is_object()) {
    return Malformed{std::string("the answer is ") + answer.type_name() + ", not an object"};
  }
  const Json* choices = find_member(answer, "choices");
  if (choices == nullptr || !choices->is_array() || choices->empty()) {
    return Malformed{"choices is " + shape_of(choices)};
  }
  const Json& choice = choices->front();
  const Json* message = find_member(choice, "message");
  if (message == nullptr || !message->is_object()) {
    return Malformed{"choices[0].message is " + shape_of(message)};
  }
  RawReply out;
  if (const Json* content = find_member(*message, "content"); content != nullptr) {
    auto text = read_content(*content);
    if (!text) return Malformed{"choices[0].message.content is " + shape_of(content)};
    out.text = std::move(*text);
  }
  if (auto malformed = read_calls(*message, &out)) return *malformed;
  out.has_refusal = !text_member(*message, "refusal").empty();
  out.finish = text_member(choice, "finish_reason");
  if (out.finish.empty()) out.finish = out.calls.empty() ? "stop" : "tool_calls";
  if (const Json* usage = find_member(answer, "usage")) out.usage = *usage;
  return out;
}

std::variant<ModelReply, Malformed> to_reply(const RawReply& raw, const ModelRequest& request,
                                             int max_depth) {
  // One vendor calls the end of the window `model_length`.
  const bool was_cut = raw.finish == "length" || raw.finish == "model_length";
  if (raw.calls.empty() && raw.finish == "tool_calls") {
    return Malformed{"finish_reason is tool_calls, but there is no tool call"};
  }
  if (raw.calls.empty() && raw.text.empty() && !was_cut) {
    return Malformed{"the answer is empty (finish_reason " + raw.finish +
                     ", no text and no tool call)"};
  }
  ModelReply reply;
  reply.text = raw.text;
  reply.finish = was_cut ? "length" : raw.finish;
  reply.usage = read_usage(raw.usage);
  for (const RawCall& call : raw.calls) {
    ToolCall out{call.id, call.name, Json::object(), std::nullopt};
    for (const ToolDefinition& tool : request.tools) {
      if (wire_name(tool.name) == call.name) out.name = tool.name;
    }
    // No arguments are an empty object, except where the end of the answer is missing.
    const bool is_blank = call.arguments.find_first_not_of(" \t\r\n") == std::string::npos;
    if (!is_blank) {
      auto parsed = parse_exact_json(call.arguments, max_depth);
      if (parsed && !call.is_rounded) {
        out.arguments = parsed->is_null() ? Json::object() : std::move(*parsed);
      } else {
        out.bad_arguments = call.arguments;
      }
    } else if (was_cut) {
      out.bad_arguments = call.arguments;
    }
    reply.calls.push_back(std::move(out));
  }
  return reply;
}

Usage read_usage(const Json& usage) {
  Usage out;
  out.prompt_tokens = token_count(usage, "prompt_tokens");
  out.completion_tokens = token_count(usage, "completion_tokens");
  out.total_tokens = token_count(usage, "total_tokens");
  if (out.total_tokens == 0) out.total_tokens = out.prompt_tokens + out.completion_tokens;
  return out;
}

std::optional<std::string> read_content(const Json& content) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return std::nullopt;
  std::string out;
  for (const Json& part : content) out += text_member(part, "text");
  return out;
}

bool holds_rounded(const Json& value) {
  if (value.is_number_float()) return std::abs(value.get<double>()) >= 0x1p63;
  return value.is_structured() && std::any_of(value.begin(), value.end(), holds_rounded);
}

JsonExtent extent_of(const std::string& text) {
  int depth = 0;
  bool in_string = false;
  bool escaped = false;
  bool closed = false;
  for (char c : text) {
    const bool is_blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (closed && !is_blank) return JsonExtent::trailing;
    if (in_string) {
      if (escaped) {
        escaped = false;
      } else if (c == '\\') {
        escaped = true;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) closed = true;
  }
  return closed ? JsonExtent::complete : JsonExtent::open;
}

}  // namespace holdfast
