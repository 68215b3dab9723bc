#include <gtest/gtest.h>

#include <cstdlib>

#include "provider/dialect_test_support.hpp"
#include "provider/gemini_wire.hpp"

namespace holdfast {
namespace {

using namespace dialect_test;
using enum FailureClass;

Json asked(const ModelRequest& request, const Target& target = {"main", "m"}) {
  return Json::parse(render_gemini_request(target, request));
}

std::string ge(const std::string& data) { return "data: " + data + "\n\n"; }

std::string candidate(const std::string& parts, const std::string& finish = "") {
  return R"({"candidates":[{"index":0,"content":{"role":"model","parts":[)" + parts + "]}" +
         (finish.empty() ? "" : R"(,"finishReason":")" + finish + "\"") +
         R"(}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":16,"thoughtsTokenCount":9,"totalTokenCount":125},"modelVersion":"m"})";
}

const std::vector<std::string> kChunks = {
    ge(candidate(R"({"text":"Thinking aloud","thought":true})")),
    ge(candidate(R"({"text":"I l"})")),
    ge(candidate(
        R"({"text":"ook"},{"functionCall":{"name":"pay","args":{"n":7}},"thoughtSignature":"Es8C/+=="})")),
    ge(candidate(R"({"functionCall":{"id":"fc-2","name":"look_up_c2199496","args":{}}})")),
    ge(candidate(R"({"text":"","thoughtSignature":"Last=="})", "STOP")),
};

TEST(Gemini, RendersTheConversationAsTheApiWantsIt) {
  EXPECT_EQ(asked(conversation()), Json::parse(R"({
    "systemInstruction": {"parts": [{"text": "You sort."}]},
    "tools": [{"functionDeclarations": [
      {"name": "look_up_c2199496", "description": "Looks"},
      {"name": "pay", "parametersJsonSchema":
        {"type": "object", "properties": {"n": {"type": "integer"}}}}]}],
    "contents": [
      {"role": "user", "parts": [{"text": "hello"}]},
      {"role": "model", "parts": [
        {"text": "I look"},
        {"functionCall": {"name": "look_up_c2199496", "args": {"a": 2, "b": 1}},
         "thoughtSignature": "skip_thought_signature_validator"},
        {"functionCall": {"name": "pay", "args": {"unreadable_arguments": "{oops"}}}]},
      {"role": "user", "parts": [
        {"functionResponse": {"name": "look_up_c2199496", "response": {"output": "found"}}},
        {"functionResponse": {"name": "pay", "response": {"error": "no"}}}]}]})"));
}

TEST(Gemini, SendsNoEmptyContentsAndNoNamesItRefuses) {
  ModelRequest request;
  request.messages = {said(Message::Role::user, "")};
  request.tools = {ToolDefinition{"3d-print", "", nullptr}};
  const Json body = asked(request);
  EXPECT_EQ(body["contents"][0]["parts"][0]["text"], "(empty)");
  EXPECT_FALSE(body.contains("systemInstruction"));
  const std::string name = body["tools"][0]["functionDeclarations"][0]["name"];
  EXPECT_EQ(name.substr(0, 10), "_3d_print_");
}

TEST(Gemini, PutsTheStreamTogetherHoweverItIsCutIntoPieces) {
  for (std::size_t piece : {std::size_t{1}, std::size_t{9}, std::size_t{0}}) {
    StubServer server;
    server.play(StubAnswer::events(joined(kChunks, 99), piece));
    std::string seen;
    CallContext context;
    context.on_text = [&](std::string_view text) { seen += text; };
    const ModelReply reply = ask(dialect_spec(server, "gemini", true), context);
    EXPECT_EQ(reply.text, "I look");
    EXPECT_EQ(seen, reply.text) << "thoughts are not shown as text";
    ASSERT_EQ(reply.calls.size(), 2u);
    EXPECT_EQ(reply.calls[0].arguments, (Json{{"n", 7}}));
    EXPECT_EQ(reply.calls[1].name, "look.up");
    EXPECT_EQ(reply.finish, "tool_calls");
    EXPECT_EQ(reply.usage, (ModelUsage{{100, 25, 125, 0}, 60, 0, 9, false}));
  }
}

TEST(Gemini, AsksAsTheApiWantsIt) {
  ::setenv("HOLDFAST_TEST_GEMINI", "AIza-0123456789", 1);
  StubServer server;
  server.play(StubAnswer::json(200, candidate(R"({"text":"Hi"})", "STOP")));
  server.play(StubAnswer::events(ge(candidate(R"({"text":"Hi"})", "STOP"))));
  ProviderSpec spec = dialect_spec(server, "gemini", false);
  spec.api_key_env = "HOLDFAST_TEST_GEMINI";
  EXPECT_EQ(ask(spec).text, "Hi");
  spec.stream = true;
  spec.base_url = "http://127.0.0.1:" + std::to_string(server.port()) + "/";
  EXPECT_EQ(ask(spec).text, "Hi");
  ::unsetenv("HOLDFAST_TEST_GEMINI");
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].line, "POST /v1/models/m:generateContent HTTP/1.1");
  EXPECT_EQ(requests[0].headers.at("x-goog-api-key"), "AIza-0123456789");
  EXPECT_EQ(requests[1].line, "POST /v1beta/models/m:streamGenerateContent?alt=sse HTTP/1.1");
}

TEST(Gemini, PutsNamesOfModelsIntoThePathAsTheyAre) {
  StubServer server;
  server.play(StubAnswer::json(200, candidate(R"({"text":"Hi"})", "STOP")));
  ModelRequest request;
  request.messages = {said(Message::Role::user, "hello")};
  make_chain({dialect_spec(server, "gemini", false)}, real_env(), Limits{})
      ->complete({"main/tunedModels/a b?c"}, {}, request, {});
  EXPECT_EQ(server.requests().at(0).line,
            "POST /v1/tunedModels/a%20b%3Fc:generateContent HTTP/1.1");
}

TEST(Gemini, SendsSignaturesBackToTheirMakerAlone) {
  StubServer server;
  server.play(StubAnswer::events(joined(kChunks, 99)));
  const ModelReply reply = ask(dialect_spec(server, "gemini", true));
  ModelRequest request = conversation("main/m", reply.opaque);
  request.messages[2].text = reply.text;
  request.messages[2].calls = reply.calls;
  request.messages[2].calls[0].id = "1.1";
  request.messages[2].calls[1].id = "1.2";
  request.messages[3].tool_name = "pay";
  request.messages[4].tool_name = "look.up";
  const Json contents = asked(request)["contents"];
  EXPECT_EQ(contents[1]["parts"], Json::parse(R"([
    {"text": "I look"},
    {"functionCall": {"name": "pay", "args": {"n": 7}}, "thoughtSignature": "Es8C/+=="},
    {"functionCall": {"id": "fc-2", "name": "look_up_c2199496", "args": {}}},
    {"text": "", "thoughtSignature": "Last=="}])"));
  EXPECT_FALSE(contents[2]["parts"][0]["functionResponse"].contains("id"));
  EXPECT_EQ(contents[2]["parts"][1]["functionResponse"]["id"], "fc-2");
  for (const Target& other : {Target{"main", "m2"}, Target{"backup", "m"}}) {
    const Json foreign = asked(request, other)["contents"];
    EXPECT_EQ(foreign.dump().find("Es8C"), std::string::npos);
    EXPECT_EQ(foreign[1]["parts"][1]["thoughtSignature"], "skip_thought_signature_validator");
    EXPECT_FALSE(foreign[2]["parts"][1]["functionResponse"].contains("id"));
  }
  request.messages[2].opaque = nullptr;
  EXPECT_EQ(asked(request).dump().find("thoughtSignature"), std::string::npos)
      << "a model that gave none wants none";
}

TEST(Gemini, CountsAStreamOnlyWithItsEndReason) { expect_cut_everywhere(kChunks, "gemini"); }

TEST(Gemini, RefusesWhatBelongsToNoAnswer) {
  expect_garbage_refused(
      kChunks[1],
      {"data: oops\n\n", "data: [1]\n\n", "data: 7\n\n", ge(R"({"candidates":7})"),
       ge(R"({"candidates":[7]})"), ge(R"({"candidates":[{"content":{"parts":7}}]})"),
       ge(R"({"candidates":[{"content":{"parts":[7]}}]})"),
       ge(R"({"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]})")},
      "gemini");
}

TEST(Gemini, JudgesErrorsInsideAStream) {
  const std::pair<std::string, FailureClass> cases[] = {
      {R"({"error":{"code":503,"message":"x","status":"UNAVAILABLE"}})", overloaded},
      {R"([{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}])", rate_limit},
      {R"({"error":{"code":500,"message":"x","status":"INTERNAL"}})", server_error},
      {R"({"error":{"message":"x","status":"BRAND_NEW"}})", unknown}};
  for (const auto& [data, cls] : cases) {
    for (const std::size_t before : {std::size_t{0}, std::size_t{2}}) {
      StubServer server;
      server.play(StubAnswer::events(joined(kChunks, before) + ge(data)));
      const Failure failure = failure_of(dialect_spec(server, "gemini", true));
      EXPECT_EQ(to_word(failure.cls), to_word(cls)) << data << ": " << failure.message;
    }
  }
}

TEST(Gemini, ReadsEveryEndOfAnAnswer) {
  const std::string text = R"({"text":"Hi"})";
  struct Case {
    std::string answer;
    const char* finish;  ///< null: it fails
    FailureClass cls = unknown;
  };
  std::vector<Case> cases = {
      {candidate(text, "STOP"), "stop"},
      {candidate(text, "MAX_TOKENS"), "length"},
      {candidate("", "MAX_TOKENS"), "length"},
      {candidate(text, "SOMETHING_NEW"), "SOMETHING_NEW"},
      {candidate(R"({"functionCall":{"name":"pay"}})", "FUNCTION_CALL"), "tool_calls"},
      {"[" + candidate(text) + "," + candidate("", "STOP") + "]", "stop"},
      {candidate("", "STOP"), nullptr, server_error},
      {candidate(text), nullptr, server_error},
      {R"({"promptFeedback":{"blockReason":"OTHER"}})", nullptr, content_policy},
      {"[" + candidate(text) + R"(,{"error":{"code":503,"status":"UNAVAILABLE"}}])", nullptr,
       overloaded},
  };
  for (const char* reason : {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT",
                             "SPII", "IMAGE_SAFETY"}) {
    cases.push_back({candidate(text, reason), nullptr, content_policy});
  }
  for (const char* reason :
       {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER"}) {
    cases.push_back({candidate(text, reason), nullptr, server_error});
  }
  for (const Case& c : cases) {
    for (const bool stream : {false, true}) {
      if (stream && c.answer.starts_with('[')) continue;
      StubServer server;
      server.play(stream ? StubAnswer::events(ge(c.answer)) : StubAnswer::json(200, c.answer));
      const ProviderSpec spec = dialect_spec(server, "gemini", stream);
      if (c.finish != nullptr) {
        EXPECT_EQ(ask(spec).finish, c.finish) << c.answer;
      } else {
        const Failure failure = failure_of(spec);
        const bool is_cut = stream && c.answer == candidate(text);
        EXPECT_EQ(to_word(failure.cls), to_word(is_cut ? connection : c.cls)) << c.answer;
      }
    }
  }
}

}  // namespace
}  // namespace holdfast
