#include "provider/answer_format.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "core/json_schema.hpp"

namespace holdfast {
namespace {

template <std::size_t n>
bool is_one_of(const std::string& word, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr auto kMapsOfSchemas =
    std::to_array<std::string_view>({"properties", "$defs", "definitions"});

bool is_object_schema(const Json& schema) {
  return schema.is_object() && text_member(schema, "type") == "object";
}

/// Does strict output take it: only words that it knows, every object closed, every property
/// required?
bool is_strict(const Json& schema, int depth) {
  constexpr auto kPlain = std::to_array<std::string_view>(
      {"type", "description", "title", "enum", "const", "pattern", "format", "multipleOf",
       "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "$ref",
       "required", "additionalProperties", "$schema"});
  if (!schema.is_object() || depth > kMaxSchemaDepth) return false;
  const auto inner_fits = [depth](const Json& inner) { return is_strict(inner, depth + 1); };
  for (const auto& [key, value] : schema.items()) {
    if (is_one_of(key, kPlain)) continue;
    const bool is_map = is_one_of(key, kMapsOfSchemas) && value.is_object();
    const bool is_list = key == "anyOf" && value.is_array() && depth > 0;
    const bool fits = is_map || is_list ? std::all_of(value.begin(), value.end(), inner_fits)
                                        : key == "items" && inner_fits(value);
    if (!fits) return false;
  }
  if (!is_object_schema(schema)) return true;
  const Json* properties = find_member(schema, "properties");
  const Json* required = find_member(schema, "required");
  const std::size_t declared = properties == nullptr ? 0 : properties->size();
  const std::size_t needed = required == nullptr ? 0 : required->size();
  return schema.value("additionalProperties", Json()) == false && declared == needed;
}

/// Writes a schema anew with the words that Messages takes. Leaving out a bound makes it wider,
/// which does no harm; what would make it narrower ends the attempt.
class ClosedSchema {
 public:
  explicit ClosedSchema(const Json& root) : root_(root) {}

  Json written() {
    Json out = write(root_, 0);
    return is_possible_ ? out : Json();
  }

 private:
  Json give_up() {
    is_possible_ = false;
    return nullptr;
  }

  Json write(const Json& schema, int depth) {
    constexpr auto kKept = std::to_array<std::string_view>(
        {"type", "description", "title", "enum", "const", "default", "required"});
    constexpr auto kNarrower = std::to_array<std::string_view>({"patternProperties", "allOf"});
    if (!is_possible_ || !schema.is_object() || depth > kMaxSchemaDepth) return give_up();
    Json out = Json::object();
    for (const auto& [key, value] : schema.items()) {
      if (is_one_of(key, kNarrower)) return give_up();
      if (is_one_of(key, kKept)) out[key] = value;
      if (is_one_of(key, kMapsOfSchemas)) out[key] = write_each(value, depth);
      if (key == "anyOf" || key == "oneOf") out["anyOf"] = write_each(value, depth);
      if (key == "items") out[key] = write(value, depth + 1);
      if (key == "$ref") out[key] = followed(value, depth);
    }
    const bool is_object = is_object_schema(schema) || schema.contains("properties");
    if (!is_object) return out;
    // An object that is open by its own word is none that the API could describe.
    if (schema.value("additionalProperties", Json(false)) != false) return give_up();
    out["additionalProperties"] = false;
    return out;
  }

  Json write_each(const Json& schemas, int depth) {
    Json out = schemas;
    for (Json& schema : out) schema = write(Json(schema), depth + 1);
    return out;
  }

  /// The API takes references inside the schema, and none that come back to themselves.
  Json followed(const Json& ref, int depth) {
    if (!ref.is_string()) return give_up();
    const std::string name = ref.get<std::string>();
    if (seen_.contains(name)) return ref;
    const Json* target = find_local_reference(root_, name);
    if (target == nullptr || !open_.insert(name).second) return give_up();
    write(*target, depth + 1);
    open_.erase(name);
    seen_.insert(name);
    return ref;
  }

  const Json& root_;
  std::set<std::string> open_;  ///< references that are being followed
  std::set<std::string> seen_;  ///< and those that lead to an end
  bool is_possible_ = true;
};

}  // namespace

Json openai_answer_format(const Json& schema) {
  if (!is_object_schema(schema)) return nullptr;
  return {{"name", "answer"}, {"schema", schema}, {"strict", is_strict(schema, 0)}};
}

Json anthropic_answer_schema(const Json& schema) { return ClosedSchema(schema).written(); }

}  // namespace holdfast
