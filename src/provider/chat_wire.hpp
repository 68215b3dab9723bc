#pragma once

// The Chat Completions dialect: neutral history to request, answer to what it consists of. Pure.

#include <string>
#include <variant>

#include "core/model.hpp"
#include "provider/answer.hpp"
#include "provider/own_parts.hpp"

namespace holdfast {

/// The request body. Equal history gives equal bytes.
std::string render_chat_request(const Target&, const ModelRequest&, bool stream);

/// What a server wants to see again beside its call: some hide a model's signature there.
Json own_members(const Json& call);

/// What is to be kept of an answer for its maker; null: nothing.
Json kept_of_chat(const RawReply&);

/// Reads a whole `chat.completion`. Error objects and filters are the caller's business (classify).
std::variant<RawReply, Malformed> read_chat_answer(const Json& answer);

/// Tokens; zero for what is missing or of a wrong type.
ModelUsage read_chat_usage(const Json& usage);

}  // namespace holdfast
