#include "net/secrets.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <set>
#include <utility>

#include "base/text.hpp"

namespace holdfast {
namespace {

constexpr std::string_view kMask = "[redacted]";
constexpr std::size_t kWholeKey = 8;
constexpr std::size_t kShortestKey = 4;  ///< what is shorter is no secret, and in every text

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

bool is_base64_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/' || c == '-' ||
         c == '_' || c == '=';
}

std::string escaped(const std::string& text) {
  const std::string quoted = dump_json(text);
  return quoted.substr(1, quoted.size() - 2);
}

/// Some servers escape slashes too.
std::string with_escaped_slashes(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '/') out += '\\';
    out += c;
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    unsigned group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group <<= 8U;
      if (at + i < bytes.size()) group |= static_cast<unsigned char>(bytes[at + i]);
    }
    for (int shift = 18; shift >= 0; shift -= 6) out += kDigits[(group >> shift) & 63U];
  }
  return out;
}

/// What base64 shows of a key behind `before` other bytes, without the characters at both ends
/// that depend on its neighbours.
std::string base64_core(const std::string& key, std::size_t before) {
  const std::size_t lead = before % 3;
  const std::string text = base64(std::string(lead, ' ') + key);
  const std::size_t first = lead == 0 ? 0 : lead + 1;
  const std::size_t last = (lead + key.size()) * 8 / 6;
  return text.substr(first, last - first);
}

void replace_at(std::string& text, std::size_t& at, std::size_t size) {
  text.replace(at, size, kMask);
  at += kMask.size();
}

void replace_all(std::string& text, const std::string& what) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at)) {
    replace_at(text, at, what.size());
  }
}

void replace_words(std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at)) {
    const std::size_t end = at + word.size();
    const bool is_whole = (at == 0 || !is_word_char(text[at - 1])) &&
                          (end == text.size() || !is_word_char(text[end]));
    if (is_whole) {
      replace_at(text, at, word.size());
    } else {
      ++at;
    }
  }
}

/// The whole run of base64: its ends hold parts of the key too.
void replace_base64(std::string& text, const std::string& core) {
  for (std::size_t at = text.find(core); at != text.npos; at = text.find(core, at)) {
    std::size_t end = at + core.size();
    while (at > 0 && is_base64_char(text[at - 1])) --at;
    while (end < text.size() && is_base64_char(text[end])) ++end;
    replace_at(text, at, end - at);
  }
}

void redact_value(const Secrets& secrets, Json& value) {
  if (value.is_string()) {
    value = secrets.redact_text(value.get<std::string>());
  } else if (value.is_array()) {
    for (Json& item : value) redact_value(secrets, item);
  } else if (value.is_object()) {
    Json clean = Json::object();
    for (auto& [name, item] : value.items()) {
      redact_value(secrets, item);
      clean[secrets.redact_text(name)] = std::move(item);
    }
    value = std::move(clean);
  }
}

}  // namespace

Secrets::Secrets(const std::vector<std::string>& names) {
  std::set<std::string> forms;
  for (const std::string& name : names) {
    const char* value = std::getenv(name.c_str());
    const std::string key = value != nullptr ? value : "";
    if (key.size() >= kWholeKey) {
      for (const std::string& form : {key, escaped(key), escaped(escaped(key))}) {
        forms.insert({form, with_escaped_slashes(form), escaped(with_escaped_slashes(form))});
      }
      for (std::size_t before = 0; before < 3; ++before) {
        base64_.push_back(base64_core(key, before));
      }
    } else if (key.size() >= kShortestKey) {
      words_.push_back(key);
    }
  }
  forms_.assign(forms.begin(), forms.end());
  std::ranges::stable_sort(forms_, std::greater<>(), &std::string::size);
}

std::string Secrets::redact_body(std::string body) const {
  for (const std::string& form : forms_) replace_all(body, form);
  for (const std::string& core : base64_) replace_base64(body, core);
  return body;
}

std::string Secrets::redact_text(std::string text) const {
  text = redact_body(std::move(text));
  for (const std::string& word : words_) replace_words(text, word);
  return text;
}

void Secrets::redact(ModelReply& reply) const {
  if (forms_.empty() && words_.empty()) return;
  reply.text = redact_text(std::move(reply.text));
  reply.finish = redact_text(std::move(reply.finish));
  redact_value(*this, reply.opaque);
  for (ToolCall& call : reply.calls) {
    call.name = redact_text(std::move(call.name));
    redact_value(*this, call.arguments);
    if (call.bad_arguments) call.bad_arguments = redact_text(std::move(*call.bad_arguments));
  }
}

}  // namespace holdfast
