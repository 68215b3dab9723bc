#include "core/context_window.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/guard.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

constexpr std::int64_t kBytesPerToken = 4;
constexpr std::int64_t kFrame = 4;  ///< of a message, a call or a tool

std::int64_t tokens_of(std::string_view text) {
  std::int64_t plain = 0;
  std::int64_t others = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    plain += byte < 0x80;
    others += byte >= 0xC0;  // the first byte of a character
  }
  return (plain + kBytesPerToken - 1) / kBytesPerToken + others;
}

std::int64_t tokens_of(const Message& message) {
  std::int64_t tokens = kFrame + tokens_of(message.text) + tokens_of(message.tool_name);
  for (const ToolCall& call : message.calls) {
    tokens += kFrame + tokens_of(call.name) +
              tokens_of(call.bad_arguments ? *call.bad_arguments : dump_json(call.arguments));
  }
  if (!message.opaque.is_null()) tokens += tokens_of(dump_json(message.opaque));
  return tokens;
}

/// Where each turn begins, and at last where the messages end. What follows a pause is the same
/// answer still.
std::vector<std::size_t> turn_begins(const std::vector<Message>& messages) {
  std::vector<std::size_t> begins;
  bool is_answering = false;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const bool is_answer = messages[i].role == Message::Role::assistant;
    if (is_answer && !is_answering) begins.push_back(i);
    is_answering = is_answer;
  }
  begins.push_back(messages.size());
  return begins;
}

}  // namespace

std::int64_t estimated_tokens(const ModelRequest& request) {
  std::int64_t tokens = 0;
  for (const Message& message : request.messages) tokens += tokens_of(message);
  for (const ToolDefinition& tool : request.tools) {
    tokens += kFrame + tokens_of(tool.name) + tokens_of(tool.description) +
              tokens_of(dump_json(tool.parameters));
  }
  if (!request.answer_schema.is_null()) tokens += tokens_of(dump_json(request.answer_schema));
  return tokens;
}

int spare_turns(const ModelRequest& request) {
  const std::size_t turns = turn_begins(request.messages).size() - 1;
  return std::max(0, static_cast<int>(turns) - 1);
}

ModelRequest without_turns(const ModelRequest& request, int count) {
  ModelRequest shorter = request;
  const int left_out = std::clamp(count, 0, spare_turns(request));
  if (left_out == 0) return shorter;
  const auto begins = turn_begins(request.messages);
  const auto at = [&](std::size_t turn) {
    return shorter.messages.begin() + static_cast<std::ptrdiff_t>(begins[turn]);
  };
  shorter.messages.erase(at(0), at(static_cast<std::size_t>(left_out)));
  shorter.left_out = request.left_out + left_out;
  return shorter;
}

std::optional<int> turns_to_leave_out(const ModelRequest& request, int count, std::int64_t room) {
  const int spare = spare_turns(request);
  int left_out = std::clamp(count, 0, spare);
  std::int64_t tokens = estimated_tokens(without_turns(request, left_out));
  const auto begins = turn_begins(request.messages);
  while (!HOLDFAST_GUARD("request_fits", tokens <= room)) {
    if (left_out == spare) return std::nullopt;
    const auto turn = static_cast<std::size_t>(left_out++);
    for (std::size_t i = begins[turn]; i < begins[turn + 1]; ++i) {
      tokens -= tokens_of(request.messages[i]);
    }
  }
  return left_out;
}

}  // namespace holdfast
