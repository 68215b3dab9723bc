#pragma once

// The Chat Completions dialect: neutral history to request, answer to neutral reply. Pure.

#include <string>
#include <variant>
#include <vector>

#include "core/model.hpp"

namespace holdfast {

/// The request body. Equal history gives equal bytes.
std::string render_chat_request(const std::string& model, const ModelRequest&, bool stream);

/// A 2xx answer that is no answer: `shape` says what was received instead.
struct Malformed {
  std::string shape;
};

/// A call as it came, before its arguments are read.
struct RawCall {
  std::string id;
  std::string name;
  std::string arguments;
  bool is_rounded = false;  ///< they came as a value, and `holds_rounded`
};

/// What an answer consists of, whether it came whole or in pieces.
struct RawReply {
  std::string text;
  std::vector<RawCall> calls;
  std::string finish;
  Json usage;  ///< as it came
  bool has_refusal = false;
};

/// Reads a whole `chat.completion`. Error objects and filters are the caller's business (classify).
std::variant<RawReply, Malformed> read_chat_answer(const Json& answer);

/// The neutral reply; provider and model are the caller's. Names are mapped back to those of the
/// request's tools, arguments parsed up to `max_depth`.
std::variant<ModelReply, Malformed> to_reply(const RawReply&, const ModelRequest&, int max_depth);

/// Tokens; zero for what is missing or of a wrong type. `cost` is left alone.
Usage read_usage(const Json& usage);

/// Text of a message's content: a string, or the text parts of a list. Nothing for other types.
std::optional<std::string> read_content(const Json& content);

/// Does a parsed value hold a number that may have been an integer beyond 64 bits?
bool holds_rounded(const Json&);

/// Where a text stands as JSON object or array: not yet complete, complete, or followed by more.
enum class JsonExtent { open, complete, trailing };
JsonExtent extent_of(const std::string& text);

}  // namespace holdfast
