#include "core/validate.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/json_schema.hpp"
#include "core/pattern.hpp"

namespace holdfast {
namespace {

RunRequest good_request() {
  RunRequest request;
  request.agent = "triage";
  request.input = "hello";
  return request;
}

std::string refusal_of(const RunRequest& request, const Limits& limits = {}) {
  try {
    check_request(request, limits);
  } catch (const RefusedError& error) {
    EXPECT_EQ(error.refusal(), Refusal::usage);
    return error.what();
  }
  return {};
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CheckRequest, AcceptsWhatIsInOrder) {
  RunRequest request = good_request();
  request.id = "0198c2a4-7d1e-7c3a-9f00-1b2c3d4e5f60";
  request.queue = "slow";
  request.delay = Duration(0);
  request.idempotency_key = "order 4711/ä";
  request.max_requeues = 0;
  request.priority = -5;
  request.labels = {{"team", "ops"}, {"empty", ""}};
  EXPECT_EQ(refusal_of(request), "");
}

TEST(CheckRequest, NamesTheFieldOfEachFault) {
  struct FieldRow {
    const char* field;
    std::function<void(RunRequest&)> spoil;
  };
  const FieldRow rows[] = {
      {"agent", [](RunRequest& r) { r.agent = ""; }},
      {"agent", [](RunRequest& r) { r.agent = std::string(129, 'a'); }},
      {"agent", [](RunRequest& r) { r.agent = "a\nb"; }},
      {"agent", [](RunRequest& r) { r.agent = "\xff"; }},
      {"id", [](RunRequest& r) { r.id = "42"; }},
      {"id", [](RunRequest& r) { r.id = "0198C2A4-7D1E-7C3A-9F00-1B2C3D4E5F60"; }},
      {"id", [](RunRequest& r) { r.id = "0198c2a4x7d1e-7c3a-9f00-1b2c3d4e5f60"; }},
      {"queue", [](RunRequest& r) { r.queue = ""; }},
      {"queue", [](RunRequest& r) { r.queue = std::string("a\0b", 3); }},
      {"idempotency key", [](RunRequest& r) { r.idempotency_key = ""; }},
      {"idempotency key", [](RunRequest& r) { r.idempotency_key = std::string(257, 'k'); }},
      {"delay", [](RunRequest& r) { r.delay = Duration(-1); }},
      {"delay", [](RunRequest& r) { r.delay = Duration::max(); }},
      {"delay and at", [](RunRequest& r) { r.delay = Duration(1), r.at = WallTime(Duration(1)); }},
      {"at lies", [](RunRequest& r) { r.at = WallTime(Duration(-1)); }},
      {"at lies", [](RunRequest& r) { r.at = WallTime::max(); }},
      {"max_requeues", [](RunRequest& r) { r.max_requeues = -1; }},
      {"label",
       [](RunRequest& r) {
         r.labels = {{"a=b", "c"}};
       }},
      {"label",
       [](RunRequest& r) {
         r.labels = {{"", "c"}};
       }},
      {"label `a`",
       [](RunRequest& r) {
         r.labels = {{"a", std::string(257, 'v')}};
       }},
      {"labels",
       [](RunRequest& r) {
         for (int i = 0; i < 33; ++i) r.labels[std::to_string(i)];
       }},
  };
  for (const FieldRow& row : rows) {
    RunRequest request = good_request();
    row.spoil(request);
    const std::string refusal = refusal_of(request);
    EXPECT_TRUE(mentions(refusal, row.field)) << row.field << ": " << refusal;
  }
}

TEST(CheckRequest, HoldsTheSizeLimitToTheByte) {
  Limits limits;
  limits.request_bytes = 100;
  RunRequest request = good_request();
  // A text counts by its own bytes, without the quotes and escapes of JSON.
  for (const char one : {'x', '"', '\n'}) {
    request.input = std::string(100, one);
    EXPECT_EQ(refusal_of(request, limits), "");
    request.input = std::string(101, one);
    EXPECT_TRUE(mentions(refusal_of(request, limits), "101 bytes"));
  }
  request.input = Json::array({std::string(96, 'x')});
  EXPECT_EQ(refusal_of(request, limits), "");
  request.input = Json::array({std::string(97, 'x')});
  EXPECT_TRUE(mentions(refusal_of(request, limits), "101 bytes"));
}

Json nested(int depth) {
  Json value = 1;
  for (int i = 0; i < depth; ++i) value = Json::array({std::move(value)});
  return value;
}

TEST(CheckRequest, HoldsTheDepthLimit) {
  RunRequest request = good_request();
  request.input = nested(64);
  EXPECT_EQ(refusal_of(request), "");
  request.input = nested(65);
  EXPECT_TRUE(mentions(refusal_of(request), "deeper than 64"));
  request.input = nested(100000);
  EXPECT_TRUE(mentions(refusal_of(request), "deeper than 64"));
}

std::string first_error(const char* schema, const char* value) {
  const auto errors = schema_errors(Json::parse(schema), Json::parse(value));
  return errors.empty() ? "" : errors.front();
}

struct Case {
  const char* schema;
  const char* value;
  const char* place;  ///< of the first error; empty: it fits
};

TEST(SchemaErrors, FollowsEveryKeyword) {
  const Case cases[] = {
      {R"({"type":"string"})", R"("a")", ""},
      {R"({"type":"string"})", "1", "/: "},
      {R"({"type":["string","null"]})", "null", ""},
      {R"({"type":"integer"})", "1.0", ""},
      {R"({"type":"integer"})", "1.5", "/: "},
      {R"({"type":"number"})", "true", "/: "},
      {R"({"enum":["a",1]})", "1.0", ""},
      {R"({"enum":["a",1]})", R"("b")", "/: "},
      {R"({"const":{"a":[1]}})", R"({"a":[1]})", ""},
      {R"({"const":null})", "0", "/: "},
      {R"({"minimum":3})", "3", ""},
      {R"({"minimum":3})", "2.9", "/: "},
      {R"({"exclusiveMinimum":3})", "3", "/: "},
      {R"({"maximum":3})", "4", "/: "},
      {R"({"exclusiveMaximum":3})", "3", "/: "},
      {R"({"minimum":3})", R"("no number")", ""},
      {R"({"multipleOf":0.1})", "0.3", ""},
      {R"({"multipleOf":2})", "3", "/: "},
      {R"({"minLength":2})", R"("ä")", "/: "},
      {R"({"maxLength":2})", R"("äö")", ""},
      {R"({"maxLength":2})", R"("abc")", "/: "},
      {R"({"pattern":"^a+$"})", R"("aaa")", ""},
      {R"({"pattern":"b"})", R"("abc")", ""},
      {R"({"pattern":"^a+$"})", R"("aab")", "/: "},
      {R"({"items":{"type":"integer"}})", R"([1,2])", ""},
      {R"({"items":{"type":"integer"}})", R"([1,"2"])", "/1: "},
      {R"({"prefixItems":[{"type":"string"}],"items":{"type":"integer"}})", R"(["a",1])", ""},
      {R"({"prefixItems":[{"type":"string"}],"items":false})", R"(["a",1])", "/1: "},
      {R"({"minItems":1})", "[]", "/: "},
      {R"({"maxItems":1})", "[1,2]", "/: "},
      {R"({"uniqueItems":true})", R"([1,"1",2])", ""},
      {R"({"uniqueItems":true})", R"([1,2,1.0])", "/: "},
      {R"({"contains":{"const":1}})", "[2,1]", ""},
      {R"({"contains":{"const":1}})", "[2]", "/: "},
      {R"({"contains":{"const":1},"minContains":0})", "[2]", ""},
      {R"({"contains":{"const":1},"maxContains":1})", "[1,1]", "/: "},
      {R"({"required":["a"]})", R"({"a":null})", ""},
      {R"({"required":["a"]})", R"({"b":1})", "/a: "},
      {R"({"properties":{"a":{"type":"object","properties":{"b":{"type":"integer"}}}}})",
       R"({"a":{"b":"x"}})", "/a/b: "},
      {R"({"properties":{"a":{"items":{"properties":{"b":{"const":1}}}}}})", R"({"a":[{"b":2}]})",
       "/a/0/b: "},
      {R"({"properties":{"a":{}},"additionalProperties":false})", R"({"a":1})", ""},
      {R"({"properties":{"name":{}},"additionalProperties":false})", R"({"nmae":1})",
       "/nmae: is not a known property; did you mean `name`?"},
      {R"({"additionalProperties":{"type":"integer"}})", R"({"x":"y"})", "/x: "},
      {R"({"patternProperties":{"^x-":{"type":"integer"}},"additionalProperties":false})",
       R"({"x-a":1})", ""},
      {R"({"patternProperties":{"^x-":{"type":"integer"}}})", R"({"x-a":"1"})", "/x-a: "},
      {R"({"propertyNames":{"maxLength":1}})", R"({"ab":1})", "/ab: "},
      {R"({"minProperties":1})", "{}", "/: "},
      {R"({"maxProperties":0})", R"({"a":1})", "/: "},
      {R"({"dependentRequired":{"a":["b"]}})", R"({"a":1})", "/b: "},
      {R"({"dependentSchemas":{"a":{"required":["c"]}}})", R"({"a":1})", "/c: "},
      {R"({"allOf":[{"minimum":1},{"maximum":3}]})", "4", "/: "},
      {R"({"anyOf":[{"type":"string"},{"minimum":5}]})", "6", ""},
      {R"({"anyOf":[{"type":"string"},{"minimum":5}]})", "4", "/: "},
      {R"({"oneOf":[{"minimum":1},{"minimum":5}]})", "6", "/: "},
      {R"({"oneOf":[{"minimum":1},{"minimum":5}]})", "2", ""},
      {R"({"not":{"type":"null"}})", "null", "/: "},
      {R"({"if":{"minimum":10},"then":{"multipleOf":10},"else":{"maximum":5}})", "20", ""},
      {R"({"if":{"minimum":10},"then":{"multipleOf":10},"else":{"maximum":5}})", "15", "/: "},
      {R"({"if":{"minimum":10},"then":{"multipleOf":10},"else":{"maximum":5}})", "6", "/: "},
      {R"({"$ref":"#/$defs/p","$defs":{"p":{"type":"integer"}}})", R"("x")", "/: "},
      {R"({"properties":{"next":{"$ref":"#"}},"required":["v"]})", R"({"v":1,"next":{"v":2}})", ""},
      {R"({"properties":{"next":{"$ref":"#"}},"required":["v"]})", R"({"v":1,"next":{}})",
       "/next/v: "},
      {"true", "1", ""},
      {"false", "1", "/: "},
      {"{}", "1", ""},
      {"null", "1", ""},
      {R"({"properties":{"a/b~c":{"const":1}}})", R"({"a/b~c":2})", "/a~1b~0c: "},
  };
  for (const Case& c : cases) {
    const std::string error = first_error(c.schema, c.value);
    if (*c.place == '\0') {
      EXPECT_EQ(error, "") << c.schema << " for " << c.value;
    } else {
      EXPECT_TRUE(error.starts_with(c.place)) << c.schema << " for " << c.value << ": " << error;
    }
  }
}

TEST(SchemaErrors, NamesEveryViolation) {
  const auto errors = schema_errors(
      Json::parse(R"({"properties":{"a":{"type":"string"},"b":{"minimum":1}},"required":["c"]})"),
      Json::parse(R"({"a":1,"b":0})"));
  ASSERT_EQ(errors.size(), 3u);
}

TEST(SchemaErrors, NeverLeavesTheSchema) {
  const Json schema = Json::parse(R"({"$ref":"http://127.0.0.1:1/x.json"})");
  EXPECT_FALSE(schema_errors(schema, 1).empty());
  EXPECT_TRUE(mentions(schema_problem(schema), "outside the schema"));
}

TEST(SchemaErrors, EndsOnReferencesThatLeadBackToThemselves) {
  for (const char* text : {R"({"$ref":"#"})", R"({"$defs":{"a":{"$ref":"#/$defs/b"},
       "b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})"}) {
    const Json schema = Json::parse(text);
    EXPECT_FALSE(schema_errors(schema, 1).empty());
    EXPECT_TRUE(mentions(schema_problem(schema), "back to itself")) << schema_problem(schema);
  }
}

TEST(SchemaErrors, BoundsSchemasThatExplode) {
  Json schema = Json::parse(R"({"$ref":"#/$defs/n0"})");
  for (int i = 0; i < 60; ++i) {
    const Json next = {{"$ref", "#/$defs/n" + std::to_string(i + 1)}};
    schema["$defs"]["n" + std::to_string(i)] = {{"allOf", {next, next}}};
  }
  schema["$defs"]["n60"] = true;
  EXPECT_FALSE(schema_errors(schema, 1).empty());
}

TEST(SchemaErrors, BoundsDepthOfValueAndSchema) {
  EXPECT_FALSE(schema_errors(Json::parse(R"({"type":"array"})"), nested(100000)).empty());
  Json schema = true;
  for (int i = 0; i < 100000; ++i) schema = Json{{"not", std::move(schema)}};
  EXPECT_FALSE(schema_errors(schema, 1).empty());
  EXPECT_NE(schema_problem(schema), "");
}

TEST(SchemaErrors, MatchesLongTextsWithoutRunningOutOfStack) {
  Json schema = Json::parse(R"({"pattern":"^([a-z]| )*$"})");
  EXPECT_TRUE(schema_errors(schema, std::string(60000, 'a')).empty());
  EXPECT_FALSE(schema_errors(schema, std::string(60000, 'A')).empty());
  EXPECT_TRUE(mentions(schema_errors(schema, std::string(1 << 20, 'a')).front(), "too long"));
  // Exponential for a matcher that backtracks.
  schema = Json::parse(R"({"pattern":"^(a+)+$"})");
  EXPECT_FALSE(schema_errors(schema, std::string(2000, 'a') + "b").empty());
}

RC_GTEST_PROP(SchemaErrors, NeverThrows, (const std::string& word, int number)) {
  Json schema;
  for (const char* key : {"type", "enum", "pattern", "minimum", "items", "properties", "required",
                          "$ref", "allOf", "if", "then", "multipleOf", "maxLength", "const",
                          "prefixItems", "dependentRequired", "additionalProperties"}) {
    schema[key] = *rc::gen::element<Json>(Json(word), Json(number), Json::array({word, number}),
                                          Json{{"a", word}}, Json(nullptr), Json(true));
  }
  const Json value =
      *rc::gen::element<Json>(Json(word), Json(number), Json::array({word}), Json{{"a", number}});
  schema_errors(schema, value);
  schema_problem(schema);
  with_defaults(schema, value);
}

TEST(SchemaProblem, AcceptsOrdinarySchemas) {
  EXPECT_EQ(schema_problem(Json::parse(R"({"$schema":"https://json-schema.org/draft/2020-12/schema",
      "title":"t","type":"object","properties":{"id":{"type":"string","format":"uuid",
      "pattern":"^[0-9a-f]{8}-[0-9a-f]{4}$","description":"d","default":"x"}},"required":["id"]})")),
            "");
}

TEST(SchemaProblem, NamesThePlaceOfEachFault) {
  const Case cases[] = {
      {"7", "", "/: "},
      {R"({"type":"text"})", "", "/type: "},
      {R"({"type":[]})", "", "/type: "},
      {R"({"properties":{"a":{"type":"int"}}})", "", "/properties/a/type: "},
      {R"({"properties":[]})", "", "/properties: "},
      {R"({"required":"a"})", "", "/required: "},
      {R"({"enum":1})", "", "/enum: "},
      {R"({"minimum":"1"})", "", "/minimum: "},
      {R"({"maxLength":-1})", "", "/maxLength: "},
      {R"({"multipleOf":0})", "", "/multipleOf: "},
      {R"({"pattern":"("})", "", "/pattern: "},
      {R"({"pattern":"(a{1000}){1000}"})", "", "/pattern: "},
      {R"({"allOf":[]})", "", "/allOf: "},
      {R"({"items":[{}]})", "", "/items: "},
      {R"({"$ref":"#/$defs/none"})", "", "/$ref: "},
      {R"({"unevaluatedProperties":false})", "", "/unevaluatedProperties: "},
  };
  for (const Case& c : cases) {
    const std::string problem = schema_problem(Json::parse(c.schema));
    EXPECT_TRUE(problem.starts_with(c.place)) << c.schema << ": " << problem;
  }
}

TEST(WithDefaults, FillsAbsentDeclaredPropertiesOnly) {
  const Json schema = Json::parse(R"({"properties":{
      "unit":{"default":"m"},"size":{"default":3},"plain":{},
      "place":{"properties":{"zone":{"default":"eu"}}},
      "rows":{"items":{"properties":{"n":{"default":0}}}},
      "named":{"$ref":"#/$defs/named"}},
      "$defs":{"named":{"properties":{"by":{"default":"us"}}}}})");
  EXPECT_EQ(with_defaults(schema, Json::parse(R"({"size":null,"place":{},"rows":[{},{"n":1}],
                                                  "named":{},"other":1})")),
            Json::parse(R"({"unit":"m","size":null,"place":{"zone":"eu"},"rows":[{"n":0},{"n":1}],
                            "named":{"by":"us"},"other":1})"));
  EXPECT_EQ(with_defaults(schema, Json::object()), Json::parse(R"({"unit":"m","size":3})"));
  EXPECT_EQ(with_defaults(schema, "text"), "text");
  EXPECT_EQ(with_defaults(Json::parse(R"({"$ref":"#"})"), Json::object()), Json::object());
}

/// A definition that names the next two, twice each: by reference and as its own member.
Json tangle(int definitions) {
  Json schema = Json::parse(R"({"$ref":"#/$defs/0"})");
  for (int i = 0; i < definitions; ++i) {
    const auto next = [&](int step) {
      return Json{{"$ref", "#/$defs/" + std::to_string((i + step) % definitions)}};
    };
    schema["$defs"][std::to_string(i)] = {
        {"$ref", "#/$defs/" + std::to_string((i + 1) % definitions)},
        {"properties",
         {{"a", next(1)}, {"b", next(2)}, {"n" + std::to_string(i), {{"default", i}}}}}};
  }
  return schema;
}

TEST(WithDefaults, MeetsEachPartOnceWhateverTheReferences) {
  constexpr int kDefinitions = 30;
  constexpr int kDepth = 60;
  const Json schema = tangle(kDefinitions);
  Json value = Json::object();
  for (int i = 0; i < kDepth; ++i) value = Json{{"a", std::move(value)}};
  // At each level: 30 definitions, and their 30 members that lead to one.
  EXPECT_LE(fill_defaults(schema, value), 2u * kDefinitions * (kDepth + 1));
  const Json* innermost = &value;
  for (int i = 0; i < kDepth; ++i) innermost = &innermost->at("a");
  EXPECT_EQ(innermost->size(), static_cast<std::size_t>(kDefinitions));
  EXPECT_EQ(innermost->at("n29"), 29);
}

TEST(WithDefaults, DoesNotLookIntoWhatItFilledIn) {
  // Each default would be met by the other definition, and filled again, without end.
  const Json schema = Json::parse(R"({"$ref":"#/$defs/x","$defs":{
      "x":{"$ref":"#/$defs/y","properties":{"a":{"$ref":"#","default":{}}}},
      "y":{"properties":{"a":{"$ref":"#","default":{}},"b":{"$ref":"#","default":{}}}}}})");
  EXPECT_EQ(with_defaults(schema, Json::object()), Json::parse(R"({"a":{},"b":{}})"));
  EXPECT_EQ(with_defaults(schema, Json::parse(R"({"a":{}})")),
            Json::parse(R"({"a":{"a":{},"b":{}},"b":{}})"));
}

}  // namespace
}  // namespace holdfast
