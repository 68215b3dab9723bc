#include "base/guard.hpp"

#include <gtest/gtest.h>

#include "holdfast/failure.hpp"

#ifdef HOLDFAST_TESTING

#include <signal.h>

#include <cstdlib>
#include <stdexcept>

namespace holdfast {
namespace {

TEST(Failpoint, ThrowsATransientStoreError) {
  const FailpointSet points("record.before=error");
  points.pass("record.after");
  try {
    points.pass("record.before");
    FAIL() << "it did not throw";
  } catch (const StoreError& error) {
    EXPECT_FALSE(error.permanent());
  }
}

TEST(Failpoint, TripsAtTheNamedPassingOnly) {
  const FailpointSet points("claim.after=error@2");
  points.pass("claim.after");
  EXPECT_THROW(points.pass("claim.after"), StoreError);
  points.pass("claim.after");
}

TEST(Failpoint, KillsItsProcess) {
  EXPECT_EXIT(FailpointSet("a=pause:0;b=kill").pass("b"), testing::KilledBySignal(SIGKILL), "");
}

TEST(Failpoint, RefusesWhatItCannotRead) {
  for (const char* list :
       {"a", "=kill", "a=explode", "a=pause", "a=pause:x", "a=kill@x", "a=kill;b=", "a=pause:-1"}) {
    EXPECT_THROW(FailpointSet{list}, std::invalid_argument) << list;
  }
  EXPECT_NO_THROW(FailpointSet{""});
  EXPECT_NO_THROW(FailpointSet{"a=kill@2;;b=pause:500;c=error;d=stop"});
}

TEST(Failpoint, UnreadableEnvironmentEndsTheProcess) {
  EXPECT_DEATH(
      {
        ::setenv("HOLDFAST_FAILPOINTS", "a=explode", 1);
        pass_failpoint("b");
      },
      "explode");
}

TEST(Guard, HoldsWhenItIsSwitchedOff) {
  EXPECT_EXIT(
      {
        ::setenv("HOLDFAST_GUARDS_OFF", "one,two", 1);
        const bool off = HOLDFAST_GUARD("two", false);
        const bool on = HOLDFAST_GUARD("three", false);
        std::_Exit(off && !on ? 7 : 1);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace holdfast

#endif
