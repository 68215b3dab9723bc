#include "core/backoff.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace holdfast {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(Backoff, DoublesUpToItsCap) {
  const Policy policy;
  EXPECT_EQ(backoff(policy, 0, {}, 0), seconds(30));
  EXPECT_EQ(backoff(policy, 1, {}, 0), seconds(60));
  EXPECT_EQ(backoff(policy, 4, {}, 0), seconds(480));
  EXPECT_EQ(backoff(policy, 5, {}, 0), seconds(600));
  EXPECT_EQ(backoff(policy, std::numeric_limits<int>::max(), {}, 0), seconds(600));
  EXPECT_EQ(backoff(policy, -5, {}, 0), seconds(30));
}

TEST(Backoff, AddsJitterAlsoAtTheCap) {
  const Policy policy;
  EXPECT_EQ(backoff(policy, 0, {}, 0.5), Duration(31'500));
  EXPECT_EQ(backoff(policy, 50, {}, 0.5), Duration(630'000));
}

TEST(Backoff, TakesAHintAsALowerBound) {
  const Policy policy;
  EXPECT_EQ(backoff(policy, 0, seconds(45), 0), seconds(45));
  EXPECT_EQ(backoff(policy, 0, seconds(5), 0), seconds(30));
  EXPECT_EQ(backoff(policy, 0, hours(100), 0), hours(1));
  EXPECT_EQ(backoff(policy, 0, Duration::max(), 0), hours(1));
  EXPECT_EQ(backoff(policy, 0, Duration::min(), 0), seconds(30));
  EXPECT_EQ(backoff(policy, 0, Duration(0), 0), seconds(30));
}

TEST(Backoff, IsZeroWithABaseOfZero) {
  Policy policy;
  policy.backoff_base = Duration(0);
  policy.backoff_factor = std::numeric_limits<double>::infinity();
  EXPECT_EQ(backoff(policy, 3, {}, 0.9), Duration(0));
}

TEST(Backoff, SpreadsWhatFailedTogether) {
  const Policy policy;
  std::mt19937_64 chance(7);
  std::uniform_real_distribution<double> unit;
  constexpr int kRuns = 500;
  std::vector<Duration> waits;
  for (int i = 0; i < kRuns; ++i) {
    // They failed within one second.
    waits.push_back(Duration(i * 2) + backoff(policy, 0, {}, unit(chance)));
    EXPECT_GE(waits.back(), seconds(30) + Duration(i * 2));
  }
  std::sort(waits.begin(), waits.end());
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const auto end = std::lower_bound(waits.begin(), waits.end(), waits[i] + Duration(100));
    EXPECT_LE(end - waits.begin() - static_cast<std::ptrdiff_t>(i), kRuns * 6 / 100);
  }
}

rc::Gen<double> any_number() {
  return rc::gen::oneOf(rc::gen::arbitrary<double>(),
                        rc::gen::element(0.0, 1.0, -1.0, 0.5, 2.0, 1e308, std::nan(""),
                                         std::numeric_limits<double>::infinity(),
                                         -std::numeric_limits<double>::infinity()));
}

rc::Gen<Duration> any_duration() {
  return rc::gen::map(rc::gen::oneOf(rc::gen::inRange<std::int64_t>(-1000, 100'000'000),
                                     rc::gen::arbitrary<std::int64_t>(),
                                     rc::gen::element(std::numeric_limits<std::int64_t>::max(),
                                                      std::numeric_limits<std::int64_t>::min())),
                      [](std::int64_t ms) { return Duration(ms); });
}

RC_GTEST_PROP(Backoff, StaysWithinItsBoundsForEveryPolicy, ()) {
  Policy policy;
  policy.backoff_base = *any_duration();
  policy.backoff_factor = *any_number();
  policy.backoff_cap = *any_duration();
  policy.jitter = *any_number();
  policy.hint_cap = *any_duration();
  const int count = *rc::gen::arbitrary<int>();
  const std::optional<Duration> hint = *rc::gen::oneOf(
      rc::gen::just(std::optional<Duration>()),
      rc::gen::map(any_duration(), [](Duration d) { return std::optional<Duration>(d); }));
  const Duration wait = backoff(policy, count, hint, *any_number());

  const Duration longest = hours(24 * 36'525);
  const auto sane = [&](Duration d) { return std::clamp(d, Duration(0), longest); };
  const Duration cap = sane(policy.backoff_cap);
  const Duration low = std::min(cap, sane(policy.backoff_base));
  const Duration hinted = hint ? std::min(sane(*hint), sane(policy.hint_cap)) : Duration(0);
  RC_ASSERT(wait >= low);
  RC_ASSERT(wait >= hinted);
  RC_ASSERT(wait <= 2 * std::max(cap, hinted));
  if (policy.jitter >= 0 && policy.jitter <= 1) {
    const double most = static_cast<double>(std::max(cap, hinted).count()) * (1 + policy.jitter);
    RC_ASSERT(static_cast<double>(wait.count()) <= most + 1);
  }
}

RC_GTEST_PROP(Backoff, NeverShrinksAsFailuresAddUp, ()) {
  Policy policy;
  policy.backoff_factor = *rc::gen::element(1.0, 1.5, 2.0, 10.0);
  const int count = *rc::gen::inRange(0, 5000);
  RC_ASSERT(backoff(policy, count, {}, 0) <= backoff(policy, count + 1, {}, 0));
}

}  // namespace
}  // namespace holdfast
