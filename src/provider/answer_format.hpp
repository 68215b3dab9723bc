#pragma once

// An answer's schema as a target takes it in its own member of a request. The conversation says it
// too, so a target that takes none, or that takes less than the schema says, is still told; and the
// answer is checked by who asked for it, whatever the target promised. Pure.

#include "holdfast/json.hpp"

namespace holdfast {

/// What both of OpenAI's APIs take: {name, schema, strict}; strict where the schema has the form
/// that is wanted for it. Null where it does not describe an object: those are refused.
Json openai_answer_format(const Json& schema);

/// What Messages takes as `output_config.format.schema`: each object closed, and without the words
/// that the API refuses. Null where less than that would be another schema.
Json anthropic_answer_schema(const Json& schema);

}  // namespace holdfast
