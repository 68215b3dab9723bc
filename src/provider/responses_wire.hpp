#pragma once

// The Responses dialect of OpenAI: neutral history to request, answer to what it consists of. Kept
// without state on the other side: the whole conversation is sent each time. Pure.

#include <string>
#include <variant>
#include <vector>

#include "core/model.hpp"
#include "provider/answer.hpp"
#include "provider/own_parts.hpp"

namespace holdfast {

/// The request body. Equal history gives equal bytes.
std::string render_responses_request(const Target&, const ModelRequest&, bool stream);

/// Reads a whole `response` that has not failed.
std::variant<RawReply, Malformed> read_response_object(const Json& response);

/// The same of a streamed one: `items` are the output items that its stream has completed, for
/// servers that leave them out of the object at its end.
std::variant<RawReply, Malformed> read_response_object(const Json& response,
                                                       const std::vector<Json>& items);

ModelUsage read_responses_usage(const Json& usage);

}  // namespace holdfast
