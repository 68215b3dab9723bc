#include <gtest/gtest.h>

#include <cstdlib>

#include "provider/anthropic_wire.hpp"
#include "provider/dialect_test_support.hpp"
#include "provider/providers.hpp"

namespace holdfast {
namespace {

using namespace dialect_test;
using enum FailureClass;

const Target kMain{"main", "m"};

Json rendered(const ModelRequest& request, const Target& target = kMain) {
  return Json::parse(render_messages_request(target, request, {1000, true}));
}

/// One event of a stream, by the type that its data names.
std::string ev(const std::string& data) {
  return "event: " + Json::parse(data)["type"].get<std::string>() + "\ndata: " + data + "\n\n";
}

/// A thought, a text and a call, as the API streams them.
const std::vector<std::string> kThoughtTextCall = {
    ev(R"({"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":60,"cache_creation_input_tokens":30,"output_tokens":1}}})"),
    ev(R"({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}})"),
    ev(R"({"type":"ping"})"),
    ev(R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}})"),
    ev(R"({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB/+=="}})"),
    ev(R"({"type":"content_block_stop","index":0})"),
    ev(R"({"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}})"),
    ev(R"({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I l"}})"),
    ev("{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":"
       "\"\xC3\xB6k\"}}"),
    ev(R"({"type":"content_block_stop","index":1})"),
    ev(R"({"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"pay","input":{}}})"),
    ev(R"({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}})"),
    ev(R"({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\": "}})"),
    ev(R"({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"7}"}})"),
    ev(R"({"type":"content_block_stop","index":2})"),
    ev(R"({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":25,"output_tokens_details":{"thinking_tokens":9}}})"),
    ev(R"({"type":"message_stop"})"),
};

std::string whole_answer(const std::string& content, const std::string& stop_reason) {
  return R"({"id":"msg_1","type":"message","role":"assistant","content":)" + content +
         R"(,"stop_reason":")" + stop_reason + R"(","usage":{"input_tokens":3,"output_tokens":4}})";
}

TEST(Anthropic, RendersTheConversationAsTheApiWantsIt) {
  EXPECT_EQ(rendered(conversation()), Json::parse(R"({
    "model": "m", "max_tokens": 1000, "stream": true, "system": "You sort.",
    "tools": [
      {"name": "look_up_c2199496", "description": "Looks",
       "input_schema": {"type": "object", "properties": {}}},
      {"name": "pay", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}],
    "messages": [
      {"role": "user", "content": [{"type": "text", "text": "hello"}]},
      {"role": "assistant", "content": [
        {"type": "text", "text": "I look"},
        {"type": "tool_use", "id": "call00001", "name": "look_up_c2199496", "input": {"a": 2, "b": 1}},
        {"type": "tool_use", "id": "call00002", "name": "pay",
         "input": {"unreadable_arguments": "{oops"}}]},
      {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "call00001", "content": "found"},
        {"type": "tool_result", "tool_use_id": "call00002", "content": "no", "is_error": true}]}]})"));
  const ModelRequest request = conversation();
  EXPECT_EQ(render_messages_request(kMain, request, {5, false}),
            render_messages_request(kMain, request, {5, false}));
  EXPECT_FALSE(Json::parse(render_messages_request(kMain, request, {5, false})).contains("stream"));
}

TEST(Anthropic, SendsNoEmptyTexts) {
  ModelRequest request;
  request.messages = {said(Message::Role::user, " \n"), said(Message::Role::assistant, "")};
  EXPECT_EQ(rendered(request)["messages"], Json::parse(R"_([
    {"role": "user", "content": [{"type": "text", "text": "(empty)"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "(empty)"}]}])_"));
  request = conversation();
  request.messages[2].text.clear();
  request.messages[3].text.clear();
  const Json messages = rendered(request)["messages"];
  EXPECT_EQ(messages[1]["content"].size(), 2u);
  EXPECT_FALSE(messages[2]["content"][0].contains("content"));
}

TEST(Anthropic, PutsTheStreamTogetherHoweverItIsCutIntoPieces) {
  for (std::size_t piece : {std::size_t{1}, std::size_t{9}, std::size_t{0}}) {
    StubServer server;
    server.play(StubAnswer::events(joined(kThoughtTextCall, 99), piece));
    std::string seen;
    CallContext context;
    context.on_text = [&](std::string_view text) { seen += text; };
    const ModelReply reply = ask(dialect_spec(server, "anthropic", true), context);
    EXPECT_EQ(reply.text, "I l\xC3\xB6k");
    EXPECT_EQ(seen, reply.text) << "thoughts are not shown as text";
    ASSERT_EQ(reply.calls.size(), 1u);
    EXPECT_EQ(reply.calls[0].name, "pay");
    EXPECT_EQ(reply.calls[0].arguments, (Json{{"n", 7}}));
    EXPECT_EQ(reply.finish, "tool_calls");
    EXPECT_EQ(reply.usage.prompt_tokens, 100) << "its cache is counted apart by the API";
    EXPECT_EQ(reply.usage.cached_tokens, 60);
    EXPECT_EQ(reply.usage.cache_write_tokens, 30);
    EXPECT_EQ(reply.usage.completion_tokens, 25) << "the later count is the total";
    EXPECT_EQ(reply.usage.reasoning_tokens, 9);
    EXPECT_EQ(reply.usage.total_tokens, 125);
    EXPECT_FALSE(reply.usage.estimated);
  }
}

TEST(Anthropic, AsksAsTheApiWantsIt) {
  ::setenv("HOLDFAST_TEST_ANTHROPIC", "sk-ant-0123456789", 1);
  StubServer server;
  server.play(StubAnswer::json(200, whole_answer(R"([{"type":"text","text":"Hi"}])", "end_turn")));
  ProviderSpec spec = dialect_spec(server, "anthropic", false);
  spec.api_key_env = "HOLDFAST_TEST_ANTHROPIC";
  spec.headers = {{"Anthropic-Version", "2099-01-01"}};
  EXPECT_EQ(ask(spec).text, "Hi");
  ::unsetenv("HOLDFAST_TEST_ANTHROPIC");
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].line, "POST /v1/messages HTTP/1.1");
  EXPECT_EQ(requests[0].headers.at("x-api-key"), "sk-ant-0123456789");
  EXPECT_EQ(requests[0].headers.at("anthropic-version"), "2099-01-01");
  EXPECT_FALSE(requests[0].headers.contains("authorization"));
  EXPECT_EQ(Json::parse(requests[0].body)["max_tokens"], 16384);
}

TEST(Anthropic, SendsSignedThoughtsBackToTheirMakerAlone) {
  StubServer server;
  server.play(StubAnswer::events(joined(kThoughtTextCall, 99)));
  const ModelReply reply = ask(dialect_spec(server, "anthropic", true));
  ModelRequest request = conversation("main/m", reply.opaque);
  request.messages[2].text = reply.text;
  request.messages[2].calls = reply.calls;
  request.messages[2].calls[0].id = "1.1";
  request.messages.resize(4);
  EXPECT_EQ(rendered(request)["messages"][1]["content"], Json::parse(R"([
    {"type": "thinking", "thinking": "Hm", "signature": "EqQB/+=="},
    {"type": "text", "text": "I lök"},
    {"type": "tool_use", "id": "call00001", "name": "pay", "input": {"n": 7}}])"));
  for (const Target& other : {Target{"main", "m2"}, Target{"backup", "m"}}) {
    EXPECT_EQ(rendered(request, other)["messages"][1]["content"].size(), 2u);
  }
}

TEST(Anthropic, CountsAStreamOnlyWithItsLastEvent) {
  expect_cut_everywhere(kThoughtTextCall, "anthropic");
}

TEST(Anthropic, RefusesWhatBelongsToNoAnswer) {
  expect_garbage_refused(
      kThoughtTextCall[0] + kThoughtTextCall[1],
      {"data: oops\n\n", "data: [1]\n\n", "data: {\"x\":1}\n\n",
       ev(R"({"type":"content_block_start","index":0,"content_block":{"type":"text"}})"),
       ev(R"({"type":"content_block_start","index":"1","content_block":{"type":"text"}})"),
       ev(R"({"type":"content_block_start","index":1,"content_block":7})"),
       ev(R"({"type":"content_block_delta","index":5,"delta":{"type":"text_delta","text":"x"}})"),
       ev(R"({"type":"content_block_delta","index":0,"delta":7})"),
       ev(R"({"type":"content_block_stop","index":5})"), ev(R"({"type":"message_stop"})"),
       ev(R"({"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":"pay"}})") +
           kThoughtTextCall[15] + kThoughtTextCall[16],
       ev(R"({"type":"content_block_start","index":1,"content_block":{"type":"tool_use"}})") +
           ev(R"({"type":"content_block_stop","index":1})") + kThoughtTextCall[15] +
           kThoughtTextCall[16]},
      "anthropic");
}

TEST(Anthropic, JudgesErrorsInsideAStreamByTheirOwnWords) {
  const std::pair<const char*, FailureClass> cases[] = {
      {"overloaded_error", overloaded},   {"rate_limit_error", rate_limit},
      {"api_error", server_error},        {"timeout_error", timeout},
      {"billing_error", quota_exhausted}, {"invalid_request_error", client_error},
      {"authentication_error", auth},     {"something_new", unknown}};
  for (const auto& [type, cls] : cases) {
    for (const bool is_first : {true, false}) {
      StubServer server;
      const std::string error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"" +
                                std::string(type) + "\",\"message\":\"x\"}}\n\n";
      server.play(StubAnswer::events((is_first ? "" : joined(kThoughtTextCall, 8)) + error));
      const Failure failure = failure_of(dialect_spec(server, "anthropic", true));
      EXPECT_EQ(to_word(failure.cls), to_word(cls)) << type << ": " << failure.message;
      EXPECT_EQ(failure.code, type);
    }
  }
}

TEST(Anthropic, TakesAnErrorThatWasCutForACut) {
  StubServer server;
  server.play(StubAnswer::events("event: error\ndata: {\"type\":\"error\",\"err"));
  EXPECT_EQ(failure_of(dialect_spec(server, "anthropic", true)).cls, connection);
}

TEST(Anthropic, DeclaresToolsAsTakingAnObject) {
  ModelRequest request;
  request.tools = {ToolDefinition{"a", "", nullptr},
                   ToolDefinition{"b", "", Json{{"required", {"x"}}}}};
  const Json tools = rendered(request)["tools"];
  EXPECT_EQ(tools[0]["input_schema"], Json::parse(R"({"type":"object","properties":{}})"));
  EXPECT_EQ(tools[1]["input_schema"]["type"], "object");
}

TEST(Anthropic, CountsWhatABrokenStreamSaidThatItUsed) {
  StubServer server;
  server.play(StubAnswer::events(joined(kThoughtTextCall, 9)));
  ModelRequest request;
  request.messages = {said(Message::Role::user, "hello")};
  const auto provider =
      make_anthropic(dialect_spec(server, "anthropic", true), real_env(), Limits{});
  try {
    provider->complete("m", request, {});
    ADD_FAILURE() << "answered";
  } catch (const PaidFailure& paid) {
    EXPECT_EQ(paid.failure().cls, connection);
    EXPECT_EQ(paid.used().prompt_tokens, 100) << "as the stream said";
    EXPECT_EQ(paid.used().completion_tokens, 2) << "counted here: the stream said 1 at its start";
    EXPECT_TRUE(paid.used().estimated);
  }
}

TEST(Anthropic, ReadsEveryEndOfAnAnswer) {
  const std::string text = R"([{"type":"text","text":"Hi"}])";
  const std::string call = R"([{"type":"tool_use","id":"t","name":"pay","input":{"n":1}}])";
  const std::string search = R"([{"type":"server_tool_use","id":"s","name":"web","input":{}}])";
  struct Case {
    std::string content;
    const char* reason;
    const char* finish;  ///< null: it fails
    FailureClass cls = unknown;
  };
  const Case cases[] = {
      {text, "end_turn", "stop"},
      {text, "stop_sequence", "stop"},
      {text, "max_tokens", "length"},
      {text, "pause_turn", "pause"},
      {search, "pause_turn", "pause"},
      {text, "brand_new_reason", "brand_new_reason"},
      {call, "tool_use", "tool_calls"},
      {call, "end_turn", "tool_calls"},
      {text, "refusal", nullptr, content_policy},
      {"[]", "refusal", nullptr, content_policy},
      {text, "model_context_window_exceeded", nullptr, context_length},
      {"[]", "end_turn", nullptr, server_error},
      {text, "", nullptr, server_error},
      {"7", "end_turn", nullptr, server_error},
      {"[7]", "end_turn", nullptr, server_error},
  };
  for (const Case& c : cases) {
    StubServer server;
    server.play(StubAnswer::json(200, whole_answer(c.content, c.reason)));
    const ProviderSpec spec = dialect_spec(server, "anthropic", false);
    if (c.finish != nullptr) {
      EXPECT_EQ(ask(spec).finish, c.finish) << c.content << c.reason;
    } else {
      EXPECT_EQ(to_word(failure_of(spec).cls), to_word(c.cls)) << c.content << c.reason;
    }
  }
}

TEST(Anthropic, UsesNoCallThatTheLimitCut) {
  StubServer server;
  server.play(StubAnswer::json(
      200, whole_answer(R"([{"type":"tool_use","id":"a","name":"pay","input":{"n":1}},
                            {"type":"tool_use","id":"b","name":"pay","input":{"n":1}}])",
                        "max_tokens")));
  const ModelReply reply = ask(dialect_spec(server, "anthropic", false));
  ASSERT_EQ(reply.calls.size(), 2u);
  EXPECT_FALSE(reply.calls[0].bad_arguments.has_value());
  EXPECT_TRUE(reply.calls[1].bad_arguments.has_value());
}

TEST(Anthropic, KeepsWhatAPauseConsistsOf) {
  StubServer server;
  server.play(StubAnswer::json(
      200, whole_answer(R"([{"type":"server_tool_use","id":"s","name":"web","input":{"q":1}}])",
                        "pause_turn")));
  const ModelReply reply = ask(dialect_spec(server, "anthropic", false));
  ModelRequest request;
  Message answer = said(Message::Role::assistant, reply.text);
  answer.opaque = reply.opaque;
  answer.made_by = "main/m";
  request.messages = {said(Message::Role::user, "hello"), answer};
  EXPECT_EQ(rendered(request)["messages"][1]["content"],
            Json::parse(R"([{"type":"server_tool_use","id":"s","name":"web","input":{"q":1}}])"));
}

}  // namespace
}  // namespace holdfast
