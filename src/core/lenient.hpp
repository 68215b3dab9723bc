#pragma once

// Reading members of JSON that a store has kept: what is missing, or of another type, leaves the
// value alone.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "holdfast/json.hpp"
#include "holdfast/time.hpp"

namespace holdfast::lenient {

/// A damaged row may hold anything: what follows adds a few of these, and must not overflow.
constexpr std::int64_t kFarthest = std::int64_t{1} << 53;

inline void read(const Json& object, const char* key, bool& value) {
  const Json* found = find_member(object, key);
  if (found != nullptr && found->is_boolean()) value = found->get<bool>();
}

inline void read(const Json& object, const char* key, std::int64_t& value) {
  const Json* found = find_member(object, key);
  if (found != nullptr && found->is_number_integer()) value = found->get<std::int64_t>();
}

inline void read(const Json& object, const char* key, int& value) {
  const Json* found = find_member(object, key);
  if (found != nullptr && found->is_number_integer()) value = found->get<int>();
}

inline void read(const Json& object, const char* key, double& value) {
  const Json* found = find_member(object, key);
  if (found != nullptr && found->is_number()) value = found->get<double>();
}

inline void read(const Json& object, const char* key, std::string& value) {
  const Json* found = find_member(object, key);
  if (found != nullptr && found->is_string()) value = found->get<std::string>();
}

inline void read(const Json& object, const char* key, Json& value) {
  if (const Json* found = find_member(object, key)) value = *found;
}

inline void read(const Json& object, const char* key, Duration& value) {
  std::int64_t count = value.count();
  read(object, key, count);
  value = Duration(std::clamp(count, -kFarthest, kFarthest));
}

template <class Clock>
inline void read(const Json& object, const char* key,
                 std::chrono::time_point<Clock, Duration>& value) {
  Duration since = value.time_since_epoch();
  read(object, key, since);
  value = std::chrono::time_point<Clock, Duration>(since);
}

template <class T>
inline void read(const Json& object, const char* key, std::optional<T>& value) {
  const Json* found = find_member(object, key);
  if (found == nullptr || found->is_null()) return;
  T held{};
  read(object, key, held);
  value = held;
}

/// Of a list, its texts.
inline void read(const Json& object, const char* key, std::vector<std::string>& value) {
  const Json* found = find_member(object, key);
  if (found == nullptr || !found->is_array()) return;
  value.clear();
  for (const Json& item : *found) {
    if (item.is_string()) value.push_back(item.get<std::string>());
  }
}

}  // namespace holdfast::lenient
