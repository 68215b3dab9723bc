#include "provider/dialect.hpp"

#include "base/text.hpp"

namespace holdfast {

std::string base_with(std::string base, const std::string& prefix) {
  while (base.ends_with('/')) base.pop_back();
  return base.ends_with(prefix) ? base : base + prefix;
}

Json plain_error(const Json& json) {
  if (json.is_array() && !json.empty()) return plain_error(json.front());
  const Json* error = find_given(json, "error");
  return error == nullptr ? Json() : Json{{"error", *error}};
}

}  // namespace holdfast
