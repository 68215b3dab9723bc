#include "core/failure_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"

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
    {"upstream", server_error},
    {"apierror", server_error},
    {"internal", server_error},
    {"modelerror", server_error},
    {"modelstreamerror", server_error},
    {"aborted", server_error},
    {"dataloss", server_error},
});

template <std::size_t N>
std::optional<FailureClass> find_rule(const std::array<WordRule, N>& rules,
                                      const std::string& word) {
  auto rule = std::find_if(rules.begin(), rules.end(), [&](const WordRule& r) {
    return word.find(r.part) != std::string::npos;
  });
  if (rule == rules.end()) return std::nullopt;
  return rule->cls;
}

}  // namespace

std::string squeeze(std::string_view word) {
  std::string out;
  for (char c : word.substr(0, 200)) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0) out += static_cast<char>(std::tolower(u));
  }
  return out;
}

std::optional<FailureClass> class_of_word(std::string_view word) {
  return find_rule(kWords, squeeze(word));
}

std::optional<FailureClass> class_of_vague_word(std::string_view word) {
  return find_rule(kVagueWords, squeeze(word));
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(), [&](std::string_view phrase) {
    return text.find(phrase) != std::string_view::npos;
  });
}

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

}  // namespace holdfast
