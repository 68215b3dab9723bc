// Sweeps over many stale runs, and looks for work, beside those who live.

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "conformance/store_test_support.hpp"

namespace holdfast::testing {
namespace {

class SqliteSweep : public ::testing::Test {
 protected:
  static constexpr int kLive = 50;

  static int stale_runs() { return std::getenv("HOLDFAST_LONG") != nullptr ? 100'000 : 2'000; }
  std::string path() const { return folder.file("runs.db"); }
  std::unique_ptr<Store> open() { return open_store("sqlite:" + path(), env); }

  std::vector<Lease> claim(Store& store, const WorkerId& worker, int count) {
    std::vector<Lease> leases;
    while (static_cast<int>(leases.size()) < count) {
      std::vector<NewRun> batch;
      const int size = std::min(count - static_cast<int>(leases.size()), 1000);
      for (int i = 0; i < size; ++i) batch.push_back(a_run(env));
      store.enqueue(batch);
      for (const Claimed& claimed : store.claim({worker, {offer()}, {}, size, {}}).runs) {
        leases.push_back(claimed.lease);
      }
    }
    return leases;
  }

  TempFolder folder;
  ManualEnv env;
};

TEST_F(SqliteSweep, OfManyIsManyShortTransactions) {
  auto store = open();
  const auto other = open();
  claim(*store, "dead", stale_runs());
  env.advance(61s);
  std::int64_t decided = 0;
  std::int64_t most = 0;
  const auto decider = worker_lost(env);
  const auto counting = [&](const holdfast::Run& run) {
    // What another connection does not see yet is in the transaction under way.
    if (++decided % 50 == 0) most = std::max(most, decided - other->stats().by_status["queued"]);
    return decider(run);
  };
  const ReapReport report = store->reap(stale_runs(), false, counting);
  EXPECT_EQ(report.requeued, stale_runs());
  EXPECT_EQ(decided, stale_runs());
  EXPECT_LE(most, 250);
}

class Sweep : public SqliteSweep, public ::testing::WithParamInterface<std::string> {
 protected:
  std::unique_ptr<Store> open_one() {
    return GetParam() == "sqlite" ? open() : open_postgres(schema, env);
  }
  const std::string schema = PostgresServer::fresh_schema();
};
INSTANTIATE_TEST_SUITE_P(Stores, Sweep, ::testing::Values("sqlite", "postgres"));

TEST_P(Sweep, LetsTheLivingRenewMeanwhile) {
  auto store = open_one();
  const auto other = open_one();
  claim(*store, "dead", stale_runs());
  env.advance(61s);
  const auto live = claim(*store, "live", kLive);
  std::atomic<bool> is_over = false;
  std::atomic<int> lost = 0;
  int renewals = 0;
  auto renewing = env.spawn({}, [&] {
    while (!is_over) {
      const auto answers = other->renew("live", live).answers;
      lost += static_cast<int>(std::ranges::count(answers, Write::lost));
      ++renewals;
    }
  });
  const ReapReport report = store->reap(stale_runs(), false, worker_lost(env));
  is_over = true;
  renewing.reset();
  EXPECT_EQ(report.requeued, stale_runs());
  EXPECT_EQ(lost, 0);
  EXPECT_GE(renewals, 3);
  EXPECT_EQ(store->stats().by_status.at("running"), kLive);
  EXPECT_EQ(store->stats().by_status.at("queued"), stale_runs());
}

TEST_F(SqliteSweep, FindsNothingWithoutAnyLockOfTheWriters) {
  auto store = open();
  claim(*store, "live", 1);
  const int lock = ::open((path() + "-lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  std::atomic<bool> has_looked = false;
  auto idle = env.spawn({}, [&] {
    EXPECT_TRUE(store->claim({"idle", {offer()}, {}, 1, {}}).runs.empty());
    EXPECT_EQ(store->reap(50, false, worker_lost(env)).requeued, 0);
    EXPECT_EQ(store->reap(50, true, worker_lost(env)).requeued, 0);
    store->presence()->watch(0ms, {});
    has_looked = true;
  });
  for (int i = 0; i < 10'000 && !has_looked; ++i) env.sleep_for(2ms, {});
  EXPECT_TRUE(has_looked);
  close(lock);
  idle->join();
}

}  // namespace
}  // namespace holdfast::testing
