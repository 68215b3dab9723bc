#pragma once

// The Messages dialect of Anthropic: neutral history to request, answer to what it consists of.
// Pure.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/model.hpp"
#include "provider/answer.hpp"
#include "provider/own_parts.hpp"

namespace holdfast {

struct MessagesOptions {
  int max_tokens = 0;  ///< the API wants a limit for each answer
  bool stream = false;
};

/// The request body. Equal history gives equal bytes.
std::string render_messages_request(const Target&, const ModelRequest&, const MessagesOptions&);

/// A block of an answer's content. Streams bring a call's input as text.
struct MessageBlock {
  Json block;
  std::optional<std::string> input;
};

/// What an answer's blocks and its end consist of. `stop_reason` is the API's own word.
std::variant<RawReply, Malformed> read_message_blocks(const std::vector<MessageBlock>&,
                                                      const std::string& stop_reason,
                                                      const ModelUsage&);

/// Reads a whole `message`. Errors are the caller's business (classify).
std::variant<RawReply, Malformed> read_messages_answer(const Json& answer);

/// Takes over what a `usage` says; what it does not speak of stays. In streams counts come twice,
/// and the later ones are totals.
void update_messages_usage(const Json& usage, ModelUsage*);

}  // namespace holdfast
