#include "conformance/store_test_support.hpp"

namespace holdfast::testing {
namespace {

using Answer = ChangeResult::Answer;

class People : public StoreTest {
 protected:
  RunId dead_letter() {
    const Claimed claimed = claimed_run();
    store->settle(claimed.lease, failing(claimed.run, env, FailureClass::auth));
    return claimed.run.id;
  }
  Claimed waiting(std::optional<Duration> timeout = {}) {
    Claimed claimed = claimed_run();
    store->settle(claimed.lease, suspending(claimed.run, env, timeout));
    return claimed;
  }
  static Decision deciding(const RunId& id, DecisionKind kind = DecisionKind::approve) {
    Decision decision;
    decision.run = id;
    decision.kind = kind;
    decision.turn = "turn-1";
    decision.by = by();
    return decision;
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, People, ::testing::ValuesIn(store_kinds()));

TEST_P(People, CancelIsImmediateAndIdempotent) {
  const auto run = enqueue();
  const auto result = store->cancel(run.id, by("op-1"));
  EXPECT_EQ(result.answer, Answer::applied);
  EXPECT_EQ(result.run->status, Status::cancelled);
  EXPECT_EQ(store->cancel(run.id, by("op-1")).answer, Answer::applied);
  EXPECT_EQ(store->cancel(run.id, by("op-2")).answer, Answer::unchanged);
  EXPECT_TRUE(claim().empty());
  EXPECT_EQ(kinds(*store, run.id), (Kinds{"queued", "cancelled"}));
}

TEST_P(People, CancelOfAnEndedRunIsRefusedAndOfAnUnknownOneNotFound) {
  const Claimed claimed = claimed_run();
  complete(claimed);
  const auto result = store->cancel(claimed.run.id, by());
  EXPECT_EQ(result.answer, Answer::refused);
  EXPECT_FALSE(result.why.empty());
  EXPECT_EQ(store->cancel("nothing", by()).answer, Answer::not_found);
}

TEST_P(People, RedriveStartsAnewAndIsDoneOnceForEachOperation) {
  const RunId id = dead_letter();
  const std::vector<RunId> ids{id, "nothing"};
  const auto results = store->redrive(ids, by("op-1"));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].answer, Answer::applied);
  EXPECT_EQ(results[1].answer, Answer::not_found);
  EXPECT_EQ(get(id).redrive_count, 1);
  EXPECT_FALSE(get(id).error.has_value());
  EXPECT_FALSE(get(id).reason.has_value());
  const Claimed again = claim_one();
  store->settle(again.lease, failing(again.run, env, FailureClass::auth));
  EXPECT_EQ(store->redrive(ids, by("op-1"))[0].answer, Answer::applied);
  EXPECT_EQ(status(id), "failed");
  EXPECT_EQ(store->redrive(ids, by("op-2"))[0].answer, Answer::applied);
  EXPECT_EQ(status(id), "queued");
}

TEST_P(People, RedriveUnderAnUnsafeFenceIsRefusedUntilResolved) {
  const Claimed claimed = claimed_run();
  store->fence(claimed.lease, a_fence("pay#1"));
  env.advance(61s);
  reap();
  const std::vector<RunId> ids{claimed.run.id};
  EXPECT_EQ(store->redrive(ids, by()).front().answer, Answer::refused);
  ResolveRequest request;
  request.run = claimed.run.id;
  request.landed = true;
  request.result = {{"receipt", 7}};
  request.step = "pay#2";
  EXPECT_EQ(store->resolve(request).answer, Answer::refused);
  request.step = "pay#1";
  EXPECT_EQ(store->resolve(request).answer, Answer::applied);
  const auto run = get(claimed.run.id);
  EXPECT_EQ(run.status, Status::queued);
  EXPECT_FALSE(run.pending.has_value());
  const auto all = kinds(*store, run.id);
  EXPECT_NE(std::ranges::find(all, "resolved"), all.end());
}

TEST_P(People, DecisionIsMadeOnTheTurnThatWasSeen) {
  const Claimed claimed = waiting();
  Decision decision = deciding(claimed.run.id);
  decision.turn = "another";
  EXPECT_EQ(store->answer(decision, {}).answer, Answer::refused);
  decision.turn = "turn-1";
  decision.call = "1";
  EXPECT_EQ(store->answer(decision, {}).answer, Answer::applied);
  EXPECT_EQ(status(claimed.run.id), "waiting_for_approval");
  EXPECT_EQ(get(claimed.run.id).waiting_for->calls[0].decision, Verdict::approved);
  EXPECT_EQ(store->answer(decision, {}).answer, Answer::refused);
  decision.call = "2";
  decision.kind = DecisionKind::deny;
  EXPECT_EQ(store->answer(decision, {}).answer, Answer::applied);
  EXPECT_EQ(status(claimed.run.id), "queued");
  EXPECT_EQ(kinds(*store, claimed.run.id),
            (Kinds{"queued", "claimed", "approval_requested", "approved", "denied"}));
  EXPECT_EQ(claim_one().lease.claim, 2);
}

TEST_P(People, ExactlyOneOfTwoRacingDecisionsWins) {
  const Claimed claimed = waiting();
  std::array<Answer, 8> answers{};
  std::vector<std::unique_ptr<Thread>> threads;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    threads.push_back(env.spawn({}, [&, i] {
      const auto kind = i % 2 == 0 ? DecisionKind::approve : DecisionKind::deny;
      answers[i] = store->answer(deciding(claimed.run.id, kind), {}).answer;
    }));
  }
  threads.clear();
  EXPECT_EQ(std::ranges::count(answers, Answer::applied), 1);
  EXPECT_EQ(std::ranges::count(answers, Answer::refused), 7);
}

TEST_P(People, LateDecisionIsRefused) {
  const Claimed claimed = waiting(10s);
  env.advance(10s);
  EXPECT_EQ(store->answer(deciding(claimed.run.id), {}).answer, Answer::refused);
}

TEST_P(People, DecisionContinuedInlineGoesOnUnderANewClaim) {
  const Claimed claimed = waiting();
  Decision decision = deciding(claimed.run.id);
  decision.by = by("op-1");
  const Continuation leased{true, "inline-worker", false};
  const auto result = store->answer(decision, leased);
  ASSERT_TRUE(result.continued.has_value());
  EXPECT_EQ(result.continued->lease.claim, 2);
  EXPECT_EQ(result.continued->lease.holder, "inline-worker");
  EXPECT_FALSE(result.continued->lease.interactive);
  EXPECT_EQ(result.continued->run.input, Json("do it"));
  // After a lost reply the same call gives the same claim.
  EXPECT_EQ(store->answer(decision, leased).continued->lease.claim, 2);
  EXPECT_EQ(complete(*result.continued), Write::applied);
}

TEST_P(People, DecisionContinuedInteractivelyHoldsNoLease) {
  const Claimed claimed = waiting();
  const auto result = store->answer(deciding(claimed.run.id), {true, "caller", true});
  ASSERT_TRUE(result.continued.has_value());
  EXPECT_TRUE(result.continued->lease.interactive);
  EXPECT_FALSE(get(claimed.run.id).lease_until.has_value());
}

TEST_P(People, InputIsStoredWithItsEvent) {
  const Claimed claimed = claimed_run();
  store->settle(claimed.lease, suspending(claimed.run, env, {}, WaitKind::input));
  const auto waiting_run = get(claimed.run.id);
  EXPECT_EQ(waiting_run.status, Status::waiting_for_input);
  EXPECT_EQ(waiting_run.waiting_for->schema, (Json{{"type", "object"}}));
  Decision decision = deciding(claimed.run.id, DecisionKind::input);
  decision.values = {{"amount", 3}};
  EXPECT_EQ(store->answer(decision, {}).answer, Answer::applied);
  EXPECT_EQ(store->events(claimed.run.id, 3, 1).at(0).payload["values"], decision.values);
}

TEST_P(People, HandOverNeedsAProcessThatIsGoneOrForce) {
  const NewRun run = a_run(env);
  const Identity identity = env.make_identity();
  auto hold = store->presence()->hold(identity);
  store->start(run, identity.id);
  EXPECT_FALSE(get(run.row.id).abandoned);
  EXPECT_EQ(store->hand_over(run.row.id, false, by()).answer, Answer::refused);
  hold.reset();
  EXPECT_TRUE(get(run.row.id).abandoned);
  EXPECT_EQ(store->hand_over(run.row.id, false, by()).answer, Answer::applied);
  EXPECT_EQ(get(run.row.id).origin, Origin::queued);
  EXPECT_EQ(claim_one().run.id, run.row.id);
}

TEST_P(People, WakeMakesADelayedRunAvailable) {
  NewRun run = a_run(env);
  run.delay = 1h;
  enqueue(run);
  EXPECT_EQ(store->wake(run.row.id, by("op-1")).answer, Answer::applied);
  EXPECT_EQ(store->wake(run.row.id, by("op-1")).answer, Answer::applied) << "asked again";
  const auto second = store->wake(run.row.id, by("op-2"));
  EXPECT_EQ(second.answer, Answer::refused);
  EXPECT_NE(second.why.find("available already"), std::string::npos) << second.why;
  EXPECT_EQ(claim().size(), 1u);
  EXPECT_EQ(kinds(*store, run.row.id), (Kinds{"queued", "woken", "claimed"}));
}

TEST_P(People, DefinitionIsKeptOverSegmentsAndTakenAnewAfterARedrive) {
  AgentOffer first = offer();
  first.definition = {{"system", "one"}};
  AgentOffer second = first;
  second.definition = {{"system", "two"}};
  const auto run = enqueue();
  auto claimed = store->claim({worker, {first}, {}, 1, {}}).runs.at(0);
  store->settle(claimed.lease, settlement(claimed.run, Interrupted{}, env));
  claimed = store->claim({worker, {second}, {}, 1, {}}).runs.at(0);
  EXPECT_EQ(claimed.run.definition, first.definition);
  store->settle(claimed.lease, failing(claimed.run, env, FailureClass::auth));
  store->redrive(std::span(&run.id, 1), by());
  claimed = store->claim({worker, {second}, {}, 1, {}}).runs.at(0);
  EXPECT_EQ(claimed.run.definition, second.definition);
}

}  // namespace
}  // namespace holdfast::testing
