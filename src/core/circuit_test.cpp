#include "core/circuit.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

class CircuitTest : public ::testing::Test {
 protected:
  Admission ask() { return admit(circuit_, now_, 20s); }
  void fail(FailureClass cls = FailureClass::overloaded, std::optional<Duration> hint = {},
            bool was_probe = false) {
    CallEnd end;
    end.what = CallEnd::What::failed;
    end.cls = cls;
    end.code = "busy";
    end.hint = hint;
    end.was_probe = was_probe;
    note(circuit_, end, options_, now_);
  }
  void finish(CallEnd::What what, bool was_probe = false) {
    CallEnd end;
    end.what = what;
    end.was_probe = was_probe;
    note(circuit_, end, options_, now_);
  }
  void open() {
    for (int i = 0; i < options_.threshold; ++i) fail();
    ASSERT_TRUE(ask().is_open);
  }
  /// Behind the pause, with the probe under way.
  void begin_probe() {
    open();
    now_ = *circuit_.open_until;
    ASSERT_TRUE(ask().is_probe);
  }

  Circuit circuit_;
  CircuitOptions options_;
  StoreTime now_{24h};
};

TEST_F(CircuitTest, OpensAtTheThresholdAndNotBefore) {
  for (int i = 1; i < options_.threshold; ++i) {
    fail();
    EXPECT_FALSE(ask().is_open) << i;
    EXPECT_EQ(state_of(circuit_, now_), "closed");
  }
  fail(FailureClass::timeout);
  const Admission refused = ask();
  EXPECT_TRUE(refused.is_open);
  EXPECT_FALSE(refused.is_probe);
  EXPECT_EQ(refused.retry_after, options_.open);
  EXPECT_EQ(refused.failures, options_.threshold);
  EXPECT_EQ(refused.cause, FailureClass::timeout);
  EXPECT_EQ(state_of(circuit_, now_), "open");
}

TEST_F(CircuitTest, AnAnswerEndsTheRow) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i < options_.threshold; ++i) fail();
    finish(CallEnd::What::answered);
    EXPECT_EQ(circuit_, Circuit());
  }
}

TEST_F(CircuitTest, WhatWasGivenUpSaysNothing) {
  for (int i = 1; i < options_.threshold; ++i) fail();
  finish(CallEnd::What::given_up);
  EXPECT_EQ(circuit_.failures, options_.threshold - 1);
  fail();
  EXPECT_TRUE(ask().is_open);
}

TEST_F(CircuitTest, BehindThePauseOneCallTriesAndTheOthersWaitForIt) {
  open();
  now_ = *circuit_.open_until - 1ms;
  EXPECT_TRUE(ask().is_open);
  now_ += 1ms;
  EXPECT_EQ(state_of(circuit_, now_), "half_open");
  const Admission probe = ask();
  EXPECT_TRUE(probe.is_probe);
  EXPECT_FALSE(probe.is_open);
  const Admission other = ask();
  EXPECT_TRUE(other.is_open);
  EXPECT_EQ(other.retry_after, 20s);
}

TEST_F(CircuitTest, AProbeThatSucceedsClosesIt) {
  begin_probe();
  finish(CallEnd::What::answered, true);
  EXPECT_EQ(circuit_, Circuit());
  EXPECT_FALSE(ask().is_open);
}

TEST_F(CircuitTest, AProbeThatFailsOpensItForAnotherPause) {
  begin_probe();
  fail(FailureClass::connection, std::nullopt, true);
  EXPECT_EQ(ask().retry_after, options_.open);
  now_ += options_.open;
  EXPECT_TRUE(ask().is_probe);
}

TEST_F(CircuitTest, AProbeThatWasInterruptedLeavesTheTurnToTheNext) {
  begin_probe();
  finish(CallEnd::What::given_up, true);
  EXPECT_TRUE(ask().is_probe);
}

TEST_F(CircuitTest, AProbeThatIsNeverHeardOfIsGivenUp) {
  begin_probe();
  now_ += 20s - 1ms;
  EXPECT_TRUE(ask().is_open);
  now_ += 1ms;
  EXPECT_TRUE(ask().is_probe);
}

TEST_F(CircuitTest, CallsThatWereUnderWayDoNotProlongThePause) {
  open();
  const StoreTime until = *circuit_.open_until;
  now_ += 10s;
  fail();
  EXPECT_EQ(circuit_.open_until, until);
  EXPECT_EQ(circuit_.failures, options_.threshold + 1);
  finish(CallEnd::What::answered);
  EXPECT_FALSE(ask().is_open) << "it answers";
}

TEST_F(CircuitTest, ASpentQuotaOpensItAtOnceAndForLonger) {
  fail(FailureClass::quota_exhausted);
  const Admission refused = ask();
  EXPECT_TRUE(refused.is_open);
  EXPECT_EQ(refused.retry_after, options_.quota_open);
  EXPECT_EQ(refused.cause, FailureClass::quota_exhausted);
}

TEST_F(CircuitTest, AProviderThatAsksForMoreThanThePauseGetsItWithinBounds) {
  options_.threshold = 1;
  fail(FailureClass::rate_limit, 2min);
  EXPECT_EQ(ask().retry_after, 2min);
  circuit_ = {};
  fail(FailureClass::rate_limit, std::chrono::hours(10000));
  EXPECT_EQ(ask().retry_after, options_.quota_open);
  for (const Duration hint : {Duration::min(), Duration(-1), Duration(0), Duration(1)}) {
    circuit_ = {};
    fail(FailureClass::rate_limit, hint);
    EXPECT_EQ(ask().retry_after, options_.open);
  }
}

TEST_F(CircuitTest, ClassesTripAsTheTableSays) {
  using enum FailureClass;
  for (const auto cls :
       {connection, timeout, rate_limit, overloaded, server_error, quota_exhausted}) {
    EXPECT_TRUE(trips(cls)) << to_word(cls);
  }
  for (const auto cls :
       {circuit_open, auth, configuration, client_error, context_length, content_policy, unknown}) {
    EXPECT_FALSE(trips(cls)) << to_word(cls);
  }
}

TEST_F(CircuitTest, IsKeptAndReadBack) {
  begin_probe();
  circuit_.target = "main/gpt";
  EXPECT_EQ(decode_circuit("main/gpt", encode(circuit_)), circuit_);
}

TEST_F(CircuitTest, RubbishIsReadAsClosed) {
  Circuit closed;
  closed.target = "t";
  for (const char* text : {"null", "7", "[]", "{}", R"({"failures":"x","open_until":"y"})",
                           R"({"failures":-3,"cause":"nonsense","code":7,"probe_until":1.5})"}) {
    EXPECT_EQ(decode_circuit("t", Json::parse(text)), closed) << text;
  }
  Circuit far = decode_circuit("t", Json::parse(R"({"open_until":9223372036854775807})"));
  EXPECT_TRUE(admit(far, now_, 20s).is_open) << "and nothing overflows";
}

}  // namespace
}  // namespace holdfast
