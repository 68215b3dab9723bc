#include "base/canonical.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "base/text.hpp"

namespace holdfast {
namespace {

void write_text(std::string& out, const std::string& value) {
  const std::string clean = clean_utf8(value);
  fmt::format_to(std::back_inserter(out), "s{}:{}", clean.size(), clean);
}

void write_value(std::string& out, const Json& value) {
  const auto to = std::back_inserter(out);
  switch (value.type()) {
    case Json::value_t::object:
      fmt::format_to(to, "o{}:", value.size());
      for (const auto& [key, member] : value.items()) {
        write_text(out, key);
        write_value(out, member);
      }
      return;
    case Json::value_t::array:
      fmt::format_to(to, "a{}:", value.size());
      for (const Json& element : value) write_value(out, element);
      return;
    case Json::value_t::string:
      return write_text(out, value.get_ref<const std::string&>());
    case Json::value_t::boolean:
      out += value.get<bool>() ? 't' : 'f';
      return;
    case Json::value_t::number_integer:
      fmt::format_to(to, "i{};", value.get<std::int64_t>());
      return;
    case Json::value_t::number_unsigned:
      fmt::format_to(to, "i{};", value.get<std::uint64_t>());
      return;
    case Json::value_t::number_float:
      // What no JSON can say is stored as null.
      if (!std::isfinite(value.get<double>())) break;
      fmt::format_to(to, "d{:016x}", std::bit_cast<std::uint64_t>(value.get<double>()));
      return;
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  out += 'n';
}

}  // namespace

std::string canonical_text(const Json& value) {
  std::string out;
  write_value(out, value);
  return out;
}

}  // namespace holdfast
