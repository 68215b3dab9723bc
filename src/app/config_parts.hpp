#pragma once

// Pieces that several sections of the file are read with.

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/toml_reader.hpp"
#include "holdfast/words.hpp"

namespace holdfast {

inline constexpr Duration kShortest = std::chrono::milliseconds(1);

/// At most 64 letters, digits and characters of `also`.
bool is_name_of(std::string_view text, std::string_view also);
bool is_variable_name(std::string_view text);

/// `word` is one of `here`, or one that the specification has and this version has not.
void check_word(const TableReader&, std::string_view key, const std::string& word,
                const std::vector<std::string>& here, const std::vector<std::string>& later);

/// A word of one of the enumerations.
template <class E>
void read_word(TableReader& table, std::string_view key, E& into,
               std::initializer_list<E> choices) {
  std::string word(to_word(into));
  table.read(key, word);
  std::vector<std::string> words;
  words.reserve(choices.size());
  for (const E choice : choices) words.emplace_back(to_word(choice));
  if (const auto value = parse_word<E>(word)) {
    into = *value;
  } else {
    check_word(table, key, word, words, {});
  }
}

/// A list that names a program: at least one text, the first not empty.
void read_command(TableReader&, std::string_view key, std::vector<std::string>& into);
void check_schema(const TableReader&, std::string_view key, const Json& schema);
/// The same of what arguments or values have to meet.
void check_object_schema(const TableReader&, std::string_view key, const Json& schema);

/// Headers that hold no secrets; `remedy` says where those belong.
void read_headers(TableReader&, std::map<std::string, std::string>& into, std::string_view remedy,
                  ConfigProblems&);
/// `header_env` and `bearer_env`.
void read_secret_headers(TableReader&, std::map<std::string, std::string>& header_env,
                         std::string& bearer_env, ConfigProblems&);
/// `env` and `pass_env`.
void read_environment(TableReader&, std::map<std::string, std::string>& env,
                      std::vector<std::string>& pass_env, ConfigProblems&);

}  // namespace holdfast
