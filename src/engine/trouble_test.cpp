#include "engine/trouble.hpp"

#include <gtest/gtest.h>

#include "support/manual_env.hpp"

namespace holdfast {
namespace {

class TroubleTest : public ::testing::Test {
 protected:
  /// Lines logged by `work`.
  template <class Work>
  static int lines(const Work& work) {
    ::testing::internal::CaptureStderr();
    work();
    const std::string text = ::testing::internal::GetCapturedStderr();
    return static_cast<int>(std::ranges::count(text, '\n'));
  }

  testing::ManualEnv env_;
  Trouble trouble_{env_, "worker-1"};
};

TEST_F(TroubleTest, SaysWhenItBeginsAndWhenItIsOver) {
  EXPECT_EQ(lines([&] { trouble_.report("disk full"); }), 1);
  EXPECT_EQ(lines([&] { trouble_.over(); }), 1);
  EXPECT_EQ(lines([&] { trouble_.over(); }), 0);
}

TEST_F(TroubleTest, GoodAndBadInTurnsSayOneOfEachInTenSeconds) {
  EXPECT_EQ(lines([&] {
              for (int i = 0; i < 100; ++i) {
                trouble_.report("disk full");
                trouble_.over();
              }
            }),
            2);
}

TEST_F(TroubleTest, WhileItLastsItIsSaidEveryTenSeconds) {
  EXPECT_EQ(lines([&] {
              for (int i = 0; i < 30; ++i) {
                trouble_.report("disk full");
                env_.advance(std::chrono::seconds(1));
              }
            }),
            3);
}

}  // namespace
}  // namespace holdfast
