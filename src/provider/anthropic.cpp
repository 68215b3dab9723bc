// Anthropic Messages, whole and as a stream.

#include <map>
#include <utility>

#include "base/text.hpp"
#include "provider/anthropic_wire.hpp"
#include "provider/dialect.hpp"
#include "provider/providers.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMaxBlocks = 10000;

/// Puts the events of a streamed message together, block by block.
class MessagesStream final : public AnswerStream {
 public:
  std::variant<std::string, Malformed> add(const Json& event) override {
    const std::string type = text_member(event, "type");
    if (type.empty()) return Malformed{"an event of the stream has no type"};
    if (type == "message_start") {
      if (const Json* message = find_given(event, "message")) take_usage(*message);
    } else if (type == "content_block_start") {
      return start_block(event);
    } else if (type == "content_block_delta") {
      return extend_block(event);
    } else if (type == "content_block_stop") {
      Open* open = find_block(event);
      if (open == nullptr) return Malformed{"a block ends that did not start"};
      open->is_whole = true;
    } else if (type == "message_delta") {
      take_usage(event);
      if (const Json* delta = find_given(event, "delta")) {
        const std::string reason = text_member(*delta, "stop_reason");
        if (!reason.empty()) stop_reason_ = reason;
      }
    } else if (type == "message_stop") {
      is_over_ = true;
    }
    // `ping`, and what later versions of the API add, says nothing of the answer.
    return std::string();
  }

  bool has_end() const override { return is_over_; }
  bool is_over() const override { return is_over_; }
  ModelUsage usage() const override { return usage_; }

  std::variant<RawReply, Malformed> finish() const override {
    std::vector<MessageBlock> blocks;
    for (const auto& [index, open] : blocks_) {
      const bool is_call = text_member(open.block, "type") == "tool_use";
      if (is_call && !open.is_whole) return Malformed{"a streamed tool call did not end"};
      MessageBlock block{open.block, std::nullopt};
      if (is_call && !open.input.empty()) block.input = open.input;
      blocks.push_back(std::move(block));
    }
    return read_message_blocks(blocks, stop_reason_, usage_);
  }

 private:
  struct Open {
    Json block;
    std::string input;  ///< of a call, as text
    bool is_whole = false;
  };

  void take_usage(const Json& holder) {
    if (const Json* usage = find_given(holder, "usage")) update_messages_usage(*usage, &usage_);
  }

  static std::int64_t index_of(const Json& event) {
    const Json* index = find_given(event, "index");
    return index != nullptr && index->is_number_integer() ? index->get<std::int64_t>() : -1;
  }

  Open* find_block(const Json& event) {
    const auto found = blocks_.find(index_of(event));
    return found == blocks_.end() ? nullptr : &found->second;
  }

  std::variant<std::string, Malformed> start_block(const Json& event) {
    const Json* block = find_given(event, "content_block");
    const std::int64_t index = index_of(event);
    if (block == nullptr || !block->is_object()) {
      return Malformed{"a streamed block is " + shape_of(block)};
    }
    if (index < 0 || blocks_.size() >= kMaxBlocks)
      return Malformed{"a streamed block has no place"};
    if (!blocks_.emplace(index, Open{*block, {}, false}).second) {
      return Malformed{"two streamed blocks share a place"};
    }
    return text_member(*block, "type") == "text" ? text_member(*block, "text") : std::string();
  }

  std::variant<std::string, Malformed> extend_block(const Json& event) {
    Open* open = find_block(event);
    const Json* delta = find_given(event, "delta");
    if (open == nullptr || open->is_whole) return Malformed{"a streamed piece belongs to no block"};
    if (delta == nullptr || !delta->is_object()) {
      return Malformed{"a streamed piece is " + shape_of(delta)};
    }
    const std::string type = text_member(*delta, "type");
    if (type == "text_delta") {
      std::string text = text_member(*delta, "text");
      append(&open->block, "text", text);
      return text;
    }
    if (type == "input_json_delta") {
      open->input += text_member(*delta, "partial_json");
    } else if (type == "thinking_delta") {
      append(&open->block, "thinking", text_member(*delta, "thinking"));
    } else if (type == "signature_delta") {
      append(&open->block, "signature", text_member(*delta, "signature"));
    }
    return std::string();
  }

  static void append(Json* block, const char* key, const std::string& text) {
    Json& whole = (*block)[key];
    if (!whole.is_string()) whole = "";
    whole.get_ref<std::string&>() += text;
  }

  std::map<std::int64_t, Open> blocks_;  ///< by their place in the answer
  std::string stop_reason_;
  ModelUsage usage_;
  bool is_over_ = false;
};

class MessagesDialect final : public Dialect {
 public:
  explicit MessagesDialect(const ProviderSpec& spec)
      : url_(base_with(base_url_of(spec), "/v1") + "/messages"), max_tokens_(spec.max_tokens) {}

  std::string url(const std::string&, bool) const override { return url_; }

  Headers headers(const std::string& key) const override {
    Headers headers{{"anthropic-version", "2023-06-01"}};
    if (!key.empty()) headers.emplace_back("x-api-key", key);
    return headers;
  }

  std::string render(const Target& target, const ModelRequest& request,
                     bool stream) const override {
    return render_messages_request(target, request, {max_tokens_, stream});
  }

  std::variant<RawReply, Malformed> read(const Json& answer) const override {
    return read_messages_answer(answer);
  }

  std::unique_ptr<AnswerStream> start_stream() const override {
    return std::make_unique<MessagesStream>();
  }

  Json error_in(const Json& json) const override { return plain_error(json); }

 private:
  const std::string url_;
  const int max_tokens_;
};

}  // namespace

std::unique_ptr<Provider> make_anthropic(const ProviderSpec& spec, Env& env, const Limits& limits,
                                         std::vector<std::string> key_names) {
  if (spec.max_tokens < 1) {
    throw RefusedError(Refusal::usage, "providers." + spec.name + ".max_tokens must be at least 1");
  }
  return make_http_provider(spec, std::make_unique<MessagesDialect>(spec), env, limits,
                            std::move(key_names));
}

}  // namespace holdfast
