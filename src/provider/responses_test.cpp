#include <gtest/gtest.h>

#include "provider/dialect_test_support.hpp"
#include "provider/responses_wire.hpp"

namespace holdfast {
namespace {

using namespace dialect_test;
using enum FailureClass;

const Target kModel{"main", "gpt-5"};

Json sent(const ModelRequest& request, const Target& target = kModel) {
  return Json::parse(render_responses_request(target, request, true));
}

std::string re(const std::string& data) {
  return "event: " + Json::parse(data)["type"].get<std::string>() + "\ndata: " + data + "\n\n";
}

const std::string kReasoning =
    R"({"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA/+=="})";
const std::string kSaid =
    R"({"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look","annotations":[]}]})";
const std::string kCalled =
    R"({"type":"function_call","id":"fc_1","call_id":"call_abc","name":"pay","arguments":"{\"n\": 7}","status":"completed"})";

std::string response_object(const std::string& output, const std::string& status = "completed",
                            const std::string& more = "") {
  return R"({"id":"resp_1","object":"response","status":")" + status +
         R"(","error":null,"output":[)" + output +
         R"(],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":25,"output_tokens_details":{"reasoning_tokens":9},"total_tokens":125})" +
         more + "}";
}

const std::string kWhole = response_object(kReasoning + "," + kSaid + "," + kCalled);

const std::vector<std::string> kEvents = {
    re(R"({"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","error":null,"output":[]}})"),
    re(R"({"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1"}})"),
    re(R"({"type":"response.output_item.done","output_index":0,"item":)" + kReasoning + "}"),
    re(R"({"type":"response.output_text.delta","output_index":1,"delta":"I l"})"),
    re(R"({"type":"response.output_text.delta","output_index":1,"delta":"ook"})"),
    re(R"({"type":"response.output_item.done","output_index":1,"item":)" + kSaid + "}"),
    re(R"({"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"n\""})"),
    re(R"({"type":"response.output_item.done","output_index":2,"item":)" + kCalled + "}"),
    re(R"({"type":"response.completed","response":)" + kWhole + "}"),
};

ProviderSpec responses_spec(const StubServer& server, bool stream) {
  return dialect_spec(server, "openai", stream, "responses");
}

TEST(Responses, RendersTheConversationAsTheApiWantsIt) {
  EXPECT_EQ(sent(conversation()), Json::parse(R"({
    "model": "gpt-5", "store": false, "stream": true, "instructions": "You sort.",
    "include": ["reasoning.encrypted_content"],
    "tools": [
      {"type": "function", "name": "look_up_c2199496", "description": "Looks", "strict": false,
       "parameters": {"type": "object", "properties": {}}},
      {"type": "function", "name": "pay", "description": "", "strict": false,
       "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}],
    "input": [
      {"role": "user", "content": "hello"},
      {"role": "assistant", "content": "I look"},
      {"type": "function_call", "call_id": "call00001", "name": "look_up_c2199496",
       "arguments": "{\"a\":2,\"b\":1}"},
      {"type": "function_call", "call_id": "call00002", "name": "pay",
       "arguments": "{\"unreadable_arguments\":\"{oops\"}"},
      {"type": "function_call_output", "call_id": "call00001", "output": "found"},
      {"type": "function_call_output", "call_id": "call00002", "output": "no"}]})"));
}

TEST(Responses, AsksOnlyModelsThatReasonForTheirSealedReasoning) {
  for (const char* model : {"gpt-5", "o4-mini", "openai/gpt-5-mini", "something-new"}) {
    EXPECT_TRUE(sent(conversation(), {"main", model}).contains("include")) << model;
  }
  for (const char* model : {"gpt-4o", "gpt-4.1-mini", "openai/gpt-4o", "gpt-3.5-turbo",
                            "chatgpt-4o-latest", "gpt-5-chat-latest"}) {
    EXPECT_FALSE(sent(conversation(), {"main", model}).contains("include")) << model;
  }
}

TEST(Responses, TakesTheResponseAtTheEndOfItsStream) {
  for (std::size_t piece : {std::size_t{1}, std::size_t{9}, std::size_t{0}}) {
    StubServer server;
    server.play(StubAnswer::events(joined(kEvents, 99), piece));
    std::string seen;
    CallContext context;
    context.on_text = [&](std::string_view text) { seen += text; };
    const ModelReply reply = ask(responses_spec(server, true), context);
    EXPECT_EQ(reply.text, "I look");
    EXPECT_EQ(seen, reply.text);
    ASSERT_EQ(reply.calls.size(), 1u);
    EXPECT_EQ(reply.calls[0].name, "pay");
    EXPECT_EQ(reply.calls[0].arguments, (Json{{"n", 7}}));
    EXPECT_EQ(reply.finish, "tool_calls");
    EXPECT_EQ(reply.usage, (ModelUsage{{100, 25, 125, 0}, 60, 0, 9, false}));
    EXPECT_EQ(server.requests().at(0).line, "POST /v1/responses HTTP/1.1");
  }
}

TEST(Responses, TakesTheItemsOfTheStreamWhereItsEndLeavesThemOut) {
  std::vector<std::string> events = kEvents;
  events.back() =
      re(R"({"type":"response.completed","response":{"status":"completed","output":[]}})");
  StubServer server;
  server.play(StubAnswer::events(joined(events, 99)));
  const ModelReply reply = ask(responses_spec(server, true));
  EXPECT_EQ(reply.text, "I look");
  EXPECT_EQ(reply.calls.size(), 1u);
  EXPECT_TRUE(reply.usage.estimated);
}

TEST(Responses, SendsReasoningBackToItsMakerAlone) {
  StubServer server;
  server.play(StubAnswer::json(200, kWhole));
  const ModelReply reply = ask(responses_spec(server, false));
  ModelRequest request = conversation("main/gpt-5", reply.opaque);
  request.messages[2].text = reply.text;
  request.messages[2].calls = reply.calls;
  request.messages[2].calls[0].id = "1.1";
  request.messages.resize(4);
  const Json input = sent(request)["input"];
  ASSERT_EQ(input.size(), 5u);
  EXPECT_EQ(input[1], Json::parse(kReasoning)) << "as it came";
  EXPECT_EQ(input[2], Json::parse(kSaid));
  EXPECT_EQ(input[3]["id"], "fc_1");
  EXPECT_EQ(input[3]["call_id"], "call00001");
  EXPECT_EQ(input[4]["call_id"], "call00001");
  for (const Target& other : {Target{"main", "gpt-6"}, Target{"backup", "gpt-5"}}) {
    const Json plain = sent(request, other)["input"];
    ASSERT_EQ(plain.size(), 4u);
    EXPECT_EQ(plain[1], Json::parse(R"({"role":"assistant","content":"I look"})"));
    EXPECT_FALSE(plain[2].contains("id"));
  }
}

TEST(Responses, KeepsNoIdsThatWouldLeadNowhere) {
  const std::string unsealed = R"({"type":"reasoning","id":"rs_1","summary":[]},)";
  for (const std::string& head : {unsealed, std::string(), unsealed + kReasoning + ","}) {
    const auto read = read_response_object(Json::parse(response_object(head + kSaid)));
    EXPECT_TRUE(std::get<RawReply>(read).opaque.is_null()) << head;
  }
}

TEST(Responses, CountsAStreamOnlyWithItsEnd) {
  expect_cut_everywhere(kEvents, "openai", "responses");
}

TEST(Responses, RefusesWhatBelongsToNoAnswer) {
  expect_garbage_refused(
      kEvents[0],
      {"data: oops\n\n", "data: [1]\n\n", "data: {\"x\":1}\n\n",
       re(R"({"type":"response.output_item.done"})"), re(R"({"type":"response.completed"})"),
       re(R"({"type":"response.completed","response":{"status":"queued","output":[]}})"),
       re(R"({"type":"response.completed","response":{"status":"completed"}})"),
       re(R"({"type":"response.completed","response":{"status":"completed","output":7}})"),
       re(R"({"type":"response.completed","response":{"status":"completed","output":[{}]}})"),
       re(R"({"type":"response.completed","response":{"status":"completed","output":[]}})"),
       re(R"({"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call"}]}})"),
       re(R"({"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":7}]}})")},
      "openai", "responses");
}

TEST(Responses, JudgesErrorsInsideAStreamHoweverTheyAreWrapped) {
  const std::pair<std::string, FailureClass> cases[] = {
      {R"({"type":"error","code":"rate_limit_exceeded","message":"x"})", rate_limit},
      {R"({"type":"error","error":{"type":"server_error","code":"rate_limit_exceeded"}})",
       rate_limit},
      {R"({"type":"error","code":null,"message":"x"})", server_error},
      {R"({"type":"error","code":"brand_new","message":"x"})", unknown},
      {R"({"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"}}})",
       server_error},
      {R"({"type":"response.failed","response":{"status":"failed","error":null}})", server_error},
      {R"({"type":"response.failed","response":{"error":{"code":"insufficient_quota"}}})",
       quota_exhausted},
      {R"({"type":"response.failed","response":{"error":{"code":"context_length_exceeded"}}})",
       context_length}};
  for (const auto& [data, cls] : cases) {
    for (const std::size_t before : {std::size_t{0}, std::size_t{5}}) {
      StubServer server;
      server.play(StubAnswer::events(joined(kEvents, before) + re(data)));
      const Failure failure = failure_of(responses_spec(server, true));
      EXPECT_EQ(to_word(failure.cls), to_word(cls)) << data << ": " << failure.message;
    }
  }
}

TEST(Responses, ReadsEveryEndOfAnAnswer) {
  const std::string refusal =
      R"({"type":"message","content":[{"type":"refusal","refusal":"I cannot"}]})";
  const auto because = [](const std::string& reason) {
    return R"(,"incomplete_details":{"reason":")" + reason + R"("})";
  };
  struct Case {
    std::string answer;
    const char* finish;  ///< null: it fails
    FailureClass cls = unknown;
  };
  const Case cases[] = {
      {response_object(kSaid), "stop"},
      {response_object(kSaid, "incomplete", because("max_output_tokens")), "length"},
      {response_object(kSaid, "incomplete", because("something_new")), "length"},
      {response_object(kSaid, "incomplete"), "length"},
      {response_object(kSaid, "incomplete", because("content_filter")), nullptr, content_policy},
      {response_object(refusal), nullptr, content_policy},
      {response_object(kSaid, "failed"), nullptr, server_error},
      {response_object(kSaid, "cancelled"), nullptr, server_error},
      {response_object(kSaid, "queued"), nullptr, server_error},
      {response_object(""), nullptr, server_error},
      {response_object(kReasoning), nullptr, server_error},
  };
  for (const Case& c : cases) {
    StubServer server;
    server.play(StubAnswer::json(200, c.answer));
    const ProviderSpec spec = responses_spec(server, false);
    if (c.finish != nullptr) {
      EXPECT_EQ(ask(spec).finish, c.finish) << c.answer;
    } else {
      EXPECT_EQ(to_word(failure_of(spec).cls), to_word(c.cls)) << c.answer;
    }
  }
}

TEST(Responses, UsesNoCallThatTheLimitCut) {
  const std::string cut_call =
      R"({"type":"function_call","name":"pay","arguments":"{\"n\":1}","status":"incomplete"})";
  StubServer server;
  server.play(StubAnswer::json(200, response_object(kCalled + "," + cut_call, "incomplete")));
  const ModelReply reply = ask(responses_spec(server, false));
  ASSERT_EQ(reply.calls.size(), 2u);
  EXPECT_FALSE(reply.calls[0].bad_arguments.has_value());
  EXPECT_TRUE(reply.calls[1].bad_arguments.has_value());
}

}  // namespace
}  // namespace holdfast
