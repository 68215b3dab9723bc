#include "fuzz/wire_fuzz.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/json_schema.hpp"
#include "core/run_codec.hpp"
#include "fuzz/fuzz.hpp"
#include "net/http.hpp"
#include "provider/providers.hpp"
#include "support/fake_env.hpp"

namespace holdfast {
namespace fuzz {
namespace {

constexpr const char* kKeyName = "HOLDFAST_FUZZ_KEY";
constexpr const char* kKey = "sk-fuzz/hunter2-swordfish";

/// The answer that `http_call` gives next.
struct Wire {
  HttpResponse response;
  std::size_t piece_bytes = 0;
};
Wire& wire() {
  static Wire only;
  return only;
}

HttpResponse read_response(std::string_view input) {
  HttpResponse response;
  std::string_view first = take_until(input, "\n");
  const std::string_view status = take_until(first, " ");
  std::from_chars(status.data(), status.data() + status.size(), response.status);
  response.headers["content-type"] = first;
  while (!input.empty() && !input.starts_with('\n')) {
    std::string_view line = take_until(input, "\n");
    const std::string name = lower_case(take_until(line, ": "));
    if (name == "broken") {
      // The transport's own word, which is never what a server likes.
      response.transport_kind = is_utf8(line) ? line : "partial_body";
      response.phase = TransportPhase::body;
      response.transport_text = "the transfer broke off";
    } else {
      response.headers[name] = line;
    }
  }
  if (!input.empty()) input.remove_prefix(1);
  response.body = input;
  return response;
}

ModelRequest request_with_tools() {
  ModelRequest request;
  request.run = "run";
  request.messages.push_back({.role = Message::Role::user, .text = "hello"});
  request.tools.push_back({"look.up", "", Json::object()});
  return request;
}

void check_text(std::string_view text) {
  expect(!contains(text, kKey), "no key comes back from a server", text);
  expect(is_utf8(text), "what is stored is UTF-8", text);
}

std::string tell(const ModelReply& reply, const Limits& limits) {
  Json calls = Json::array();
  for (const ToolCall& call : reply.calls) {
    expect(!call.name.empty(), "a call names its tool");
    expect(depth_of(call.arguments, limits.depth) <= limits.depth, "arguments are not too deep");
    calls.push_back({call.name, call.arguments, call.bad_arguments.value_or("")});
  }
  const bool is_pause = reply.finish == "pause" && !reply.opaque.is_null();
  expect(!reply.text.empty() || !reply.calls.empty() || reply.finish == "length" || is_pause,
         "an answer says something, or why not");
  expect(reply.usage.total_tokens >= 0 && reply.usage.prompt_tokens >= 0, "tokens are counted");
  const std::string told = dump_json({{"text", reply.text},
                                      {"finish", reply.finish},
                                      {"calls", std::move(calls)},
                                      {"opaque", reply.opaque},
                                      {"usage", encode(reply.usage)}});
  check_text(told);
  return told;
}

std::string tell(const Failure& failure, const Limits& limits) {
  expect(!failure.message.empty() && failure.message.size() <= limits.error_bytes,
         "a message is bounded", failure.message);
  expect(!failure.retry_after || *failure.retry_after > Duration::zero(), "a hint is a wait");
  check_text(failure.message);
  check_text(failure.code);
  return dump_json(encode(failure));
}

}  // namespace

namespace {

using Maker = std::unique_ptr<Provider> (*)(const ProviderSpec&, Env&, const Limits&,
                                            std::vector<std::string>);

std::string call_model(Maker make, std::string_view input, bool stream, std::size_t piece_bytes) {
  wire() = {read_response(input), piece_bytes};
  ProviderSpec spec;
  spec.name = "main";
  spec.base_url = "http://127.0.0.1/v1";
  spec.api_key_env = kKeyName;
  spec.stream = stream;
  const Limits limits;
  holdfast::testing::FakeEnv env;
  const auto provider = make(spec, env, limits, {});
  try {
    return tell(provider->complete("demo", request_with_tools(), {}), limits);
  } catch (const FailureError& error) {
    return tell(error.failure(), limits);
  }
}

}  // namespace

std::string call_model(std::string_view input, bool stream, std::size_t piece_bytes) {
  ::setenv(kKeyName, kKey, 1);
  std::string told;
  for (const Maker make :
       {&make_openai, &make_responses, &make_anthropic, &make_gemini, &make_ollama}) {
    told += call_model(make, input, stream, piece_bytes) + "\n";
  }
  return told;
}

}  // namespace fuzz

// In place of net/http.cpp, which is not linked here.
HttpResponse http_call(const HttpRequest&, Env&, const std::stop_token&,
                       const HttpObserver& observer) {
  HttpResponse response = fuzz::wire().response;
  HttpResponse head = response;
  head.body.clear();
  std::string_view rest = response.body;
  while (observer && !rest.empty()) {
    const std::size_t size = fuzz::wire().piece_bytes == 0 ? rest.size() : fuzz::wire().piece_bytes;
    const std::string_view piece = rest.substr(0, size);
    rest.remove_prefix(piece.size());
    if (!observer(head, piece)) {
      // Enough has been read: the transfer ends as if it were over.
      response.transport_kind.clear();
      break;
    }
  }
  return response;
}

std::string url_problem(const std::string&) { return {}; }

}  // namespace holdfast
