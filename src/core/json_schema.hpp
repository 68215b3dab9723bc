#pragma once

// The part of JSON Schema 2020-12 that tools and people's input need, evaluated with bounds on
// depth, work and patterns: schemas and values may come from anybody.

#include <cstddef>
#include <string>
#include <vector>

#include "holdfast/json.hpp"

namespace holdfast {

/// How deep a value is nested: 0 for a scalar. Does not recurse; stops counting above `limit`.
int depth_of(const Json& value, int limit);

/// The part of `schema` that a local reference (`#`, `#/$defs/x`) names; null pointer when there is
/// none.
const Json* find_local_reference(const Json& schema, const std::string& reference);

/// `with_defaults` in place. Returns how often a part of the value met a part of the schema: each
/// pair at most once, whatever the references are.
std::size_t fill_defaults(const Json& schema, Json& value);

/// Deeper schemas and values are refused, not followed.
inline constexpr int kMaxSchemaDepth = 100;

/// JSON Schema's integers: 1.0 is one.
bool is_integer(const Json& value);

/// The start of a value's text, for messages.
std::string shown(const Json& value);

/// A key as part of a JSON pointer.
std::string escape_pointer(const std::string& key);

}  // namespace holdfast
