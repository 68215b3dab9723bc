#include "core/excerpt.hpp"

#include <cctype>

#include "base/text.hpp"

namespace holdfast {
namespace {

constexpr std::string_view kRedacted = "[redacted]";

bool is_token_char(char c) {
  const auto u = static_cast<unsigned char>(c);
  return std::isalnum(u) != 0 || c == '-' || c == '_' || c == '.' || c == '*' || c == '+' ||
         c == '/' || c == '=' || c == '~';
}

/// Keys by how their makers mark them.
bool looks_like_key(std::string_view token) {
  for (std::string_view mark : {"sk-", "sk_", "pk-", "rk-", "gsk_", "xai-", "hf_", "ghp_", "AIza",
                                "AKIA", "ASIA", "eyJ", "ya29.", "glpat-", "nvapi-", "xoxb-"}) {
    if (token.starts_with(mark) && token.size() > mark.size() + 3) return true;
  }
  return false;
}

/// Words after which a secret stands.
bool announces_key(const std::string& word) {
  return word == "bearer" || word == "basic" || word == "authorization" || word == "x-api-key" ||
         word == "api-key" || word == "api_key" || word == "apikey" || word == "key=" ||
         word == "password" || word == "x-goog-api-key";
}

/// `api_key=abc` is one token: only what stands behind the sign is secret.
std::string redact_token(std::string_view token, bool announced) {
  const std::size_t sign = token.find('=');
  if (sign != std::string_view::npos && sign > 0 && sign + 1 < token.size()) {
    const std::string name = lower_case(token.substr(0, sign));
    if (announces_key(name) || name.ends_with("key") || name.ends_with("token") ||
        name.ends_with("secret")) {
      return std::string(token.substr(0, sign + 1)) + std::string(kRedacted);
    }
    if (looks_like_key(token.substr(sign + 1))) {
      return std::string(token.substr(0, sign + 1)) + std::string(kRedacted);
    }
  }
  // Words of a sentence follow "api key" too: a secret is long and has a digit or a mask in it.
  const bool is_secret_shaped =
      token.size() >= 8 && token.find_first_of("0123456789*") != std::string_view::npos;
  if (looks_like_key(token) || (announced && is_secret_shaped)) return std::string(kRedacted);
  return std::string(token);
}

std::string redact(std::string_view text) {
  std::string out;
  bool announced = false;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = at;
    while (end < text.size() && is_token_char(text[end])) ++end;
    if (end == at) {
      out += text[at++];
      continue;
    }
    const std::string_view token = text.substr(at, end - at);
    out += redact_token(token, announced);
    const std::string word = lower_case(token);
    // `Authorization: Bearer X`: the scheme keeps the announcement alive.
    announced = announces_key(word) || word == "key" || word == "token";
    at = end;
  }
  return out;
}

}  // namespace

std::string excerpt(std::string_view text, std::size_t limit) {
  // The whole of it, so that the note tells how much is missing.
  const std::string clean = clean_utf8(text);
  std::string line;
  for (char c : clean) {
    const auto u = static_cast<unsigned char>(c);
    const bool is_blank = u < 0x20 || u == 0x7F || c == ' ';
    if (!is_blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return cut(redact(line), limit);
}

}  // namespace holdfast
