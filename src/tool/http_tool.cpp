#include "tool/http_tool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/excerpt.hpp"
#include "net/secrets.hpp"
#include "tool/outcome.hpp"
#include "tool/url_template.hpp"

namespace holdfast {
namespace {

/// Read beyond what a result can hold, so that no key is cut in two before it is found.
constexpr std::size_t kRoomForKeys = 64u << 10;

bool has_body(const std::string& method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

/// What the template did not use.
Json rest_of(const Json& arguments, const std::vector<std::string>& used) {
  Json rest = arguments;
  for (const std::string& name : used) rest.erase(name);
  return rest;
}

std::string with_query(std::string url, const Json& rest) {
  char sign = url.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [name, value] : rest.items()) {
    if (value.is_null()) continue;
    url += std::exchange(sign, '&') + percent_encoded(clean_utf8(name)) + "=" +
           percent_encoded(plain_text(value).value_or(dump_json(value)));
  }
  return url;
}

/// JSON where it is JSON, else text.
Json body_of(const HttpResponse& response, const Limits& limits) {
  const bool is_cut = response.transport_kind == "response_too_large";
  // How much there would have been, nobody waited to see.
  if (is_cut) return cut_result(response.body, 0, limits);
  if (auto value = parse_exact_json(response.body, limits.depth - 3)) {
    return limited_result(*std::move(value), limits);
  }
  return limited_result(clean_utf8(response.body), limits);
}

ToolOutcome error_outcome(const HttpResponse& response, const std::string& what,
                          const Limits& limits) {
  Json result = {{"error", what}};
  if (response.status != 0) result["status"] = response.status;
  if (!response.body.empty()) {
    Limits left = limits;
    left.result_bytes -= std::min(left.result_bytes, dump_json(result).size() + 32);
    result["body"] = body_of(response, left);
  }
  return {std::move(result), true};
}

/// A write whose answer was lost on the way.
Failure lost_answer(const std::string& tool, std::string code, const std::string& what) {
  Failure failure;
  failure.cls = FailureClass::timeout;
  failure.code = std::move(code);
  failure.message =
      fmt::format("tool '{}' {}; whether its effect happened is not known", tool, what);
  failure.outcome_unknown = true;
  failure.may_still_run = true;
  return failure;
}

[[noreturn]] void throw_unsent(const std::string& tool, const HttpResponse& response) {
  Evidence evidence;
  evidence.transport_kind = response.transport_kind;
  evidence.phase = response.phase;
  Failure failure = classify(evidence);
  failure.message = fmt::format(
      "tool '{}': nothing was sent: {}{}", tool, failure.message,
      response.transport_text.empty() ? "" : ": " + excerpt(response.transport_text, 200));
  failure.not_started = true;
  throw FailureError(std::move(failure));
}

/// Can the answer be a gateway's, that lost the one of the server behind it?
bool is_gateways_word(const HttpResponse& response) {
  const int status = response.status;
  // Whoever says when to come back has not taken the request on.
  const bool has_hint = response.headers.contains("retry-after");
  return status == 502 || status == 504 || ((status == 503 || status >= 520) && !has_hint);
}

ToolOutcome judge_answer(const ToolSpec& spec, const HttpResponse& response, const Limits& limits) {
  const int status = response.status;
  if (status >= 200 && status < 300) {
    if (response.body.empty()) return {Json{{"status", status}}, false};
    return {body_of(response, limits), false};
  }
  const bool is_write = spec.effect == Effect::non_idempotent_write;
  if (!HOLDFAST_GUARD("http_gateway_unknown", !is_write || !is_gateways_word(response))) {
    throw FailureError(lost_answer(
        spec.name, fmt::format("http_{}", status),
        fmt::format("was answered with status {}, which a gateway can say that lost the answer",
                    status)));
  }
  std::string what = fmt::format("status {}", status);
  const auto to = response.headers.find("location");
  if (status >= 300 && status < 400 && to != response.headers.end()) {
    what += ": a redirect, which is not followed, to " + excerpt(to->second, 200);
  }
  const auto hint = response.headers.find("retry-after");
  if (hint != response.headers.end()) what += ", retry-after: " + excerpt(hint->second, 60);
  return error_outcome(response, what, limits);
}

bool is_timeout(const HttpResponse& response) {
  return response.transport_kind == "total_timeout" || response.transport_kind == "read_timeout" ||
         response.transport_kind == "idle_timeout";
}

/// A transfer that came to no whole answer.
ToolOutcome judge_broken(const ToolSpec& spec, const HttpResponse& response, Duration took,
                         const StepContext& context, const Limits& limits) {
  const bool is_interrupted = response.transport_kind == "interrupted";
  const bool is_over = is_timeout(response) || (is_interrupted && is_at_deadline(took, context));
  const bool was_sent = !is_unsent(response);
  const bool is_write = spec.effect == Effect::non_idempotent_write;
  const std::string limit =
      fmt::format("got no whole answer within {}", format_duration(spec.timeout));
  if (!HOLDFAST_GUARD("http_lost_unknown", !is_write || !was_sent)) {
    throw FailureError(lost_answer(
        spec.name, is_over ? "timeout" : response.transport_kind,
        is_over ? limit : "got no whole answer (" + excerpt(response.transport_kind, 80) + ")"));
  }
  if (is_over && was_sent) return error_outcome({}, limit, limits);
  if (is_interrupted) throw FailureError(interrupted_failure(spec, was_sent));
  if (!was_sent) throw_unsent(spec.name, response);
  Evidence evidence;
  evidence.transport_kind = response.transport_kind;
  evidence.phase = response.phase;
  Failure failure = classify(evidence);
  failure.message = fmt::format("tool '{}': the answer was lost: {}", spec.name, failure.message);
  throw FailureError(std::move(failure));
}

/// Refuses a call to a host that this process's list does not have.
void check_host(const std::string& tool, const std::string& url,
                const std::vector<std::string>& hosts) {
  if (HOLDFAST_GUARD("http_host_listed", is_host_listed(url, hosts))) return;
  Failure failure = make_failure(
      FailureClass::configuration, "host_not_listed",
      fmt::format("tool '{}' would speak to {}, which [http] hosts of this process does not list; "
                  "nothing was sent",
                  tool, origin_of(url)));
  failure.not_started = true;
  throw FailureError(std::move(failure));
}

/// Names a variable that is not set, or that no header can hold.
std::vector<std::pair<std::string, std::string>> secret_headers(const ToolSpec& spec) {
  std::vector<std::pair<std::string, std::string>> headers;
  const auto add = [&](const std::string& header, const std::string& variable, const char* before) {
    const char* value = std::getenv(variable.c_str());
    const std::string text = value != nullptr ? value : "";
    if (text.empty() || text.find_first_of("\r\n") != text.npos) {
      Failure failure =
          make_failure(FailureClass::configuration, "missing_secret",
                       fmt::format("tool '{}': the environment variable {} {}", spec.name, variable,
                                   text.empty() ? "is not set: set it to what the header is to hold"
                                                : "holds a line break, which no header can"));
      failure.not_started = true;
      throw FailureError(std::move(failure));
    }
    headers.emplace_back(header, before + text);
  };
  for (const auto& [header, variable] : spec.http->header_env) add(header, variable, "");
  const std::string& bearer = spec.http->bearer_env;
  if (!bearer.empty()) add("Authorization", bearer, "Bearer ");
  return headers;
}

/// What an answer, or a transfer that broke, means. `took` is the time since the call's start.
ToolOutcome judge_http(const ToolSpec& spec, const HttpResponse& response, Duration took,
                       const StepContext& context, const Limits& limits) {
  // Behind a good status what does not fit is cut; the effect is done.
  const bool is_long = response.transport_kind == "response_too_large" && response.status != 0;
  if (response.transport_kind.empty() || is_long) return judge_answer(spec, response, limits);
  return judge_broken(spec, response, took, context, limits);
}

}  // namespace

std::vector<std::string> secret_names(const HttpToolSpec& http) {
  std::vector<std::string> names;
  for (const auto& [header, variable] : http.header_env) names.push_back(variable);
  if (!http.bearer_env.empty()) names.push_back(http.bearer_env);
  return names;
}

ToolOutcome call_http(const ToolSpec& spec, const Json& arguments, const StepContext& context,
                      Env& env, const Limits& limits, const std::vector<std::string>& hosts) {
  const HttpToolSpec& http = *spec.http;
  const FilledUrl filled = fill_url(http.url, arguments);
  if (!filled.problem.empty()) return {Json{{"error", filled.problem}}, true};
  check_host(spec.name, filled.url, hosts);
  const Json rest = rest_of(arguments, filled.used);

  HttpRequest request;
  request.method = http.method;
  request.url = has_body(http.method) ? filled.url : with_query(filled.url, rest);
  request.headers = {{"Accept", "application/json, */*"}, {"User-Agent", "holdfast"}};
  if (has_body(http.method)) {
    request.headers.emplace_back("Content-Type", "application/json");
    request.body = dump_json(rest);
  }
  if (spec.effect != Effect::read) {
    request.headers.emplace_back("Idempotency-Key", context.idempotency_key);
  }
  const auto put = [&](const std::string& name, const std::string& value) {
    std::erase_if(request.headers, [lower = lower_case(name)](const auto& header) {
      return lower_case(header.first) == lower;
    });
    request.headers.emplace_back(name, value);
  };
  for (const auto& [name, value] : http.headers) put(name, value);
  for (const auto& [name, value] : secret_headers(spec)) {
    put(name, value);
  }
  request.connect_timeout = http.connect_timeout;
  request.first_byte_timeout = request.idle_timeout = request.total_timeout = context.timeout;
  request.max_response_bytes = limits.result_bytes + kRoomForKeys;

  const StoreTime began = env.store_now();
  HttpResponse response = http_call(request, env, context.stop);
  const Secrets secrets(secret_names(http));
  response.body = secrets.redact_text(std::move(response.body));
  for (auto& [name, value] : response.headers) value = secrets.redact_text(std::move(value));
  return judge_http(spec, response, env.store_now() - began, context, limits);
}

}  // namespace holdfast
