#pragma once

// What every dialect's answer is read into, and how that becomes the neutral reply. Pure.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/model.hpp"

namespace holdfast {

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
  Json own = nullptr;       ///< what its maker wants to see again beside it
};

/// What an answer consists of, whether it came whole or in pieces.
struct RawReply {
  std::string text;
  std::vector<RawCall> calls;
  std::string finish;  ///< `stop`, `length`, `tool_calls`, `pause`; else the maker's own word
  ModelUsage usage;    ///< without its cost; all zero where the other side said nothing
  bool has_refusal = false;
  Json opaque;  ///< own_parts.hpp
};

/// The neutral reply; provider and model are the caller's. Names are mapped back to those of the
/// request's tools, arguments parsed up to `max_depth`.
std::variant<ModelReply, Malformed> to_reply(const RawReply&, const ModelRequest&, int max_depth);

/// A call whose arguments came as a value and not as text.
RawCall call_of_value(std::string id, std::string name, const Json* arguments);

/// Text of a message's content: a string, or the text parts of a list. Nothing for other types.
std::optional<std::string> read_content(const Json& content);

/// A member that is there and not null: streams write null for what they leave out.
const Json* find_given(const Json& object, const char* key);

/// What is in the place of something else, for people: `missing`, `an empty list`, `number`.
std::string shape_of(const Json* value);

/// A count; zero for what is missing, of a wrong type or negative.
std::int64_t token_count(const Json& usage, const char* key);

/// Does a parsed value hold a number that may have been an integer beyond 64 bits?
bool holds_rounded(const Json&);

/// Where a text stands as JSON object or array: not yet complete, complete, or followed by more.
enum class JsonExtent { open, complete, trailing };
JsonExtent extent_of(const std::string& text);

}  // namespace holdfast
