#include "store/postgres/url.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>

#include "base/safe_text.hpp"
#include "base/text.hpp"
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

/// Why a name cannot be a schema's; empty where it can. It needs no quotes anywhere, and leaves
/// room for the names that are made of it.
std::string_view schema_fault(std::string_view name) {
  // Reserved in PostgreSQL where a name of a schema may stand.
  static constexpr std::string_view kReserved =
      " all analyse analyze and any array as asc asymmetric authorization binary both "
      "case cast check collate collation column concurrently constraint create cross "
      "current_catalog current_date current_role current_schema current_time "
      "current_timestamp current_user default deferrable desc distinct do else end except "
      "false fetch for foreign freeze from full grant group having ilike in initially "
      "inner intersect into is isnull join lateral leading left like limit localtime "
      "localtimestamp natural not notnull null offset on only or order outer overlaps "
      "placing primary references returning right select session_user similar some "
      "symmetric system_user table tablesample then to trailing true union unique user "
      "using variadic verbose when where window with ";
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (name.empty()) return "is empty";
  if (!std::ranges::all_of(name, is_plain)) return "is a name of small letters, digits and _";
  if (name.front() >= '0' && name.front() <= '9') return "begins with a letter or _";
  if (name.size() > 50) return "is a name of at most 50 characters";
  if (name.starts_with("pg_")) return "does not begin with pg_, which is PostgreSQL's own";
  if (name == "information_schema") return "is not information_schema, which is PostgreSQL's own";
  if (kReserved.find(fmt::format(" {} ", name)) != std::string_view::npos) {
    return "is none of SQL's reserved words";
  }
  return "";
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
    if (const auto fault = schema_fault(value); !fault.empty()) {
      refuse_url(fmt::format("the store's URL: `schema` {}", fault));
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

bool is_libpq_option(std::string_view key) {
  if (key == "ssl" || key == "requiressl") return true;
  const std::unique_ptr<PQconninfoOption, FreeOptions> options(PQconndefaults());
  for (const PQconninfoOption* option = options.get();
       option != nullptr && option->keyword != nullptr; ++option) {
    if (key == option->keyword) return true;
  }
  return false;
}

/// A name that is safe to be shown: no part of a password looks like one on purpose, and what is
/// long or has other characters is not repeated.
bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 32 &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

/// The URL without our own options.
std::string strip_options(const std::string& url, Target& target) {
  const auto question = url.find('?');
  if (question == std::string::npos) return url;
  std::string kept;
  std::string_view rest = std::string_view(url).substr(question + 1);
  std::set<std::string_view> seen;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('&'), rest.size());
    const auto part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (part.empty()) continue;
    const auto equals = part.find('=');
    const auto key = part.substr(0, equals);
    if (!is_word(key) || equals == std::string_view::npos) {
      refuse_url(
          fmt::format("the store's URL has something behind `?` that is no NAME=VALUE; {}", kForm));
    }
    if (!seen.insert(key).second) {
      refuse_url(fmt::format("the store's URL has `{}` twice", key));
    }
    if (take_option(part, target)) continue;
    if (!is_libpq_option(key)) {
      refuse_url(fmt::format(
          "the store's URL: there is no option `{}`; Holdfast's are schema, pooler and notify, the "
          "others are libpq's",
          key));
    }
    kept += kept.empty() ? "?" : "&";
    kept += part;
  }
  return url.substr(0, question) + kept;
}

/// An `@`, `/` or `?` of a password that is not written as %XX would make a host, a port or a
/// database of parts of it, which messages show.
void check_is_unambiguous(const std::string& url) {
  const std::string_view rest = std::string_view(url).substr(url.find("//") + 2);
  const auto at = rest.find('@');
  if (at == std::string_view::npos) return;
  if (at > rest.find_first_of("/?") || rest.find('@', at + 1) != std::string_view::npos) {
    refuse_url(
        fmt::format("the store's URL has an `@` too many, or a `/` or `?` before it; in user and "
                    "password they are written as %40, %2F and %3F; {}",
                    kForm));
  }
}

void check_ports(const Target& target) {
  for (const auto& [key, value] : target.settings) {
    if (key != "port") continue;
    for (std::string_view rest = value;;) {
      const auto port = rest.substr(0, rest.find(','));
      const bool is_number = port.size() <= 5 &&
                             std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
      if (!port.empty() && (!is_number || std::stoi(std::string(port)) < 1 ||
                            std::stoi(std::string(port)) > 65535)) {
        refuse_url(fmt::format("the store's URL: a port is a number from 1 to 65535; {}", kForm));
      }
      if (port.size() == rest.size()) break;
      rest.remove_prefix(port.size() + 1);
    }
  }
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
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
  const auto hosts = split(host);
  const auto ports = split(port);
  std::string text = "postgresql://";
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    // One port is that of all hosts.
    const std::string& own = ports[std::min(i, ports.size() - 1)];
    const bool is_v6 = hosts[i].find(':') != std::string::npos;
    text += (i == 0 ? "" : ",") + (is_v6 ? "[" + hosts[i] + "]" : hosts[i]);
    if (!own.empty()) text += ":" + own;
  }
  text += "/" + database;
  if (target.schema != "holdfast") text += "?schema=" + target.schema;
  return safe_line(text);  // %XX can be anything
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
  check_is_unambiguous(url);
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
  check_ports(target);
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
  // What is no URL may be a list of keywords, a password among them, in any form.
  const auto scheme = url.find(':');
  const bool is_scheme = scheme != std::string::npos && scheme > 0 && scheme <= 16 &&
                         std::ranges::all_of(std::string_view(url).substr(0, scheme), [](char c) {
                           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
                         });
  if (is_scheme) return url.substr(0, scheme) + ":…";
  const bool may_hide = url.find_first_of("=@:/ ") != std::string::npos;
  return may_hide || url.size() > 64 ? "…" : safe_line(url);
}

}  // namespace holdfast::postgres
