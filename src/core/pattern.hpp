#pragma once

#include <map>
#include <memory>
#include <string>

namespace holdfast {

enum class PatternMatch { yes, no, too_long, bad_pattern };

/// Regular expressions (ECMAScript) from schemas, compiled once. Matching takes time and stack that
/// do not explode with the text: no backtracking, bounded repetitions. Back references are refused.
/// One thread at a time.
class PatternCache {
 public:
  PatternCache();
  ~PatternCache();
  PatternCache(const PatternCache&) = delete;
  PatternCache& operator=(const PatternCache&) = delete;

  /// Is the pattern found anywhere in the text?
  PatternMatch match(const std::string& pattern, const std::string& text);
  static bool usable(const std::string& pattern);

 private:
  struct Compiled;
  static std::unique_ptr<Compiled> compile(const std::string& pattern);

  std::map<std::string, std::unique_ptr<Compiled>> compiled_;  ///< null: cannot be used
};

}  // namespace holdfast
