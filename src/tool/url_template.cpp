#include "tool/url_template.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/guard.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

bool is_plain_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_argument_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return is_plain_letter(c) || c == '_' || c == '-' || c == '.';
  });
}

/// Where the path, or what stands in its place, begins.
std::size_t authority_end(const std::string& url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string::npos) return std::string::npos;
  return std::min(url.find_first_of("/?#", scheme + 3), url.size());
}

/// A literal text or the name of an argument.
struct Piece {
  std::string text;
  bool is_argument = false;
  bool in_query = false;
};

/// Nothing where a brace has no partner, or what it holds is no name.
std::optional<std::vector<Piece>> pieces_of(const std::string& text) {
  std::vector<Piece> pieces;
  bool in_query = false;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '}') return std::nullopt;
    if (text[at] == '{') {
      const std::size_t end = text.find('}', at);
      if (end == std::string::npos) return std::nullopt;
      Piece piece{text.substr(at + 1, end - at - 1), true, in_query};
      if (!is_argument_name(piece.text)) return std::nullopt;
      pieces.push_back(std::move(piece));
      at = end + 1;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of("{}", at), text.size());
    Piece piece{text.substr(at, end - at), false, in_query};
    in_query = in_query || piece.text.find('?') != std::string::npos;
    pieces.push_back(std::move(piece));
    at = end;
  }
  return pieces;
}

bool is_dots(std::string_view segment) { return segment == "." || segment == ".."; }

/// Does a server that decodes the text before it looks at the path see another folder, or none?
bool leaves_its_segment(std::string_view value) {
  if (value.empty()) return true;
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find_first_of("/\\", at), value.size());
    if (is_dots(value.substr(at, end - at))) return true;
    at = end + 1;
  }
  return std::any_of(value.begin(), value.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool has_dot_segment(std::string_view path) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    std::string segment(path.substr(at, end - at));
    for (std::size_t dot = segment.find("%2"); dot != segment.npos; dot = segment.find("%2", dot)) {
      if (lower_case(segment.substr(dot, 3)) != "%2e") {
        dot += 2;
        continue;
      }
      segment.replace(dot, 3, ".");
    }
    if (is_dots(segment)) return true;
    at = end + 1;
  }
  return false;
}

std::string path_of(const std::string& url) {
  const std::size_t begin = authority_end(url);
  return url.substr(begin, url.find('?', begin) - begin);
}

bool is_required(const Json& parameters, const std::string& name) {
  const Json* required = find_member(parameters, "required");
  if (required != nullptr && required->is_array() &&
      std::find(required->begin(), required->end(), name) != required->end()) {
    return true;
  }
  const Json* properties = find_member(parameters, "properties");
  const Json* own = properties == nullptr ? nullptr : find_member(*properties, name.c_str());
  return own != nullptr && own->is_object() && own->contains("default");
}

}  // namespace

std::string origin_of(const std::string& url) {
  const std::string lower = lower_case(url.substr(0, authority_end(url)));
  const bool is_secure = lower.starts_with("https://");
  if (!is_secure && !lower.starts_with("http://")) return {};
  const std::string authority = lower.substr(is_secure ? 8 : 7);
  const bool is_whole = !authority.empty() && authority.front() != ':' &&
                        std::all_of(authority.begin(), authority.end(), [](char c) {
                          return is_plain_letter(c) || c == '.' || c == '-' || c == '_' ||
                                 c == ':' || c == '[' || c == ']';
                        });
  return is_whole ? lower : std::string();
}

bool is_host_listed(const std::string& url, const std::vector<std::string>& hosts) {
  if (hosts.empty()) return true;
  const std::string origin = origin_of(url);
  if (origin.empty()) return false;
  const std::string with_port = origin.substr(origin.find("://") + 3);
  std::string host = with_port;
  const std::size_t colon = host.rfind(':');
  if (colon != host.npos && host.find(']', colon) == host.npos) host.erase(colon);
  return std::any_of(hosts.begin(), hosts.end(), [&](const std::string& entry) {
    const std::string lower = lower_case(entry);
    if (lower.starts_with("*."))
      return host.size() > lower.size() - 1 && host.ends_with(lower.substr(1));
    return lower == host || lower == with_port;
  });
}

std::string host_entry_problem(const std::string& entry) {
  const std::string host = entry.starts_with("*.") ? entry.substr(2) : entry;
  if (!host.empty() && !origin_of("http://" + host).empty() && host.find('/') == host.npos) {
    return {};
  }
  return "expected hosts such as \"api.example.com\", \"127.0.0.1:8080\" or \"*.example.org\"";
}

std::string url_template_problem(const std::string& text, const Json& parameters) {
  if (text.empty())
    return "missing; expected an address such as \"https://api.example.com/t/{id}\"";
  const bool has_odd = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f ||
           c == '\\' || c == '#';
  });
  if (has_odd) return "holds a blank, a backslash, a # or a letter beyond ASCII; percent-encode it";
  if (text.substr(0, authority_end(text)).find_first_of("{}") != text.npos) {
    return "scheme, host and port are fixed: no argument can stand in them";
  }
  if (text.find('@') < authority_end(text)) {
    return "holds a user or password; secrets come from the environment only: use bearer_env or "
           "header_env";
  }
  if (origin_of(text).empty()) {
    return "expected an address with a host that begins with http:// or https://";
  }
  const auto pieces = pieces_of(text);
  if (!pieces) return "each { needs its }, and a name of an argument in between";
  if (has_dot_segment(path_of(text))) return "its path must not hold . or .. as a segment";
  for (const Piece& piece : *pieces) {
    if (piece.is_argument && !is_required(parameters, piece.text)) {
      return fmt::format(
          "{{{}}} needs an argument of that name: list it in parameters.required, "
          "or give it a default",
          piece.text);
    }
  }
  return {};
}

FilledUrl fill_url(const std::string& text, const Json& arguments) {
  FilledUrl filled;
  const auto refuse = [&](std::string problem) {
    filled.problem = std::move(problem) + "; nothing was sent";
    return filled;
  };
  const auto pieces = pieces_of(text);
  if (!pieces) return refuse("the tool's address cannot be read");
  for (const Piece& piece : *pieces) {
    if (!piece.is_argument) {
      filled.url += piece.text;
      continue;
    }
    const Json* value = find_member(arguments, piece.text.c_str());
    const auto plain = value == nullptr ? std::nullopt : plain_text(*value);
    if (!plain) {
      return refuse(
          fmt::format("the argument '{}' must be a text, a number, true or false", piece.text));
    }
    if (!HOLDFAST_GUARD("url_argument_stays", piece.in_query || !leaves_its_segment(*plain))) {
      return refuse(
          fmt::format("the argument '{}' must be a name without '.' or '..' as a part of "
                      "a path, without control characters, and not empty",
                      piece.text));
    }
    filled.url += percent_encoded(*plain);
    filled.used.push_back(piece.text);
  }
  // Two arguments side by side can make dots, too.
  if (has_dot_segment(path_of(filled.url))) return refuse("the arguments make no path of the tool");
  return filled;
}

std::string percent_encoded(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_plain_letter(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

std::optional<std::string> plain_text(const Json& value) {
  if (value.is_string()) return clean_utf8(value.get<std::string>());
  if (value.is_number() || value.is_boolean()) return dump_json(value);
  return std::nullopt;
}

}  // namespace holdfast
