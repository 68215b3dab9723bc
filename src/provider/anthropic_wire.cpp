#include "provider/anthropic_wire.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "provider/answer_format.hpp"
#include "provider/wire_names.hpp"

namespace holdfast {
namespace {

constexpr const char* kMessagesDialect = "anthropic";

/// The API refuses texts without a letter.
constexpr const char* kNoText = "(empty)";

std::string some_text(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos ? kNoText : text;
}

Json text_block(const std::string& text) { return Json{{"type", "text"}, {"text", text}}; }

/// The conversation as the API wants it: turns of two roles, all results of a turn in one message
/// and first in it.
class MessagesWriter {
 public:
  explicit MessagesWriter(const Target& target) : target_(target) {}

  void add(const Message& message) {
    switch (message.role) {
      case Message::Role::system:
        if (!system_.empty()) system_ += "\n\n";
        system_ += message.text;
        return;
      case Message::Role::user:
        content_of("user").push_back(text_block(some_text(message.text)));
        return;
      case Message::Role::tool:
        content_of("user").push_back(result_block(message));
        return;
      case Message::Role::assistant:
        add_answer(message);
        return;
    }
  }

  const std::string& system() const { return system_; }
  Json messages() && { return std::move(messages_); }

 private:
  Json& content_of(const char* role) {
    if (messages_.empty() || messages_.back()["role"] != role) {
      messages_.push_back({{"role", role}, {"content", Json::array()}});
    }
    return messages_.back()["content"];
  }

  Json result_block(const Message& message) const {
    Json block{{"type", "tool_result"}, {"tool_use_id", ids_.answered(message.call_id)}};
    if (!message.text.empty()) block["content"] = message.text;
    if (message.is_error) block["is_error"] = true;
    return block;
  }

  void add_answer(const Message& message) {
    Json& content = content_of("assistant");
    std::size_t call = 0;
    const auto add_call = [&] {
      const ToolCall& made = message.calls[call++];
      content.push_back({{"type", "tool_use"},
                         {"id", ids_.made(made.id)},
                         {"name", wire_name(made.name)},
                         {"input", sent_arguments(made)}});
    };
    if (const auto parts = own_parts(message, kMessagesDialect, target_)) {
      std::size_t at = 0;
      for (const OwnPart& part : *parts) {
        switch (part.kind) {
          case OwnPart::Kind::own:
            content.push_back(part.value);
            break;
          case OwnPart::Kind::text:
            content.push_back(text_block(message.text.substr(at, part.bytes)));
            at += part.bytes;
            break;
          case OwnPart::Kind::call:
            add_call();
            break;
        }
      }
      return;
    }
    const bool is_silent = message.calls.empty() || !message.text.empty();
    if (is_silent) content.push_back(text_block(some_text(message.text)));
    while (call < message.calls.size()) add_call();
  }

  const Target& target_;
  CallIds ids_;
  std::string system_;
  Json messages_ = Json::array();
};

std::string neutral_end(const std::string& reason) {
  if (reason == "end_turn" || reason == "stop_sequence") return "stop";
  if (reason == "max_tokens") return "length";
  if (reason == "tool_use") return "tool_calls";
  if (reason == "pause_turn") return "pause";
  return reason;
}

}  // namespace

std::string render_messages_request(const Target& target, const ModelRequest& request,
                                    const MessagesOptions& options) {
  MessagesWriter writer(target);
  for (const Message& message : request.messages) writer.add(message);
  Json body{{"model", target.model}, {"max_tokens", options.max_tokens}};
  if (!writer.system().empty()) body["system"] = writer.system();
  body["messages"] = std::move(writer).messages();
  for (const ToolDefinition& tool : request.tools) {
    Json definition{{"name", wire_name(tool.name)}, {"input_schema", sent_parameters(tool)}};
    if (!tool.description.empty()) definition["description"] = tool.description;
    body["tools"].push_back(std::move(definition));
  }
  if (!request.answer_schema.is_null()) {
    if (Json schema = anthropic_answer_schema(request.answer_schema); !schema.is_null()) {
      Json format{{"type", "json_schema"}, {"schema", std::move(schema)}};
      body["output_config"] = {{"format", std::move(format)}};
    }
  }
  if (options.stream) body["stream"] = true;
  return dump_json(body);
}

std::variant<RawReply, Malformed> read_message_blocks(const std::vector<MessageBlock>& blocks,
                                                      const std::string& stop_reason,
                                                      const ModelUsage& usage) {
  if (stop_reason.empty()) return Malformed{"stop_reason is missing"};
  RawReply out;
  PartsWriter parts;
  for (const auto& [block, input] : blocks) {
    const std::string type = text_member(block, "type");
    if (type == "text") {
      const std::string text = text_member(block, "text");
      // What else belongs to a text, such as its sources, goes back with nobody.
      if (!text.empty()) parts.add_text(text.size());
      out.text += text;
    } else if (type == "tool_use") {
      RawCall call = call_of_value(text_member(block, "id"), text_member(block, "name"),
                                   find_member(block, "input"));
      if (call.name.empty()) return Malformed{"a tool_use has no name"};
      if (input) {
        call.arguments = *input;
        call.is_rounded = false;
      }
      out.calls.push_back(std::move(call));
      parts.add_call();
    } else if (block.is_object()) {
      // Thoughts with their signatures, and whatever a later version of the API brings.
      parts.add_own(block);
    } else {
      return Malformed{"a block of the content is " + shape_of(&block)};
    }
  }
  out.finish = neutral_end(stop_reason);
  // Calls decide, whatever word an end is given; a limit may have cut one.
  if (out.finish == "stop" && !out.calls.empty()) out.finish = "tool_calls";
  out.usage = usage;
  out.opaque = parts.kept(kMessagesDialect);
  return out;
}

std::variant<RawReply, Malformed> read_messages_answer(const Json& answer) {
  const Json* content = find_given(answer, "content");
  if (content == nullptr || !content->is_array()) {
    return Malformed{"content is " + shape_of(content)};
  }
  std::vector<MessageBlock> blocks;
  for (const Json& block : *content) blocks.push_back({block, std::nullopt});
  const std::string stop_reason = text_member(answer, "stop_reason");
  if (stop_reason == "max_tokens" && !blocks.empty()) {
    // The limit fell into this call; that its input came as a whole object says nothing.
    MessageBlock& last = blocks.back();
    if (text_member(last.block, "type") == "tool_use") last.input = "";
  }
  ModelUsage usage;
  if (const Json* counts = find_given(answer, "usage")) update_messages_usage(*counts, &usage);
  return read_message_blocks(blocks, stop_reason, usage);
}

void update_messages_usage(const Json& usage, ModelUsage* out) {
  // The API's input leaves out what its cache took part in.
  std::int64_t fresh = out->prompt_tokens - out->cached_tokens - out->cache_write_tokens;
  const auto update = [&](const char* key, std::int64_t* count) {
    if (find_given(usage, key) != nullptr) *count = token_count(usage, key);
  };
  update("input_tokens", &fresh);
  update("cache_read_input_tokens", &out->cached_tokens);
  update("cache_creation_input_tokens", &out->cache_write_tokens);
  update("output_tokens", &out->completion_tokens);
  if (const Json* details = find_given(usage, "output_tokens_details")) {
    out->reasoning_tokens = std::max(token_count(*details, "thinking_tokens"),
                                     token_count(*details, "reasoning_tokens"));
  }
  out->prompt_tokens = fresh + out->cached_tokens + out->cache_write_tokens;
  out->total_tokens = out->prompt_tokens + out->completion_tokens;
}

}  // namespace holdfast
