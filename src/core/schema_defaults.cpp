#include <set>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "core/json_schema.hpp"
#include "core/validate.hpp"

namespace holdfast {
namespace {

/// Values nested deeper than this are left as they are.
constexpr int kMaxDefaultsDepth = 64;

/// Fills one value. References may lead from every part of a schema to every other, so that there
/// are more paths through them than anybody can walk: each part of the value meets each part of
/// the schema once. What was filled in is not looked into, so that the value grows by no more than
/// the defaults of those pairs. Objects of `Json` are maps: adding a member moves no other.
class Defaults {
 public:
  explicit Defaults(const Json& root) : root_(root) {}

  void fill(const Json& schema, Json& value, int depth) {
    if (depth > kMaxDefaultsDepth || filled_in_.contains(&value)) return;
    // A reference comes before what stands beside it.
    const auto chain = follow(schema, value);
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      if (value.is_object()) fill_members(**it, value, depth);
      if (value.is_array()) fill_items(**it, value, depth);
    }
  }

  std::size_t visits() const { return met_.size(); }

 private:
  /// The schema and where its references lead, up to one that the value has met.
  std::vector<const Json*> follow(const Json& schema, const Json& value) {
    std::vector<const Json*> chain;
    const Json* next = &schema;
    while (next != nullptr && next->is_object() && met_.emplace(next, &value).second) {
      chain.push_back(next);
      const Json* ref = find_member(*next, "$ref");
      next = ref != nullptr && ref->is_string()
                 ? find_local_reference(root_, ref->get_ref<const std::string&>())
                 : nullptr;
    }
    return chain;
  }

  void fill_members(const Json& schema, Json& value, int depth) {
    const Json* properties = find_member(schema, "properties");
    if (properties == nullptr || !properties->is_object()) return;
    for (const auto& [key, rule] : properties->items()) {
      if (const auto present = value.find(key); present != value.end()) {
        fill(rule, *present, depth + 1);
      } else if (const Json* standard = find_member(rule, "default")) {
        filled_in_.insert(&(value[key] = *standard));
      }
    }
  }

  void fill_items(const Json& schema, Json& value, int depth) {
    const Json* items = find_member(schema, "items");
    if (items == nullptr) return;
    for (Json& item : value) fill(*items, item, depth + 1);
  }

  const Json& root_;
  std::set<std::pair<const Json*, const Json*>> met_;
  std::set<const Json*> filled_in_;
};

}  // namespace

std::size_t fill_defaults(const Json& schema, Json& value) {
  Defaults defaults(schema);
  defaults.fill(schema, value, 0);
  return defaults.visits();
}

Json with_defaults(const Json& schema, Json value) {
  fill_defaults(schema, value);
  return value;
}

}  // namespace holdfast
