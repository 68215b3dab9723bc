#include "provider/ollama_wire.hpp"

#include <utility>

#include "base/text.hpp"
#include "provider/wire_names.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMaxOllamaCalls = 1000;

Json ollama_message(const Message& message, CallIds* ids) {
  switch (message.role) {
    case Message::Role::system:
      return Json{{"role", "system"}, {"content", message.text}};
    case Message::Role::user:
      return Json{{"role", "user"}, {"content", message.text}};
    case Message::Role::tool:
      return Json{{"role", "tool"},
                  {"tool_name", wire_name(message.tool_name)},
                  {"tool_call_id", ids->answered(message.call_id)},
                  {"content", message.text}};
    case Message::Role::assistant:
      break;
  }
  Json out{{"role", "assistant"}, {"content", message.text}};
  for (const ToolCall& call : message.calls) {
    out["tool_calls"].push_back(
        {{"id", ids->made(call.id)},
         {"function", {{"name", wire_name(call.name)}, {"arguments", sent_arguments(call)}}}});
  }
  return out;
}

}  // namespace

std::string render_ollama_request(const std::string& model, const ModelRequest& request,
                                  bool stream) {
  // Without the word the API streams.
  Json body{{"model", model}, {"stream", stream}, {"messages", Json::array()}};
  CallIds ids;
  for (const Message& message : request.messages) {
    body["messages"].push_back(ollama_message(message, &ids));
  }
  for (const ToolDefinition& tool : request.tools) {
    body["tools"].push_back({{"type", "function"},
                             {"function",
                              {{"name", wire_name(tool.name)},
                               {"description", tool.description},
                               {"parameters", sent_parameters(tool)}}}});
  }
  // A format binds all that the model writes: with one it could not call a tool.
  if (request.tools.empty() && !request.answer_schema.is_null()) {
    body["format"] = request.answer_schema;
  }
  return dump_json(body);
}

std::variant<std::string, Malformed> OllamaAssembler::add(const Json& line) {
  if (!line.is_object()) return Malformed{"a line is " + shape_of(&line)};
  std::string added;
  if (const Json* message = find_given(line, "message")) {
    if (!message->is_object()) return Malformed{"message is " + shape_of(message)};
    if (const Json* content = find_given(*message, "content")) {
      if (!content->is_string()) return Malformed{"content is " + shape_of(content)};
      added = content->get<std::string>();
    }
    const Json* calls = find_given(*message, "tool_calls");
    if (calls != nullptr && !calls->is_array())
      return Malformed{"tool_calls is " + shape_of(calls)};
    for (const Json& call : calls == nullptr ? Json::array() : *calls) {
      const Json* function = find_given(call, "function");
      if (function == nullptr) return Malformed{"a tool call's function is missing"};
      RawCall raw = call_of_value(text_member(call, "id"), text_member(*function, "name"),
                                  find_member(*function, "arguments"));
      if (raw.name.empty()) return Malformed{"a tool call has no name"};
      if (reply_.calls.size() >= kMaxOllamaCalls)
        return Malformed{"more tool calls than can be meant"};
      reply_.calls.push_back(std::move(raw));
    }
  }
  reply_.text += added;
  const Json* done = find_given(line, "done");
  if (done == nullptr || *done != true) return added;
  is_done_ = true;
  reply_.finish = text_member(line, "done_reason");
  reply_.usage.prompt_tokens = token_count(line, "prompt_eval_count");
  reply_.usage.completion_tokens = token_count(line, "eval_count");
  reply_.usage.total_tokens = reply_.usage.prompt_tokens + reply_.usage.completion_tokens;
  return added;
}

std::variant<RawReply, Malformed> OllamaAssembler::finish() const {
  if (!is_done_) return Malformed{"the answer is not done"};
  // The model was loaded or unloaded, and nothing was asked of it.
  if (reply_.finish == "load" || reply_.finish == "unload") {
    return Malformed{"done_reason is " + reply_.finish};
  }
  RawReply out = reply_;
  if (out.finish.empty()) out.finish = "stop";
  if (out.finish == "stop" && !out.calls.empty()) out.finish = "tool_calls";
  return out;
}

}  // namespace holdfast
