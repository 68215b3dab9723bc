#include "base/text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace holdfast {
namespace {

TEST(CleanUtf8, KeepsWellFormedText) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 z";
  EXPECT_EQ(clean_utf8(text), text);
}

TEST(CleanUtf8, KeepsTheNullCharacter) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(clean_utf8(text), text);
}

TEST(CleanUtf8, FindsOddOnesWhereverTheyStand) {
  for (std::size_t before = 0; before < 20; ++before) {
    for (std::size_t after = 0; after < 20; ++after) {
      const std::string some(before, 'a');
      const std::string more(after, 'z');
      for (const char* good : {"\u00e4", "\u20ac", "\U0001F600"}) {
        EXPECT_EQ(clean_utf8(some + good + more), some + good + more);
      }
      EXPECT_EQ(clean_utf8(some + "\xFF\xE2\x82" + more), some + "\uFFFD\uFFFD" + more);
    }
  }
}

TEST(CleanUtf8, ReplacesWhatIsNoCharacter) {
  EXPECT_EQ(clean_utf8("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(clean_utf8("\xC0\xAF"), "\uFFFD\uFFFD");                 // overlong
  EXPECT_EQ(clean_utf8("\xE2\x82"), "\uFFFD");                       // cut off
  EXPECT_EQ(clean_utf8("\xE2\x82z"), "\uFFFDz");                     // cut off, text goes on
  EXPECT_EQ(clean_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");       // a surrogate
  EXPECT_EQ(clean_utf8("\xF4\x90\x80\x80").substr(0, 3), "\uFFFD");  // above U+10FFFF
}

RC_GTEST_PROP(CleanUtf8, GivesTextThatStaysAsItIs, (const std::string& bytes)) {
  const std::string once = clean_utf8(bytes);
  RC_ASSERT(clean_utf8(once) == once);
}

TEST(Cut, LeavesShortTextAlone) { EXPECT_EQ(cut("short", 5), "short"); }

TEST(Cut, SaysHowMuchIsMissing) {
  const std::string result = cut(std::string(1000, 'x'), 100);
  EXPECT_LE(result.size(), 100u);
  const auto kept = static_cast<std::size_t>(std::count(result.begin(), result.end(), 'x'));
  EXPECT_NE(result.find(std::to_string(1000 - kept) + " bytes cut"), std::string::npos);
}

TEST(Cut, CountsWhatWasCutBefore) {
  const std::string once = cut(std::string(100000, 'x'), 500);
  const std::string twice = cut("main: " + once, 300);
  EXPECT_LE(twice.size(), 300u);
  const auto kept = static_cast<std::size_t>(std::count(twice.begin(), twice.end(), 'x'));
  EXPECT_NE(twice.find(" … [" + std::to_string(100000 - kept) + " bytes cut]"), std::string::npos)
      << twice;
  const std::string foreign = "x … [99999999999999999999 bytes cut]";
  EXPECT_LE(cut(foreign + foreign, 50).size(), 50u);
}

TEST(Cut, NeverSplitsACharacter) {
  std::string euros;
  for (int i = 0; i < 200; ++i) euros += "\xE2\x82\xAC";
  for (std::size_t limit = 0; limit < 120; ++limit) {
    const std::string result = cut(euros, limit);
    EXPECT_LE(result.size(), limit);
    EXPECT_EQ(clean_utf8(result), result) << limit;
  }
}

TEST(Sha256, KnowsThePublishedValue) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(DidYouMean, FindsTypingErrors) {
  const std::vector<std::string> words = {"max_requeues", "backoff_base", "jitter"};
  EXPECT_EQ(did_you_mean("max_requeue", words), "max_requeues");
  EXPECT_EQ(did_you_mean("jtiter", words), "jitter");  // a swap counts once
  EXPECT_EQ(did_you_mean("JITTER", words), "jitter");
  EXPECT_EQ(did_you_mean("bakcof_base", words), "backoff_base");
}

TEST(DidYouMean, DoesNotGuessWildly) {
  EXPECT_EQ(did_you_mean("colour", {"jitter", "queue"}), std::nullopt);
  EXPECT_EQ(did_you_mean("x", {"y"}), std::nullopt);
  EXPECT_EQ(did_you_mean("", {"a"}), std::nullopt);
  EXPECT_EQ(did_you_mean(std::string(10'000, 'a'), {std::string(10'000, 'a')}), std::nullopt);
}

}  // namespace
}  // namespace holdfast
