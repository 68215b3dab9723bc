#pragma once

// Reading a TOML table key by key, so that every mistake is named with its line, its key and what
// was expected, and no key of the file goes unread.

// The library asserts that a name begins as one, and tells the mistake in the file behind that.
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/impl/preprocessor.h>
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expr) static_cast<void>(0)
#include <toml++/toml.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/json.hpp"
#include "holdfast/time.hpp"

namespace holdfast {

/// What is wrong with a file, gathered: a person mends all of it at once.
class ConfigProblems {
 public:
  explicit ConfigProblems(std::string file) : file_(std::move(file)) {}

  void add(unsigned line, std::string_view key, std::string_view text);
  /// Throws RefusedError (usage) with one line per problem, in the order of the file.
  void throw_if_any() const;

 private:
  std::string file_;
  std::vector<std::pair<unsigned, std::string>> lines_;
};

/// A text and the line it stands on.
struct TextAt {
  std::string text;
  unsigned line = 0;
};

/// Key names that are likely to hold a secret itself (`api_key`, `password`, …).
bool names_a_secret(std::string_view key);

/// One table of the file. Each getter notes the key as known and leaves `into` alone where the key
/// is absent or wrong; `finish` then reports the keys that nobody asked for.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string path, ConfigProblems& problems)
      : table_(&table), path_(std::move(path)), problems_(&problems) {}

  bool has(std::string_view key) const { return table_->contains(key); }
  unsigned line() const { return table_->source().begin.line; }
  unsigned line_of(std::string_view key) const;
  std::string full_name(std::string_view key) const;

  void read(std::string_view key, std::string& into);
  void read(std::string_view key, bool& into);
  void read(std::string_view key, int& into, int min,
            int max = std::numeric_limits<std::int32_t>::max());
  void read(std::string_view key, double& into, double min, double max);
  void read(std::string_view key, Duration& into, Duration min);
  void read(std::string_view key, std::optional<Duration>& into, Duration min);
  void read_size(std::string_view key, std::size_t& into);
  void read(std::string_view key, std::vector<TextAt>& into);
  void read(std::string_view key, std::vector<std::string>& into);
  /// Pairs of texts, in the order of their names.
  void read(std::string_view key, std::vector<std::pair<std::string, TextAt>>& into);
  /// A table of any content, as JSON.
  void read_json(std::string_view key, Json& into);

  std::optional<TableReader> find_table(std::string_view key);
  /// The tables below `key` by name: `[agents.NAME]`.
  std::vector<std::pair<std::string, TableReader>> named_tables(std::string_view key);

  void refuse(std::string_view key, std::string_view text) const;
  /// `remedy` completes "secrets come from the environment only: …".
  void finish(std::string_view remedy = "");

 private:
  const toml::node* find(std::string_view key);
  void expected(std::string_view key, std::string_view what, const toml::node& found) const;

  const toml::table* table_;
  std::string path_;
  ConfigProblems* problems_;
  std::vector<std::string> known_;
};

}  // namespace holdfast
