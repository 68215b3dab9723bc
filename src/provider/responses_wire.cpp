#include "provider/responses_wire.hpp"

#include <utility>

#include "base/text.hpp"
#include "core/failure_words.hpp"
#include "provider/answer_format.hpp"
#include "provider/wire_names.hpp"

namespace holdfast {
namespace {

constexpr const char* kResponsesDialect = "responses";

/// Models that do not reason refuse a request that asks for sealed reasoning. They are the older
/// ones, and those made for chats.
bool may_reason(const std::string& model) {
  const std::string name = lower_case(model);
  const std::string base = name.substr(name.rfind('/') + 1);
  const bool is_older =
      base.starts_with("gpt-3") || base.starts_with("gpt-4") || base.starts_with("chatgpt-4");
  return !is_older && base.find("-chat") == std::string::npos;
}

/// An item of ours beside what its maker wants to see again in it.
Json with_members(Json item, const Json& more) {
  if (!more.is_object()) return item;
  for (const auto& [key, value] : more.items()) {
    if (!item.contains(key)) item[key] = value;
  }
  return item;
}

/// A text that the model said, as an item of its own where it had one.
Json said_item(const std::string& text, const Json& own) {
  if (!own.is_object()) return Json{{"role", "assistant"}, {"content", text}};
  const Json part{{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}};
  return with_members(
      Json{{"type", "message"}, {"role", "assistant"}, {"content", Json::array({part})}}, own);
}

Json call_item(const ToolCall& call, CallIds* ids, const Json& own) {
  return with_members(Json{{"type", "function_call"},
                           {"call_id", ids->made(call.id)},
                           {"name", wire_name(call.name)},
                           {"arguments", dump_json(sent_arguments(call))}},
                      own);
}

void add_said(const Message& message, const Target& target, CallIds* ids, Json* input) {
  const auto parts = own_parts(message, kResponsesDialect, target);
  if (!parts) {
    const bool is_silent = message.text.empty() && !message.calls.empty();
    if (!is_silent) input->push_back(said_item(message.text, nullptr));
    for (const ToolCall& call : message.calls) input->push_back(call_item(call, ids, nullptr));
    return;
  }
  std::size_t at = 0;
  std::size_t call = 0;
  for (const OwnPart& part : *parts) {
    switch (part.kind) {
      case OwnPart::Kind::own:
        input->push_back(part.value);
        break;
      case OwnPart::Kind::text:
        input->push_back(said_item(message.text.substr(at, part.bytes), part.value));
        at += part.bytes;
        break;
      case OwnPart::Kind::call:
        input->push_back(call_item(message.calls[call++], ids, part.value));
        break;
    }
  }
}

/// The members of an item that its maker checks or reads when it comes back. Its call's id is ours.
Json kept_members(const Json& item) {
  Json kept = Json::object();
  for (const char* key : {"id", "status", "phase"}) {
    if (const Json* value = find_given(item, key)) kept[key] = *value;
  }
  return kept.empty() ? Json() : kept;
}

/// Reasoning can come back only sealed, or in the clear; a mere id leads nowhere, as nothing is
/// stored on the other side.
bool can_come_back(const Json& item) {
  if (text_member(item, "type") != "reasoning") return true;
  const Json* content = find_given(item, "content");
  return !text_member(item, "encrypted_content").empty() ||
         (content != nullptr && !content->empty());
}

/// Puts an answer together from its output items.
class ItemReader {
 public:
  std::optional<Malformed> add(const Json& item);

  /// With the items' own ids only beside all of the reasoning that they ask for.
  RawReply finish() && {
    if (has_own_ && !is_partial_) out_.opaque = parts_.kept(kResponsesDialect);
    return std::move(out_);
  }

 private:
  std::optional<Malformed> add_call(const Json& item);
  std::optional<Malformed> add_message(const Json& item);

  RawReply out_;
  PartsWriter parts_;
  bool has_own_ = false;
  bool is_partial_ = false;
};

std::optional<Malformed> ItemReader::add(const Json& item) {
  const std::string type = text_member(item, "type");
  if (type.empty()) return Malformed{"an output item has no type"};
  if (type == "function_call") return add_call(item);
  if (type == "message") return add_message(item);
  // Reasoning, and whatever a later version of the API brings.
  has_own_ = true;
  if (can_come_back(item)) {
    parts_.add_own(item);
  } else {
    is_partial_ = true;
  }
  return std::nullopt;
}

std::optional<Malformed> ItemReader::add_call(const Json& item) {
  const Json* arguments = find_member(item, "arguments");
  RawCall call = call_of_value(text_member(item, "call_id"), text_member(item, "name"), arguments);
  if (call.name.empty()) return Malformed{"a function_call has no name"};
  if (arguments != nullptr && arguments->is_string())
    call.arguments = arguments->get<std::string>();
  // A call that was cut is none, though its text may happen to be whole.
  if (text_member(item, "status") == "incomplete") call.arguments.clear();
  out_.calls.push_back(std::move(call));
  parts_.add_call(kept_members(item));
  return std::nullopt;
}

std::optional<Malformed> ItemReader::add_message(const Json& item) {
  const Json* content = find_given(item, "content");
  if (content == nullptr) return std::nullopt;
  const auto text = read_content(*content);
  if (!text) return Malformed{"a message's content is " + shape_of(content)};
  if (content->is_array()) {
    for (const Json& part : *content) {
      if (text_member(part, "type") == "refusal") out_.has_refusal = true;
    }
  }
  if (!text->empty()) parts_.add_text(text->size(), kept_members(item));
  out_.text += *text;
  return std::nullopt;
}

/// The end of an answer, in neutral words; empty: it has none.
std::string end_of(const Json& response) {
  const std::string status = text_member(response, "status");
  if (status == "completed") return "stop";
  if (status != "incomplete") return {};
  const Json* details = find_given(response, "incomplete_details");
  const std::string reason = details == nullptr ? std::string() : text_member(*details, "reason");
  // Whatever the reason, it is not whole; a filter's word is judged as one.
  return class_of_word(reason) ? reason : "length";
}

}  // namespace

std::string render_responses_request(const Target& target, const ModelRequest& request,
                                     bool stream) {
  Json body{{"model", target.model}, {"store", false}, {"input", Json::array()}};
  Json& input = body["input"];
  CallIds ids;
  std::string instructions;
  for (const Message& message : request.messages) {
    switch (message.role) {
      case Message::Role::system:
        instructions += (instructions.empty() ? "" : "\n\n") + message.text;
        break;
      case Message::Role::user:
        input.push_back({{"role", "user"}, {"content", message.text}});
        break;
      case Message::Role::tool:
        input.push_back({{"type", "function_call_output"},
                         {"call_id", ids.answered(message.call_id)},
                         {"output", message.text}});
        break;
      case Message::Role::assistant:
        add_said(message, target, &ids, &input);
        break;
    }
  }
  if (!instructions.empty()) body["instructions"] = instructions;
  for (const ToolDefinition& tool : request.tools) {
    // Strict schemas are the API's default, and not what tools are declared with.
    body["tools"].push_back({{"type", "function"},
                             {"name", wire_name(tool.name)},
                             {"description", tool.description},
                             {"parameters", sent_parameters(tool)},
                             {"strict", false}});
  }
  if (Json format = openai_answer_format(request.answer_schema); !format.is_null()) {
    format["type"] = "json_schema";
    body["text"] = {{"format", std::move(format)}};
  }
  if (may_reason(target.model)) body["include"] = {"reasoning.encrypted_content"};
  if (stream) body["stream"] = true;
  return dump_json(body);
}

std::variant<RawReply, Malformed> read_response_object(const Json& response,
                                                       const std::vector<Json>& items) {
  const std::string end = end_of(response);
  if (end.empty()) {
    const Json* status = find_member(response, "status");
    return Malformed{"status is " + (status != nullptr && status->is_string()
                                         ? cut(status->get<std::string>(), 40)
                                         : shape_of(status))};
  }
  const Json* output = find_given(response, "output");
  if (output != nullptr && !output->is_array()) return Malformed{"output is " + shape_of(output)};
  if (output == nullptr && items.empty()) return Malformed{"output is missing"};
  ItemReader reader;
  const bool is_told = output != nullptr && !output->empty();
  for (const Json& item : is_told ? output->get_ref<const Json::array_t&>() : items) {
    if (auto malformed = reader.add(item)) return *malformed;
  }
  RawReply out = std::move(reader).finish();
  out.finish = end == "stop" && !out.calls.empty() ? "tool_calls" : end;
  if (const Json* usage = find_given(response, "usage")) out.usage = read_responses_usage(*usage);
  return out;
}

std::variant<RawReply, Malformed> read_response_object(const Json& response) {
  return read_response_object(response, {});
}

ModelUsage read_responses_usage(const Json& usage) {
  ModelUsage out;
  out.prompt_tokens = token_count(usage, "input_tokens");
  out.completion_tokens = token_count(usage, "output_tokens");
  out.total_tokens = out.prompt_tokens + out.completion_tokens;
  if (const Json* details = find_given(usage, "input_tokens_details")) {
    out.cached_tokens = token_count(*details, "cached_tokens");
    out.cache_write_tokens = token_count(*details, "cache_write_tokens");
  }
  if (const Json* details = find_given(usage, "output_tokens_details")) {
    out.reasoning_tokens = token_count(*details, "reasoning_tokens");
  }
  return out;
}

}  // namespace holdfast
