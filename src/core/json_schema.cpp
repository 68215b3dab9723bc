// Why this is ours: the packaged validator speaks draft 7, matches patterns by recursion over the
// text (a few thousand characters end a thread with a small stack) and loops on references that
// name themselves. Here the depth, the number of evaluations and the patterns are bounded, and
// every violation names its place.

#include "core/json_schema.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.hpp"
#include "core/pattern.hpp"
#include "core/validate.hpp"

namespace holdfast {
namespace {

constexpr int kMaxDepth = kMaxSchemaDepth;
constexpr int kMaxEvaluations = 200000;
constexpr std::size_t kMaxErrors = 20;

bool is_of_type(const Json& value, std::string_view type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "integer") return is_integer(value);
  return false;
}

std::size_t count_characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

/// Evaluates one value against one schema. One object per question, so that its bounds hold for all
/// of it.
class Evaluation {
 public:
  explicit Evaluation(const Json& root) : root_(root) {}

  using Errors = std::vector<std::string>;

  void check(const Json& schema, const Json& value, const std::string& place, int depth,
             Errors* errors) {
    if (++evaluations_ > kMaxEvaluations || depth > kMaxDepth) {
      add(errors, place, "the schema leads too deep or too far to be checked");
      return;
    }
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) add(errors, place, "is not allowed");
      return;
    }
    if (!schema.is_object()) return;
    if (const Json* ref = find_member(schema, "$ref"); ref != nullptr && ref->is_string()) {
      const Json* target = find_local_reference(root_, ref->get_ref<const std::string&>());
      if (target == nullptr) {
        add(errors, place, "the schema's reference " + shown(*ref) + " leads nowhere");
      } else {
        check(*target, value, place, depth + 1, errors);
      }
    }
    check_any(schema, value, place, errors);
    if (value.is_number()) check_number(schema, value, place, errors);
    if (value.is_string()) {
      check_string(schema, value.get_ref<const std::string&>(), place, errors);
    }
    if (value.is_array()) check_array(schema, value, place, depth, errors);
    if (value.is_object()) check_object(schema, value, place, depth, errors);
    check_combined(schema, value, place, depth, errors);
  }

 private:
  static void add(Errors* errors, const std::string& place, const std::string& what) {
    if (errors->size() < kMaxErrors) errors->push_back((place.empty() ? "/" : place) + ": " + what);
  }

  bool fits(const Json& schema, const Json& value, const std::string& place, int depth) {
    Errors errors;
    check(schema, value, place, depth + 1, &errors);
    return errors.empty();
  }

  static void check_any(const Json& schema, const Json& value, const std::string& place,
                        Errors* errors) {
    if (const Json* type = find_member(schema, "type")) {
      bool ok = false;
      if (type->is_string()) ok = is_of_type(value, type->get_ref<const std::string&>());
      if (type->is_array()) {
        ok = std::any_of(type->begin(), type->end(), [&](const Json& one) {
          return one.is_string() && is_of_type(value, one.get_ref<const std::string&>());
        });
      }
      if (!ok) add(errors, place, "must be of type " + shown(*type) + ", not " + shown(value));
    }
    if (const Json* values = find_member(schema, "enum"); values != nullptr && values->is_array()) {
      if (std::find(values->begin(), values->end(), value) == values->end()) {
        add(errors, place,
            "must be one of " + cut(dump_json(*values), 240) + ", not " + shown(value));
      }
    }
    if (const Json* fixed = find_member(schema, "const"); fixed != nullptr && *fixed != value) {
      add(errors, place, "must be " + shown(*fixed) + ", not " + shown(value));
    }
  }

  static const Json* bound(const Json& schema, const char* key) {
    const Json* found = find_member(schema, key);
    return found != nullptr && found->is_number() ? found : nullptr;
  }

  static void check_number(const Json& schema, const Json& value, const std::string& place,
                           Errors* errors) {
    if (const Json* b = bound(schema, "minimum"); b != nullptr && value < *b) {
      add(errors, place, "must be at least " + shown(*b) + ", not " + shown(value));
    }
    if (const Json* b = bound(schema, "maximum"); b != nullptr && value > *b) {
      add(errors, place, "must be at most " + shown(*b) + ", not " + shown(value));
    }
    if (const Json* b = bound(schema, "exclusiveMinimum"); b != nullptr && value <= *b) {
      add(errors, place, "must be more than " + shown(*b) + ", not " + shown(value));
    }
    if (const Json* b = bound(schema, "exclusiveMaximum"); b != nullptr && value >= *b) {
      add(errors, place, "must be less than " + shown(*b) + ", not " + shown(value));
    }
    if (const Json* b = bound(schema, "multipleOf"); b != nullptr && b->get<double>() > 0) {
      const double ratio = value.get<double>() / b->get<double>();
      // 0.3 is a multiple of 0.1 to everybody but binary fractions.
      if (std::abs(ratio - std::round(ratio)) > 1e-9 * std::max(1.0, std::abs(ratio))) {
        add(errors, place, "must be a multiple of " + shown(*b) + ", not " + shown(value));
      }
    }
  }

  static void check_count(const Json& schema, const char* least, const char* most,
                          std::size_t count, const char* unit, const std::string& place,
                          Errors* errors) {
    const auto number = static_cast<double>(count);
    if (const Json* b = bound(schema, least); b != nullptr && number < b->get<double>()) {
      add(errors, place, "must have at least " + shown(*b) + unit);
    }
    if (const Json* b = bound(schema, most); b != nullptr && number > b->get<double>()) {
      add(errors, place, "must have at most " + shown(*b) + unit);
    }
  }

  void check_string(const Json& schema, const std::string& text, const std::string& place,
                    Errors* errors) {
    check_count(schema, "minLength", "maxLength", count_characters(text), " characters", place,
                errors);
    if (const Json* pattern = find_member(schema, "pattern");
        pattern != nullptr && pattern->is_string()) {
      const auto& source = pattern->get_ref<const std::string&>();
      switch (patterns_.match(source, text)) {
        case PatternMatch::yes:
          break;
        case PatternMatch::no:
          add(errors, place, "must match the pattern " + shown(*pattern) + ", not " + shown(text));
          break;
        case PatternMatch::too_long:
          add(errors, place, "is too long to be matched against a pattern");
          break;
        case PatternMatch::bad_pattern:
          add(errors, place, "the schema's pattern " + shown(*pattern) + " cannot be used");
          break;
      }
    }
  }

  void check_array(const Json& schema, const Json& value, const std::string& place, int depth,
                   Errors* errors) {
    check_count(schema, "minItems", "maxItems", value.size(), " items", place, errors);
    std::size_t first = 0;
    if (const Json* prefix = find_member(schema, "prefixItems");
        prefix != nullptr && prefix->is_array()) {
      first = std::min(prefix->size(), value.size());
      for (std::size_t i = 0; i < first; ++i) {
        check((*prefix)[i], value[i], place + "/" + std::to_string(i), depth + 1, errors);
      }
    }
    if (const Json* items = find_member(schema, "items")) {
      for (std::size_t i = first; i < value.size() && errors->size() < kMaxErrors; ++i) {
        check(*items, value[i], place + "/" + std::to_string(i), depth + 1, errors);
      }
    }
    if (const Json* contains = find_member(schema, "contains")) {
      check_contains(schema, *contains, value, place, depth, errors);
    }
    const Json* unique = find_member(schema, "uniqueItems");
    if (unique != nullptr && unique->is_boolean() && unique->get<bool>()) {
      std::vector<const Json*> sorted;
      for (const Json& item : value) sorted.push_back(&item);
      std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return *a < *b; });
      auto twin = std::adjacent_find(sorted.begin(), sorted.end(),
                                     [](auto* a, auto* b) { return *a == *b; });
      if (twin != sorted.end()) add(errors, place, "has " + shown(**twin) + " twice");
    }
  }

  void check_contains(const Json& schema, const Json& contains, const Json& value,
                      const std::string& place, int depth, Errors* errors) {
    std::size_t count = 0;
    for (const Json& item : value) {
      if (fits(contains, item, place, depth)) ++count;
    }
    const Json* least = bound(schema, "minContains");
    const double at_least = least == nullptr ? 1.0 : least->get<double>();
    if (static_cast<double>(count) < at_least) {
      add(errors, place, "must contain more items that meet the schema's `contains`");
    }
    if (const Json* most = bound(schema, "maxContains");
        most != nullptr && static_cast<double>(count) > most->get<double>()) {
      add(errors, place, "must contain fewer items that meet the schema's `contains`");
    }
  }

  void check_object(const Json& schema, const Json& value, const std::string& place, int depth,
                    Errors* errors) {
    check_count(schema, "minProperties", "maxProperties", value.size(), " properties", place,
                errors);
    check_required(find_member(schema, "required"), value, place, errors);
    const Json* declared = find_member(schema, "properties");
    if (declared != nullptr && !declared->is_object()) declared = nullptr;
    const Json* by_pattern = find_member(schema, "patternProperties");
    if (by_pattern != nullptr && !by_pattern->is_object()) by_pattern = nullptr;
    const Json* others = find_member(schema, "additionalProperties");
    const Json* names = find_member(schema, "propertyNames");
    for (const auto& [key, item] : value.items()) {
      if (errors->size() >= kMaxErrors) return;
      const std::string inner = place + "/" + escape_pointer(key);
      bool known = false;
      if (declared != nullptr && declared->contains(key)) {
        known = true;
        check((*declared)[key], item, inner, depth + 1, errors);
      }
      if (by_pattern != nullptr) {
        for (const auto& [pattern, rule] : by_pattern->items()) {
          if (patterns_.match(pattern, key) != PatternMatch::yes) continue;
          known = true;
          check(rule, item, inner, depth + 1, errors);
        }
      }
      if (!known && others != nullptr) {
        if (others->is_boolean() && !others->get<bool>()) {
          add(errors, inner, "is not a known property" + suggestion(declared, key));
        } else {
          check(*others, item, inner, depth + 1, errors);
        }
      }
      if (names != nullptr && !fits(*names, Json(key), inner, depth)) {
        add(errors, inner, "is not an allowed property name");
      }
    }
    check_dependent(schema, value, place, depth, errors);
  }

  static std::string suggestion(const Json* declared, const std::string& key) {
    if (declared == nullptr) return {};
    std::vector<std::string> candidates;
    for (const auto& [name, rule] : declared->items()) candidates.push_back(name);
    auto close = did_you_mean(key, candidates);
    return close ? "; did you mean `" + *close + "`?" : std::string();
  }

  static void check_required(const Json* required, const Json& value, const std::string& place,
                             Errors* errors) {
    if (required == nullptr || !required->is_array()) return;
    for (const Json& name : *required) {
      if (!name.is_string()) continue;
      const auto& key = name.get_ref<const std::string&>();
      if (!value.contains(key)) add(errors, place + "/" + escape_pointer(key), "is required");
    }
  }

  void check_dependent(const Json& schema, const Json& value, const std::string& place, int depth,
                       Errors* errors) {
    if (const Json* dependent = find_member(schema, "dependentRequired");
        dependent != nullptr && dependent->is_object()) {
      for (const auto& [key, names] : dependent->items()) {
        if (value.contains(key)) check_required(&names, value, place, errors);
      }
    }
    if (const Json* dependent = find_member(schema, "dependentSchemas");
        dependent != nullptr && dependent->is_object()) {
      for (const auto& [key, rule] : dependent->items()) {
        if (value.contains(key)) check(rule, value, place, depth + 1, errors);
      }
    }
  }

  void check_combined(const Json& schema, const Json& value, const std::string& place, int depth,
                      Errors* errors) {
    if (const Json* all = find_member(schema, "allOf"); all != nullptr && all->is_array()) {
      for (const Json& one : *all) check(one, value, place, depth + 1, errors);
    }
    for (const char* key : {"anyOf", "oneOf"}) {
      const Json* choices = find_member(schema, key);
      if (choices == nullptr || !choices->is_array()) continue;
      const auto count = std::count_if(choices->begin(), choices->end(), [&](const Json& one) {
        return fits(one, value, place, depth);
      });
      if (count == 0) add(errors, place, std::string("meets none of the schema's `") + key + "`");
      if (count > 1 && std::string_view(key) == "oneOf") {
        add(errors, place, "meets more than one of the schema's `oneOf`");
      }
    }
    if (const Json* no = find_member(schema, "not");
        no != nullptr && fits(*no, value, place, depth)) {
      add(errors, place, "must not meet the schema's `not`");
    }
    if (const Json* condition = find_member(schema, "if")) {
      const char* branch = fits(*condition, value, place, depth) ? "then" : "else";
      if (const Json* rule = find_member(schema, branch))
        check(*rule, value, place, depth + 1, errors);
    }
  }

  const Json& root_;
  PatternCache patterns_;
  int evaluations_ = 0;
};

}  // namespace

bool is_integer(const Json& value) {
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  return std::isfinite(number) && std::floor(number) == number;
}

std::string shown(const Json& value) { return cut(dump_json(value), 80); }

std::string escape_pointer(const std::string& key) {
  std::string out;
  for (char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

int depth_of(const Json& value, int limit) {
  std::vector<const Json*> level;
  if (value.is_structured()) level.push_back(&value);
  int depth = 0;
  while (!level.empty() && depth <= limit) {
    ++depth;
    std::vector<const Json*> next;
    for (const Json* one : level) {
      for (const Json& item : *one) {
        if (item.is_structured()) next.push_back(&item);
      }
    }
    level = std::move(next);
  }
  return depth;
}

const Json* find_local_reference(const Json& schema, const std::string& reference) {
  if (!reference.starts_with('#')) return nullptr;
  try {
    const Json::json_pointer pointer(reference.substr(1));
    if (!schema.contains(pointer)) return nullptr;
    return &schema.at(pointer);
  } catch (const Json::exception&) {
    return nullptr;  // not a pointer: `#anchor`
  }
}

std::vector<std::string> schema_errors(const Json& schema, const Json& value) {
  if (depth_of(value, kMaxDepth) > kMaxDepth) {
    return {"/: is nested deeper than " + std::to_string(kMaxDepth) + " levels"};
  }
  if (depth_of(schema, 4 * kMaxDepth) > 4 * kMaxDepth) {
    return {"/: the schema is nested too deep to be used"};
  }
  if (schema.is_null()) return {};
  std::vector<std::string> errors;
  Evaluation(schema).check(schema, value, "", 0, &errors);
  return errors;
}

}  // namespace holdfast
