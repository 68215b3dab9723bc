#include "engine/vigil.hpp"

#include <gtest/gtest.h>

#include "support/manual_env.hpp"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class VigilTest : public ::testing::Test {
 protected:
  /// The store answers each second.
  void go_on(int answers) {
    for (int i = 0; i < answers; ++i) {
      env_.advance(seconds(1));
      EXPECT_TRUE(vigil_.saw_answer());
    }
  }

  testing::ManualEnv env_;
  Vigil vigil_{env_, seconds(20), seconds(5)};
};

TEST_F(VigilTest, LastsAHeartbeatAndAMargin) {
  EXPECT_EQ(vigil_.left(), seconds(26)) << "before the first answer";
  env_.advance(seconds(100));
  EXPECT_EQ(vigil_.left(), seconds(26));
  EXPECT_TRUE(vigil_.saw_answer());
  go_on(25);
  EXPECT_EQ(vigil_.left(), seconds(1));
  go_on(1);
  EXPECT_EQ(vigil_.left(), seconds(0));
}

TEST_F(VigilTest, BeginsAnewAfterABreak) {
  EXPECT_TRUE(vigil_.saw_answer());
  go_on(30);
  env_.advance(vigil_.looks_every() + vigil_.shortest_break());
  EXPECT_TRUE(vigil_.saw_answer()) << "no more than it had to be";
  EXPECT_EQ(vigil_.left(), seconds(0));
  env_.advance(vigil_.looks_every() + vigil_.shortest_break() + milliseconds(1));
  EXPECT_FALSE(vigil_.saw_answer());
  EXPECT_EQ(vigil_.left(), seconds(26));
  go_on(26);
  EXPECT_EQ(vigil_.left(), seconds(0));
}

TEST_F(VigilTest, BeginsAnewWhereTheJudgeStoodStill) {
  EXPECT_TRUE(vigil_.saw_answer());
  go_on(30);
  vigil_.begin_anew();
  EXPECT_EQ(vigil_.left(), seconds(26));
}

TEST_F(VigilTest, LooksOftenEnoughToSeeWhatMayCostALease) {
  for (const Duration heartbeat : {milliseconds(400), milliseconds(2000), milliseconds(60000)}) {
    const Vigil vigil(env_, heartbeat, seconds(600));
    EXPECT_LE(vigil.looks_every(), heartbeat / 2);
    EXPECT_LE(vigil.shortest_break(), std::max<Duration>(heartbeat / 4, milliseconds(250)));
  }
}

}  // namespace
}  // namespace holdfast
