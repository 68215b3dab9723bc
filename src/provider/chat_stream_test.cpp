#include "provider/chat_stream.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

/// Feeds deltas of tool calls and ends the answer.
std::variant<RawReply, Malformed> assemble(const std::vector<const char*>& deltas) {
  ChatAssembler assembler;
  for (const char* delta : deltas) {
    auto added = assembler.add(
        Json{{"choices", {{{"index", 0}, {"delta", {{"tool_calls", Json::parse(delta)}}}}}}});
    if (auto* malformed = std::get_if<Malformed>(&added)) return *malformed;
  }
  auto last = assembler.add(
      Json::parse(R"({"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]})"));
  EXPECT_TRUE(std::holds_alternative<std::string>(last));
  EXPECT_TRUE(assembler.has_finish());
  return assembler.finish();
}

std::string calls_of(const std::variant<RawReply, Malformed>& result) {
  if (std::holds_alternative<Malformed>(result)) return "malformed";
  std::string out;
  for (const RawCall& call : std::get<RawReply>(result).calls) {
    out += call.id + ":" + call.name + call.arguments + ";";
  }
  return out;
}

TEST(ChatAssembler, KeepsParallelCallsApart) {
  struct Case {
    const char* what;
    std::vector<const char*> deltas;
    const char* calls;
  };
  const Case cases[] = {
      {"one call in pieces",
       {R"([{"index":0,"id":"a","function":{"name":"pay","arguments":""}}])",
        R"([{"index":0,"function":{"arguments":"{\"n\""}}])",
        R"([{"index":0,"function":{"arguments":":1}"}}])"},
       "a:pay{\"n\":1};"},
      {"interleaved by index, id only at first",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}])",
        R"([{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}])",
        R"([{"index":0,"function":{"arguments":"1}"}}])",
        R"([{"index":1,"function":{"arguments":"2}"}}])"},
       "a:f{\"x\":1};b:g{\"y\":2};"},
      {"two in one chunk",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},
            {"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}])"},
       "a:f{};b:f{};"},
      {"indexes out of order",
       {R"([{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}])",
        R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}])"},
       "a:f{};b:g{};"},
      {"the same index for every call, whole and with ids",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}])",
        R"([{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}])"},
       "a:f{\"x\":1};b:f{\"x\":2};"},
      {"the same index, second call in pieces",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}])",
        R"([{"index":0,"id":"b","function":{"name":"g","arguments":"{\"x\""}}])",
        R"([{"index":0,"function":{"arguments":":2}"}}])"},
       "a:f{\"x\":1};b:g{\"x\":2};"},
      {"the same index while the first is open",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}])",
        R"([{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\""}}])",
        R"([{"index":0,"function":{"arguments":":1}"}}])"},
       "malformed"},
      {"no index, told apart by id",
       {R"([{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}])",
        R"([{"id":"b","function":{"name":"g","arguments":"{}"}}])",
        R"([{"id":"a","function":{"arguments":"1}"}}])"},
       "a:f{\"x\":1};b:g{};"},
      {"no id at all, by index",
       {R"([{"index":0,"function":{"name":"f","arguments":"{}"}}])",
        R"([{"index":1,"function":{"name":"f","arguments":"{}"}}])"},
       ":f{};:f{};"},
      {"neither id nor index, one call",
       {R"([{"function":{"name":"f","arguments":"{\"x\""}}])",
        R"([{"function":{"arguments":":1}"}}])"},
       ":f{\"x\":1};"},
      {"neither id nor index, two names",
       {R"([{"function":{"name":"f","arguments":"{}"}}])",
        R"([{"function":{"name":"g","arguments":"{}"}}])"},
       "malformed"},
      {"no id, the same index, the same name again",
       {R"([{"index":0,"function":{"name":"f","arguments":"{}"}}])",
        R"([{"index":0,"function":{"name":"f","arguments":"{}"}}])"},
       "malformed"},
      {"a piece that names neither, with two calls open",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{"}},
            {"index":1,"id":"b","function":{"name":"g","arguments":"{"}}])",
        R"([{"function":{"arguments":"}"}}])"},
       "malformed"},
      {"two objects glued together",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}])",
        R"([{"index":0,"function":{"arguments":"{\"x\":2}"}}])"},
       "malformed"},
      {"the name sent late",
       {R"([{"index":0,"id":"a","function":{"arguments":"{"}}])",
        R"([{"index":0,"function":{"name":"f","arguments":"}"}}])"},
       "a:f{};"},
      {"id and name repeated with each piece",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}])",
        R"([{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}])"},
       "a:f{};"},
      {"a name that never comes",
       {R"([{"index":0,"id":"a","function":{"arguments":"{}"}}])"},
       "malformed"},
      {"two names for one call",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":""}}])",
        R"([{"index":0,"id":"a","function":{"name":"g","arguments":"{}"}}])"},
       "malformed"},
      {"equal ids at two indexes",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}])",
        R"([{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}])"},
       "a:f{};a:g{};"},
      {"arguments as an object",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}])"},
       "a:f{\"x\":1};"},
      {"an index that is none",
       {R"([{"index":"0","id":"a","function":{"name":"f","arguments":"{}"}}])"},
       "malformed"},
      {"a negative index",
       {R"([{"index":-1,"id":"a","function":{"name":"f","arguments":"{}"}}])"},
       "malformed"},
      {"wrong types", {R"([7])"}, "malformed"},
      {"braces inside strings",
       {R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"}{\\\"\"}"}}])"},
       "a:f{\"x\":\"}{\\\"\"};"},
  };
  for (const Case& c : cases) EXPECT_EQ(calls_of(assemble(c.deltas)), c.calls) << c.what;
}

TEST(ChatAssembler, JoinsTextAndTakesUsageFromTheLastChunk) {
  ChatAssembler assembler;
  EXPECT_EQ(
      std::get<std::string>(assembler.add(Json::parse(
          R"({"choices":[{"index":0,"delta":{"role":"assistant","content":"He"}}],"usage":null})"))),
      "He");
  assembler.add(Json::parse(R"({"choices":[{"index":1,"delta":{"content":"other"}}]})"));
  assembler.add(Json::parse(R"({"choices":[{"delta":{"content":"llo"},"finish_reason":"stop"}]})"));
  assembler.add(Json::parse(R"({"choices":[],"usage":{"prompt_tokens":3}})"));
  const auto reply = std::get<RawReply>(assembler.finish());
  EXPECT_EQ(reply.text, "Hello");
  EXPECT_EQ(reply.finish, "stop");
  EXPECT_EQ(reply.usage.prompt_tokens, 3);
}

TEST(ChatAssembler, SurvivesChunksOfAnyShape) {
  for (
      const char* chunk :
      {"[]", "7", "\"x\"", R"({"choices":7})", R"({"choices":[7]})", R"({"choices":[{"delta":7}]})",
       R"({"choices":[{"delta":{"content":7}}]})", R"({"choices":[{"delta":{"tool_calls":{}}}]})",
       R"({"choices":[{"delta":{"tool_calls":[{"index":0,"function":[]}]}}]})",
       R"({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":7}}]}}]})"}) {
    ChatAssembler assembler;
    EXPECT_TRUE(std::holds_alternative<Malformed>(assembler.add(Json::parse(chunk)))) << chunk;
  }
  for (const char* chunk : {"{}", R"({"choices":null})", R"({"choices":[{"delta":null}]})",
                            R"({"choices":[{}]})", R"({"choices":[{"finish_reason":7}]})"}) {
    ChatAssembler assembler;
    EXPECT_TRUE(std::holds_alternative<std::string>(assembler.add(Json::parse(chunk)))) << chunk;
  }
}

}  // namespace
}  // namespace holdfast
