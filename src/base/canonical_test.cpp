#include "base/canonical.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "base/text.hpp"

namespace holdfast {
namespace {

std::string canonical(const std::string& text) { return canonical_text(*parse_json(text)); }

TEST(CanonicalText, IsTheSameHoweverAValueWasWritten) {
  EXPECT_EQ(canonical(R"({"b": [1, true, null], "a": "x"})"),
            canonical(R"({ "a":"\u0078","b":[1,true,null] })"));
  EXPECT_EQ(canonical("1.50e1"), canonical("15.0"));
  EXPECT_EQ(canonical("-0"), canonical("0"));
  EXPECT_EQ(canonical("100000000000000000000"), canonical("1e20"));
}

TEST(CanonicalText, IsAnotherForAnotherValue) {
  const std::vector<std::string> values = {"null",
                                           "false",
                                           "true",
                                           "0",
                                           "-1",
                                           "1",
                                           "1.0",
                                           "-0.0",
                                           "9007199254740993",
                                           "9007199254740992",
                                           "18446744073709551615",
                                           "0.1",
                                           R"("")",
                                           R"("1")",
                                           R"("a")",
                                           "[]",
                                           "[[]]",
                                           "[[], []]",
                                           "{}",
                                           R"({"a": 1})",
                                           R"({"a": "1"})",
                                           R"(["a", 1])",
                                           R"({"as1:b": 1})",
                                           R"({"a": {"b": 1}})",
                                           R"({"a": {}, "b": 1})"};
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_NE(canonical(values[i]), canonical(values[j])) << values[i] << " and " << values[j];
    }
  }
}

TEST(CanonicalText, SaysLengthsInBytesAndDoublesInBits) {
  EXPECT_EQ(canonical(R"({"é": [1, -2.5], "a": "\u0000"})"),
            "o2:s1:as1:" + std::string(1, '\0') + "s2:éa2:i1;dc004000000000000");
}

TEST(CanonicalText, IsOfWhatIsStored) {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const Json& value : {Json("a\xFFz"), Json(infinite), Json({{"a", -infinite}})}) {
    EXPECT_EQ(canonical_text(value), canonical(dump_json(value)));
  }
}

}  // namespace
}  // namespace holdfast
