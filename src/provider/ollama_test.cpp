#include <gtest/gtest.h>

#include "provider/dialect_test_support.hpp"
#include "provider/ollama_wire.hpp"

namespace holdfast {
namespace {

using namespace dialect_test;
using enum FailureClass;

constexpr const char* kLines = "application/x-ndjson";

const std::vector<std::string> kParts = {
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"Hm\"},"
    "\"done\":false}\n",
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"I l\"},\"done\":false}\n",
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\xC3\xB6k\"},"
    "\"done\":false}\n",
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{"
    "\"function\":{\"name\":\"pay\",\"arguments\":{\"n\":7}}},{\"id\":\"c\",\"function\":{\"name\":"
    "\"look_up_c2199496\",\"arguments\":{}}}]},\"done\":false}\n",
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,"
    "\"done_reason\":\"stop\",\"prompt_eval_count\":30,\"eval_count\":12}\n",
};

TEST(Ollama, RendersTheConversationAsTheApiWantsIt) {
  EXPECT_EQ(Json::parse(render_ollama_request("m", conversation(), true)), Json::parse(R"({
    "model": "m", "stream": true,
    "tools": [
      {"type": "function", "function": {"name": "look_up_c2199496", "description": "Looks",
       "parameters": {"type": "object", "properties": {}}}},
      {"type": "function", "function": {"name": "pay", "description": "",
       "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}}],
    "messages": [
      {"role": "system", "content": "You sort."},
      {"role": "user", "content": "hello"},
      {"role": "assistant", "content": "I look", "tool_calls": [
        {"id": "call00001", "function": {"name": "look_up_c2199496", "arguments": {"a": 2, "b": 1}}},
        {"id": "call00002", "function": {"name": "pay",
         "arguments": {"unreadable_arguments": "{oops"}}}]},
      {"role": "tool", "tool_name": "look_up_c2199496", "tool_call_id": "call00001",
       "content": "found"},
      {"role": "tool", "tool_name": "pay", "tool_call_id": "call00002", "content": "no"}]})"));
  EXPECT_EQ(Json::parse(render_ollama_request("m", {}, false))["stream"], false);
}

TEST(Ollama, PutsTheLinesTogetherHoweverTheyAreCutIntoPieces) {
  for (std::size_t piece : {std::size_t{1}, std::size_t{9}, std::size_t{0}}) {
    StubServer server;
    server.play(streamed(joined(kParts, 99), kLines, piece));
    std::string seen;
    CallContext context;
    context.on_text = [&](std::string_view text) { seen += text; };
    const ModelReply reply = ask(dialect_spec(server, "ollama", true), context);
    EXPECT_EQ(reply.text, "I l\xC3\xB6k");
    EXPECT_EQ(seen, reply.text);
    ASSERT_EQ(reply.calls.size(), 2u);
    EXPECT_EQ(reply.calls[0].arguments, (Json{{"n", 7}}));
    EXPECT_EQ(reply.calls[1].name, "look.up");
    EXPECT_EQ(reply.finish, "tool_calls");
    EXPECT_EQ(reply.usage, (ModelUsage{{30, 12, 42, 0}, 0, 0, 0, false}));
  }
}

TEST(Ollama, TakesAnswersHoweverTheyAreLabelled) {
  for (const bool stream : {true, false}) {
    StubServer server;
    server.play(streamed(joined(kParts, 99), "application/json"));
    server.play(StubAnswer::json(200, kParts[4].substr(0, kParts[4].size() - 1)));
    server.play(
        StubAnswer::json(200, R"({"message":{"content":"Hi"},"done":true,"done_reason":"stop"})"));
    ProviderSpec spec = dialect_spec(server, "ollama", stream);
    spec.base_url = "http://127.0.0.1:" + std::to_string(server.port());
    EXPECT_EQ(ask(spec).calls.size(), 2u);
    EXPECT_EQ(failure_of(spec).cls, server_error) << "it says nothing";
    const ModelReply reply = ask(spec);
    EXPECT_EQ(reply.text, "Hi");
    EXPECT_TRUE(reply.usage.estimated);
    EXPECT_EQ(server.requests().at(0).line, "POST /api/chat HTTP/1.1");
    EXPECT_EQ(Json::parse(server.requests().at(0).body)["stream"], stream);
  }
}

TEST(Ollama, CountsAStreamOnlyWhenItIsDone) {
  expect_cut_everywhere(kParts, "ollama", "chat", kLines);
}

TEST(Ollama, RefusesWhatBelongsToNoAnswer) {
  expect_garbage_refused(
      kParts[1],
      {"oops\n", "[1]\n", "7\n", "{\"message\":7}\n", "{\"message\":{\"content\":7}}\n",
       "{\"message\":{\"tool_calls\":7}}\n", "{\"message\":{\"tool_calls\":[7]}}\n",
       "{\"message\":{\"tool_calls\":[{\"function\":{}}]}}\n",
       "{\"done\":true,\"done_reason\":\"load\"}\n"},
      "ollama", "chat", kLines);
}

TEST(Ollama, JudgesErrorsInsideAStream) {
  const std::pair<std::string, FailureClass> cases[] = {
      {R"({"error":"an error was encountered while running the model"})", server_error},
      {R"({"error":"model \"x\" not found, try pulling it first"})", configuration},
      {R"({"error":"server busy, please try again."})", overloaded},
      {R"({"error":{"code":"rate_limit_exceeded","message":"x"}})", rate_limit}};
  for (const auto& [data, cls] : cases) {
    for (const std::size_t before : {std::size_t{0}, std::size_t{2}}) {
      StubServer server;
      server.play(streamed(joined(kParts, before) + data + "\n", kLines));
      const Failure failure = failure_of(dialect_spec(server, "ollama", true));
      EXPECT_EQ(to_word(failure.cls), to_word(cls)) << data << ": " << failure.message;
    }
  }
}

TEST(Ollama, ReadsEveryEndOfAnAnswer) {
  const auto done = [](const std::string& reason) {
    return R"({"message":{"content":"Hi"},"done":true,"done_reason":")" + reason + R"("})";
  };
  const std::pair<std::string, std::string> cases[] = {
      {"stop", "stop"}, {"length", "length"}, {"", "stop"}, {"brand_new", "brand_new"}};
  for (const auto& [reason, finish] : cases) {
    StubServer server;
    server.play(StubAnswer::json(200, done(reason)));
    EXPECT_EQ(ask(dialect_spec(server, "ollama", false)).finish, finish) << reason;
  }
  StubServer server;
  server.play(StubAnswer::json(200, done("unload")));
  server.play(StubAnswer::json(200, R"({"message":{"content":"Hi"},"done":false})"));
  EXPECT_EQ(failure_of(dialect_spec(server, "ollama", false)).cls, server_error);
  EXPECT_EQ(failure_of(dialect_spec(server, "ollama", false)).cls, server_error);
}

}  // namespace
}  // namespace holdfast
