// Chaos with real processes: 30 s, or HOLDFAST_CHAOS_SECONDS, on the store that
// HOLDFAST_TEST_STORE names, with the dice of HOLDFAST_CHAOS_SEED.

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "chaos/report.hpp"

namespace holdfast::chaos {
namespace {

long number_from(const char* variable, long otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : std::atol(value);
}

TEST(Chaos, LosesNothingAndDoesNothingTwice) {
  const seconds length(number_from("HOLDFAST_CHAOS_SECONDS", 30));
  const auto seed =
      static_cast<unsigned>(number_from("HOLDFAST_CHAOS_SEED", std::random_device{}() >> 1));
  Scene scene(seed);
  scene.play(length);
  EXPECT_TRUE(scene.settle(seconds(180))) << scene.site().runtime().stats().dump(1);
  const Report report = judge(scene);
  std::cout << report.text(scene.log(), seed, length);
  EXPECT_EQ(report.lost, std::vector<std::string>());
  EXPECT_EQ(report.duplicates, std::vector<std::string>());
  EXPECT_EQ(report.paid_again, std::vector<std::string>());
  EXPECT_GE(report.runs, static_cast<int>(scene.log().keys.size()));
  EXPECT_GT(report.steps, 100);
  EXPECT_GT(report.detection.size(), 0u);
  scene.site().expect_sound();
}

}  // namespace
}  // namespace holdfast::chaos
