#include "provider/judge.hpp"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "core/excerpt.hpp"

namespace holdfast {

std::string key_problem(const ProviderSpec& spec) {
  if (spec.api_key_env.empty()) return {};
  const char* value = std::getenv(spec.api_key_env.c_str());
  const std::string_view key = value != nullptr ? value : "";
  const std::string variable = "the environment variable " + spec.api_key_env;
  if (key.empty()) {
    return variable + " is not set; set it to the provider's key, or remove api_key_env";
  }
  if (key.find_first_of("\r\n") != key.npos) {
    return variable + " holds a line break, which no header can; set it to the key alone";
  }
  return {};
}

Failure Judge::missing_key(const std::string& problem) const {
  Failure failure;
  failure.cls = FailureClass::configuration;
  failure.code = "missing_key";
  failure.provider = spec_.name;
  failure.model = model_;
  failure.message = spec_.name + ": " + problem;
  return failure;
}

Failure Judge::of_response(const HttpResponse& response) const {
  Evidence evidence = evidence_of(response, response.body);
  if (response.status != 0) evidence.status = response.status;
  evidence.transport_kind = response.transport_kind;
  evidence.phase = response.phase;
  // The half of an answer is not a text about a failure.
  if (response.status < 400 && !response.transport_kind.empty()) evidence.body.clear();
  Failure verdict = classify(evidence);
  if (!response.transport_text.empty()) {
    verdict.message += ": " + excerpt(response.transport_text, evidence.excerpt_bytes);
  }
  return clean(std::move(verdict));
}

Failure Judge::of_error(const HttpResponse& response, std::string body, bool is_json) const {
  Evidence evidence = evidence_of(response, std::move(body));
  if (is_json) {
    evidence.status = 200;
    evidence.body_was_success = true;
    evidence.said_error = true;
  }
  return clean(classify(evidence));
}

Failure Judge::of_cut_stream(const HttpResponse& response) const {
  Evidence evidence = evidence_of(response, {});
  evidence.status = response.status;
  evidence.transport_kind = "stream_cut";
  evidence.phase = TransportPhase::stream;
  return clean(classify(evidence));
}

Failure Judge::of_malformed(const HttpResponse& response, const std::string& shape,
                            const std::string& body) const {
  const Evidence evidence = success_evidence(response, body);
  Failure verdict = classify(evidence);
  if (verdict.cls == FailureClass::server_error && !shape.empty()) {
    verdict.code = "malformed_response";
    verdict.message = spec_.name + "/" + model_ + ": status " + std::to_string(response.status) +
                      " without a usable answer (malformed response): " + shape;
    const std::string shown = excerpt(evidence.body, 120);
    if (!shown.empty()) verdict.message += "; received: " + shown;
  }
  return clean(std::move(verdict));
}

Failure Judge::of_success(const HttpResponse& response, std::string body) const {
  return clean(classify(success_evidence(response, std::move(body))));
}

Evidence Judge::evidence_of(const HttpResponse& response, std::string body) const {
  Evidence evidence;
  evidence.headers = response.headers;
  evidence.body = std::move(body);
  evidence.provider = spec_.name;
  evidence.model = model_;
  evidence.excerpt_bytes = limits_.error_bytes;
  return evidence;
}

Evidence Judge::success_evidence(const HttpResponse& response, std::string body) const {
  Evidence evidence = evidence_of(response, std::move(body));
  evidence.status = response.status;
  evidence.body_was_success = true;
  return evidence;
}

/// Whatever a server repeats of our keys stays here.
Failure Judge::clean(Failure verdict) const {
  verdict.code = secrets_.redact_text(std::move(verdict.code));
  verdict.message = secrets_.redact_text(std::move(verdict.message));
  verdict.message = cut(verdict.message, limits_.error_bytes);
  return verdict;
}

}  // namespace holdfast
