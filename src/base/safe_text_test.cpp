#include "base/safe_text.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(SafeText, ControlCharactersBecomeVisible) {
  EXPECT_EQ(safe_line("a\x1b[31mb\r\n\tc\x7f"), "a\\x1b[31mb\\r\\n\\tc\\x7f");
  EXPECT_EQ(safe_line("\xc2\x9b"
                      "31m"),
            "\\x9b31m")
      << "a control character of two bytes";
  EXPECT_EQ(safe_line("\xe2\x80\xae"
                      "x"),
            "\\u202ex")
      << "turns the direction of writing";
  EXPECT_EQ(safe_line("Grüße, 世界 🙂"), "Grüße, 世界 🙂");
  EXPECT_EQ(safe_line("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(safe_text("a\n\tb\x1b"), "a\n\tb\\x1b");
}

}  // namespace
}  // namespace holdfast
