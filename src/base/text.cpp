#include "base/text.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace holdfast {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Length of the well-formed character at `at`, or zero. `bad` is then how many bytes one
/// replacement stands for: the longest beginning of a character (Unicode, table 3-7).
std::size_t character_length(std::string_view text, std::size_t at, std::size_t* bad) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  *bad = 1;
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;   // no overlong forms
    if (lead == 0xED) high = 0x9F;  // no surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;  // nothing above U+10FFFF
  } else {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (at + i >= text.size() || byte(at + i) < low || byte(at + i) > high) {
      *bad = i;
      return 0;
    }
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

/// How many bytes from `at` on are ASCII; by words: up to seven more may be.
std::size_t ascii_length(std::string_view text, std::size_t at) {
  constexpr std::uint64_t kAnyOther = 0x8080808080808080;
  std::size_t end = at;
  for (std::uint64_t word = 0; text.size() - end >= sizeof word; end += sizeof word) {
    std::memcpy(&word, text.data() + end, sizeof word);
    if ((word & kAnyOther) != 0) break;
  }
  return end - at;
}

/// Optimal string alignment: insertions, deletions, substitutions, swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string cut_note(std::size_t bytes) { return fmt::format(" … [{} bytes cut]", bytes); }

struct CutNote {
  std::size_t note_bytes;
  std::size_t bytes_cut;
};

/// The note at the end of a text that was cut before.
std::optional<CutNote> note_of_cut(std::string_view text) {
  constexpr std::string_view kBefore = " … [";
  constexpr std::string_view kBehind = " bytes cut]";
  if (!text.ends_with(kBehind)) return std::nullopt;
  const std::size_t start = text.rfind(kBefore);
  if (start == std::string_view::npos) return std::nullopt;
  const std::size_t first = start + kBefore.size();
  const std::string_view digits = text.substr(first, text.size() - kBehind.size() - first);
  std::size_t bytes = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  // A foreign text can end like that too: what it says must not overflow.
  if (error != std::errc() || end != digits.data() + digits.size() || bytes > (1ULL << 40)) {
    return std::nullopt;
  }
  return CutNote{text.size() - start, bytes};
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

}  // namespace

std::string clean_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  std::size_t copied = 0;  // before this all is in the result
  std::size_t at = 0;
  while (at < text.size()) {
    at += ascii_length(text, at);
    if (at == text.size()) break;
    std::size_t bad = 0;
    const std::size_t length = character_length(text, at, &bad);
    if (length == 0) {
      result.append(text, copied, at - copied);
      result.append(kReplacement);
      copied = at + bad;
    }
    at += length > 0 ? length : bad;
  }
  result.append(text, copied);
  return result;
}

std::string cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  std::size_t total = text.size();
  if (const auto earlier = note_of_cut(text)) {
    text.remove_suffix(earlier->note_bytes);
    total = text.size() + earlier->bytes_cut;
  }
  // The note's length depends on how much is cut; room for the largest number is always enough.
  const std::size_t room = cut_note(total).size();
  std::size_t keep = std::min(text.size(), limit > room ? limit - room : limit);
  while (keep > 0 && keep < text.size() &&
         (static_cast<unsigned char>(text[keep]) & 0xC0) == 0x80) {
    --keep;
  }
  std::string result(text.substr(0, keep));
  if (limit > room) result += cut_note(total - keep);
  return result;
}

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("SHA-256 is not available in this process");
  }
  std::string result;
  result.reserve(2 * size);
  for (unsigned int i = 0; i < size; ++i) result += fmt::format("{:02x}", digest[i]);
  return result;
}

std::optional<std::string> did_you_mean(std::string_view word,
                                        const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 100;  // longer ones are no typing errors
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  const std::string wanted = lower(word);
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, std::min<std::size_t>(3, word.size() / 3));
  for (const std::string& candidate : candidates) {
    if (candidate.empty() || candidate.size() > kLongest) continue;
    const std::size_t distance = edit_distance(wanted, lower(candidate));
    // A word of which nothing is left was not meant.
    if (distance >= std::max(word.size(), candidate.size())) continue;
    if (distance < best_distance || (distance == best_distance && !best)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

const Json* find_member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string text_member(const Json& object, const char* key) {
  const Json* found = find_member(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace holdfast
