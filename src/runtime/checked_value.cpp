#include "runtime/checked_value.hpp"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "core/validate.hpp"
#include "holdfast/failure.hpp"

namespace holdfast {
namespace {

// With a stack of its own: the depth that is looked for may be one that no recursion survives.
bool is_deeper_than(const Json& value, int max_depth) {
  std::vector<std::pair<const Json*, int>> left = {{&value, 1}};
  while (!left.empty()) {
    const auto [one, depth] = left.back();
    left.pop_back();
    if (!one->is_structured()) continue;
    if (depth > max_depth) return true;
    for (const auto& inner : *one) left.emplace_back(&inner, depth + 1);
  }
  return false;
}

}  // namespace

void check_value(std::string_view name, const Json& value, std::size_t max_bytes, int max_depth) {
  if (is_deeper_than(value, max_depth)) {
    throw RefusedError(Refusal::usage,
                       fmt::format("{} is nested deeper than {} (limits.depth)", name, max_depth));
  }
  if (const auto size_bytes = size_of_value(value); size_bytes > max_bytes) {
    throw RefusedError(Refusal::usage, fmt::format("{} has {} bytes; the limit is {}", name,
                                                   size_bytes, max_bytes));
  }
}

}  // namespace holdfast
