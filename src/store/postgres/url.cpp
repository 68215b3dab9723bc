#include "store/postgres/url.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "holdfast/runtime.hpp"

namespace holdfast::postgres {
namespace {

constexpr std::string_view kForm =
    "write it as postgresql://USER@HOST:PORT/DATABASE, with the password in $PGPASSWORD or a "
    "password file, and special characters as %XX";

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

[[noreturn]] void refuse_url(const std::string& what) { throw RefusedError(Refusal::usage, what); }

/// Names that need no quotes anywhere.
bool is_schema_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 50 && std::ranges::all_of(name, is_plain) &&
         !(name.front() >= '0' && name.front() <= '9') && !name.starts_with("pg_");
}

bool is_on(std::string_view key, std::string_view value) {
  if (value == "on" || value == "true" || value == "1") return true;
  if (value == "off" || value == "false" || value == "0") return false;
  refuse_url(fmt::format("the store's URL: `{}` is `on` or `off`", key));
}

/// Takes the option where it is one of ours.
bool take_option(std::string_view part, Target& target) {
  const auto equals = part.find('=');
  const auto key = part.substr(0, equals);
  const auto value =
      equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
  if (key == "schema") {
    if (!is_schema_name(value)) {
      refuse_url("the store's URL: `schema` is a name of small letters, digits and _");
    }
    target.schema = std::string(value);
  } else if (key == "pooler") {
    if (value != "transaction" && value != "none") {
      refuse_url("the store's URL: `pooler` is `transaction` or `none`");
    }
    target.has_pooler = value == "transaction";
  } else if (key == "notify") {
    target.notifies = is_on(key, value);
  } else {
    return false;
  }
  return true;
}

/// The URL without our own options.
std::string strip_options(const std::string& url, Target& target) {
  const auto question = url.find('?');
  if (question == std::string::npos) return url;
  std::string kept;
  std::string_view rest = std::string_view(url).substr(question + 1);
  while (!rest.empty()) {
    const auto end = std::min(rest.find('&'), rest.size());
    const auto part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (part.empty() || take_option(part, target)) continue;
    kept += kept.empty() ? "?" : "&";
    kept += part;
  }
  return url.substr(0, question) + kept;
}

std::string show(const Target& target) {
  std::string host;
  std::string port;
  std::string database;
  for (const auto& [key, value] : target.settings) {
    if (key == "host" || (key == "hostaddr" && host.empty())) host = value;
    if (key == "port") port = value;
    if (key == "dbname") database = value;
  }
  std::string text = "postgresql://" + host;
  if (!port.empty()) text += ":" + port;
  text += "/" + database;
  if (target.schema != "holdfast") text += "?schema=" + target.schema;
  return text;
}

}  // namespace

bool is_postgres_url(const std::string& url) {
  return url.starts_with("postgresql:") || url.starts_with("postgres:");
}

Target parse_target(const std::string& url) {
  if (!url.starts_with("postgresql://") && !url.starts_with("postgres://")) {
    refuse_url(fmt::format("the store's URL lacks `//` behind `postgresql:`; {}", kForm));
  }
  if (url.find('\0') != std::string::npos) refuse_url("the store's URL has a byte 0 in it");
  Target target;
  const std::string rest = strip_options(url, target);
  char* problem = nullptr;
  const std::unique_ptr<PQconninfoOption, FreeOptions> options(
      PQconninfoParse(rest.c_str(), &problem));
  // What libpq says of it may repeat any part of it.
  PQfreemem(problem);
  if (!options) refuse_url(fmt::format("the store's URL cannot be read; {}", kForm));
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr) target.settings.emplace_back(option->keyword, option->val);
  }
  const auto prefer = [&](const char* key, const char* value) {
    const auto it =
        std::ranges::find(target.settings, key, &std::pair<std::string, std::string>::first);
    if (it == target.settings.end()) target.settings.emplace_back(key, value);
  };
  prefer("target_session_attrs", "read-write");
  prefer("connect_timeout", "5");
  prefer("keepalives_idle", "5");
  prefer("keepalives_interval", "2");
  prefer("keepalives_count", "3");
  prefer("tcp_user_timeout", "10000");
  prefer("client_encoding", "UTF8");
  prefer("fallback_application_name", "holdfast");
  target.shown = show(target);
  return target;
}

std::string redact_url(const std::string& url) {
  std::string text = url;
  const auto query = text.find('?');
  const auto scheme = text.find("//");
  const auto begin = scheme == std::string::npos ? 0 : scheme + 2;
  if (const auto at = text.rfind('@'); at != std::string::npos && at > begin) {
    const auto colon = text.find(':', begin);
    if (colon < at) text.replace(colon, at - colon, ":***");
  }
  if (query != std::string::npos) text.resize(text.find('?'));
  return text;
}

}  // namespace holdfast::postgres
