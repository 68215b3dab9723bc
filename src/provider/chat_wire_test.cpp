#include "provider/chat_wire.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "provider/chat_stream.hpp"

namespace holdfast {
namespace {

ModelRequest two_turns() {
  ModelRequest request;
  request.run = "r";
  Message system{Message::Role::system, "Be brief.", {}, {}, {}, false, {}, {}};
  Message user{Message::Role::user, "Hi", {}, {}, {}, false, {}, {}};
  Message assistant;
  assistant.role = Message::Role::assistant;
  assistant.calls = {ToolCall{"m1.1", "look.up", Json{{"b", 1}, {"a", 2}}, std::nullopt},
                     ToolCall{"m1.2", "pay", Json::object(), "{broken"}};
  Message first{Message::Role::tool, "42", {}, "m1.1", "look.up", false, {}, {}};
  Message second{Message::Role::tool, "bad", {}, "m1.2", "pay", true, {}, {}};
  request.messages = {system, user, assistant, first, second};
  request.tools = {
      ToolDefinition{"look.up", "Looks", Json{{"type", "object"}}},
      ToolDefinition{"pay", "Pays", Json{{"type", "object"}, {"properties", Json::object()}}}};
  return request;
}

TEST(ChatWire, RendersTheHistoryTheSameEachTime) {
  const std::string body = render_chat_request({"main", "gpt"}, two_turns(), true);
  EXPECT_EQ(body, render_chat_request({"main", "gpt"}, two_turns(), true));
  const Json json = Json::parse(body);
  EXPECT_EQ(json["model"], "gpt");
  EXPECT_EQ(json["stream_options"]["include_usage"], true);
  EXPECT_FALSE(
      Json::parse(render_chat_request({"main", "gpt"}, two_turns(), false)).contains("stream"));
  const Json& messages = json["messages"];
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_EQ(messages[2]["content"], nullptr);
  EXPECT_EQ(messages[2]["tool_calls"][0]["function"]["arguments"], R"({"a":2,"b":1})");
  // Arguments that were no JSON go back inside JSON: servers parse them again.
  EXPECT_TRUE(
      Json::accept(messages[2]["tool_calls"][1]["function"]["arguments"].get<std::string>()));
}

TEST(ChatWire, GivesCallsIdsThatEveryTargetTakesAndAnswersThem) {
  const Json messages =
      Json::parse(render_chat_request({"main", "gpt"}, two_turns(), false))["messages"];
  const std::string first = messages[2]["tool_calls"][0]["id"];
  const std::string second = messages[2]["tool_calls"][1]["id"];
  EXPECT_NE(first, second);
  for (const std::string& id : {first, second}) {
    EXPECT_EQ(id.size(), 9u);
    EXPECT_TRUE(std::all_of(id.begin(), id.end(), [](char c) { return std::isalnum(c) != 0; }));
  }
  EXPECT_EQ(messages[3]["tool_call_id"], first);
  EXPECT_EQ(messages[4]["tool_call_id"], second);
}

TEST(ChatWire, MapsToolNamesBothWays) {
  const ModelRequest request = two_turns();
  const Json tools = Json::parse(render_chat_request({"main", "gpt"}, request, false))["tools"];
  const std::string name = tools[0]["function"]["name"];
  EXPECT_EQ(name.find('.'), std::string::npos);
  EXPECT_LE(name.size(), 64u);
  EXPECT_EQ(tools[1]["function"]["name"], "pay");
  EXPECT_TRUE(tools[0]["function"]["parameters"].contains("properties"));
  RawReply raw;
  raw.finish = "tool_calls";
  raw.calls = {RawCall{"x", name, "{}"}, RawCall{"y", "invented", ""}};
  const auto reply = std::get<ModelReply>(to_reply(raw, request, 64));
  EXPECT_EQ(reply.calls[0].name, "look.up");
  EXPECT_EQ(reply.calls[1].name, "invented");
  EXPECT_EQ(reply.calls[1].arguments, Json::object());
}

TEST(ChatWire, SendsWhatStoodBesideACallBackToItsMakerAlone) {
  const Json answer = Json::parse(
      R"({"choices":[{"message":{"content":"A","tool_calls":[
          {"id":"x","function":{"name":"pay","arguments":"{}"},
           "extra_content":{"google":{"thought_signature":"Es=="}}},
          {"id":"y","function":{"name":"pay","arguments":"{}"}}]}}]})");
  const auto raw = std::get<RawReply>(read_chat_answer(answer));
  ChatAssembler assembler;
  Json chunk = answer;
  chunk["choices"][0]["delta"] = chunk["choices"][0]["message"];
  chunk["choices"][0]["delta"]["tool_calls"][0]["index"] = 0;
  chunk["choices"][0]["delta"]["tool_calls"][1]["index"] = 1;
  assembler.add(chunk);
  EXPECT_EQ(std::get<RawReply>(assembler.finish()).opaque, raw.opaque);

  ModelRequest request = two_turns();
  request.messages[2].text = "A";
  request.messages[2].opaque = raw.opaque;
  request.messages[2].made_by = "main/gpt";
  const auto sent = [&](const Target& target) {
    return Json::parse(render_chat_request(target, request, false))["messages"][2]["tool_calls"];
  };
  EXPECT_EQ(sent({"main", "gpt"})[0]["extra_content"]["google"]["thought_signature"], "Es==");
  EXPECT_FALSE(sent({"main", "gpt"})[1].contains("extra_content"));
  EXPECT_FALSE(sent({"main", "gpt-2"})[0].contains("extra_content"));
}

TEST(ChatWire, KeepsArgumentsThatDoNotParseAsText) {
  RawReply raw;
  raw.finish = "tool_calls";
  raw.calls = {RawCall{"a", "f", "{\"x\":"}, RawCall{"b", "g", std::string(100000, '[')},
               RawCall{"c", "h", R"({"ok":true})"}};
  const auto reply = std::get<ModelReply>(to_reply(raw, {}, 64));
  ASSERT_EQ(reply.calls.size(), 3u);
  EXPECT_EQ(reply.calls[0].bad_arguments, "{\"x\":");
  EXPECT_TRUE(reply.calls[1].bad_arguments.has_value());
  EXPECT_FALSE(reply.calls[2].bad_arguments.has_value());
  EXPECT_EQ(reply.calls[2].arguments["ok"], true);
}

TEST(ChatWire, DoesNotTakeMissingArgumentsOfACutAnswerForNone) {
  RawReply raw;
  raw.finish = "length";
  raw.calls = {RawCall{"a", "pay", ""}};
  const auto reply = std::get<ModelReply>(to_reply(raw, {}, 64));
  EXPECT_TRUE(reply.calls[0].bad_arguments.has_value());
  EXPECT_EQ(reply.finish, "length");
}

TEST(ChatWire, NamesTheShapeOfWhatIsNoAnswer) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"choices":[]})", "choices is an empty list"},
      {R"({"choices":null})", "choices is null"},
      {R"({})", "choices is missing"},
      {R"({"choices":"x"})", "choices is string"},
      {R"({"choices":[7]})", "choices[0].message is missing"},
      {R"({"choices":[{"message":null}]})", "choices[0].message is null"},
      {R"({"choices":[{"message":{"content":7}}]})", "content is number"},
      {R"({"choices":[{"message":{"tool_calls":7}}]})", "tool_calls is number"},
      {R"({"choices":[{"message":{"tool_calls":[{"function":null}]}}]})", "function is null"},
      {R"({"choices":[{"message":{"tool_calls":[{"function":{"name":""}}]}}]})", "no name"},
      {"[]", "array"},
  };
  for (const auto& [text, shape] : cases) {
    auto result = read_chat_answer(Json::parse(text));
    ASSERT_TRUE(std::holds_alternative<Malformed>(result)) << text;
    EXPECT_NE(std::get<Malformed>(result).shape.find(shape), std::string::npos)
        << text << ": " << std::get<Malformed>(result).shape;
  }
}

TEST(ChatWire, RefusesEmptyAnswers) {
  RawReply raw;
  raw.finish = "stop";
  EXPECT_TRUE(std::holds_alternative<Malformed>(to_reply(raw, {}, 64)));
  raw.finish = "tool_calls";
  EXPECT_TRUE(std::holds_alternative<Malformed>(to_reply(raw, {}, 64)));
  raw.finish = "length";
  EXPECT_TRUE(std::holds_alternative<ModelReply>(to_reply(raw, {}, 64)));
}

TEST(ChatWire, ReadsContentParts) {
  EXPECT_EQ(read_content(Json::parse(R"([{"type":"text","text":"a"},{"type":"x"},{"text":"b"}])")),
            "ab");
  EXPECT_EQ(read_content(nullptr), "");
  EXPECT_EQ(read_content(7), std::nullopt);
}

TEST(ChatWire, ReadsUsageOfAnyShape) {
  EXPECT_EQ(read_chat_usage(nullptr), ModelUsage{});
  EXPECT_EQ(read_chat_usage("many"), ModelUsage{});
  EXPECT_EQ(read_chat_usage(Json::parse(R"({"prompt_tokens":"3","completion_tokens":-1})")),
            ModelUsage{});
  EXPECT_EQ(read_chat_usage(Json::parse(R"({"prompt_tokens_details":7})")), ModelUsage{});
  const ModelUsage usage = read_chat_usage(Json::parse(
      R"({"prompt_tokens":30,"completion_tokens":4,
          "prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":5},
          "completion_tokens_details":{"reasoning_tokens":3}})"));
  EXPECT_EQ(usage.total_tokens, 34);
  EXPECT_EQ(usage.cached_tokens, 20);
  EXPECT_EQ(usage.cache_write_tokens, 5);
  EXPECT_EQ(usage.reasoning_tokens, 3);
  EXPECT_FALSE(usage.estimated);
}

}  // namespace
}  // namespace holdfast
