#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "net/http.hpp"
#include "net/secrets.hpp"
#include "net/sse.hpp"
#include "provider/dialect.hpp"
#include "provider/judge.hpp"
#include "provider/providers.hpp"

namespace holdfast {
namespace {

/// An answer may be this many times larger on the wire than a result may be.
constexpr std::size_t kWireFactor = 16;

/// About so many bytes are one token, where nobody counted.
constexpr std::size_t kBytesPerToken = 4;

std::int64_t estimated_tokens(std::size_t bytes) {
  return static_cast<std::int64_t>((bytes + kBytesPerToken - 1) / kBytesPerToken);
}

bool has_type(const HttpResponse& head, std::string_view part) {
  auto type = head.headers.find("content-type");
  return type != head.headers.end() && type->second.find(part) != std::string::npos;
}

/// One call: what was sent, what came back, and how it is judged.
class Call {
 public:
  Call(const ProviderSpec& spec, const Dialect& dialect, const Secrets& secrets, Env& env,
       const Limits& limits, const std::string& model, const ModelRequest& request,
       const CallContext& context)
      : spec_(spec),
        dialect_(dialect),
        env_(env),
        limits_(limits),
        model_(model),
        request_(request),
        context_(context),
        secrets_(secrets),
        judge_(spec, secrets, model, limits),
        stream_(dialect.start_stream()) {}

  ModelReply run() {
    const HttpRequest http = make_request(read_key());
    request_bytes_ = http.body.size();
    HOLDFAST_FAILPOINT("model_call.before");
    response_ = http_call(
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
  /// Read at each call: a key may be renewed while the process lives.
  std::string read_key() const {
    const std::string problem = key_problem(spec_);
    if (!problem.empty()) throw FailureError(judge_.missing_key(problem));
    return spec_.api_key_env.empty() ? "" : std::getenv(spec_.api_key_env.c_str());
  }

  std::string body() const {
    const Target target{spec_.name, model_};
    if (spec_.native_schema || request_.answer_schema.is_null()) {
      return dialect_.render(target, request_, spec_.stream);
    }
    ModelRequest told_only = request_;
    told_only.answer_schema = nullptr;
    return dialect_.render(target, told_only, spec_.stream);
  }

  HttpRequest make_request(const std::string& key) const {
    const std::string events =
        dialect_.streams_lines() ? "application/x-ndjson" : "text/event-stream";
    HttpRequest http;
    http.url = dialect_.url(model_, spec_.stream);
    http.headers = {{"Content-Type", "application/json"},
                    {"Accept", (spec_.stream ? events + ", " : "") + "application/json"},
                    {"User-Agent", "holdfast"}};
    for (auto& header : dialect_.headers(key)) http.headers.push_back(std::move(header));
    for (const auto& [name, value] : spec_.headers) {
      std::erase_if(http.headers, [&, lower = lower_case(name)](const auto& header) {
        return lower_case(header.first) == lower;
      });
      http.headers.emplace_back(name, value);
    }
    http.body = body();
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
    if (head.status < 200 || head.status >= 300 || !says_stream(head)) return true;
    if (!is_stream_) {
      // What fails in the middle is judged with the status and the headers of its answer.
      is_stream_ = true;
      response_.status = head.status;
      response_.headers = head.headers;
    }
    return take(feed(piece));
  }

  bool says_stream(const HttpResponse& head) const {
    return has_type(head, dialect_.streams_lines() ? "ndjson" : "event-stream");
  }

  std::vector<SseEvent> feed(std::string_view piece) {
    return dialect_.streams_lines() ? lines_.feed(piece) : events_.feed(piece);
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
    const Json error = chunk ? dialect_.error_in(*chunk) : Json();
    if (!error.is_null()) fail(judge_.of_error(response_, dump_json(error), true));
    if (!chunk && is_rest_) fail(judge_.of_cut_stream(response_));
    if (event.event == "error") fail(judge_.of_error(response_, data, chunk.has_value()));
    if (!chunk) fail(judge_.of_malformed(response_, "a chunk of the stream is not JSON", data));
    auto added = stream_->add(*chunk);
    if (const auto* problem = std::get_if<Malformed>(&added)) {
      fail(judge_.of_malformed(response_, problem->shape, data));
    }
    const auto& text = std::get<std::string>(added);
    streamed_bytes_ += text.size();
    has_begun_ = true;
    done_ = stream_->is_over();
    if (!text.empty() && context_.on_text) context_.on_text(text);
  }

  // --- the whole response

  ModelReply read_response() {
    const bool is_success = response_.status >= 200 && response_.status < 300;
    if (!response_.transport_kind.empty() || !is_success) fail(judge_.of_response(response_));
    auto answer = is_stream_ ? std::nullopt : parse_json(response_.body);
    if (!is_stream_ && (says_stream(response_) || (!answer && looks_like_stream()))) {
      is_stream_ = true;
      take(feed(response_.body));
    }
    if (is_stream_) return read_stream();

    const std::string& body = response_.body;
    if (!answer) fail(judge_.of_malformed(response_, "the body is not JSON", body));
    if (!dialect_.error_in(*answer).is_null()) {
      fail(judge_.of_error(response_, dump_json(dialect_.error_in(*answer)), true));
    }
    auto raw = dialect_.read(*answer);
    if (const auto* problem = std::get_if<Malformed>(&raw)) {
      fail(judge_.of_malformed(response_, problem->shape, body));
    }
    return to_model_reply(std::get<RawReply>(raw), body);
  }

  /// Some servers label a stream as plain text, or as JSON.
  bool looks_like_stream() const {
    const std::string& body = response_.body;
    if (dialect_.streams_lines()) return body.starts_with('{') && body.find("}\n") != body.npos;
    return body.starts_with("data:") || body.starts_with("event:") || body.starts_with(": ");
  }

  ModelReply read_stream() {
    if (!done_) {
      is_rest_ = true;
      take(dialect_.streams_lines() ? lines_.finish() : events_.finish());
    }
    if (!HOLDFAST_GUARD("stream_complete", stream_->has_end())) {
      if (const Json why = stream_->why_no_end(); !why.is_null()) {
        const Failure verdict = judge_.of_success(response_, dump_json(why));
        if (verdict.cls == FailureClass::content_policy) fail(verdict);
      }
      if (done_)
        fail(judge_.of_malformed(response_, "the stream ended without its end signal", {}));
      fail(judge_.of_cut_stream(response_));
    }
    auto raw = stream_->finish();
    if (const auto* problem = std::get_if<Malformed>(&raw)) {
      fail(judge_.of_malformed(response_, problem->shape, {}));
    }
    return to_model_reply(std::get<RawReply>(raw), {});
  }

  ModelReply to_model_reply(const RawReply& raw, const std::string& body) {
    const bool is_refused = raw.has_refusal && raw.text.empty() && raw.calls.empty();
    const Json end{{"finish_reason", is_refused ? "refusal" : raw.finish}};
    const Failure verdict = judge_.of_success(response_, dump_json(end));
    if (verdict.cls == FailureClass::content_policy ||
        verdict.cls == FailureClass::context_length) {
      fail(verdict);
    }
    auto read = to_reply(raw, request_, limits_.depth);
    if (const auto* problem = std::get_if<Malformed>(&read)) {
      fail(judge_.of_malformed(response_, problem->shape, body.empty() ? dump_json(end) : body));
    }
    ModelReply reply = std::move(std::get<ModelReply>(read));
    if (reply.usage.total_tokens == 0) {
      std::size_t bytes = raw.text.size();
      for (const RawCall& call : raw.calls) bytes += call.name.size() + call.arguments.size();
      reply.usage = estimated({}, bytes);
    }
    reply.usage.cost_usd = cost_of(spec_, model_, reply.usage);
    return reply;
  }

  /// What was told so far, filled up by what can be counted here.
  ModelUsage estimated(ModelUsage usage, std::size_t answer_bytes) const {
    if (usage.prompt_tokens == 0) usage.prompt_tokens = estimated_tokens(request_bytes_);
    usage.completion_tokens = std::max(usage.completion_tokens, estimated_tokens(answer_bytes));
    usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
    usage.estimated = true;
    usage.cost_usd = cost_of(spec_, model_, usage);
    return usage;
  }

  [[noreturn]] void fail(Failure failure) const {
    if (!has_begun_) throw FailureError(std::move(failure));
    throw PaidFailure(std::move(failure), estimated(stream_->usage(), streamed_bytes_));
  }

  const ProviderSpec& spec_;
  const Dialect& dialect_;
  Env& env_;
  const Limits& limits_;
  const std::string& model_;
  const ModelRequest& request_;
  const CallContext& context_;
  const Secrets& secrets_;
  const Judge judge_;
  const std::unique_ptr<AnswerStream> stream_;
  HttpResponse response_;
  SseParser events_;
  LineParser lines_;
  std::size_t request_bytes_ = 0;
  std::size_t streamed_bytes_ = 0;
  bool is_stream_ = false;
  bool is_rest_ = false;    ///< what comes now was left open when the stream ended
  bool has_begun_ = false;  ///< a piece of an answer has come
  bool done_ = false;
};

class HttpProvider final : public Provider {
 public:
  HttpProvider(ProviderSpec spec, std::unique_ptr<const Dialect> dialect, Env& env,
               const Limits& limits, std::vector<std::string> key_names)
      : spec_(std::move(spec)),
        dialect_(std::move(dialect)),
        env_(env),
        limits_(limits),
        key_names_(std::move(key_names)) {}

  ModelReply complete(const std::string& model, const ModelRequest& request,
                      const CallContext& context) override {
    // Read at each call: a key may be renewed while the process lives.
    const Secrets secrets(key_names_);
    return Call(spec_, *dialect_, secrets, env_, limits_, model, request, context).run();
  }
  std::string lack() const override {
    const std::string problem = key_problem(spec_);
    return problem.empty() ? "" : spec_.name + ": " + problem;
  }

  std::optional<std::int64_t> request_room(const std::string& model) const override {
    return holdfast::request_room(spec_, model);
  }

 private:
  const ProviderSpec spec_;
  const std::unique_ptr<const Dialect> dialect_;
  Env& env_;
  const Limits limits_;
  const std::vector<std::string> key_names_;
};

}  // namespace

std::unique_ptr<Provider> make_http_provider(const ProviderSpec& spec,
                                             std::unique_ptr<const Dialect> dialect, Env& env,
                                             const Limits& limits,
                                             std::vector<std::string> key_names) {
  const std::string where = "providers." + spec.name;
  if (const std::string problem = url_problem(dialect->url("model", spec.stream));
      !problem.empty()) {
    throw RefusedError(Refusal::usage, where + ".base_url " + problem);
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
  return std::make_unique<HttpProvider>(spec, std::move(dialect), env, limits,
                                        std::move(key_names));
}

std::string base_url_of(const ProviderSpec& spec) {
  if (!spec.base_url.empty()) return spec.base_url;
  if (spec.kind == "anthropic") return "https://api.anthropic.com";
  if (spec.kind == "gemini") return "https://generativelanguage.googleapis.com";
  if (spec.kind == "ollama") return "http://127.0.0.1:11434";
  return {};
}

double cost_of(const ProviderSpec& spec, const std::string& model, const ModelUsage& usage) {
  auto found = spec.prices.find(model);
  if (found == spec.prices.end()) return 0;
  const Price& price = found->second;
  // Cached and written tokens are part of the prompt's.
  const std::int64_t cached = std::min(usage.cached_tokens, usage.prompt_tokens);
  const std::int64_t written = std::min(usage.cache_write_tokens, usage.prompt_tokens - cached);
  const std::int64_t fresh = usage.prompt_tokens - cached - written;
  return (static_cast<double>(fresh) * price.input +
          static_cast<double>(cached) * price.cached.value_or(price.input) +
          static_cast<double>(written) * price.cache_write.value_or(price.input) +
          static_cast<double>(usage.completion_tokens) * price.output) /
         1e6;
}

}  // namespace holdfast
