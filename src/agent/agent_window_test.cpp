// A conversation that outgrows its model: what was left out is recorded, and stays out.

#include <gtest/gtest.h>

#include "agent/agent_test_support.hpp"

namespace holdfast {
namespace {

using namespace agent_test;

/// Four turns with a tool, then an answer; in the third the model refused what was longer.
Fixture refused_in_the_third() {
  Fixture f;
  f.tools.add("look");
  f.spec.tools = {"look"};
  for (int i = 0; i < 4; ++i) f.chain.replies.push_back(calls({{"look", {{"id", i}}}}));
  f.chain.replies.push_back(answers("done"));
  f.chain.replies[2].left_out = 1;
  f.chain.replies[2].was_refused = true;
  f.chain.replies[3].left_out = 2;
  return f;
}

TEST(AgentWindow, WhatWasLeftOutIsRecordedAndWhatWasRefusedIsNotTriedAgain) {
  Fixture f = refused_in_the_third();
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_EQ(f.result_of("model#3")["left_out"], 1);
  EXPECT_EQ(f.result_of("model#4")["left_out"], 2);
  EXPECT_FALSE(f.result_of("model#2").contains("left_out"));
  EXPECT_EQ(f.chain.leaves_out, (std::vector<int>{0, 0, 0, 1, 1}));
  EXPECT_EQ(f.chain.last.messages.size(), 10u) << "the conversation itself stays whole";
}

TEST(AgentWindow, ALaterSegmentKnowsWhatWasRefused) {
  for (int at = 5; at <= 8; ++at) {
    Fixture f = refused_in_the_third();
    ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(at)));
    EXPECT_EQ(std::get<Json>(f.segment()), "done");
    EXPECT_EQ(f.chain.leaves_out.back(), 1) << at;
  }
}

TEST(AgentWindow, WhatCannotFitEndsTheRun) {
  Fixture f = refused_in_the_third();
  f.chain.truncates_at = 2;
  const EndRun end = std::get<EndRun>(f.segment());
  EXPECT_EQ(end.reason, Reason::context_truncated);
  EXPECT_EQ(end.message, "it does not fit");
  EXPECT_EQ(f.tools.called.size(), 2u);
}

}  // namespace
}  // namespace holdfast
