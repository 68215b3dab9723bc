#include <gtest/gtest.h>

#include <cstdlib>

#include "core/classify.hpp"
#include "provider/chain.hpp"
#include "provider/judge.hpp"
#include "provider/providers.hpp"
#include "provider/recorded_test_rows.hpp"
#include "support/stub_server.hpp"

namespace holdfast {
namespace {

using testing::StubAnswer;
using testing::StubServer;
using enum FailureClass;

ProviderSpec spec_for(const StubServer& server, bool stream) {
  ProviderSpec spec;
  spec.name = "main";
  spec.base_url = server.url();
  spec.stream = stream;
  return spec;
}

ModelRequest hello() {
  ModelRequest request;
  Message message;
  message.text = "hello";
  request.messages = {message};
  request.tools = {ToolDefinition{"pay", "Pays", Json{{"type", "object"}}}};
  return request;
}

ModelReply ask(const ProviderSpec& spec, const CallContext& context = {}, Limits limits = {}) {
  return make_openai(spec, real_env(), limits)->complete("gpt", hello(), context);
}

Failure failure_of(const ProviderSpec& spec, const CallContext& context = {}, Limits limits = {}) {
  try {
    const ModelReply reply = ask(spec, context, limits);
    ADD_FAILURE() << "answered: " << reply.text << " finish " << reply.finish;
  } catch (const FailureError& error) {
    return error.failure();
  }
  return {};
}

const char* kAnswer =
    R"({"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},)"
    R"("finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}})";

std::string chunk(const std::string& delta, const std::string& finish = "null") {
  return R"(data: {"choices":[{"index":0,"delta":)" + delta + R"(,"finish_reason":)" + finish +
         "}]}\n\n";
}

const std::string kStream = chunk(R"({"role":"assistant","content":"Gr"})") +
                            chunk("{\"content\":\"\xC3\xBC\xC3\x9F\"}") +
                            chunk(R"({"content":"e"})") + chunk("{}", "\"stop\"") +
                            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,"
                            "\"completion_tokens\":3}}\n\ndata: [DONE]\n\n";

TEST(OpenAi, AnswersWithoutAStream) {
  StubServer server;
  server.play(StubAnswer::json(200, kAnswer));
  ProviderSpec spec = spec_for(server, false);
  spec.headers = {{"x-team", "ops"}};
  spec.prices = {{"gpt", Price{1.0, 2.0}}};
  const ModelReply reply = ask(spec);
  EXPECT_EQ(reply.text, "Hi");
  EXPECT_EQ(reply.provider, "main");
  EXPECT_EQ(reply.model, "gpt");
  EXPECT_EQ(reply.finish, "stop");
  EXPECT_EQ(reply.usage.total_tokens, 12);
  EXPECT_DOUBLE_EQ(reply.usage.cost_usd, 14e-6);
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].line, "POST /v1/chat/completions HTTP/1.1");
  EXPECT_EQ(requests[0].headers.at("x-team"), "ops");
  EXPECT_FALSE(requests[0].headers.contains("authorization"));
  EXPECT_EQ(Json::parse(requests[0].body)["model"], "gpt");
}

TEST(OpenAi, AnswersFromAStreamHoweverItIsCutIntoPieces) {
  for (std::size_t piece :
       {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{50}, std::size_t{0}}) {
    StubServer server;
    server.play(StubAnswer::events(kStream, piece));
    std::string seen;
    CallContext context;
    context.on_text = [&](std::string_view text) { seen += text; };
    const ModelReply reply = ask(spec_for(server, true), context);
    EXPECT_EQ(reply.text,
              "Gr\xC3\xBC\xC3\x9F"
              "e")
        << piece;
    EXPECT_EQ(seen, reply.text);
    EXPECT_EQ(reply.usage.total_tokens, 8);
  }
}

TEST(OpenAi, EstimatesWhatNobodyCounted) {
  StubServer server;
  ProviderSpec spec = spec_for(server, true);
  spec.prices = {{"gpt", Price{1.0, 2.0}}};
  server.play(StubAnswer::events(chunk(R"({"content":"12345678"})") + chunk("{}", "\"stop\"")));
  const ModelUsage usage = ask(spec).usage;
  EXPECT_TRUE(usage.estimated);
  EXPECT_EQ(usage.completion_tokens, 2);
  const auto sent = static_cast<std::int64_t>(server.requests().at(0).body.size());
  EXPECT_EQ(usage.prompt_tokens, (sent + 3) / 4);
  EXPECT_GT(usage.cost_usd, 0);

  server.play(StubAnswer::events(chunk(R"({"content":"12345678"})")));
  try {
    ask(spec);
    ADD_FAILURE() << "answered";
  } catch (const PaidFailure& paid) {
    EXPECT_EQ(paid.failure().cls, connection);
    EXPECT_TRUE(paid.used().estimated);
    EXPECT_EQ(paid.used().completion_tokens, 2);
  }
  server.play(StubAnswer::json(503, "{}"));
  try {
    ask(spec);
    ADD_FAILURE() << "answered";
  } catch (const FailureError& error) {
    EXPECT_EQ(dynamic_cast<const PaidFailure*>(&error), nullptr) << "nothing had begun";
  }
}

TEST(OpenAi, PricesCachedAndWrittenTokensApartWherePricesSaySo) {
  ProviderSpec spec;
  spec.prices = {{"m", Price{10, 100, 1, 20}}, {"plain", Price{10, 100}}};
  const ModelUsage usage{{1000, 10, 1010, 0}, 600, 300, 5, false};
  EXPECT_DOUBLE_EQ(cost_of(spec, "m", usage), (100 * 10 + 600 * 1 + 300 * 20 + 10 * 100) / 1e6);
  EXPECT_DOUBLE_EQ(cost_of(spec, "plain", usage), (1000 * 10 + 10 * 100) / 1e6);
  EXPECT_DOUBLE_EQ(cost_of(spec, "other", usage), 0);
}

struct StreamCase {
  const char* what;
  std::string body;
  const char* text;  ///< null: it fails
  FailureClass cls = unknown;
};

TEST(OpenAi, JudgesStreamsByTheirEnd) {
  const std::string head = chunk(R"({"content":"A"})");
  const std::string end = chunk("{}", "\"stop\"");
  const std::string call = chunk(
      R"({"tool_calls":[{"index":0,"id":"c","function":{"name":"pay","arguments":"{\"a\":1"}}]})");
  const StreamCase cases[] = {
      {"whole", head + end + "data: [DONE]\n\n", "A"},
      {"without [DONE], closed cleanly", head + end, "A"},
      {"without the last blank line", head + end + "data: [DONE]", "A"},
      {"comments between", ": KEEP ALIVE\n\n" + head + ": again\n\n" + end + "data: [DONE]\n\n",
       "A"},
      {"something behind [DONE]", head + end + "data: [DONE]\n\ndata: {broken\n\n", "A"},
      {"cut before its end signal", head, nullptr, connection},
      {"cut in the middle of a chunk", head + "data: {\"choices\":[{\"ind", nullptr, connection},
      {"cut in the middle of a call", call, nullptr, connection},
      {"[DONE] without a finish reason", head + "data: [DONE]\n\n", nullptr, server_error},
      {"nothing at all", "", nullptr, connection},
      {"only [DONE]", "data: [DONE]\n\n", nullptr, server_error},
      {"a chunk that is no JSON", head + "data: oops\n\n" + end, nullptr, server_error},
      {"a chunk of the wrong type", head + "data: [1]\n\n" + end, nullptr, server_error},
      {"an error object", head + "data: {\"error\":{\"type\":\"server_error\"}}\n\n", nullptr,
       server_error},
      {"an error that says overloaded, first",
       "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n", nullptr,
       overloaded},
      {"a rate limit by number, then [DONE]",
       head + "data: {\"error\":{\"code\":429,\"message\":\"x\"}}\n\ndata: [DONE]\n\n", nullptr,
       rate_limit},
      {"an error event that is no JSON", "event: error\ndata: oops\n\n", nullptr, unknown},
      {"a filtered end", head + chunk("{}", "\"content_filter\""), nullptr, content_policy},
      {"a filtered prompt",
       "data: {\"choices\":[],\"prompt_filter_results\":[{\"content_filter_results\":{\"hate\":"
       "{\"filtered\":true}}}]}\n\ndata: [DONE]\n\n",
       nullptr, content_policy},
      {"an empty answer", chunk("{}", "\"stop\""), nullptr, server_error},
      {"an unfiltered prompt",
       "data: {\"choices\":[],\"prompt_filter_results\":[{\"content_filter_results\":{\"hate\":"
       "{\"filtered\":false}}}]}\n\n" +
           head + end,
       "A"},
      {"cut at the token limit", head + chunk("{}", "\"length\""), "A"},
      {"a list where an object was due", "data: 7\n\n", nullptr, server_error},
  };
  for (const StreamCase& c : cases) {
    for (const bool with_crlf : {false, true}) {
      std::string body = c.body;
      if (with_crlf) {
        for (std::size_t at = body.find('\n'); at != std::string::npos;
             at = body.find('\n', at + 2)) {
          body.replace(at, 1, "\r\n");
        }
      }
      StubServer server;
      server.play(StubAnswer::events(body, 11));
      if (c.text != nullptr) {
        EXPECT_EQ(ask(spec_for(server, true)).text, c.text) << c.what;
      } else {
        const Failure failure = failure_of(spec_for(server, true));
        EXPECT_EQ(to_word(failure.cls), to_word(c.cls)) << c.what << ": " << failure.message;
      }
      EXPECT_EQ(server.requests().size(), 1u) << c.what;
    }
  }
}

TEST(OpenAi, JudgesAnErrorInAStreamWithTheHeadersOfItsAnswer) {
  StubServer server;
  StubAnswer answer = StubAnswer::events("data: {\"error\":{\"type\":\"overloaded_error\"}}\n\n");
  answer.headers.emplace_back("retry-after", "7");
  answer.headers.emplace_back("x-should-retry", "false");
  server.play(answer);
  const Failure failure = failure_of(spec_for(server, true));
  EXPECT_EQ(failure.cls, overloaded);
  EXPECT_EQ(failure.retry_after, Duration(7000));
  EXPECT_EQ(failure.should_retry, false);
  EXPECT_NE(failure.message.find("status 200"), std::string::npos) << failure.message;
}

TEST(OpenAi, ReturnsParallelCallsOfAStream) {
  StubServer server;
  server.play(StubAnswer::events(
      chunk(
          R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"pay","arguments":"{\"n\":"}}]})") +
          chunk(
              R"({"tool_calls":[{"index":1,"id":"b","function":{"name":"nope","arguments":"{oops"}}]})") +
          chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]})") +
          chunk("{}", "\"tool_calls\"") + "data: [DONE]\n\n",
      5));
  const ModelReply reply = ask(spec_for(server, true));
  ASSERT_EQ(reply.calls.size(), 2u);
  EXPECT_EQ(reply.calls[0].arguments["n"], 1);
  EXPECT_EQ(reply.calls[1].bad_arguments, "{oops");
  EXPECT_EQ(reply.finish, "tool_calls");
}

TEST(OpenAi, TakesAWholeAnswerWhereAStreamWasAskedFor) {
  StubServer server;
  server.play(StubAnswer::json(200, kAnswer));
  EXPECT_EQ(ask(spec_for(server, true)).text, "Hi");
  StubAnswer mislabelled = StubAnswer::events(kStream);
  mislabelled.headers = {{"content-type", "text/plain"}};
  server.play(mislabelled);
  EXPECT_EQ(ask(spec_for(server, true)).usage.total_tokens, 8);
}

TEST(OpenAi, EndsWithTheAnswerThoughTheServerKeepsTheConnection) {
  StubServer server;
  StubAnswer answer = StubAnswer::events(kStream);
  answer.end = StubAnswer::End::silence;
  server.play(answer);
  EXPECT_EQ(ask(spec_for(server, true)).usage.total_tokens, 8);
}

TEST(OpenAi, NamesTheShapeOfMalformedAnswers) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"choices":[]})", "an empty list"},
      {R"({"choices":null})", "choices is null"},
      {R"({"object":"x"})", "choices is missing"},
      {R"({"choices":{"a":1}})", "choices is object"},
      {R"({"choices":[{"mess)", "not JSON"},
      {"", "not JSON"},
      {R"({"choices":[{"message":{"content":""},"finish_reason":"stop"}]})", "empty"},
  };
  for (const auto& [body, shape] : cases) {
    StubServer server;
    server.play(StubAnswer::json(200, body));
    const Failure failure = failure_of(spec_for(server, false));
    EXPECT_EQ(failure.cls, server_error) << body;
    EXPECT_EQ(failure.code, "malformed_response") << body;
    EXPECT_NE(failure.message.find(shape), std::string::npos) << failure.message;
  }
}

TEST(OpenAi, ClassifiesAnErrorObjectInsideA200ByItsOwnCode) {
  StubServer server;
  server.play(StubAnswer::json(200, R"({"error":{"code":"insufficient_quota","message":"x"}})"));
  EXPECT_EQ(failure_of(spec_for(server, false)).cls, quota_exhausted);
}

TEST(OpenAi, TreatsARefusalAsContentPolicy) {
  StubServer server;
  server.play(StubAnswer::json(
      200,
      R"({"choices":[{"message":{"content":null,"refusal":"I cannot"},"finish_reason":"stop"}]})"));
  EXPECT_EQ(failure_of(spec_for(server, false)).cls, content_policy);
}

TEST(OpenAi, JudgesBrokenTransfers) {
  StubServer server;
  ProviderSpec spec = spec_for(server, true);
  spec.first_byte_timeout = Duration(300);
  spec.idle_timeout = Duration(300);

  StubAnswer answer = StubAnswer::json(200, R"({"id":"chatcmpl-ex10","object":"chat.com)");
  answer.headers.emplace_back("content-length", "4096");
  server.play(answer);
  expect_row(recorded_row(HOLDFAST_SOURCE_DIR, "body-200-partial-file"), failure_of(spec));

  answer = {};
  answer.before_status = true;
  answer.end = StubAnswer::End::silence;
  server.play(answer);
  expect_row(recorded_row(HOLDFAST_SOURCE_DIR, "net-read-timeout"), failure_of(spec));

  answer.end = StubAnswer::End::reset;
  server.play(answer);
  expect_row(recorded_row(HOLDFAST_SOURCE_DIR, "net-reset-before-response"), failure_of(spec));

  answer.end = StubAnswer::End::mute;
  server.play(answer);
  expect_row(recorded_row(HOLDFAST_SOURCE_DIR, "net-empty-reply"), failure_of(spec));

  answer = StubAnswer::events(chunk(R"({"content":"A"})"));
  answer.end = StubAnswer::End::silence;
  server.play(answer);
  expect_row(recorded_row(HOLDFAST_SOURCE_DIR, "net-idle-stream"), failure_of(spec));

  answer.end = StubAnswer::End::reset;
  server.play(answer);
  expect_row(recorded_row(HOLDFAST_SOURCE_DIR, "net-reset-mid-stream"), failure_of(spec));

  answer = StubAnswer::events(kStream);
  answer.headers.emplace_back("transfer-encoding", "chunked");
  answer.pieces = {chunk(R"({"content":"A"})")};
  answer.end = StubAnswer::End::mute;
  server.play(answer);
  EXPECT_EQ(failure_of(spec).cls, connection);

  spec.timeout = Duration(200);
  answer = {};
  answer.before_status = true;
  answer.end = StubAnswer::End::silence;
  server.play(answer);
  const Failure late = failure_of(spec);
  EXPECT_EQ(late.cls, timeout);
  EXPECT_EQ(late.code, "total_timeout");
  EXPECT_EQ(server.requests().size(), 8u);
}

TEST(OpenAi, JudgesRefusedConnectionsAndBrokenHandshakes) {
  ProviderSpec spec;
  {
    StubServer gone;
    spec = spec_for(gone, false);
  }
  EXPECT_EQ(failure_of(spec).cls, connection);
  StubServer plain;
  spec.base_url = "https://127.0.0.1:" + std::to_string(plain.port()) + "/v1";
  spec.first_byte_timeout = Duration(500);
  spec.connect_timeout = Duration(500);
  const Failure failure = failure_of(spec);
  EXPECT_TRUE(is_retryable(failure.cls)) << failure.message;
}

TEST(OpenAi, StopsSoonWhenAsked) {
  StubServer server;
  StubAnswer answer;
  answer.before_status = true;
  answer.end = StubAnswer::End::silence;
  server.play(answer);
  std::stop_source stop;
  CallContext context;
  context.stop = stop.get_token();
  std::chrono::steady_clock::time_point asked;
  std::jthread asking([&] {
    EXPECT_TRUE(server.wait_for_request(1));
    asked = std::chrono::steady_clock::now();
    stop.request_stop();
  });
  const Failure failure = failure_of(spec_for(server, true), context);
  const auto took = std::chrono::steady_clock::now() - asked;
  EXPECT_EQ(failure.cls, timeout);
  EXPECT_EQ(failure.code, "interrupted");
  EXPECT_LT(took, std::chrono::seconds(2));  // far below every timeout in play
}

TEST(OpenAi, SendsNothingAfterAStopRequest) {
  StubServer server;
  std::stop_source stop;
  stop.request_stop();
  CallContext context;
  context.stop = stop.get_token();
  EXPECT_EQ(failure_of(spec_for(server, true), context).code, "interrupted");
  EXPECT_TRUE(server.requests().empty());
}

TEST(OpenAi, BoundsTheSizeOfAnAnswer) {
  Limits limits;
  limits.result_bytes = 1000;
  StubServer server;
  server.play(StubAnswer::json(200, std::string(100000, 'x')));
  const Failure failure = failure_of(spec_for(server, false), {}, limits);
  EXPECT_EQ(failure.code, "response_too_large");
  EXPECT_EQ(failure.cls, server_error);
  server.play(StubAnswer::json(429, std::string(100000, 'x')));
  EXPECT_EQ(failure_of(spec_for(server, false), {}, limits).cls, rate_limit);
}

TEST(OpenAi, NeedsItsKeyBeforeAnyRequest) {
  StubServer server;
  ProviderSpec spec = spec_for(server, false);
  spec.api_key_env = "HOLDFAST_TEST_MODEL_KEY";
  ::unsetenv("HOLDFAST_TEST_MODEL_KEY");
  const Failure failure = failure_of(spec);
  EXPECT_EQ(failure.cls, configuration);
  EXPECT_NE(failure.message.find("HOLDFAST_TEST_MODEL_KEY"), std::string::npos);
  EXPECT_TRUE(server.requests().empty());
}

TEST(OpenAi, SendsTheKeyAndNeverRepeatsIt) {
  ::setenv("HOLDFAST_TEST_MODEL_KEY", "plainwordsecret", 1);
  StubServer server;
  ProviderSpec spec = spec_for(server, false);
  spec.api_key_env = "HOLDFAST_TEST_MODEL_KEY";
  server.play(StubAnswer::json(401, R"({"error":{"message":"key plainwordsecret is wrong",
                                                 "code":"plainwordsecret"}})"));
  const Failure failure = failure_of(spec);
  EXPECT_EQ(failure.cls, auth);
  EXPECT_EQ((failure.message + failure.code).find("plainwordsecret"), std::string::npos)
      << failure.message;
  EXPECT_EQ(server.requests().at(0).headers.at("authorization"), "Bearer plainwordsecret");

  server.play(StubAnswer::json(200, R"({"choices":"plainwordsecret"})"));
  EXPECT_EQ(failure_of(spec).message.find("plainwordsecret"), std::string::npos);
  ::unsetenv("HOLDFAST_TEST_MODEL_KEY");
}

TEST(OpenAi, NeverFollowsARedirect) {
  StubServer other;
  StubServer server;
  for (int status : {301, 302, 303, 307, 308}) {
    StubAnswer answer = StubAnswer::json(status, "");
    answer.headers.emplace_back("location", other.url());
    server.play(answer);
    EXPECT_EQ(failure_of(spec_for(server, false)).cls, configuration);
  }
  EXPECT_TRUE(other.requests().empty());
}

TEST(OpenAi, RefusesAddressesItCannotUse) {
  for (const char* url : {"", "ftp://example.com", "file:///etc/passwd", "example.com/v1",
                          "http://", "http://a b", "https://user:secret@example.com"}) {
    ProviderSpec spec;
    spec.name = "main";
    spec.base_url = url;
    try {
      make_openai(spec, real_env(), {});
      ADD_FAILURE() << url;
    } catch (const RefusedError& error) {
      EXPECT_EQ(error.refusal(), Refusal::usage);
      EXPECT_NE(std::string(error.what()).find("providers.main.base_url"), std::string::npos);
      EXPECT_EQ(std::string(error.what()).find("secret@"), std::string::npos);
    }
  }
}

TEST(OpenAi, LetsTheObserversExceptionPass) {
  StubServer server;
  server.play(StubAnswer::events(kStream));
  const CallContext context{{}, {}, [](std::string_view) { throw std::runtime_error("observer"); }};
  EXPECT_THROW(ask(spec_for(server, true), context), std::runtime_error);
}

TEST(OpenAi, IsUsableFromManyThreads) {
  StubServer server;
  for (int i = 0; i < 16; ++i) server.play(StubAnswer::json(200, kAnswer));
  const auto provider = make_openai(spec_for(server, false), real_env(), {});
  std::atomic<int> answered = 0;
  const auto call = [&] { answered += provider->complete("gpt", hello(), {}).text == "Hi"; };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 16; ++i) threads.emplace_back(call);
  threads.clear();
  EXPECT_EQ(answered, 16);
}

}  // namespace
}  // namespace holdfast
