// An answer's schema, as each API is sent it.

#include "provider/answer_format.hpp"

#include <gtest/gtest.h>

#include "core/validate.hpp"
#include "provider/anthropic_wire.hpp"
#include "provider/chat_wire.hpp"
#include "provider/dialect_test_support.hpp"
#include "provider/gemini_wire.hpp"
#include "provider/ollama_wire.hpp"
#include "provider/responses_wire.hpp"

namespace holdfast {
namespace {

using namespace dialect_test;

const Json kStrict = Json::parse(R"({"type":"object","properties":{"total":{"type":"integer"}},
    "required":["total"],"additionalProperties":false})");

ModelRequest wanting(const Json& schema, bool has_tools) {
  ModelRequest request = conversation();
  if (!has_tools) {
    request.messages.resize(2);
    request.tools.clear();
  }
  request.answer_schema = schema;
  return request;
}

TEST(AnswerFormat, StandsWhereEachApiWantsIt) {
  const Target target{"main", "m"};
  for (const bool has_tools : {false, true}) {
    const ModelRequest request = wanting(kStrict, has_tools);
    const Json chat = Json::parse(render_chat_request(target, request, false));
    EXPECT_EQ(chat["response_format"],
              (Json{{"type", "json_schema"},
                    {"json_schema", {{"name", "answer"}, {"schema", kStrict}, {"strict", true}}}}));
    const Json responses = Json::parse(render_responses_request(target, request, false));
    EXPECT_EQ(
        responses["text"]["format"],
        (Json{{"type", "json_schema"}, {"name", "answer"}, {"schema", kStrict}, {"strict", true}}));
    const Json messages = Json::parse(render_messages_request(target, request, {100, false}));
    EXPECT_EQ(messages["output_config"]["format"],
              (Json{{"type", "json_schema"}, {"schema", kStrict}}));
  }
}

TEST(AnswerFormat, IsNoneWhereItWouldKeepTheModelFromItsTools) {
  const Target target{"main", "m"};
  ModelRequest request = wanting(kStrict, false);
  const Json gemini = Json::parse(render_gemini_request(target, request));
  EXPECT_EQ(gemini["generationConfig"],
            (Json{{"responseMimeType", "application/json"}, {"responseJsonSchema", kStrict}}));
  EXPECT_EQ(Json::parse(render_ollama_request("m", request, false))["format"], kStrict);
  request = wanting(kStrict, true);
  EXPECT_FALSE(Json::parse(render_gemini_request(target, request)).contains("generationConfig"));
  EXPECT_FALSE(Json::parse(render_ollama_request("m", request, false)).contains("format"));
}

TEST(AnswerFormat, IsNoneForATextAnswer) {
  const Target target{"main", "m"};
  const ModelRequest request = wanting(nullptr, false);
  EXPECT_FALSE(
      Json::parse(render_chat_request(target, request, false)).contains("response_format"));
  EXPECT_FALSE(Json::parse(render_responses_request(target, request, false)).contains("text"));
  EXPECT_FALSE(Json::parse(render_messages_request(target, request, {100, false}))
                   .contains("output_config"));
  EXPECT_FALSE(Json::parse(render_gemini_request(target, request)).contains("generationConfig"));
  EXPECT_FALSE(Json::parse(render_ollama_request("m", request, false)).contains("format"));
}

TEST(AnswerFormat, IsNotSentToAServerThatIsSaidToKnowNone) {
  for (const bool native : {true, false}) {
    StubServer server;
    server.play(StubAnswer::json(
        200, R"({"choices":[{"message":{"content":"{}"},"finish_reason":"stop"}]})"));
    ProviderSpec spec = dialect_spec(server, "openai", false);
    spec.native_schema = native;
    make_chain({spec}, real_env(), Limits{})->complete({"main/m"}, {}, wanting(kStrict, false), {});
    EXPECT_EQ(Json::parse(server.requests().at(0).body).contains("response_format"), native);
  }
}

Json strictness(const std::string& schema) {
  const Json format = openai_answer_format(Json::parse(schema));
  return format.is_null() ? Json("not sent") : format.at("strict");
}

TEST(OpenaiAnswerFormat, IsStrictOnlyInTheFormThatIsWantedForIt) {
  for (const char* strict :
       {R"({"type":"object","properties":{},"additionalProperties":false})",
        R"({"type":"object","properties":{"a":{"type":["string","null"],"description":"x"},
            "b":{"type":"array","items":{"$ref":"#/$defs/c"},"minItems":1}},"required":["a","b"],
            "additionalProperties":false,"$defs":{"c":{"anyOf":[{"type":"string","enum":["x"]},
            {"type":"integer","minimum":1}]}}})"}) {
    EXPECT_EQ(strictness(strict), true) << strict;
  }
  for (
      const char* loose :
      {R"({"type":"object"})",
       R"({"type":"object","properties":{"a":{}},"additionalProperties":false})",
       R"({"type":"object","properties":{"a":{"type":"object"}},"required":["a"],
            "additionalProperties":false})",
       R"({"type":"object","properties":{"a":{"type":"string","maxLength":3}},"required":["a"],
            "additionalProperties":false})",
       R"({"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false})",
       R"({"type":"object","properties":{},"additionalProperties":false,"anyOf":[{}]})"}) {
    EXPECT_EQ(strictness(loose), false) << loose;
  }
  EXPECT_EQ(strictness(R"({"type":"array","items":{"type":"string"}})"), "not sent");
  EXPECT_EQ(strictness(R"({"anyOf":[{"type":"object"}]})"), "not sent");
}

TEST(AnthropicAnswerSchema, IsClosedAndKeepsWhatTheApiTakes) {
  const Json schema = Json::parse(R"({"$schema":"x","type":"object","title":"T","properties":{
      "n":{"type":"integer","minimum":0,"description":"how many"},
      "list":{"type":"array","maxItems":3,"items":{"$ref":"#/$defs/c"}},
      "one":{"oneOf":[{"type":"string","maxLength":5},{"type":"null"}]}},
      "required":["n"],"$defs":{"c":{"type":"object","properties":{"x":{"enum":["a"]}}}}})");
  EXPECT_EQ(anthropic_answer_schema(schema),
            Json::parse(R"({"type":"object","title":"T","properties":{
      "n":{"type":"integer","description":"how many"},
      "list":{"type":"array","items":{"$ref":"#/$defs/c"}},
      "one":{"anyOf":[{"type":"string"},{"type":"null"}]}},
      "required":["n"],"additionalProperties":false,
      "$defs":{"c":{"type":"object","properties":{"x":{"enum":["a"]}},
                    "additionalProperties":false}}})"));
}

TEST(AnthropicAnswerSchema, IsNotSentWhereItWouldBeAnotherOne) {
  for (const char* schema :
       {"true", R"({"type":"object","additionalProperties":true})",
        R"({"type":"object","additionalProperties":{"type":"string"}})",
        R"({"type":"object","patternProperties":{"^a":{}}})",
        R"({"type":"object","properties":{"a":{"type":"object","additionalProperties":{}}}})",
        R"({"type":"object","properties":{"next":{"$ref":"#"}}})",
        R"({"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},
            "$defs":{"a":{"properties":{"b":{"$ref":"#/$defs/b"}}},
                     "b":{"properties":{"a":{"$ref":"#/$defs/a"}}}}})",
        R"({"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}})",
        R"({"allOf":[{"type":"object","properties":{"a":{}}}]})"}) {
    EXPECT_TRUE(anthropic_answer_schema(Json::parse(schema)).is_null()) << schema;
  }
}

TEST(AnthropicAnswerSchema, ManyReferencesAreFollowedOnceEach) {
  Json schema = {{"type", "object"}, {"properties", Json::object()}, {"$defs", Json::object()}};
  schema["properties"]["a"] = {{"$ref", "#/$defs/d0"}};
  for (int i = 0; i < 30; ++i) {
    const Json next = {{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
    schema["$defs"]["d" + std::to_string(i)] = {{"type", "object"},
                                                {"properties", {{"x", next}, {"y", next}}}};
  }
  schema["$defs"]["d30"] = {{"type", "string"}};
  EXPECT_FALSE(anthropic_answer_schema(schema).is_null());
}

}  // namespace
}  // namespace holdfast
