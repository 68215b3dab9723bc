#include "store/postgres/values.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>

#include "base/text.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast::postgres {
namespace {

// The server's numbers of its types.
constexpr std::uint32_t kNumberType = 20;
constexpr std::uint32_t kTextType = 25;
constexpr std::uint32_t kRealType = 701;
constexpr std::uint32_t kIdType = 2950;

template <class Int>
void put(std::string& out, Int value) {
  for (int shift = static_cast<int>(sizeof(Int) * 8) - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((value >> shift) & 0xff));
  }
}

std::uint32_t type_of(Array::Of of) {
  switch (of) {
    case Array::Of::numbers:
      return kNumberType;
    case Array::Of::reals:
      return kRealType;
    case Array::Of::texts:
      return kTextType;
    case Array::Of::ids:
      return kIdType;
  }
  return kTextType;
}

std::string number_bytes(std::int64_t value) {
  std::string bytes;
  put(bytes, static_cast<std::uint64_t>(value));
  return bytes;
}

int nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string escape_text(std::string_view text) {
  const auto is_plain = [](char c) {
    return static_cast<unsigned char>(c) < 0x80 && c != '\0' && c != '\\';
  };
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string out;
  for (const char c : clean_utf8(text)) {
    if (c == '\0') {
      out += "\\0";
    } else if (c == '\\') {
      out += "\\\\";
    } else {
      out += c;
    }
  }
  return out;
}

std::string unescape_text(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
    } else {
      ++i;
      out += text[i] == '0' ? '\0' : text[i];
    }
  }
  return out;
}

std::optional<std::string> uuid_bytes(const RunId& id) {
  if (id.size() != 36) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < id.size();) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (id[i++] != '-') return std::nullopt;
      continue;
    }
    const int high = nibble(id[i]);
    const int low = nibble(id[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return bytes;
}

void Array::add_bytes(std::string_view bytes) {
  put(elements_, static_cast<std::uint32_t>(bytes.size()));
  elements_ += bytes;
  ++count_;
}

void Array::add(std::int64_t value) { add_bytes(number_bytes(value)); }

void Array::add(double value) {
  std::string bytes;
  put(bytes, std::bit_cast<std::uint64_t>(value));
  add_bytes(bytes);
}

void Array::add(const std::string& text) { add_bytes(escape_text(text)); }
void Array::add_raw(std::string_view text) { add_bytes(text); }

void Array::add_id(const RunId& id) {
  const auto bytes = uuid_bytes(id);
  if (!bytes) {
    throw RefusedError(Refusal::usage,
                       "`" + cut(clean_utf8(id), 64) + "` is not a UUID in lower case");
  }
  add_bytes(*bytes);
}

void Array::add_null() {
  put(elements_, std::uint32_t{0xffffffff});
  has_null_ = true;
  ++count_;
}

std::string Array::encode() const {
  std::string bytes;
  put(bytes, std::uint32_t{count_ == 0 ? 0u : 1u});
  put(bytes, std::uint32_t{has_null_ ? 1u : 0u});
  put(bytes, type_of(of_));
  if (count_ > 0) {
    put(bytes, static_cast<std::uint32_t>(count_));
    put(bytes, std::uint32_t{1});
  }
  return bytes + elements_;
}

void Params::add_value(std::string bytes, bool is_binary) {
  lengths_.push_back(static_cast<int>(bytes.size()));
  formats_.push_back(is_binary ? 1 : 0);
  values_.emplace_back(std::move(bytes));
}

void Params::add(std::int64_t value) { add_value(number_bytes(value), true); }

void Params::add(double value) {
  std::string bytes;
  put(bytes, std::bit_cast<std::uint64_t>(value));
  add_value(std::move(bytes), true);
}

void Params::add(const std::string& text) { add_value(escape_text(text), false); }

void Params::add_null() {
  lengths_.push_back(0);
  formats_.push_back(0);
  values_.emplace_back(std::nullopt);
}

std::vector<const char*> Params::pointers() const {
  std::vector<const char*> pointers;
  for (const auto& value : values_) pointers.push_back(value ? value->c_str() : nullptr);
  return pointers;
}

std::int64_t Result::number(int row, int column) const {
  const auto text = view(row, column);
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double Result::real(int row, int column) const {
  return std::strtod(PQgetvalue(result_.get(), row, column), nullptr);
}

}  // namespace holdfast::postgres
