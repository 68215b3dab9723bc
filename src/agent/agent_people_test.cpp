// Approvals, denials and input (spec, section 8).

#include <gtest/gtest.h>

#include "agent/agent_test_support.hpp"

namespace holdfast {
namespace {

using namespace agent_test;

/// A turn of four calls, two of them gated.
Fixture two_gated() {
  Fixture f;
  f.tools.add("look");
  f.tools.add("pay").approval = true;
  f.tools.specs["pay"].effect = Effect::non_idempotent_write;
  f.tools.specs["pay"].parameters = Json::parse(
      R"({"type": "object", "properties": {"to": {"type": "string"}, "currency": {"default": "EUR"}}})");
  f.tools.add("tell");
  f.spec.tools = {"look", "pay", "tell"};
  f.chain.replies = {calls({{"look", Json::object()},
                            {"pay", {{"to", "a"}}},
                            {"pay", {{"to", "b"}}},
                            {"tell", Json::object()}}),
                     answers("done")};
  return f;
}

Reply verdicts(std::vector<Verdict> list) {
  Reply reply;
  reply.verdicts = std::move(list);
  reply.actor = "ada";
  reply.note = "too much";
  return reply;
}

TEST(AgentApproval, AsksOnceForAllGatedCallsBeforeAnyToolRuns) {
  Fixture f = two_gated();
  f.spec.approval_timeout = std::chrono::hours(2);
  f.tools.specs["pay"].approval_timeout = std::chrono::hours(1);
  const Question question = std::get<Suspend>(f.segment()).question;
  EXPECT_TRUE(f.tools.called.empty());
  EXPECT_EQ(question.kind, WaitKind::approval);
  EXPECT_EQ(question.timeout, std::chrono::hours(1));
  ASSERT_EQ(question.calls.size(), 2u);
  EXPECT_EQ(question.calls[0].id, "1.2");
  EXPECT_EQ(question.calls[1].id, "1.3");
  EXPECT_EQ(question.calls[1].arguments, (Json{{"to", "b"}, {"currency", "EUR"}}));
}

TEST(AgentApproval, RunsWhatWasApprovedInTheModelsOrder) {
  Fixture f = two_gated();
  f.segment();
  f.journal.replies["approval#1"] = verdicts({Verdict::approved, Verdict::approved});
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  ASSERT_EQ(f.tools.called.size(), 4u);
  EXPECT_EQ(f.tools.called[0].first, "look");
  EXPECT_EQ(f.tools.called[1].second, (Json{{"to", "a"}, {"currency", "EUR"}}));
  EXPECT_EQ(f.tools.called[2].second["to"], "b");
  EXPECT_EQ(f.tools.called[3].first, "tell");
  EXPECT_EQ(f.chain.calls(), 2u);
}

TEST(AgentApproval, RunsEachApprovedCallOnceAndNeverADeniedOne) {
  Fixture f = two_gated();
  f.segment();
  f.journal.replies["approval#1"] = verdicts({Verdict::denied, Verdict::approved});
  for (int step = 1; step <= 5; ++step) f.segment(1);  // dies behind every live step
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  ASSERT_EQ(f.tools.called.size(), 3u);
  EXPECT_EQ(f.tools.called[1].second["to"], "b");
  EXPECT_NE(f.told("1.2").find("denied by ada: too much"), std::string::npos) << f.told("1.2");
  EXPECT_EQ(f.result_of("tool:pay#1.2")["is_error"], true);
  EXPECT_EQ(f.journal.find("tool:pay#1.2")->effect, Effect::read);
}

TEST(AgentApproval, EndsTheRunWhereADenialDoes) {
  Fixture f = two_gated();
  f.tools.specs["pay"].end_on_denial = true;
  EXPECT_TRUE(std::get<Suspend>(f.segment()).question.calls[0].ends_on_denial);
  f.journal.replies["approval#1"] = verdicts({Verdict::approved, Verdict::denied});
  EXPECT_EQ(std::get<EndRun>(f.segment()).reason, Reason::approval_denied);
  EXPECT_TRUE(f.tools.called.empty());
}

TEST(AgentApproval, SaysThatNobodyDecided) {
  Fixture f = two_gated();
  f.segment();
  Reply reply = verdicts({Verdict::approved, Verdict::expired});
  reply.expired = true;
  f.journal.replies["approval#1"] = reply;
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_EQ(f.tools.called.size(), 3u);
  EXPECT_NE(f.told("1.3").find("nobody decided"), std::string::npos) << f.told("1.3");
}

TEST(AgentApproval, NeverRunsACallWithoutAVerdict) {
  Fixture f = two_gated();
  f.segment();
  f.journal.replies["approval#1"] = verdicts({Verdict::undecided});
  f.segment();
  for (const auto& [name, arguments] : f.tools.called) EXPECT_NE(name, "pay");
}

TEST(AgentApproval, AsksNobodyAboutCallsThatCannotRun) {
  Fixture f = two_gated();
  f.chain.replies = {calls({{"pay", {{"to", 5}}}}), answers("done")};
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_TRUE(f.journal.asked.empty());
  EXPECT_TRUE(f.tools.called.empty());
}

TEST(AgentApproval, ReplaysATurnAsItWasPlannedUnderALaterDefinition) {
  Fixture f = two_gated();
  f.tools.specs["pay"].approval = false;
  f.define();
  ASSERT_TRUE(std::holds_alternative<Crash>(f.segment(5)));  // all tools of the turn have run
  f.tools.specs["pay"].approval = true;
  f.tools.specs["pay"].parameters["properties"]["currency"]["default"] = "USD";
  f.define();
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_EQ(f.tools.called.size(), 4u);
}

/// A tool that a person must complete, which is gated too.
Fixture with_input() {
  Fixture f = two_gated();
  f.tools.specs["pay"].input_schema = Json::parse(
      R"({"type": "object", "properties": {"pin": {"type": "string"}, "memo": {"default": "-"}},
          "required": ["pin"]})");
  f.tools.specs["pay"].parameters["additionalProperties"] = false;
  f.chain.replies = {calls({{"look", Json::object()}, {"pay", {{"to", "a"}}}}), answers("done")};
  return f;
}

TEST(AgentInput, IsAskedBeforeApprovalAndMergedIntoWhatIsApproved) {
  Fixture f = with_input();
  const Question input = std::get<Suspend>(f.segment()).question;
  EXPECT_EQ(input.kind, WaitKind::input);
  ASSERT_EQ(input.calls.size(), 1u);
  EXPECT_EQ(input.calls[0].id, "1.2");
  EXPECT_EQ(input.schema, f.tools.specs["pay"].input_schema);

  f.journal.replies[input.key].values = {{"pin", "1234"}, {"to", "somebody else"}, {"extra", 1}};
  const Question approval = std::get<Suspend>(f.segment()).question;
  EXPECT_EQ(approval.kind, WaitKind::approval);
  const Json merged = {{"to", "a"}, {"currency", "EUR"}, {"pin", "1234"}, {"memo", "-"}};
  EXPECT_EQ(approval.calls[0].arguments, merged);
  EXPECT_TRUE(f.tools.called.empty());

  f.journal.replies[approval.key] = verdicts({Verdict::approved});
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_EQ(f.tools.called[1].second, merged);
}

TEST(AgentInput, IsAskedCallByCall) {
  Fixture f = with_input();
  f.tools.specs["pay"].approval = false;
  f.chain.replies = {calls({{"pay", {{"to", "a"}}}, {"pay", {{"to", "b"}}}}), answers("done")};
  const std::string first = std::get<Suspend>(f.segment()).question.key;
  f.journal.replies[first].values = {{"pin", "1"}};
  const std::string second = std::get<Suspend>(f.segment()).question.key;
  EXPECT_NE(first, second);
  EXPECT_TRUE(f.tools.called.empty());
  f.journal.replies[second].values = {{"pin", "2"}};
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_EQ(f.tools.called[0].second["pin"], "1");
  EXPECT_EQ(f.tools.called[1].second["pin"], "2");
}

TEST(AgentInput, ThatMakesTheArgumentsInvalidIsToldToTheModel) {
  Fixture f = with_input();
  f.tools.specs["pay"].parameters["properties"]["pin"] = {{"type", "integer"}};
  const std::string key = std::get<Suspend>(f.segment()).question.key;
  f.journal.replies[key].values = {{"pin", "words"}};
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  EXPECT_EQ(f.tools.called.size(), 1u);
  EXPECT_NE(f.told("1.2").find("pin"), std::string::npos) << f.told("1.2");
}

TEST(AgentInput, ThatNobodyGaveIsToldToTheModelOrEndsTheRun) {
  for (const bool ends : {false, true}) {
    Fixture f = with_input();
    f.tools.specs["pay"].end_on_denial = ends;
    const std::string key = std::get<Suspend>(f.segment()).question.key;
    f.journal.replies[key].expired = true;
    const Fixture::End end = f.segment();
    if (ends) {
      EXPECT_EQ(std::get<EndRun>(end).reason, Reason::approval_denied);
    } else {
      EXPECT_EQ(std::get<Json>(end), "done");
      EXPECT_NE(f.told("1.2").find("nobody decided"), std::string::npos);
      EXPECT_EQ(f.tools.called.size(), 1u);
    }
  }
}

}  // namespace
}  // namespace holdfast
