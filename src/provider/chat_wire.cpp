#include "provider/chat_wire.hpp"

#include <utility>

#include "base/text.hpp"
#include "provider/answer_format.hpp"
#include "provider/wire_names.hpp"

namespace holdfast {
namespace {

constexpr const char* kChatDialect = "chat";

Json render_call(const ToolCall& call, CallIds* ids) {
  // Some servers parse the arguments of the history again: what was not JSON goes back inside JSON.
  return Json{{"id", ids->made(call.id)},
              {"type", "function"},
              {"function",
               {{"name", wire_name(call.name)}, {"arguments", dump_json(sent_arguments(call))}}}};
}

Json render_message(const Message& message, const Target& target, CallIds* ids) {
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
    std::size_t at = 0;
    for (const OwnPart& part :
         own_parts(message, kChatDialect, target).value_or(std::vector<OwnPart>())) {
      if (part.kind != OwnPart::Kind::call) continue;
      Json& call = out["tool_calls"][at++];
      if (part.value.is_object()) call.update(part.value);
    }
  }
  return out;
}

Json render_tool(const ToolDefinition& tool) {
  return Json{{"type", "function"},
              {"function",
               {{"name", wire_name(tool.name)},
                {"description", tool.description},
                {"parameters", sent_parameters(tool)}}}};
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
      const Json* arguments = find_member(*function, "arguments");
      RawCall raw =
          call_of_value(text_member(call, "id"), text_member(*function, "name"), arguments);
      if (raw.name.empty()) return Malformed{"a tool call has no name"};
      raw.own = own_members(call);
      if (arguments != nullptr && arguments->is_string())
        raw.arguments = arguments->get<std::string>();
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

}  // namespace

std::string render_chat_request(const Target& target, const ModelRequest& request, bool stream) {
  Json body{{"model", target.model}, {"messages", Json::array()}};
  CallIds ids;
  for (const Message& message : request.messages) {
    body["messages"].push_back(render_message(message, target, &ids));
  }
  for (const ToolDefinition& tool : request.tools) body["tools"].push_back(render_tool(tool));
  if (Json format = openai_answer_format(request.answer_schema); !format.is_null()) {
    body["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(format)}};
  }
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
  out.opaque = kept_of_chat(out);
  out.has_refusal = !text_member(*message, "refusal").empty();
  out.finish = text_member(choice, "finish_reason");
  if (out.finish.empty()) out.finish = out.calls.empty() ? "stop" : "tool_calls";
  if (const Json* usage = find_member(answer, "usage")) out.usage = read_chat_usage(*usage);
  return out;
}

Json own_members(const Json& call) {
  const Json* extra = find_given(call, "extra_content");
  return extra == nullptr ? Json() : Json{{"extra_content", *extra}};
}

Json kept_of_chat(const RawReply& reply) {
  PartsWriter parts;
  parts.add_text(reply.text.size());
  for (const RawCall& call : reply.calls) parts.add_call(call.own);
  return parts.kept(kChatDialect);
}

ModelUsage read_chat_usage(const Json& usage) {
  ModelUsage out;
  out.prompt_tokens = token_count(usage, "prompt_tokens");
  out.completion_tokens = token_count(usage, "completion_tokens");
  out.total_tokens = token_count(usage, "total_tokens");
  if (out.total_tokens == 0) out.total_tokens = out.prompt_tokens + out.completion_tokens;
  if (const Json* details = find_given(usage, "prompt_tokens_details")) {
    out.cached_tokens = token_count(*details, "cached_tokens");
    out.cache_write_tokens = token_count(*details, "cache_write_tokens");
  }
  if (const Json* details = find_given(usage, "completion_tokens_details")) {
    out.reasoning_tokens = token_count(*details, "reasoning_tokens");
  }
  return out;
}

}  // namespace holdfast
