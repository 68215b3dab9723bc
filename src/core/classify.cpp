#include "core/classify.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "core/error_body.hpp"
#include "core/excerpt.hpp"
#include "core/failure_words.hpp"

namespace holdfast {
namespace {

using enum FailureClass;

/// Behind these a text repeats what was asked: no words to judge by.
constexpr std::size_t kMaxJudgedBytes = 8192;
/// Of what broke on the way, in a message.
constexpr std::size_t kMaxKindBytes = 128;

struct StatusWord {
  FailureClass cls;
  std::string text;
};

std::optional<StatusWord> first_word(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (auto cls = class_of_word(word)) return StatusWord{*cls, word};
  }
  return std::nullopt;
}

std::optional<FailureClass> vague_class(const ErrorBody& body) {
  for (const auto* words : {&body.codes, &body.types, &body.endings}) {
    for (const std::string& word : *words) {
      if (auto cls = class_of_vague_word(word)) return cls;
    }
  }
  return std::nullopt;
}

std::optional<FailureClass> class_of_status(int status) {
  switch (status) {
    case 401:
    case 403:
    case 451:
      return auth;
    case 402:
      return quota_exhausted;
    case 404:
    case 405:
    case 407:
    case 410:
    case 501:
    // The address is another one; following it would carry the key there.
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return configuration;
    case 408:
    case 504:
    case 522:
    case 524:
      return timeout;
    case 409:
    case 425:
    case 499:
      return server_error;
    case 429:
      return rate_limit;
    case 503:
    case 529:
      return overloaded;
    default:
      break;
  }
  if (status >= 500 && status < 600) return server_error;
  if (status >= 300 && status < 500) return client_error;
  return std::nullopt;
}

std::optional<FailureClass> class_of_phase(TransportPhase phase) {
  switch (phase) {
    case TransportPhase::connect:
    case TransportPhase::tls:
    case TransportPhase::request:
    case TransportPhase::first_byte:
    case TransportPhase::body:
    case TransportPhase::stream:
      return connection;
    case TransportPhase::none:
    case TransportPhase::local:
    case TransportPhase::response:
    case TransportPhase::unknown:
      return std::nullopt;
  }
  return std::nullopt;
}

FailureClass class_of_transport(const std::string& kind, TransportPhase phase) {
  const std::string word = squeeze(kind);
  if (has_any(word, {"circuit"})) return circuit_open;
  if (has_any(word, {"proxy", "redirect", "scheme", "badurl", "protocol", "unknownprovider",
                     "unknownmodel", "certificate", "cert", "verify", "cafile", "cipher", "pinned",
                     "hostname", "interface", "missingkey"})) {
    return configuration;
  }
  if (has_any(word, {"timeout", "timedout", "interrupted", "deadline"})) return timeout;
  if (has_any(word, {"toolarge", "encoding"})) return server_error;
  if (has_any(word, {"dns",   "resolve", "host",    "refused", "reset",  "unreachable",
                     "empty", "partial", "http2",   "http3",   "quic",   "tls",
                     "ssl",   "cut",     "closed",  "eof",     "broken", "send",
                     "recv",  "connect", "network", "stream"})) {
    return connection;
  }
  return class_of_phase(phase).value_or(unknown);
}

struct Judgement {
  FailureClass cls = unknown;
  std::string word;  ///< the code or type that decided, if one did
};

Judgement decide_class(const Evidence& evidence, const ErrorBody& body) {
  const int status = evidence.status.value_or(0);
  const bool is_success = status >= 200 && status < 300;
  // A broken transfer of an error page is still that error; of an answer it is no answer.
  if (!evidence.transport_kind.empty() && status < 400) {
    return {class_of_transport(evidence.transport_kind, evidence.phase), {}};
  }
  // Statuses inside the body are the better ones where the outer one is a wrapper's.
  int effective = status;
  if (body.status && (status == 0 || is_success || status == 424 || status >= 500)) {
    effective = *body.status;
  }

  std::optional<StatusWord> word = first_word(body.codes);
  std::optional<StatusWord> type = first_word(body.types);
  // A rate word beside a word for money: it is the money.
  if (!word || (word->cls == rate_limit && type && type->cls == quota_exhausted)) {
    if (type) word = type;
  }
  if (!word) word = first_word(body.endings);
  if (word) {
    // One request above a minute's whole budget: only a shorter one can pass.
    if (status == 413 && word->cls == rate_limit) return {context_length, word->text};
    return {word->cls, word->text};
  }
  if (!body.is_html) {
    if (auto cls = class_of_text(body.text.substr(0, kMaxJudgedBytes), effective))
      return {*cls, {}};
  }
  if (auto cls = class_of_status(effective)) return {*cls, {}};
  if (is_success || effective == 0) {
    if (body.is_html) return {configuration, {}};
    if (auto cls = vague_class(body)) return {*cls, {}};
    // An error that names itself in words that nobody knows is not taken for a passing one.
    if (evidence.said_error && !(body.codes.empty() && body.types.empty())) return {unknown, {}};
    if (is_success) return {server_error, {}};
    if (auto cls = class_of_phase(evidence.phase)) return {*cls, {}};
  }
  return {unknown, {}};
}

std::string clean_code(std::string_view word) {
  std::string out;
  for (char c : word.substr(0, 64)) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0 || c == '_' || c == '-' || c == '.') out += c;
  }
  return out;
}

/// Whatever decided; else the first word that there is; else the status; else what broke.
std::string code_of(const Evidence& evidence, const ErrorBody& body, const Judgement& decision) {
  std::string code = clean_code(decision.word);
  for (const auto* words : {&body.codes, &body.types}) {
    if (code.empty() && !words->empty()) code = clean_code(words->front());
  }
  if (code.empty() && decision.cls == content_policy) code = "content_filter";
  if (code.empty() && !evidence.transport_kind.empty()) code = clean_code(evidence.transport_kind);
  if (code.empty() && evidence.status && !evidence.body_was_success) {
    code = "http_" + std::to_string(*evidence.status);
  }
  if (code.empty()) code = std::string(to_word(decision.cls));
  return code;
}

std::string message_of(const Evidence& evidence, const ErrorBody& body, const Failure& failure) {
  std::string out;
  if (!evidence.provider.empty()) {
    out += evidence.provider;
    if (!evidence.model.empty()) out += "/" + evidence.model;
    out += ": ";
  }
  if (!evidence.transport_kind.empty() && evidence.status.value_or(0) < 400) {
    std::string kind = evidence.transport_kind;
    std::replace(kind.begin(), kind.end(), '_', ' ');
    out += excerpt(kind, kMaxKindBytes);
    if (evidence.status) out += " after status " + std::to_string(*evidence.status);
  } else if (evidence.status) {
    out += "status " + std::to_string(*evidence.status);
    if (evidence.body_was_success) out += " without a usable answer";
  } else {
    out += "failed";
  }
  out += " (" + std::string(to_word(failure.cls));
  if (failure.code != to_word(failure.cls)) out += ", " + failure.code;
  out += ")";
  const std::string text = excerpt(body.text, evidence.excerpt_bytes);
  if (!text.empty()) out += ": " + text;
  return out;
}

}  // namespace

Failure classify(const Evidence& evidence) {
  std::string content_type;
  if (auto header = evidence.headers.find("content-type"); header != evidence.headers.end()) {
    content_type = lower_case(header->second);
  }
  ErrorBody body = read_error_body(evidence.body, content_type);
  if (auto header = evidence.headers.find("x-amzn-errortype"); header != evidence.headers.end()) {
    body.codes.insert(body.codes.begin(), header->second.substr(0, header->second.find(':')));
  }

  const Judgement decision = decide_class(evidence, body);
  Failure failure;
  failure.cls = decision.cls;
  failure.code = code_of(evidence, body, decision);
  failure.provider = evidence.provider;
  failure.model = evidence.model;
  failure.retry_after = delay_hint(evidence, &failure.delay_source);
  if (auto header = evidence.headers.find("x-should-retry"); header != evidence.headers.end()) {
    const std::string said = squeeze(header->second);
    if (said == "true") failure.should_retry = true;
    if (said == "false") failure.should_retry = false;
  }
  failure.message = message_of(evidence, body, failure);
  return failure;
}

bool falls_back(FailureClass cls) { return is_retryable(cls) || cls == quota_exhausted; }

}  // namespace holdfast
