#include "base/safe_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/text.hpp"

namespace holdfast {
namespace {

std::uint32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  std::uint32_t value = first & (0xffu >> (character.size() + 1));
  for (std::size_t i = 1; i < character.size(); ++i) {
    value = (value << 6) | (static_cast<unsigned char>(character[i]) & 0x3fu);
  }
  return value;
}

/// C0, DEL, C1, line and paragraph separators, and the marks that turn the direction of writing.
bool is_dangerous(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

std::string escaped(std::uint32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (c < 0x100) return fmt::format("\\x{:02x}", c);
  return fmt::format("\\u{:04x}", c);
}

std::string make_safe(std::string_view text, bool keep_layout) {
  const auto clean = clean_utf8(text);
  std::string safe;
  safe.reserve(clean.size());
  for (std::size_t at = 0; at < clean.size();) {
    const auto length = character_bytes(clean, at);
    const auto character = std::string_view(clean).substr(at, length);
    const auto c = code_point(character);
    if (is_dangerous(c) && !(keep_layout && (c == '\n' || c == '\t'))) {
      safe += escaped(c);
    } else {
      safe += character;
    }
    at += length;
  }
  return safe;
}

}  // namespace

std::string safe_line(std::string_view text) { return make_safe(text, false); }
std::string safe_text(std::string_view text) { return make_safe(text, true); }

std::string safe_json(std::string_view text) {
  std::string safe;
  for (std::size_t at = 0; at < text.size();) {
    const auto length = character_bytes(text, at);
    const auto character = text.substr(at, length);
    const auto c = code_point(character);
    if (is_dangerous(c)) {
      safe += fmt::format("\\u{:04x}", c);
    } else {
      safe += character;
    }
    at += length;
  }
  return safe;
}

std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const std::size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
  return std::min(length, text.size() - at);
}

}  // namespace holdfast
