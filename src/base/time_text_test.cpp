#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "base/text.hpp"

namespace holdfast {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(ParseDuration, KnowsEveryUnit) {
  EXPECT_EQ(parse_duration("0s"), Duration(0));
  EXPECT_EQ(parse_duration("500ms"), Duration(500));
  EXPECT_EQ(parse_duration("30s"), Duration(30'000));
  EXPECT_EQ(parse_duration("10m"), Duration(600'000));
  EXPECT_EQ(parse_duration("2h"), Duration(7'200'000));
  EXPECT_EQ(parse_duration("30d"), Duration(std::int64_t{30} * 86'400'000));
}

TEST(ParseDuration, RefusesOtherForms) {
  for (const char* text : {"", "s", "30", "-1s", "-0s", "+1s", "1.5s", " 1s", "1s ", "1 s", "1S",
                           "1w", "1us", "0x1s", "1sm", "ms", "١s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(ParseDuration, RefusesWhatDoesNotFit) {
  EXPECT_EQ(parse_duration("9223372036854775807ms"), std::nullopt);
  EXPECT_EQ(parse_duration("9223372036854775808ms"), std::nullopt);
  EXPECT_EQ(parse_duration("106751991168d"), std::nullopt);
  EXPECT_EQ(parse_duration("99999999999999999999999s"), std::nullopt);
  EXPECT_TRUE(parse_duration("36525d"));
  EXPECT_EQ(parse_duration("36526d"), std::nullopt);
}

RC_GTEST_PROP(FormatDuration, IsReadBack, ()) {
  const Duration duration(*rc::gen::inRange<std::int64_t>(0, 3'155'760'000'000));
  RC_ASSERT(parse_duration(format_duration(duration)) == duration);
}

TEST(FormatDuration, TakesTheLargestUnitThatFits) {
  EXPECT_EQ(format_duration(Duration(0)), "0s");
  EXPECT_EQ(format_duration(Duration(60'000)), "1m");
  EXPECT_EQ(format_duration(Duration(90'000)), "90s");
  EXPECT_EQ(format_duration(Duration(1'500)), "1500ms");
}

WallTime at(std::int64_t ms) { return WallTime(milliseconds(ms)); }

TEST(FormatTime, IsRfc3339WithMilliseconds) {
  EXPECT_EQ(format_time(at(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_time(at(1'793'608'200'007)), "2026-11-02T08:30:00.007Z");
  EXPECT_EQ(format_time(at(-1)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_time(at(INT64_MAX)), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(format_time(at(INT64_MIN)), "0000-01-01T00:00:00.000Z");
  EXPECT_EQ(format_time(at(std::int64_t{2'147'483'648} * 1000)), "2038-01-19T03:14:08.000Z");
}

TEST(ParseTime, NeedsAnOffset) {
  EXPECT_EQ(parse_time("2026-11-02T08:30:00"), std::nullopt);
  EXPECT_EQ(parse_time("2026-11-02T08:30:00Z"), at(1'793'608'200'000));
  EXPECT_EQ(parse_time("2026-11-02T09:30:00+01:00"), at(1'793'608'200'000));
  EXPECT_EQ(parse_time("2026-11-02T01:00:00-07:30"), at(1'793'608'200'000));
  EXPECT_EQ(parse_time("2026-11-02 08:30:00z"), at(1'793'608'200'000));
}

TEST(ParseTime, KnowsLeapYears) {
  EXPECT_TRUE(parse_time("2024-02-29T00:00:00Z"));
  EXPECT_TRUE(parse_time("2000-02-29T00:00:00Z"));
  EXPECT_EQ(parse_time("2023-02-29T00:00:00Z"), std::nullopt);
  EXPECT_EQ(parse_time("2100-02-29T00:00:00Z"), std::nullopt);
}

TEST(ParseTime, CountsALeapSecondAsTheNextOne) {
  EXPECT_EQ(parse_time("2016-12-31T23:59:60Z"), parse_time("2017-01-01T00:00:00Z"));
}

TEST(ParseTime, RoundsFractionsUp) {
  EXPECT_EQ(parse_time("1970-01-01T00:00:00.0001Z"), at(1));
  EXPECT_EQ(parse_time("1970-01-01T00:00:00.5Z"), at(500));
  EXPECT_EQ(parse_time("1970-01-01T00:00:00.123000Z"), at(123));
}

TEST(ParseTime, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "now", "2026-11-02", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
        "2026-11-31T00:00:00Z", "2026-11-02T24:00:00Z", "2026-11-02T08:60:00Z",
        "2026-11-02T08:30:61Z", "2026-11-02T08:30:00.Z", "2026-11-02T08:30:00+1:00",
        "2026-11-02T08:30:00+24:00", "2026-11-02T08:30:00Zx", "26-11-02T08:30:00Z",
        "2026-11-02T08:30Z", "2026-11-02T08:30:00 Z", "-026-11-02T08:30:00Z"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

RC_GTEST_PROP(FormatTime, IsReadBack, ()) {
  const WallTime time =
      at(*rc::gen::inRange<std::int64_t>(-62'135'596'800'000, 253'402'300'799'999));
  RC_ASSERT(parse_time(format_time(time)) == time);
}

TEST(TimeText, KeepsToTheYearsThatFourDigitsTell) {
  EXPECT_FALSE(parse_time("0000-01-01T00:00:00+00:01"));
  EXPECT_FALSE(parse_time("9999-12-31T23:59:59.9999Z"));
  EXPECT_EQ(format_time(WallTime::min()), "0000-01-01T00:00:00.000Z");
  EXPECT_EQ(format_time(WallTime::max()), "9999-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace holdfast
