#include "app/config_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"
#include "core/validate.hpp"

namespace holdfast {
namespace {

bool is_secret_header(const std::string& name) {
  const std::string lower = lower_case(name);
  constexpr std::array kSecret = {"authorization", "proxy-authorization", "cookie"};
  return std::find(kSecret.begin(), kSecret.end(), lower) != kSecret.end() || names_a_secret(lower);
}

bool is_header(const std::string& name) { return is_name_of(name, "!#$%&'*+-.^_`|~"); }

}  // namespace

bool is_name_of(std::string_view text, std::string_view also) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || also.find(c) != also.npos;
  });
}

bool is_variable_name(std::string_view text) {
  return is_name_of(text.substr(0, 64), "_") && text.size() <= 128 && is_name_of(text, "_") &&
         std::isdigit(static_cast<unsigned char>(text.front())) == 0;
}

void check_word(const TableReader& table, std::string_view key, const std::string& word,
                const std::vector<std::string>& here, const std::vector<std::string>& later) {
  if (std::find(here.begin(), here.end(), word) != here.end()) return;
  if (std::find(later.begin(), later.end(), word) != later.end()) {
    table.refuse(key, fmt::format("\"{}\" is not part of this version; expected {}", word,
                                  fmt::join(here, " or ")));
    return;
  }
  const auto meant = did_you_mean(word, here);
  table.refuse(key,
               fmt::format("expected {}, found \"{}\"{}", fmt::join(here, " or "), cut(word, 60),
                           meant ? fmt::format("; did you mean \"{}\"?", *meant) : ""));
}

void read_command(TableReader& table, std::string_view key, std::vector<std::string>& into) {
  const bool given = table.has(key);
  table.read(key, into);
  if (given && (into.empty() || into.front().empty())) {
    table.refuse(key, "expected a list of the program and its arguments, such as [\"./tool.sh\"]");
  }
}

void check_schema(const TableReader& table, std::string_view key, const Json& schema) {
  if (!table.has(key) || !schema.is_object()) return;
  const auto problem = schema_problem(schema);
  if (!problem.empty()) table.refuse(key, fmt::format("not a usable JSON Schema: {}", problem));
}

void check_object_schema(const TableReader& table, std::string_view key, const Json& schema) {
  if (table.has(key) && schema.is_object() && schema.value("type", Json("object")) != "object") {
    return table.refuse(key, "must describe an object: set its type to \"object\"");
  }
  check_schema(table, key, schema);
}

void read_headers(TableReader& table, std::map<std::string, std::string>& into,
                  std::string_view remedy, ConfigProblems& problems) {
  std::vector<std::pair<std::string, TextAt>> headers;
  table.read("headers", headers);
  for (auto& [name, value] : headers) {
    const auto key = table.full_name("headers." + name);
    if (is_secret_header(name)) {
      problems.add(value.line, key,
                   fmt::format("secrets are not read from this file, only from the environment: {}",
                               remedy));
    } else if (!is_header(name)) {
      problems.add(value.line, key, "not a name of an HTTP header");
    } else if (value.text.find_first_of("\r\n") != value.text.npos ||
               value.text.find('\0') != value.text.npos) {
      problems.add(value.line, key, "a header's value is one line");
    } else {
      into[name] = value.text;
    }
  }
}

void read_secret_headers(TableReader& table, std::map<std::string, std::string>& header_env,
                         std::string& bearer_env, ConfigProblems& problems) {
  // Texts are not shown: they may be the secrets themselves.
  constexpr const char* kExpected =
      "expected the name of an environment variable (letters, digits and '_'), not the secret "
      "itself";
  std::vector<std::pair<std::string, TextAt>> headers;
  table.read("header_env", headers);
  for (auto& [name, variable] : headers) {
    const auto key = table.full_name("header_env." + name);
    if (!is_header(name)) {
      problems.add(variable.line, key, "not a name of an HTTP header");
    } else if (!is_variable_name(variable.text)) {
      problems.add(variable.line, key, kExpected);
    } else {
      header_env[name] = variable.text;
    }
  }
  table.read("bearer_env", bearer_env);
  if (!bearer_env.empty() && !is_variable_name(bearer_env)) {
    table.refuse("bearer_env", kExpected);
    bearer_env.clear();
  }
}

void read_environment(TableReader& table, std::map<std::string, std::string>& into,
                      std::vector<std::string>& pass_env, ConfigProblems& problems) {
  std::vector<std::pair<std::string, TextAt>> env;
  table.read("env", env);
  for (auto& [name, value] : env) {
    const auto key = table.full_name("env." + name);
    if (!is_variable_name(name)) {
      problems.add(value.line, key, "not a name of an environment variable");
    } else if (names_a_secret(name)) {
      problems.add(value.line, key,
                   fmt::format("secrets are not read from this file, only from the environment: "
                               "use pass_env = [\"{}\"]",
                               name));
    } else if (value.text.find('\0') != value.text.npos) {
      problems.add(value.line, key, "an environment variable cannot hold U+0000");
    } else {
      into[name] = value.text;
    }
  }
  std::vector<TextAt> pass;
  table.read("pass_env", pass);
  for (const auto& item : pass) {
    if (is_variable_name(item.text)) {
      pass_env.push_back(item.text);
    } else {
      problems.add(item.line, table.full_name("pass_env"),
                   "expected names of environment variables, without values");
    }
  }
}

}  // namespace holdfast
