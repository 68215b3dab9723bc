#pragma once

#include "core/model.hpp"

namespace holdfast {

/// A tool's outcome as a step's recorded result: a success is the result itself, an error is
/// {"is_error": true, "result": …}; a success that looks like that is wrapped too. So a result that
/// a person gives to `resolve` is taken as a success, as it stands, and every replay tells errors
/// from successes exactly.
Json to_recorded(const ToolOutcome&);
ToolOutcome from_recorded(const Json&);

/// What the model reads: a text as it is, another value as its compact JSON.
std::string result_text(const Json&);

}  // namespace holdfast
