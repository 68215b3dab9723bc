#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"
#include "core/json_schema.hpp"
#include "core/pattern.hpp"
#include "core/validate.hpp"

namespace holdfast {
namespace {

/// Looks a schema over before it is used: names what this build would not honour.
class Inspection {
 public:
  std::string look(const Json& root) {
    root_ = &root;
    visit(root, "", 0);
    return problem_;
  }

 private:
  void say(const std::string& place, const std::string& what) {
    if (problem_.empty()) problem_ = (place.empty() ? "/" : place) + ": " + what;
  }

  void visit_all(const Json& object, const char* key, const std::string& place, int depth) {
    const Json* group = find_member(object, key);
    if (group == nullptr || !problem_.empty()) return;
    const std::string inner = place + "/" + key;
    if (!group->is_object()) return say(inner, "must be an object of schemas");
    for (const auto& [name, schema] : group->items()) {
      visit(schema, inner + "/" + escape_pointer(name), depth + 1);
    }
  }

  void visit_list(const Json& object, const char* key, const std::string& place, int depth) {
    const Json* group = find_member(object, key);
    if (group == nullptr || !problem_.empty()) return;
    const std::string inner = place + "/" + key;
    if (!group->is_array() || group->empty()) return say(inner, "must be a list of schemas");
    for (std::size_t i = 0; i < group->size(); ++i) {
      visit((*group)[i], inner + "/" + std::to_string(i), depth + 1);
    }
  }

  void visit(const Json& schema, const std::string& place, int depth) {
    if (!problem_.empty() || schema.is_boolean()) return;
    if (!schema.is_object()) return say(place, "a schema must be an object, true or false");
    if (depth > kMaxSchemaDepth) return say(place, "is nested too deep");
    for (const char* key : {"unevaluatedProperties", "unevaluatedItems", "$dynamicRef",
                            "$recursiveRef", "additionalItems"}) {
      if (schema.contains(key)) return say(place + "/" + key, "is not supported");
    }
    check_words(schema, place);
    for (const char* key :
         {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}) {
      visit_all(schema, key, place, depth);
    }
    for (const char* key : {"prefixItems", "allOf", "anyOf", "oneOf"}) {
      visit_list(schema, key, place, depth);
    }
    for (const char* key : {"items", "contains", "additionalProperties", "propertyNames", "not",
                            "if", "then", "else"}) {
      if (const Json* inner = find_member(schema, key)) {
        visit(*inner, place + "/" + key, depth + 1);
      }
    }
  }

  void check_words(const Json& schema, const std::string& place) {
    if (const Json* ref = find_member(schema, "$ref")) check_reference(*ref, place);
    if (const Json* type = find_member(schema, "type")) check_type(*type, place + "/type");
    if (const Json* values = find_member(schema, "enum");
        values != nullptr && !values->is_array()) {
      say(place + "/enum", "must be a list");
    }
    if (const Json* required = find_member(schema, "required"); required != nullptr) {
      const bool ok =
          required->is_array() && std::all_of(required->begin(), required->end(),
                                              [](const Json& name) { return name.is_string(); });
      if (!ok) say(place + "/required", "must be a list of property names");
    }
    for (const char* key : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      if (const Json* b = find_member(schema, key); b != nullptr && !b->is_number()) {
        say(place + "/" + key, "must be a number");
      }
    }
    if (const Json* b = find_member(schema, "multipleOf");
        b != nullptr && (!b->is_number() || b->get<double>() <= 0)) {
      say(place + "/multipleOf", "must be a number above 0");
    }
    for (const char* key : {"minLength", "maxLength", "minItems", "maxItems", "minProperties",
                            "maxProperties", "minContains", "maxContains"}) {
      if (const Json* b = find_member(schema, key);
          b != nullptr && (!is_integer(*b) || b->get<double>() < 0)) {
        say(place + "/" + key, "must be a whole number of at least 0");
      }
    }
    if (const Json* pattern = find_member(schema, "pattern")) {
      if (!pattern->is_string()) {
        say(place + "/pattern", "must be a string");
      } else if (!PatternCache::usable(pattern->get_ref<const std::string&>())) {
        say(place + "/pattern", shown(*pattern) + " cannot be used as a regular expression");
      }
    }
    if (const Json* patterns = find_member(schema, "patternProperties");
        patterns != nullptr && patterns->is_object()) {
      for (const auto& [pattern, rule] : patterns->items()) {
        if (!PatternCache::usable(pattern)) {
          say(place + "/patternProperties", shown(pattern) + " cannot be used");
        }
      }
    }
  }

  void check_type(const Json& type, const std::string& place) {
    static constexpr std::array<std::string_view, 7> kTypes = {
        "null", "boolean", "object", "array", "string", "number", "integer"};
    auto known = [](const Json& one) {
      return one.is_string() && std::find(kTypes.begin(), kTypes.end(),
                                          one.get_ref<const std::string&>()) != kTypes.end();
    };
    const bool ok = type.is_array() ? !type.empty() && std::all_of(type.begin(), type.end(), known)
                                    : known(type);
    if (!ok) {
      say(place,
          shown(type) + " is no type; use null, boolean, object, array, string, number or integer");
    }
  }

  void check_reference(const Json& ref, const std::string& place) {
    if (!ref.is_string()) return say(place + "/$ref", "must be a string");
    const auto& text = ref.get_ref<const std::string&>();
    if (!text.starts_with('#')) {
      return say(place + "/$ref", shown(ref) + " leads outside the schema; copy it into `$defs`");
    }
    const Json* target = find_local_reference(*root_, text);
    if (target == nullptr) return say(place + "/$ref", shown(ref) + " leads nowhere");
    for (int hops = 0; target != nullptr && target->is_object(); ++hops) {
      const Json* next = find_member(*target, "$ref");
      if (next == nullptr || !next->is_string()) return;
      if (hops > 32) return say(place + "/$ref", shown(ref) + " leads back to itself");
      target = find_local_reference(*root_, next->get_ref<const std::string&>());
    }
  }

  const Json* root_ = nullptr;
  std::string problem_;
};

}  // namespace

std::string schema_problem(const Json& schema) {
  if (depth_of(schema, 4 * kMaxSchemaDepth) > 4 * kMaxSchemaDepth) return "/: is nested too deep";
  return Inspection().look(schema);
}

}  // namespace holdfast
