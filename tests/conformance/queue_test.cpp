#include <algorithm>
#include <set>

#include "conformance/store_test_support.hpp"

namespace holdfast::testing {
namespace {

class Queue : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Stores, Queue, ::testing::ValuesIn(store_kinds()));

TEST_P(Queue, KeepsWhatWasEnqueued) {
  NewRun wanted = a_run(env);
  wanted.row.input = {{"text", "hello"}, {"n", 1.5}};
  wanted.row.queue = "urgent";
  wanted.row.priority = -3;
  wanted.row.labels = {{"team", "ops"}, {"tier", "1"}};
  wanted.row.idempotency_key = "key";
  wanted.row.max_requeues = 7;
  wanted.row.policy.backoff_base = 5s;
  const auto stored = enqueue(wanted);
  const auto found = get(wanted.row.id);
  for (const auto& run : {stored, found}) {
    EXPECT_EQ(run.input, wanted.row.input);
    EXPECT_EQ(run.queue, "urgent");
    EXPECT_EQ(run.priority, -3);
    EXPECT_EQ(run.labels, wanted.row.labels);
    EXPECT_EQ(run.idempotency_key, "key");
    EXPECT_EQ(run.max_requeues, 7);
    EXPECT_EQ(run.policy, wanted.row.policy);
    EXPECT_EQ(run.status, Status::queued);
    EXPECT_EQ(run.available_at, env.wall_now());
    EXPECT_EQ(run.created_at, env.wall_now());
    EXPECT_EQ(run.last_sequence, 1);
  }
  EXPECT_EQ(kinds(*store, wanted.row.id), Kinds{"queued"});
}

TEST_P(Queue, FindsNothingForUnknownIds) {
  EXPECT_FALSE(store->find("nothing").has_value());
  EXPECT_TRUE(store->events("nothing", 0, 0).empty());
}

TEST_P(Queue, SameKeyAndContentIsTheSameRunWhateverItsState) {
  NewRun first = a_run(env);
  first.row.idempotency_key = "key";
  enqueue(first);
  complete(claim_one());
  NewRun again = a_run(env);
  again.row.idempotency_key = "key";
  again.content_digest = first.content_digest;
  const auto result = store->enqueue(std::span(&again, 1)).front();
  EXPECT_EQ(result.answer, EnqueueResult::Answer::existing);
  EXPECT_EQ(result.run.id, first.row.id);
  EXPECT_EQ(result.run.status, Status::completed);
  EXPECT_EQ(result.run.answer, Json("done"));
  EXPECT_FALSE(store->find(again.row.id).has_value());
}

TEST_P(Queue, SameKeyWithOtherContentIsAConflict) {
  NewRun first = a_run(env);
  first.row.idempotency_key = "key";
  enqueue(first);
  NewRun other = a_run(env);
  other.row.idempotency_key = "key";
  const auto result = store->enqueue(std::span(&other, 1)).front();
  EXPECT_EQ(result.answer, EnqueueResult::Answer::key_conflict);
  EXPECT_EQ(result.run.id, first.row.id);
  EXPECT_FALSE(store->find(other.row.id).has_value());
}

TEST_P(Queue, RepeatedIdIsRecognisedByItsContent) {
  NewRun run = a_run(env);
  enqueue(run);
  EXPECT_EQ(store->enqueue(std::span(&run, 1)).front().answer, EnqueueResult::Answer::existing);
  run.content_digest = "other";
  EXPECT_EQ(store->enqueue(std::span(&run, 1)).front().answer, EnqueueResult::Answer::id_conflict);
  EXPECT_EQ(kinds(*store, run.row.id), Kinds{"queued"});
}

TEST_P(Queue, BatchWithAConflictStoresNothing) {
  NewRun taken = a_run(env);
  taken.row.idempotency_key = "key";
  enqueue(taken);
  std::vector<NewRun> batch{a_run(env), a_run(env)};
  batch[1].row.idempotency_key = "key";
  const auto results = store->enqueue(batch);
  EXPECT_EQ(results[1].answer, EnqueueResult::Answer::key_conflict);
  EXPECT_FALSE(store->find(batch[0].row.id).has_value());
  EXPECT_FALSE(store->find(batch[1].row.id).has_value());
}

TEST_P(Queue, BatchWithTwinsThatDifferStoresNothing) {
  std::vector<NewRun> batch{a_run(env), a_run(env)};
  batch[0].row.idempotency_key = batch[1].row.idempotency_key = "key";
  const auto results = store->enqueue(batch);
  EXPECT_EQ(results[1].answer, EnqueueResult::Answer::key_conflict);
  EXPECT_FALSE(store->find(batch[0].row.id).has_value());
}

TEST_P(Queue, BatchThatNamesOneIdTwiceIsOneRunOrNothing) {
  const NewRun once = a_run(env);
  NewRun other = once;
  other.content_digest = "other";
  const auto refused = store->enqueue(std::vector{once, other});
  EXPECT_EQ(refused.at(1).answer, EnqueueResult::Answer::id_conflict);
  EXPECT_FALSE(store->find(once.row.id).has_value());
  const auto stored = store->enqueue(std::vector{once, once});
  EXPECT_EQ(stored.at(0).answer, EnqueueResult::Answer::stored);
  EXPECT_EQ(stored.at(1).answer, EnqueueResult::Answer::existing);
  EXPECT_EQ(kinds(*store, once.row.id), Kinds{"queued"});
}

TEST_P(Queue, OneKeyIsOneRunForManyCallersAtOnce) {
  std::vector<std::unique_ptr<Thread>> threads;
  std::array<EnqueueResult, 16> results;
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.push_back(env.spawn({}, [&, i] {
      NewRun run = a_run(env);
      run.row.idempotency_key = "key";
      run.content_digest = "same";
      results[i] = store->enqueue(std::span(&run, 1)).front();
    }));
  }
  threads.clear();
  std::set<RunId> ids;
  int stored = 0;
  for (const auto& result : results) {
    ids.insert(result.run.id);
    stored += result.answer == EnqueueResult::Answer::stored ? 1 : 0;
  }
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(stored, 1);
}

TEST_P(Queue, ClaimsHigherPriorityThenEarlierThenSmallerId) {
  std::vector<NewRun> batch;
  for (const auto& [priority, queue, delay] :
       {std::tuple(0, "a", 5ms), std::tuple(0, "b", 0ms), std::tuple(9, "b", 9ms),
        std::tuple(9, "a", 3ms), std::tuple(-1, "a", 0ms), std::tuple(0, "a", 0ms)}) {
    NewRun run = a_run(env);
    run.row.priority = priority;
    run.row.queue = queue;
    run.delay = delay;
    batch.push_back(run);
  }
  if (batch[5].row.id < batch[1].row.id) std::swap(batch[5].row.id, batch[1].row.id);
  store->enqueue(batch);
  env.advance(10ms);
  std::vector<RunId> order;
  for (int i = 0; i < 3; ++i) {
    for (const auto& claimed : claim(2)) order.push_back(claimed.run.id);
  }
  std::vector<RunId> expected{batch[3].row.id, batch[2].row.id, batch[1].row.id,
                              batch[5].row.id, batch[0].row.id, batch[4].row.id};
  EXPECT_EQ(order, expected);
  EXPECT_TRUE(claim().empty());
}

TEST_P(Queue, RunsThatWereTakenBackKeepTheirPlaceBeforeLesserOnes) {
  std::vector<NewRun> batch(5, a_run(env));
  for (NewRun& run : batch) {
    run = a_run(env);
    run.row.priority = 9;
  }
  store->enqueue(batch);
  ASSERT_EQ(claim(5).size(), 5u);
  env.advance(30s);
  std::vector<NewRun> fresh;
  for (int i = 0; i < 300; ++i) fresh.push_back(a_run(env));
  store->enqueue(fresh);
  env.advance(31s);
  ASSERT_EQ(reap().requeued, 5);
  worker = "worker-2";
  std::set<RunId> next;
  for (int i = 0; i < 5; ++i) next.insert(claim_one().run.id);
  for (const NewRun& run : batch) EXPECT_TRUE(next.contains(run.row.id));
  // Priority is strict; how long the others have been waiting is shown.
  EXPECT_EQ(store->stats().oldest_due_by_priority.at(0), 31s);
}

TEST_P(Queue, ClaimGivesRowLeaseAndEvent) {
  const auto run = enqueue();
  env.advance(5ms);
  const Claimed claimed = claim_one();
  EXPECT_EQ(claimed.run.id, run.id);
  EXPECT_EQ(claimed.run.input, Json("do it"));
  EXPECT_EQ(claimed.lease.claim, 1);
  EXPECT_EQ(claimed.lease.holder, worker);
  EXPECT_FALSE(claimed.lease.interactive);
  const auto row = get(run.id);
  EXPECT_EQ(row.status, Status::running);
  EXPECT_EQ(row.claimed_by, worker);
  EXPECT_EQ(row.claim, 1);
  EXPECT_EQ(row.lease_until, env.store_now() + 60s);
  EXPECT_EQ(row.lease_expires_at, env.wall_now() + 60s);
  EXPECT_EQ(row.started_at, env.wall_now());
  EXPECT_EQ(kinds(*store, run.id), (Kinds{"queued", "claimed"}));
}

TEST_P(Queue, ClaimsOnlyOfferedAgentsAndQueues) {
  NewRun other = a_run(env, "other");
  enqueue(other);
  NewRun elsewhere = a_run(env);
  elsewhere.row.queue = "elsewhere";
  enqueue(elsewhere);
  EXPECT_TRUE(claim(5, "agent", {"default"}).empty());
  EXPECT_EQ(claim(5, "agent", {"default", "elsewhere"}).size(), 1u);
  EXPECT_TRUE(store->claim({worker, {}, {}, 5, {}}).runs.empty());
  EXPECT_EQ(claim(5, "other").size(), 1u);
}

TEST_P(Queue, ClaimOfOneRunTakesThatOrNone) {
  enqueue();
  const auto wanted = enqueue();
  const ClaimRequest request{worker, {offer()}, {}, 1, wanted.id};
  const auto claimed = store->claim(request).runs;
  ASSERT_EQ(claimed.size(), 1u);
  EXPECT_EQ(claimed[0].run.id, wanted.id);
  EXPECT_TRUE(store->claim(request).runs.empty());
}

TEST_P(Queue, DelayedRunIsClaimedWhenDueAndItsTimeIsTold) {
  NewRun later = a_run(env);
  later.delay = 90min;
  enqueue(later);
  NewRun sooner = a_run(env);
  sooner.row.priority = -5;
  sooner.delay = 2s;
  enqueue(sooner);
  auto result = store->claim({worker, {offer()}, {}, 5, {}});
  EXPECT_TRUE(result.runs.empty());
  EXPECT_EQ(result.next_due, 2s);
  env.advance(1999ms);
  EXPECT_TRUE(claim().empty());
  env.advance(1ms);
  result = store->claim({worker, {offer()}, {}, 5, {}});
  ASSERT_EQ(result.runs.size(), 1u);
  EXPECT_EQ(result.runs[0].run.id, sooner.row.id);
  EXPECT_EQ(result.next_due, 90min - 2s);
}

TEST_P(Queue, DueTimesFarAwayRoundTrip) {
  NewRun run = a_run(env);
  run.at = WallTime(std::chrono::sys_days{std::chrono::year{2345} / 6 / 7}) + 123ms;
  enqueue(run);
  EXPECT_EQ(get(run.row.id).available_at, run.at);
}

TEST_P(Queue, RunWithoutPolicyTakesTheOffersAtItsFirstClaim) {
  NewRun run = a_run(env);
  run.policy_given = false;
  run.row.max_requeues = -1;
  enqueue(run);
  EXPECT_FALSE(get(run.row.id).has_policy);
  AgentOffer offered = offer();
  offered.policy.max_requeues = 9;
  offered.definition = {{"system", "be good"}};
  const auto claimed = store->claim({worker, {offered}, {}, 1, {}}).runs;
  ASSERT_EQ(claimed.size(), 1u);
  const auto row = get(run.row.id);
  EXPECT_TRUE(row.has_policy);
  EXPECT_EQ(row.policy, offered.policy);
  EXPECT_EQ(row.max_requeues, 9);
  EXPECT_EQ(row.definition, offered.definition);
}

TEST_P(Queue, EachRunIsClaimedOnceByManyWorkers) {
  std::vector<NewRun> batch;
  for (int i = 0; i < 60; ++i) batch.push_back(a_run(env));
  store->enqueue(batch);
  std::array<std::vector<RunId>, 6> taken;
  std::vector<std::unique_ptr<Thread>> threads;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    threads.push_back(env.spawn({}, [&, i] {
      const ClaimRequest request{"worker-" + std::to_string(i), {offer()}, {}, 3, {}};
      for (auto runs = store->claim(request).runs; !runs.empty();
           runs = store->claim(request).runs) {
        for (const auto& claimed : runs) taken[i].push_back(claimed.run.id);
      }
    }));
  }
  threads.clear();
  std::multiset<RunId> all;
  for (const auto& some : taken) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), batch.size());
  for (const NewRun& run : batch) EXPECT_EQ(all.count(run.row.id), 1u);
}

TEST_P(Queue, InteractiveRunStartsUnderItsCallerWithoutALease) {
  const NewRun run = a_run(env);
  const Claimed claimed = store->start(run, "caller");
  EXPECT_TRUE(claimed.lease.interactive);
  EXPECT_EQ(claimed.lease.claim, 1);
  const auto row = get(run.row.id);
  EXPECT_EQ(row.status, Status::running);
  EXPECT_EQ(row.origin, Origin::interactive);
  EXPECT_FALSE(row.lease_until.has_value());
  EXPECT_EQ(kinds(*store, run.row.id), Kinds{"started"});
  // After a lost reply the same call finds its run.
  EXPECT_EQ(store->start(run, "caller").lease.claim, 1);
  EXPECT_EQ(kinds(*store, run.row.id), Kinds{"started"});
  EXPECT_THROW(store->start(run, "another"), RefusedError);
}

TEST_P(Queue, WaitEndsWhenARunIsEnqueued) {
  EXPECT_TRUE(claim().empty());
  // Enqueued between the look and the wait: the wait returns at once.
  enqueue();
  const std::stop_source never;
  store->wait_for_work(1h, never.get_token());
  EXPECT_EQ(claim().size(), 1u);
}

TEST_P(Queue, WaitEndsWhenStopIsRequested) {
  std::stop_source stop;
  auto waiting = env.spawn({}, [&] { store->wait_for_work(1h, stop.get_token()); });
  stop.request_stop();
  waiting->join();
}

}  // namespace
}  // namespace holdfast::testing
