#pragma once

// What all fuzz targets share. A target is one file, NAME_fuzz.cpp: it reads the input as its NAME
// says and checks properties; one that does not hold ends the process, and libFuzzer keeps the
// input.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/safe_text.hpp"
#include "base/text.hpp"

namespace holdfast::fuzz {

/// A property of the target. `what` says it as it should be.
inline void expect(bool holds, std::string_view what, std::string_view seen = {}) {
  if (holds) return;
  std::fprintf(stderr, "BROKEN: %.*s\n%.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(seen.size()), seen.data());
  std::abort();
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Takes what stands before `mark` off the front; everything where there is none.
inline std::string_view take_until(std::string_view& text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + mark.size());
  return part;
}

inline std::vector<std::string_view> split(std::string_view text, std::string_view mark) {
  std::vector<std::string_view> parts;
  while (!text.empty()) parts.push_back(take_until(text, mark));
  return parts;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What stores can take: nothing in it would be replaced.
inline bool is_utf8(std::string_view text) { return clean_utf8(text) == text; }

/// What people can take: one line of letters, nothing that a terminal would obey.
inline bool is_safe_line(std::string_view text) { return safe_line(text) == text; }

}  // namespace holdfast::fuzz
