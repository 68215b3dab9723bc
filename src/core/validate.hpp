#pragma once

#include <string>
#include <vector>

#include "holdfast/json.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// What a value counts for against a limit: a text its own bytes, others those of their JSON.
std::size_t size_of_value(const Json&);

/// The name of a queue, an agent and the like: 1 to 128 bytes of UTF-8 without control characters.
/// Throws RefusedError (usage) that begins with `field`.
void check_name(const std::string& field, const std::string& value);

/// Checks a request against limits and forms. Throws RefusedError (usage) naming the field and the
/// remedy.
void check_request(const RunRequest&, const Limits&);

/// JSON Schema 2020-12 (type, required, enum, const, pattern, bounds, items, nested objects).
/// Empty: it fits; else one sentence per violation, each with the place. Never dereferences
/// anything outside the schema.
std::vector<std::string> schema_errors(const Json& schema, const Json& value);

/// Is this a schema that can be used at all? Empty: yes.
std::string schema_problem(const Json& schema);

/// `value` with the schema's defaults filled in at declared properties that are absent.
Json with_defaults(const Json& schema, Json value);

}  // namespace holdfast
