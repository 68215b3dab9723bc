#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/classify.hpp"
#include "core/excerpt.hpp"
#include "provider/chat_stream.hpp"
#include "provider/chat_wire.hpp"
#include "provider/http.hpp"
#include "provider/providers.hpp"
#include "provider/secrets.hpp"
#include "provider/sse.hpp"

namespace holdfast {
namespace {

/// An answer may be this many times larger on the wire than a result may be.
constexpr std::size_t kWireFactor = 16;

/// One call: what was sent, what came back, and how it is judged.
class Call {
 public:
  Call(const ProviderSpec& spec, const Secrets& secrets, Env& env, const Limits& limits,
       const std::string& model, const ModelRequest& request, const CallContext& context)
      : spec_(spec),
        secrets_(secrets),
        env_(env),
        limits_(limits),
        model_(model),
        request_(request),
        context_(context) {}

  ModelReply run() {
    key_ = read_key();
    const HttpRequest http = make_request();
    HOLDFAST_FAILPOINT("model_call.before");
    response_ = http_post(
        http, env_, context_.stop,
        [this](const HttpResponse& head, std::string_view piece) { return on_piece(head, piece); });
    HOLDFAST_FAILPOINT("model_call.after");
    response_.body = secrets_.redact_body(std::move(response_.body));
    ModelReply reply = read_response();
    secrets_.redact(reply);
    reply.provider = spec_.name;
    reply.model = model_;
    return reply;
  }

 private:
  std::string read_key() const {
    if (spec_.api_key_env.empty()) return {};
    // Read at each call: a key may be renewed while the process lives.
    const char* value = std::getenv(spec_.api_key_env.c_str());
    if (value != nullptr && *value != '\0') return value;
    Failure failure;
    failure.cls = FailureClass::configuration;
    failure.code = "missing_key";
    failure.provider = spec_.name;
    failure.model = model_;
    failure.message = spec_.name + ": the environment variable " + spec_.api_key_env +
                      " is not set; set it to the provider's key, or remove api_key_env";
    throw FailureError(std::move(failure));
  }

  HttpRequest make_request() const {
    HttpRequest http;
    std::string base = spec_.base_url;
    while (base.ends_with('/')) base.pop_back();
    http.url = base + "/chat/completions";
    http.headers.emplace_back("Content-Type", "application/json");
    http.headers.emplace_back(
        "Accept", spec_.stream ? "text/event-stream, application/json" : "application/json");
    http.headers.emplace_back("User-Agent", "holdfast");
    for (const auto& [name, value] : spec_.headers) http.headers.emplace_back(name, value);
    if (!key_.empty()) http.headers.emplace_back("Authorization", "Bearer " + key_);
    http.body = render_chat_request(model_, request_, spec_.stream);
    http.connect_timeout = spec_.connect_timeout;
    http.first_byte_timeout = spec_.first_byte_timeout;
    http.idle_timeout = spec_.idle_timeout;
    http.total_timeout = spec_.timeout;
    if (context_.timeout > Duration::zero()) {
      http.total_timeout = std::min(http.total_timeout, context_.timeout);
    }
    http.max_response_bytes = limits_.result_bytes * kWireFactor;
    return http;
  }

  // --- the stream, while it comes

  bool on_piece(const HttpResponse& head, std::string_view piece) {
    if (head.status < 200 || head.status >= 300 || !says_event_stream(head)) return true;
    if (!is_stream_) {
      // What fails in the middle is judged with the status and the headers of its answer.
      is_stream_ = true;
      response_.status = head.status;
      response_.headers = head.headers;
    }
    return take(parser_.feed(piece));
  }

  static bool says_event_stream(const HttpResponse& head) {
    auto type = head.headers.find("content-type");
    return type != head.headers.end() && type->second.find("event-stream") != std::string::npos;
  }

  /// False once the answer is over.
  bool take(const std::vector<SseEvent>& events) {
    for (const SseEvent& event : events) {
      if (done_) return false;
      take(event);
    }
    return !done_;
  }

  void take(const SseEvent& event) {
    const std::string data = secrets_.redact_body(event.data);
    if (data.empty()) return;
    if (data == "[DONE]") {
      done_ = true;
      return;
    }
    auto chunk = parse_json(data);
    if (event.event == "error" || (chunk && has_error(*chunk))) {
      fail_in_stream(data, chunk.has_value());
    }
    if (!chunk) throw malformed("a chunk of the stream is not JSON", data);
    auto added = assembler_.add(*chunk);
    if (const auto* problem = std::get_if<Malformed>(&added)) {
      throw malformed(problem->shape, data);
    }
    const auto& text = std::get<std::string>(added);
    if (!text.empty() && context_.on_text) context_.on_text(text);
  }

  static bool has_error(const Json& chunk) {
    if (!chunk.is_object()) return false;
    if (auto error = chunk.find("error"); error != chunk.end() && !error->is_null()) return true;
    auto choices = chunk.find("choices");
    if (choices == chunk.end() || !choices->is_array() || choices->empty()) return false;
    const Json& choice = choices->front();
    if (!choice.is_object()) return false;
    auto error = choice.find("error");
    return (error != choice.end() && !error->is_null()) ||
           choice.value("finish_reason", Json()) == "error";
  }

  [[noreturn]] void fail_in_stream(const std::string& data, bool is_json) {
    Evidence evidence = evidence_of(data);
    // An error event that is no JSON says nothing that could be judged.
    if (is_json) {
      evidence.status = 200;
      evidence.body_was_success = true;
    }
    throw failure(classify(evidence));
  }

  // --- the whole response

  ModelReply read_response() {
    const bool is_success = response_.status >= 200 && response_.status < 300;
    if (!response_.transport_kind.empty() || !is_success) throw failure_of_response();
    if (!is_stream_ && (says_event_stream(response_) || looks_like_events())) {
      is_stream_ = true;
      take(parser_.feed(response_.body));
    }
    if (is_stream_) return read_stream();

    auto answer = parse_json(response_.body);
    if (!answer) throw malformed("the body is not JSON", response_.body);
    if (has_error(*answer)) throw malformed("", response_.body);
    auto raw = read_chat_answer(*answer);
    if (const auto* problem = std::get_if<Malformed>(&raw)) {
      throw malformed(problem->shape, response_.body);
    }
    return to_model_reply(std::get<RawReply>(raw), response_.body);
  }

  /// Some servers label a stream as plain text.
  bool looks_like_events() const {
    const std::string& body = response_.body;
    return body.starts_with("data:") || body.starts_with("event:") || body.starts_with(": ");
  }

  ModelReply read_stream() {
    if (!done_) take(parser_.finish());
    if (!HOLDFAST_GUARD("stream_complete", assembler_.has_finish())) {
      if (!assembler_.filter_results().is_null()) {
        const Json filtered{{"prompt_filter_results", assembler_.filter_results()}};
        const Failure verdict = classify(success_evidence(dump_json(filtered)));
        if (verdict.cls == FailureClass::content_policy) throw failure(verdict);
      }
      if (done_) throw malformed("the stream ended without a finish_reason", {});
      Evidence evidence = evidence_of({});
      evidence.status = response_.status;
      evidence.transport_kind = "stream_cut";
      evidence.phase = TransportPhase::stream;
      throw failure(classify(evidence));
    }
    auto raw = assembler_.finish();
    if (const auto* problem = std::get_if<Malformed>(&raw)) throw malformed(problem->shape, {});
    return to_model_reply(std::get<RawReply>(raw), {});
  }

  ModelReply to_model_reply(const RawReply& raw, const std::string& body) {
    const bool is_refused = raw.has_refusal && raw.text.empty() && raw.calls.empty();
    const Json end{{"finish_reason", is_refused ? "refusal" : raw.finish}};
    const Failure verdict = classify(success_evidence(dump_json(end)));
    if (verdict.cls == FailureClass::content_policy ||
        verdict.cls == FailureClass::context_length) {
      throw failure(verdict);
    }
    auto read = to_reply(raw, request_, limits_.depth);
    if (const auto* problem = std::get_if<Malformed>(&read)) {
      throw malformed(problem->shape, body.empty() ? dump_json(end) : body);
    }
    ModelReply reply = std::move(std::get<ModelReply>(read));
    reply.usage.cost_usd = cost_of(spec_, model_, reply.usage);
    return reply;
  }

  // --- failures

  Evidence evidence_of(std::string body) const {
    Evidence evidence;
    evidence.headers = response_.headers;
    evidence.body = std::move(body);
    evidence.provider = spec_.name;
    evidence.model = model_;
    evidence.excerpt_bytes = limits_.error_bytes;
    return evidence;
  }

  Evidence success_evidence(std::string body) const {
    Evidence evidence = evidence_of(std::move(body));
    evidence.status = response_.status;
    evidence.body_was_success = true;
    return evidence;
  }

  FailureError failure_of_response() const {
    Evidence evidence = evidence_of(response_.body);
    if (response_.status != 0) evidence.status = response_.status;
    evidence.transport_kind = response_.transport_kind;
    evidence.phase = response_.phase;
    // The half of an answer is not a text about a failure.
    if (response_.status < 400 && !response_.transport_kind.empty()) evidence.body.clear();
    Failure verdict = classify(evidence);
    if (!response_.transport_text.empty()) {
      verdict.message += ": " + excerpt(response_.transport_text, evidence.excerpt_bytes);
    }
    return failure(std::move(verdict));
  }

  /// A 2xx that is no answer. The body may say why; else the shape is named.
  FailureError malformed(const std::string& shape, const std::string& body) const {
    const Evidence evidence = success_evidence(body);
    Failure verdict = classify(evidence);
    if (verdict.cls == FailureClass::server_error && !shape.empty()) {
      verdict.code = "malformed_response";
      verdict.message = spec_.name + "/" + model_ + ": status " + std::to_string(response_.status) +
                        " without a usable answer (malformed response): " + shape;
      const std::string shown = excerpt(evidence.body, 120);
      if (!shown.empty()) verdict.message += "; received: " + shown;
    }
    return failure(std::move(verdict));
  }

  /// Whatever a server repeats of our keys stays here.
  FailureError failure(Failure verdict) const {
    verdict.code = secrets_.redact_text(std::move(verdict.code));
    verdict.message = secrets_.redact_text(std::move(verdict.message));
    verdict.message = cut(verdict.message, limits_.error_bytes);
    return FailureError(std::move(verdict));
  }

  const ProviderSpec& spec_;
  const Secrets& secrets_;
  Env& env_;
  const Limits& limits_;
  const std::string& model_;
  const ModelRequest& request_;
  const CallContext& context_;
  std::string key_;
  HttpResponse response_;
  SseParser parser_;
  ChatAssembler assembler_;
  bool is_stream_ = false;
  bool done_ = false;
};

class OpenAi final : public Provider {
 public:
  OpenAi(ProviderSpec spec, Env& env, const Limits& limits, std::vector<std::string> key_names)
      : spec_(std::move(spec)), env_(env), limits_(limits), key_names_(std::move(key_names)) {}

  ModelReply complete(const std::string& model, const ModelRequest& request,
                      const CallContext& context) override {
    // Read at each call: a key may be renewed while the process lives.
    const Secrets secrets(key_names_);
    return Call(spec_, secrets, env_, limits_, model, request, context).run();
  }

 private:
  const ProviderSpec spec_;
  Env& env_;
  const Limits limits_;
  const std::vector<std::string> key_names_;
};

}  // namespace

std::unique_ptr<Provider> make_openai(const ProviderSpec& spec, Env& env, const Limits& limits,
                                      std::vector<std::string> key_names) {
  const std::string where = "providers." + spec.name;
  if (const std::string problem = url_problem(spec.base_url); !problem.empty()) {
    throw RefusedError(Refusal::usage, where + ".base_url " + problem);
  }
  if (spec.api != "chat") {
    throw RefusedError(Refusal::usage, where + ".api is `" + spec.api +
                                           "`; this build speaks `chat` (Chat Completions)");
  }
  for (const auto& [name, value] : spec.headers) {
    const bool is_whole =
        !name.empty() && (name + value).find_first_of("\r\n") == std::string::npos;
    if (!is_whole || name.find(':') != std::string::npos) {
      throw RefusedError(Refusal::usage,
                         where + ".headers holds an empty name, a colon or a line break");
    }
  }
  if (!spec.api_key_env.empty()) key_names.push_back(spec.api_key_env);
  return std::make_unique<OpenAi>(spec, env, limits, std::move(key_names));
}

double cost_of(const ProviderSpec& spec, const std::string& model, const Usage& usage) {
  auto price = spec.prices.find(model);
  if (price == spec.prices.end()) return 0;
  return (static_cast<double>(usage.prompt_tokens) * price->second.input +
          static_cast<double>(usage.completion_tokens) * price->second.output) /
         1e6;
}

}  // namespace holdfast
