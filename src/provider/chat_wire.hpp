#pragma once

// The Chat Completions dialect: neutral history to request, answer to what it consists of. Pure.

#include <string>
#include <variant>

#include "core/model.hpp"
#include "provider/answer.hpp"

namespace holdfast {

/// The request body. Equal history gives equal bytes.
std::string render_chat_request(const std::string& model, const ModelRequest&, bool stream);

/// Reads a whole `chat.completion`. Error objects and filters are the caller's business (classify).
std::variant<RawReply, Malformed> read_chat_answer(const Json& answer);

/// Tokens; zero for what is missing or of a wrong type.
ModelUsage read_chat_usage(const Json& usage);

}  // namespace holdfast
