// A model that goes round in circles is stopped; one that makes progress is not.

#include <gtest/gtest.h>

#include "agent/agent_test_support.hpp"

namespace holdfast {
namespace {

using namespace agent_test;

/// Every turn makes the same call.
Fixture circling() {
  Fixture f;
  f.tools.add("look");
  f.tools.add("write").effect = Effect::non_idempotent_write;
  f.spec.tools = {"look", "write"};
  f.spec.max_iterations = 50;
  f.spec.max_repeats = 3;
  f.chain.replies = {calls({{"look", {{"id", 7}}}})};
  return f;
}

TEST(Repeats, EndTheRunBeforeTheCallsAreMadeOnceMore) {
  Fixture f = circling();
  f.chain.replies = {calls({{"look", {{"id", 1}}}}), calls({{"write", {{"id", 7}, {"x", 1}}}})};
  const EndRun end = std::get<EndRun>(f.segment());
  EXPECT_EQ(end.reason, Reason::max_iterations);
  EXPECT_EQ(f.chain.calls(), 4u);
  EXPECT_EQ(f.tools.called.size(), 3u);
  EXPECT_NE(end.message.find("the same calls in 3 turns in a row"), std::string::npos)
      << end.message;
  EXPECT_NE(end.message.find(R"(write {"id":7,"x":1})"), std::string::npos) << end.message;
}

TEST(Repeats, WithinOneTurnAreNone) {
  Fixture f = circling();
  const std::pair<std::string, Json> same = {"look", {{"id", 7}}};
  f.chain.replies = {calls({same, same, same, same}), calls({same, same}), calls({same, same}),
                     answers("done")};
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_EQ(f.tools.called.size(), 8u);
}

TEST(Repeats, AreInARow) {
  Fixture f = circling();
  const ModelReply look = calls({{"look", {{"id", 7}}}});
  const ModelReply other = calls({{"look", {{"id", 8}}}});
  f.chain.replies = {look, look, other,          look, look, answers("hm", "pause"),
                     look, look, answers("done")};
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
}

TEST(Repeats, OfCallsWhoseResultsChangeAreProgress) {
  Fixture f = circling();
  std::vector<int> results = {1, 2, 3, 3, 4, 4};
  std::size_t at = 0;
  f.tools.on_call = [&] { f.tools.outcomes["look"] = {{{"left", results.at(at++)}}, false}; };
  f.chain.replies = std::vector<ModelReply>(6, calls({{"look", {{"id", 7}}}}));
  f.chain.replies.push_back(answers("done"));
  // Two turns with equal results, and a third that asks the same: the third is made and shows
  // another result.
  f.spec.max_repeats = 4;
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_EQ(f.tools.called.size(), 6u);
}

TEST(Repeats, OfCallsThatAreRefusedCountToo) {
  Fixture f = circling();
  ModelReply broken = calls({{"look", Json::object()}});
  broken.calls[0].bad_arguments = "{\"id\": ";
  f.chain.replies = {broken};
  const EndRun end = std::get<EndRun>(f.segment());
  EXPECT_NE(end.message.find("max_repeats = 3"), std::string::npos) << end.message;
  EXPECT_TRUE(f.tools.called.empty());
}

TEST(Repeats, AreFoundAtTheSamePlaceAfterACrashAtEveryStep) {
  Fixture whole = circling();
  whole.segment();
  const int steps = static_cast<int>(whole.journal.entries.size());
  ASSERT_EQ(steps, 5);
  for (int at = 1; at <= steps; ++at) {
    Fixture f = circling();
    ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(at)));
    EXPECT_EQ(std::get<EndRun>(f.segment()).message, std::get<EndRun>(whole.segment()).message);
    EXPECT_EQ(f.chain.calls(), 3u) << at;
    EXPECT_EQ(f.tools.called.size(), 2u) << at;
  }
}

TEST(Repeats, AreCountedAnewByARedrive) {
  Fixture f = circling();
  ASSERT_TRUE(std::holds_alternative<EndRun>(f.segment()));
  f.journal.drive_begins_at = f.journal.entries.size();
  f.run.redrive_count = 1;
  ASSERT_TRUE(std::holds_alternative<EndRun>(f.segment()));
  // The calls of the third turn were made, and those of two more.
  EXPECT_EQ(f.chain.calls(), 6u);
  EXPECT_EQ(f.tools.called.size(), 5u);
}

TEST(Repeats, AreNotLookedForWhereNobodyWantsThat) {
  Fixture f = circling();
  f.spec.max_repeats = 0;
  f.spec.max_iterations = 30;
  EXPECT_NE(std::get<EndRun>(f.segment()).message.find("30 model calls"), std::string::npos);
  // A run that was defined by an older build.
  Fixture old = circling();
  old.spec.max_iterations = 30;
  old.define();
  old.run.definition.erase("max_repeats");
  EXPECT_NE(std::get<EndRun>(old.segment()).message.find("30 model calls"), std::string::npos);
}

}  // namespace
}  // namespace holdfast
