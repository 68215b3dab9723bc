#include "core/classify.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "core/error_body.hpp"
#include "core/excerpt.hpp"

namespace holdfast {
namespace {

using enum FailureClass;

struct WordRule {
  std::string_view part;  ///< lower case, letters and digits only
  FailureClass cls;
};

/// Codes and types, by what they contain; the first rule that fits counts. A new vendor's word for
/// a known thing belongs here and nowhere else.
constexpr std::array kWords = std::to_array<WordRule>({
    // Money and days. Traps first: budgets and quotas that refill by themselves.
    {"inflight", rate_limit},
    {"perminute", rate_limit},
    {"persecond", rate_limit},
    {"perhour", rate_limit},
    {"perday", quota_exhausted},
    {"daily", quota_exhausted},
    {"monthly", quota_exhausted},
    {"quota", quota_exhausted},
    {"billing", quota_exhausted},
    {"budget", quota_exhausted},
    {"creditbalance", quota_exhausted},
    {"creditlimit", quota_exhausted},
    {"credits", quota_exhausted},
    {"insufficientcredit", quota_exhausted},
    {"insufficientbalance", quota_exhausted},
    {"insufficientfund", quota_exhausted},
    {"outofcredit", quota_exhausted},
    {"payment", quota_exhausted},
    {"prepa", quota_exhausted},
    {"spend", quota_exhausted},
    {"usagelimit", quota_exhausted},
    {"keylimit", quota_exhausted},
    // What may not be said.
    {"contentfilter", content_policy},
    {"contentpolicy", content_policy},
    {"contentmoderation", content_policy},
    {"responsibleai", content_policy},
    {"policyviolation", content_policy},
    {"moderation", content_policy},
    {"safety", content_policy},
    {"flagged", content_policy},
    {"guardrail", content_policy},
    {"invalidprompt", content_policy},
    {"prohibited", content_policy},
    {"refusal", content_policy},
    {"blocklist", content_policy},
    {"recitation", content_policy},
    {"jailbreak", content_policy},
    // Too long for the model.
    {"contextlength", context_length},
    {"contextwindow", context_length},
    {"contextsize", context_length},
    {"contextlimit", context_length},
    {"maximumcontext", context_length},
    {"prompttoolong", context_length},
    {"inputtoolong", context_length},
    {"tokenslimitreached", context_length},
    // The answer that the model could not form: sample again.
    {"toolusefailed", server_error},
    {"malformedfunctioncall", server_error},
    {"malformedresponse", server_error},
    // Who we are, and what we may.
    {"apikey", auth},
    {"authentication", auth},
    {"unauthenticated", auth},
    {"unauthorized", auth},
    {"notauthorized", auth},
    {"permission", auth},
    {"accessdenied", auth},
    {"forbidden", auth},
    {"credential", auth},
    {"expiredtoken", auth},
    {"tokenexpired", auth},
    {"invalidtoken", auth},
    {"unrecognizedclient", auth},
    {"organization", auth},
    {"invalidproject", auth},
    {"unsupportedcountry", auth},
    {"countrynotsupported", auth},
    {"regionnotsupported", auth},
    {"deactivated", auth},
    {"suspended", auth},
    {"accessterminated", auth},
    // Wait, somebody is busy.
    {"overload", overloaded},
    {"capacity", overloaded},
    {"modelnotready", overloaded},
    {"unavailable", overloaded},
    {"busy", overloaded},
    {"loadingmodel", overloaded},
    {"ratelimit", rate_limit},
    {"ratelimited", rate_limit},
    {"toomanyrequests", rate_limit},
    {"throttl", rate_limit},
    {"slowdown", rate_limit},
    {"requestlimit", rate_limit},
    {"concurren", rate_limit},
    {"timeout", timeout},
    {"timedout", timeout},
    {"deadlineexceeded", timeout},
    // How we are set up.
    {"notfound", configuration},
    {"invalidmodel", configuration},
    {"unknownmodel", configuration},
    {"deprecated", configuration},
    {"retired", configuration},
    {"unsupported", configuration},
    {"notsupported", configuration},
    {"servicedisabled", configuration},
    {"invalidsignature", configuration},
    {"signaturedoesnotmatch", configuration},
    {"residency", configuration},
    {"apiversion", configuration},
    {"unknownurl", configuration},
    {"invalidurl", configuration},
    {"unknownprovider", configuration},
    {"methodnotallowed", configuration},
    {"notimplemented", configuration},
    {"unimplemented", configuration},
});

/// Words that vendors use for many things: they count only where text and status say nothing.
constexpr std::array kVagueWords = std::to_array<WordRule>({
    {"resourceexhausted", rate_limit},
    {"invalid", client_error},
    {"badrequest", client_error},
    {"validation", client_error},
    {"failedprecondition", client_error},
    {"outofrange", client_error},
    {"server", server_error},
    {"apierror", server_error},
    {"internal", server_error},
    {"modelerror", server_error},
    {"modelstreamerror", server_error},
    {"aborted", server_error},
    {"dataloss", server_error},
    {"error", server_error},
});

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// `DeploymentNotFound`, `deployment_not_found` and `deployment-not-found` are one word.
std::string squeeze(std::string_view word) {
  std::string out;
  for (char c : word.substr(0, 200)) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0) out += static_cast<char>(std::tolower(u));
  }
  return out;
}

template <std::size_t N>
std::optional<FailureClass> find_rule(const std::array<WordRule, N>& rules,
                                      const std::string& word) {
  auto rule = std::find_if(rules.begin(), rules.end(), [&](const WordRule& r) {
    return word.find(r.part) != std::string::npos;
  });
  if (rule == rules.end()) return std::nullopt;
  return rule->cls;
}

/// What a word says for certain. `invalid_api_key` names its subject; a bare `invalid_value` or
/// `invalid_request_error` does not.
std::optional<FailureClass> class_of_word(std::string_view word) {
  return find_rule(kWords, squeeze(word));
}

struct Word {
  FailureClass cls;
  std::string text;
};

std::optional<Word> first_word(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (auto cls = class_of_word(word)) return Word{*cls, word};
  }
  return std::nullopt;
}

std::optional<FailureClass> vague_class(const ErrorBody& body) {
  for (const auto* words : {&body.codes, &body.types, &body.endings}) {
    for (const std::string& word : *words) {
      if (auto cls = find_rule(kVagueWords, squeeze(word))) return cls;
    }
  }
  return std::nullopt;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(), [&](std::string_view phrase) {
    return text.find(phrase) != std::string_view::npos;
  });
}

/// Sentences, where no code speaks. Phrases, never lone numbers or words: a message may echo the
/// prompt. `status` is 0 where none is known.
std::optional<FailureClass> class_of_text(const std::string& message, int status) {
  const std::string text = lower_case(message);
  const bool is_5xx = status >= 500;
  const bool is_open = status == 0 || (status >= 200 && status < 300);
  if (has_any(text, {"credit balance",
                     "insufficient balance",
                     "insufficient credit",
                     "insufficient funds",
                     "out of credits",
                     "prepaid credit",
                     "prepayment credit",
                     "credits are depleted",
                     "credits are used up",
                     "spend limit",
                     "spending limit",
                     "spend cap",
                     "usage limits",
                     "monthly cap",
                     "billing limit",
                     "billing details",
                     "exceeded your current quota",
                     "daily quota",
                     "quota for the day",
                     "daily limit",
                     "requests per day",
                     "tokens per day",
                     "budget has been exceeded",
                     "budget exceeded",
                     "payment required"})) {
    return quota_exhausted;
  }
  if (status == 429) {
    return has_any(text, {"overloaded", "at capacity", "no capacity"}) ? std::optional(overloaded)
                                                                       : std::nullopt;
  }
  const bool may_be_content =
      is_open || status == 400 || status == 413 || status == 422 || status == 500;
  if (may_be_content &&
      has_any(text, {"maximum context", "context window", "context limit", "context size",
                     "exceeds the context", "exceed context", "exceeds context",
                     "exceeds the available context", "prompt is too long", "input is too long",
                     "input length exceeds", "too many input tokens", "input token count exceeds",
                     "reduce the length of the"})) {
    return context_length;
  }
  if (may_be_content && text.find("context length") != std::string::npos &&
      has_any(text, {"exceed", "maximum", "limit", "too long", "longer"})) {
    return context_length;
  }
  if ((may_be_content || status == 403) &&
      has_any(text, {"content filter", "content management policy", "content policy",
                     "usage policy", "usage policies", "safety system", "was flagged", "flagged as",
                     "blocked by content", "needs moderation"})) {
    return content_policy;
  }
  if ((is_open || status == 400) &&
      has_any(text,
              {"api key not valid", "invalid api key", "incorrect api key", "invalid x-api-key",
               "location is not supported", "country, region, or territory not supported"})) {
    return auth;
  }
  const bool names_model = text.find("model") != std::string::npos;
  if ((is_open || status == 400 || status == 422) &&
      (has_any(text, {"api-version", "api version", "inference profile", "unknown model",
                      "no such model", "unsupported parameter"}) ||
       (names_model && has_any(text, {"is not a valid model", "not found", "does not exist"})))) {
    return configuration;
  }
  if (is_5xx || is_open || status == 403) {
    if (has_any(text, {"too many requests", "rate limit", "rate-limit", "rate limited"})) {
      return rate_limit;
    }
  }
  if (is_5xx || is_open) {
    if (has_any(text, {"overloaded", "at capacity", "no free capacity", "server busy"})) {
      return overloaded;
    }
  }
  if (is_open && has_any(text, {"timed out", "time out", "timeout"})) return timeout;
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
      return configuration;
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      // The address is another one; following it would carry the key there.
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

struct Decision {
  FailureClass cls = unknown;
  std::string word;  ///< the code or type that decided, if one did
};

Decision decide_class(const Evidence& evidence, const ErrorBody& body) {
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

  std::optional<Word> word = first_word(body.codes);
  std::optional<Word> type = first_word(body.types);
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
    if (auto cls = class_of_text(body.text, effective)) return {*cls, {}};
  }
  if (auto cls = class_of_status(effective)) return {*cls, {}};
  if (is_success || effective == 0) {
    if (body.is_html) return {configuration, {}};
    if (auto cls = vague_class(body)) return {*cls, {}};
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
std::string code_of(const Evidence& evidence, const ErrorBody& body, const Decision& decision) {
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
    out += kind;
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

  const Decision decision = decide_class(evidence, body);
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
