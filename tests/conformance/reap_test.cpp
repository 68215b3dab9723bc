#include <numeric>

#include "conformance/store_test_support.hpp"

namespace holdfast::testing {
namespace {

class Reap : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Stores, Reap, ::testing::ValuesIn(store_kinds()));

TEST_P(Reap, RequeuesAStaleRunAtOnceAndCharged) {
  const Claimed claimed = claimed_run();
  env.advance(59999ms);
  EXPECT_EQ(reap().requeued, 0);
  env.advance(1ms);
  const ReapReport report = reap();
  EXPECT_EQ(report.requeued, 1);
  EXPECT_FALSE(report.full);
  const auto run = get(claimed.run.id);
  EXPECT_EQ(run.status, Status::queued);
  EXPECT_EQ(run.requeue_count, 1);
  EXPECT_EQ(run.reclaim_count, 1);
  EXPECT_EQ(kinds(*store, run.id), (Kinds{"queued", "claimed", "reaped"}));
  const auto event = store->events(run.id, 2, 1).at(0);
  EXPECT_EQ(event.payload["worker"], worker);
  EXPECT_EQ(event.payload["cause"], "lease");
  EXPECT_EQ(reap().requeued, 0);
}

TEST_P(Reap, DeadLettersARunWhoseBudgetIsSpent) {
  NewRun wanted = a_run(env);
  wanted.row.policy.max_requeues = 0;
  wanted.row.max_requeues = 0;
  enqueue(wanted);
  claim_one();
  env.advance(61s);
  EXPECT_EQ(reap().dead_lettered, 1);
  const auto run = get(wanted.row.id);
  EXPECT_EQ(run.status, Status::failed);
  EXPECT_EQ(run.reason, Word<Reason>(Reason::retries_exhausted));
  EXPECT_EQ(kinds(*store, run.id), (Kinds{"queued", "claimed", "reaped", "failed"}));
}

TEST_P(Reap, DeadLettersARunUnderAnUnsafeFenceAndKeepsTheFence) {
  const Claimed claimed = claimed_run();
  store->fence(claimed.lease, a_fence("pay#1"));
  env.advance(61s);
  EXPECT_EQ(reap().dead_lettered, 1);
  const auto run = get(claimed.run.id);
  EXPECT_EQ(run.reason, Word<Reason>(Reason::not_retryable));
  EXPECT_EQ(run.pending->step_key, "pay#1");
}

TEST_P(Reap, HandlesLongestExpiredFirstAfterRenewalsInAnyOrder) {
  std::vector<Claimed> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(claimed_run());
    env.advance(1s);
  }
  // Renewed at steps: the third is now the freshest, the first the next.
  store->record(all[0].lease, a_step("a"));
  env.advance(1s);
  store->renew(worker, std::span(&all[2].lease, 1));
  env.advance(10min);
  std::vector<RunId> order;
  for (int i = 0; i < 6; ++i) {
    const auto report = reap(1);
    EXPECT_EQ(report.requeued, 1);
    EXPECT_TRUE(report.full);
    for (const Claimed& claimed : all) {
      const bool is_new = std::ranges::find(order, claimed.run.id) == order.end();
      if (is_new && status(claimed.run.id) == "queued") order.push_back(claimed.run.id);
    }
  }
  const std::vector<RunId> expected{all[1].run.id, all[3].run.id, all[4].run.id,
                                    all[5].run.id, all[0].run.id, all[2].run.id};
  EXPECT_EQ(order, expected);
}

TEST_P(Reap, LeavesRenewedRunsBesideStaleOnesAlone) {
  const Claimed live = claimed_run();
  const Claimed dead = claimed_run();
  for (int i = 0; i < 5; ++i) {
    env.advance(50s);
    EXPECT_EQ(store->record(live.lease, a_step(std::to_string(i))), Write::applied);
    EXPECT_EQ(reap().requeued, i == 1 ? 1 : 0);
  }
  EXPECT_EQ(status(live.run.id), "running");
  EXPECT_EQ(status(dead.run.id), "queued");
}

TEST_P(Reap, NeverTouchesRunsWithoutALease) {
  const NewRun run = a_run(env);
  store->start(run, "caller");
  env.advance(std::chrono::hours(1000));
  EXPECT_EQ(reap().requeued, 0);
  EXPECT_EQ(status(run.row.id), "running");
}

TEST_P(Reap, DryRunSaysWhatWouldBeAndChangesNothing) {
  const Claimed claimed = claimed_run();
  env.advance(61s);
  const auto before = kinds(*store, claimed.run.id);
  EXPECT_EQ(store->reap(50, true, worker_lost(env)).requeued, 1);
  EXPECT_EQ(store->reap(50, true, worker_lost(env)).requeued, 1);
  EXPECT_EQ(status(claimed.run.id), "running");
  EXPECT_EQ(kinds(*store, claimed.run.id), before);
}

TEST_P(Reap, SeveralReapersHandleEachRunOnce) {
  std::vector<NewRun> batch;
  for (int i = 0; i < 120; ++i) batch.push_back(a_run(env));
  store->enqueue(batch);
  EXPECT_EQ(claim(120).size(), 120u);
  env.advance(61s);
  std::array<int, 4> handled{};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int& count : handled) {
    threads.push_back(env.spawn({}, [&] {
      while (true) {
        const auto report = reap(7);
        count += report.requeued;
        if (report.requeued == 0) return;
      }
    }));
  }
  threads.clear();
  EXPECT_EQ(std::accumulate(handled.begin(), handled.end(), 0), 120);
  for (const NewRun& run : batch) {
    EXPECT_EQ(kinds(*store, run.row.id), (Kinds{"queued", "claimed", "reaped"}));
    EXPECT_EQ(get(run.row.id).requeue_count, 1);
  }
}

TEST_P(Reap, DeciderThatThrowsLeavesTheRunUntouched) {
  const Claimed claimed = claimed_run();
  env.advance(61s);
  EXPECT_THROW(
      store->reap(50, false, [](const auto&) -> Settlement { throw std::runtime_error("bug"); }),
      std::runtime_error);
  EXPECT_EQ(status(claimed.run.id), "running");
  EXPECT_EQ(reap().requeued, 1);
}

TEST_P(Reap, AJudgeThatGivesUpItsVerdictsLeavesNothingBehind) {
  const Claimed waiting = claimed_run();
  store->settle(waiting.lease, suspending(waiting.run, env, 10s));
  const Claimed first = claimed_run();
  const Claimed second = claimed_run();
  env.advance(61s);
  int asked = 0;
  const auto gives_up = [&](const holdfast::Run& run) -> Settlement {
    if (++asked == 2) throw std::runtime_error("it stood still");
    return worker_lost(env)(run);
  };
  EXPECT_THROW(store->reap(50, false, gives_up), std::runtime_error);
  EXPECT_EQ(status(waiting.run.id), "waiting_for_approval");
  EXPECT_EQ(status(first.run.id), "running");
  EXPECT_EQ(status(second.run.id), "running");
  const ReapReport report = reap();
  EXPECT_EQ(report.expired, 1);
  EXPECT_EQ(report.requeued, 2);
}

TEST_P(Reap, ExpiresWaitsWhoseTimeIsOver) {
  const Claimed claimed = claimed_run();
  const Claimed patient = claimed_run();
  store->settle(claimed.lease, suspending(claimed.run, env, 10s));
  store->settle(patient.lease, suspending(patient.run, env));
  env.advance(9999ms);
  EXPECT_EQ(reap().expired, 0);
  env.advance(1ms);
  EXPECT_EQ(reap().expired, 1);
  EXPECT_EQ(status(claimed.run.id), "queued");
  EXPECT_EQ(status(patient.run.id), "waiting_for_approval");
  EXPECT_EQ(kinds(*store, claimed.run.id).back(), "expired");
}

TEST_P(Reap, PresenceEndsLeasesThatWereNotRenewedSince) {
  const Claimed old = claimed_run();
  env.advance(5s);
  const StoreTime seen = env.store_now();
  env.advance(1s);
  const Claimed renewed = claimed_run();
  const Claimed others = [&] {
    worker = "worker-2";
    return claimed_run();
  }();
  EXPECT_EQ(store->expire_leases_of("worker-1", seen), 1);
  EXPECT_EQ(store->expire_leases_of("worker-1", seen), 0);
  EXPECT_EQ(reap().requeued, 1);
  EXPECT_EQ(status(old.run.id), "queued");
  EXPECT_EQ(store->events(old.run.id, 2, 1).at(0).payload["cause"], "presence");
  EXPECT_EQ(status(renewed.run.id), "running");
  EXPECT_EQ(status(others.run.id), "running");
}

TEST_P(Reap, OwnerThatLivesAfterAllTakesItsLeaseBack) {
  const Claimed claimed = claimed_run();
  EXPECT_EQ(store->expire_leases_of(worker, env.store_now()), 1);
  EXPECT_TRUE(get(claimed.run.id).lease_lost_by_presence);
  EXPECT_EQ(store->record(claimed.lease, a_step("a")), Write::applied);
  EXPECT_FALSE(get(claimed.run.id).lease_lost_by_presence);
  EXPECT_EQ(reap().requeued, 0);
  env.advance(61s);
  EXPECT_EQ(reap().requeued, 1);
  EXPECT_EQ(store->events(claimed.run.id, 3, 1).at(0).payload["cause"], "lease");
}

TEST_P(Reap, PresenceIsProvenOnlyOfTheGone) {
  PresenceBoard* board = store->presence();
  ASSERT_NE(board, nullptr);
  const Identity identity = env.make_identity();
  auto hold = board->hold(identity);
  EXPECT_TRUE(hold->is_intact());
  EXPECT_EQ(board->prove_gone(identity.id), nullptr);
  EXPECT_TRUE(board->watch(0ms, {}).empty());
  hold.reset();
  auto proof = board->prove_gone(identity.id);
  EXPECT_NE(proof, nullptr);
  EXPECT_EQ(board->prove_gone(identity.id), nullptr);
  proof.reset();
  EXPECT_NE(board->prove_gone("left-no-trace"), nullptr);
}

TEST_P(Reap, WatchEndsWhenStopIsRequested) {
  std::stop_source stop;
  auto watching = env.spawn({}, [&] { store->presence()->watch(1h, stop.get_token()); });
  stop.request_stop();
  watching->join();
}

/// Whether it is done or foreseen: the lease that ended first comes first, however it was renewed.
TEST_P(Reap, LeasesThatEndedFirstAreReapedFirst) {
  const Claimed renewed = claimed_run();
  env.advance(10s);
  const Claimed fenced = claimed_run();
  ASSERT_EQ(store->fence(fenced.lease, a_fence("pay")), Write::applied);
  env.advance(10s);
  ASSERT_EQ(store->renew(worker, std::vector{renewed.lease}).answers.at(0), Write::applied);
  env.advance(120s);
  for (const bool dry_run : {true, false}) {
    const ReapReport report = store->reap(1, dry_run, worker_lost(env));
    EXPECT_EQ(report.dead_lettered, 1);
    EXPECT_EQ(report.requeued, 0);
  }
  EXPECT_EQ(status(renewed.run.id), "running");
}

}  // namespace
}  // namespace holdfast::testing
