#include <gtest/gtest.h>

#include "core/test_runs.hpp"

namespace holdfast {
namespace {

using namespace testing_runs;  // NOLINT(google-build-using-namespace)
using std::chrono::seconds;
using RunRow = Run;

Transition reap(const RunRow& run, bool by_presence = false) {
  const Settlement settlement =
      decide(run, WorkerLost{run.claimed_by.value_or("?")}, false, kWall, 0);
  return reaped(run, settlement, by_presence, kNow);
}

TEST(Stale, IsALeaseThatIsOver) {
  EXPECT_TRUE(is_stale(stale_run(), kNow));
  EXPECT_FALSE(is_stale(running_run(), kNow));
  EXPECT_FALSE(is_stale(interactive_run(), kNow));
  RunRow exact = running_run();
  exact.lease_until = kStore;
  EXPECT_TRUE(is_stale(exact, kNow));
  RunRow done = stale_run();
  done.status = Status::completed;
  EXPECT_FALSE(is_stale(done, kNow));
}

TEST(Reaped, RequeuesAtOnceAndCountsBoth) {
  const RunRow run = stale_run();
  const Change change = change_of(reap(run));
  EXPECT_TRUE(change.row.status.is(Status::queued));
  EXPECT_EQ(change.row.available_at, kWall);
  EXPECT_EQ(change.row.requeue_count, 1);
  EXPECT_EQ(change.row.reclaim_count, 1);
  EXPECT_FALSE(change.row.claimed_by || change.row.lease_until);
  EXPECT_EQ(change.row.claim, run.claim);
  ASSERT_EQ(change.events.size(), 1u);
  EXPECT_EQ(change.events[0].kind, EventKind::reaped);
  const Json& payload = change.events[0].payload;
  EXPECT_EQ(payload["worker"], "worker-a");
  EXPECT_EQ(payload["cause"], "lease");
  EXPECT_EQ(payload["expired_at"], "2026-11-02T08:29:59.999Z");
  EXPECT_EQ(payload["available_at"], "2026-11-02T08:30:00.000Z");
  EXPECT_TRUE(payload["step"].is_null());
}

TEST(Reaped, DeadLettersWithTwoEvents) {
  RunRow spent = stale_run();
  spent.requeue_count = 3;
  const Change change = change_of(reap(spent));
  EXPECT_TRUE(change.row.reason->is(Reason::retries_exhausted));
  ASSERT_EQ(change.events.size(), 2u);
  EXPECT_EQ(change.events[0].kind, EventKind::reaped);
  EXPECT_EQ(change.events[0].payload["reason"], "retries_exhausted");
  EXPECT_EQ(change.events[1].kind, EventKind::failed);
  EXPECT_EQ(change.row.requeue_count, 3);
}

TEST(Reaped, KeepsTheUnsafeFence) {
  const Change change = change_of(reap(with(stale_run(), unsafe_fence())));
  EXPECT_TRUE(change.row.reason->is(Reason::not_retryable));
  EXPECT_EQ(change.row.pending, unsafe_fence());
  EXPECT_EQ(change.events[0].payload["step"], "tool:pay");
}

TEST(Reaped, LooksAtTheFenceAgain) {
  const Settlement early = decide(stale_run(), WorkerLost{"w"}, false, kWall, 0);
  const Change change = change_of(reaped(with(stale_run(), unsafe_fence()), early, false, kNow));
  EXPECT_TRUE(change.row.status.is(Status::failed));
}

TEST(Reaped, LeavesARunThatWasRenewedMeanwhile) {
  const Settlement early = decide(stale_run(), WorkerLost{"w"}, false, kWall, 0);
  EXPECT_EQ(refusal_of(reaped(running_run(), early, false, kNow)), Declined::Kind::conflict);
  EXPECT_EQ(refusal_of(reaped(interactive_run(), early, false, kNow)), Declined::Kind::conflict);
}

TEST(Reaped, ByPresenceBelievesNotLandedAfterTwoSeconds) {
  const Change change = change_of(reap(with(stale_run(), unsafe_fence()), true));
  EXPECT_EQ(change.row.pending->deadline, kStore + seconds(2));
  EXPECT_EQ(change.events[0].payload["cause"], "presence");
  RunRow marked = with(stale_run(), unsafe_fence());
  marked.lease_lost_by_presence = true;
  EXPECT_EQ(change_of(reap(marked)).events[0].payload["cause"], "presence");
}

TEST(ExpiredByPresence, EndsTheLeaseNow) {
  const RunRow run = running_run();
  const Change change = change_of(lease_expired_by_presence(run, "worker-a", kStore, kNow));
  EXPECT_TRUE(is_stale(change.row, kNow));
  EXPECT_TRUE(change.row.lease_lost_by_presence);
  EXPECT_TRUE(change.events.empty());
  EXPECT_EQ(refusal_of(lease_expired_by_presence(change.row, "worker-a", kStore, kNow)),
            Declined::Kind::unchanged);
}

TEST(ExpiredByPresence, SparesWhatWasRenewedSince) {
  const RunRow run = running_run();  // renewed half a lease ago
  const StoreTime before_renewal = kStore - run.policy.lease / 2 - Duration(1);
  EXPECT_EQ(refusal_of(lease_expired_by_presence(run, "worker-a", before_renewal, kNow)),
            Declined::Kind::conflict);
  EXPECT_FALSE(applied(lease_expired_by_presence(run, "worker-b", kStore, kNow)));
  EXPECT_FALSE(applied(lease_expired_by_presence(interactive_run(), "worker-a", kStore, kNow)));
}

}  // namespace
}  // namespace holdfast
