#include <gtest/gtest.h>
#include <pthread.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>

#include "base/safe_text.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

/// Runs `work` on a thread whose stack has 512 kB.
void on_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{512} << 10), 0);
  pthread_t thread{};
  const auto call = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, &work), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

TEST(ParseJson, BuildsWhatTheTextSays) {
  const auto value = parse_json(R"({"a": [1, -2, 2.5, true, null, "x", {"b": []}], "c": {}})");
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, (Json{{"a", {1, -2, 2.5, true, nullptr, "x", {{"b", Json::array()}}}},
                          {"c", Json::object()}}));
  EXPECT_EQ(parse_json("7"), Json(7));
  EXPECT_EQ(parse_json(" \"s\" "), Json("s"));
}

TEST(ParseJson, TakesTheLastOfTwoEqualKeys) {
  EXPECT_EQ(parse_json(R"({"a": {"x": 1}, "a": 2})"), (Json{{"a", 2}}));
}

TEST(ParseJson, CountsDepthExactly) {
  EXPECT_TRUE(parse_json(nested(64)));
  std::string problem;
  EXPECT_EQ(parse_json(nested(65), 64, &problem), std::nullopt);
  EXPECT_NE(problem.find("64"), std::string::npos) << problem;
  EXPECT_TRUE(parse_json(R"({"a":{"b":[]}})", 3));
  EXPECT_EQ(parse_json(R"({"a":{"b":[]}})", 2), std::nullopt);
  EXPECT_TRUE(parse_json("[[],[],[[]]]", 3));
}

TEST(ParseJson, SurvivesAHundredThousandBracketsOnASmallStack) {
  on_small_stack([] {
    EXPECT_EQ(parse_json(nested(100'000)), std::nullopt);
    EXPECT_EQ(parse_json(std::string(100'000, '[')), std::nullopt);
    std::string objects;
    for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
    EXPECT_EQ(parse_json(objects), std::nullopt);
    EXPECT_TRUE(parse_json(nested(100'000), 100'000));
  });
}

TEST(ParseJson, SaysWhere) {
  std::string problem;
  EXPECT_EQ(parse_json("{\"a\": }", 64, &problem), std::nullopt);
  EXPECT_NE(problem.find("byte 7"), std::string::npos) << problem;
}

TEST(ParseJson, QuotesWhatIsNotJsonInOneShortLine) {
  const std::string texts[] = {
      "{\"a\"{\"\x8e\"\x93\x86\xdd\xc5\xe5\": []}",  // the quote ends within a character
      "[1, \x7f\xc2\x85\n]", "[\"a\xe2\x80\xae\" x]", "\"" + std::string(1 << 20, 'a')};
  for (const std::string& text : texts) {
    std::string problem;
    EXPECT_EQ(parse_json(text, 64, &problem), std::nullopt);
    EXPECT_TRUE(problem.starts_with("not JSON at byte ")) << problem;
    EXPECT_EQ(safe_line(problem), problem);
    EXPECT_LT(problem.size(), 400U);
  }
}

TEST(ParseJson, RefusesWhatIsNotJson) {
  for (const char* text : {"", " ", "{", "[1,]", "{a:1}", "nul", "1 2", "[1] x", "\"abc", "NaN",
                           "01", "+1", "1e999", "'a'", "[1", "\"\\x\"", "\"\\u12\""}) {
    EXPECT_EQ(parse_json(text), std::nullopt) << text;
  }
}

TEST(ParseJson, ReplacesBrokenBytesInStrings) {
  EXPECT_EQ(parse_json("\"a\xFFz\""), Json("a\uFFFDz"));
}

TEST(ParseJson, ReplacesLoneSurrogates) {
  EXPECT_EQ(parse_json(R"("a\ud800z")"), Json("a\uFFFDz"));
  EXPECT_EQ(parse_json(R"("a\uDC00z")"), Json("a\uFFFDz"));
  EXPECT_EQ(parse_json(R"("\ud83d\ud83d\ude00")"), Json("\uFFFD\U0001F600"));
  EXPECT_EQ(parse_json(R"("\uD83D\uDE00")"), Json("\U0001F600"));
  EXPECT_EQ(parse_json(R"("\\ud800")"), Json("\\ud800"));  // an escaped backslash, then text
}

TEST(ParseJson, KeepsTheNullCharacter) {
  const auto value = parse_json(R"("a\u0000b")");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->get<std::string>(), std::string("a\0b", 3));
  EXPECT_EQ(dump_json(*value), R"("a\u0000b")");
}

TEST(ParseJson, KeepsLargeIntegers) {
  EXPECT_EQ(dump_json(*parse_json("[9223372036854775807,18446744073709551615,-9007199254740993]")),
            "[9223372036854775807,18446744073709551615,-9007199254740993]");
}

TEST(DumpJson, NeverThrowsOnBrokenText) {
  EXPECT_EQ(dump_json(Json("a\xFFz")), "\"a\uFFFDz\"");
  EXPECT_EQ(dump_json(Json(std::string("\xE2\x82"))), "\"\uFFFD\"");
}

Json any_value(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 9 : 7)) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return *rc::gen::arbitrary<std::uint64_t>();
    case 4:
      return *rc::gen::arbitrary<double>();
    case 5:
      return *rc::gen::arbitrary<std::string>();
    case 6:
      return *rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '~'));
    case 7: {
      Json array = Json::array();
      for (int left = *rc::gen::inRange(0, 4); left > 0; --left) array += any_value(depth - 1);
      return array;
    }
    default: {
      Json object = Json::object();
      for (int left = *rc::gen::inRange(0, 4); left > 0; --left) {
        object[*rc::gen::arbitrary<std::string>()] = any_value(depth - 1);
      }
      return object;
    }
  }
}

RC_GTEST_PROP(DumpJson, WritesAnyValueAsTheLibraryWould, ()) {
  const Json value = any_value(3);
  RC_ASSERT(dump_json(value) == value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

TEST(DumpJson, WritesExtremes) {
  const Json value = {INT64_MIN,    INT64_MAX, UINT64_MAX, -0.0,          1e300,
                      std::nan(""), "\x7f",    "",         Json::array(), Json::object()};
  EXPECT_EQ(dump_json(value), value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

RC_GTEST_PROP(ParseJson, NeverThrowsWhateverItIsGiven, (const std::string& bytes)) {
  const auto value = parse_json(bytes);
  if (value) RC_ASSERT(parse_json(dump_json(*value)) == value);
}

RC_GTEST_PROP(ParseJson, ReadsBackAnyStringAfterCleaning, (const std::string& bytes)) {
  RC_ASSERT(parse_json(dump_json(Json(bytes))) == Json(clean_utf8(bytes)));
}

RC_GTEST_PROP(ParseJson, NeverThrowsOnTextThatLooksLikeJson, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("[]{}\",:0123.eE+-\\u dDcCfFntrue")));
  std::string problem;
  const auto value = parse_json(text, 8, &problem);
  RC_ASSERT(value.has_value() == problem.empty());
}

TEST(ParseExactJson, RefusesIntegersThatWouldBecomeOthers) {
  for (const char* text :
       {"12345678901234567890123", "-9223372036854775809", "[{\"id\":18446744073709551616}]"}) {
    std::string problem;
    EXPECT_FALSE(parse_exact_json(text, 64, &problem)) << text;
    EXPECT_NE(problem.find("as a string"), std::string::npos) << problem;
    EXPECT_TRUE(parse_json(text)) << text;
  }
  std::string problem;
  parse_exact_json("[1, 12345678901234567890123]", 64, &problem);
  EXPECT_NE(problem.find("12345678901234567890123"), std::string::npos) << problem;
  for (const char* text :
       {"18446744073709551615", "-9223372036854775808", "1.5", "1e30", "1.0E30"}) {
    EXPECT_TRUE(parse_exact_json(text)) << text;
  }
}

}  // namespace
}  // namespace holdfast
