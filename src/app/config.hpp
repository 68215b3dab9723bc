#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "holdfast/runtime.hpp"

namespace holdfast {

/// Where the configuration may come from, in the order of precedence (spec, section 11).
struct ConfigSources {
  std::optional<std::string> config_option;  ///< --config
  std::optional<std::string> config_env;     ///< $HOLDFAST_CONFIG
  std::optional<std::string> store_option;   ///< --store
  std::optional<std::string> store_env;      ///< $HOLDFAST_STORE
};

struct Configuration {
  RuntimeOptions options;
  std::optional<std::string> file;  ///< none: there was no file, these are the defaults
};

/// The file's name in the working folder.
inline constexpr const char* kConfigFile = "holdfast.toml";

/// Finds, reads and checks the configuration. Throws RefusedError (usage) for a named file that is
/// missing and for every mistake in the file, with file, line, key and what is expected.
Configuration load_configuration(const ConfigSources&);

/// The same from a text. `folder` is where relative paths start; empty: the working folder.
RuntimeOptions parse_configuration(std::string_view text, const std::string& file_name,
                                   const std::string& folder);

}  // namespace holdfast
