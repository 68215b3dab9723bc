#pragma once

#include <string>
#include <utility>
#include <vector>

namespace holdfast::postgres {

/// What the URL of a store says. The options that are Holdfast's own (`schema`, `pooler`, `notify`)
/// are taken out; everything else is libpq's.
struct Target {
  std::vector<std::pair<std::string, std::string>> settings;  ///< libpq's keywords and values
  std::string schema = "holdfast";
  bool has_pooler = false;  ///< a pooler that hands out sessions for single transactions only
  bool notifies = true;     ///< LISTEN and NOTIFY
  std::string shown;        ///< for messages: without password

  /// Sessions of its own can be held: for notifications and presence.
  bool has_sessions() const { return !has_pooler; }
};

bool is_postgres_url(const std::string& url);

/// Throws RefusedError (usage), in words that repeat no secret.
Target parse_target(const std::string& url);

/// What of a text that was to be the URL of a store can be shown: its scheme, or a plain word.
std::string redact_url(const std::string& url);

}  // namespace holdfast::postgres
