// GCC 12 sees uninitialised members in <regex> when the sanitizers are on.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "core/pattern.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <regex>
#include <string_view>

namespace holdfast {
namespace {

constexpr std::size_t kMaxPatternBytes = 1024;
constexpr std::size_t kMaxSubjectBytes = 64 * 1024;
constexpr std::size_t kMaxStates = 2000;

/// A rough, generous count of what repetitions expand to: `(…){1000}` nests, `x{1000}` does not.
std::size_t estimate_states(std::string_view pattern) {
  std::size_t states = pattern.size();
  for (std::size_t at = pattern.find('{'); at != std::string_view::npos;
       at = pattern.find('{', at + 1)) {
    const std::size_t end = pattern.find('}', at);
    if (end == std::string_view::npos) break;
    std::size_t most = 0;
    std::string_view numbers = pattern.substr(at + 1, end - at - 1);
    if (numbers.find(',') != std::string_view::npos && !numbers.ends_with(',')) {
      numbers.remove_prefix(numbers.find(',') + 1);
    }
    if (std::from_chars(numbers.data(), numbers.data() + numbers.size(), most).ec ==
        std::errc::result_out_of_range) {
      return kMaxStates + 1;
    }
    most = std::min(most, kMaxStates + 1);
    const bool repeats_group = at > 0 && pattern[at - 1] == ')';
    states = repeats_group ? states * std::max<std::size_t>(most, 1) : states + most;
    if (states > kMaxStates) return states;
  }
  return states;
}

}  // namespace

struct PatternCache::Compiled {
  std::regex regex;
};

PatternCache::PatternCache() = default;
PatternCache::~PatternCache() = default;

std::unique_ptr<PatternCache::Compiled> PatternCache::compile(const std::string& pattern) {
  if (pattern.size() > kMaxPatternBytes || estimate_states(pattern) > kMaxStates) return nullptr;
  try {
    // The standard library's other matcher recurses once per character of the text.
    return std::make_unique<Compiled>(
        Compiled{std::regex(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial)});
  } catch (const std::regex_error&) {
    return nullptr;
  }
}

PatternMatch PatternCache::match(const std::string& pattern, const std::string& text) {
  auto [entry, is_new] = compiled_.try_emplace(pattern);
  if (is_new) entry->second = compile(pattern);
  if (entry->second == nullptr) return PatternMatch::bad_pattern;
  if (text.size() > kMaxSubjectBytes) return PatternMatch::too_long;
  try {
    return std::regex_search(text, entry->second->regex) ? PatternMatch::yes : PatternMatch::no;
  } catch (const std::regex_error&) {
    return PatternMatch::bad_pattern;
  }
}

bool PatternCache::usable(const std::string& pattern) { return compile(pattern) != nullptr; }

}  // namespace holdfast
