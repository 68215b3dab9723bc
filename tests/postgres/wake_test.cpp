// Who wakes for a run: one of many idle workers, and another where that one cannot.

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>

#include "postgres/postgres_test_support.hpp"

namespace holdfast::testing {
namespace {

/// A process with one idle worker, as far as the server can tell: a store of its own, and a thread
/// that claims and waits.
class Idler {
 public:
  using Taken = std::function<void(const std::string& name, const std::vector<Claimed>& runs)>;

  Idler(std::unique_ptr<Store> store, ClaimRequest request, Taken taken)
      : store_(std::move(store)), request_(std::move(request)), taken_(std::move(taken)) {
    thread_ = real_env().spawn({}, [this] { work(); });
  }
  Idler(const Idler&) = delete;
  ~Idler() { leave(); }

  void leave() {
    stopping_.request_stop();
    if (thread_) thread_->join();
    thread_.reset();
  }
  /// It looks for nothing, though others take it for idle: as one that is frozen.
  void freeze() { is_frozen_ = true; }
  void thaw() { is_frozen_ = false; }
  Store& store() { return *store_; }

 private:
  void work() {
    const std::stop_token stop = stopping_.get_token();
    while (!stop.stop_requested()) {
      if (is_frozen_) {
        real_env().sleep_for(5ms, stop);
        continue;
      }
      const auto claimed = store_->claim(request_);
      if (claimed.runs.empty()) {
        store_->wait_for_work(std::min<Duration>(claimed.next_due.value_or(1s), 1s), stop);
      } else {
        taken_(request_.worker, claimed.runs);
      }
    }
  }

  std::unique_ptr<Store> store_;
  const ClaimRequest request_;
  const Taken taken_;
  std::atomic<bool> is_frozen_{false};
  std::stop_source stopping_;
  std::unique_ptr<Thread> thread_;
};

/// A server of its own, which counts statements.
PostgresServer& counting_server() {
  static PostgresServer server({"shared_preload_libraries=pg_stat_statements"});
  return server;
}

class PostgresWake : public PostgresTest {
 protected:
  PostgresWake() : PostgresTest(counting_server()) {}
  void TearDown() override { idlers.clear(); }

  Idler& add(const std::vector<std::string>& queues = {}, int limit = 1,
             const std::string& more = "") {
    const std::string name = "w" + std::to_string(idlers.size());
    idlers.push_back(std::make_unique<Idler>(
        open(more), ClaimRequest{name, {offer()}, queues, limit, {}},
        [this](const std::string& worker, const std::vector<Claimed>& runs) {
          const StoreTime now = real_env().store_now();
          const std::lock_guard lock(mutex);
          for (const Claimed& claimed : runs) {
            taken_at[claimed.run.id] = now;
            takers.insert(worker);
          }
        }));
    return *idlers.back();
  }
  /// Until each knows all the others.
  void settle() {
    ASSERT_TRUE(eventually([&] {
      return ask_number("SELECT count(*) " + notified_sessions()) ==
             static_cast<std::int64_t>(idlers.size());
    }));
    real_env().sleep_for(1s, {});
  }
  /// How many statements of this test with these words the server has executed.
  int count_statements(const std::string& words) {
    return count_calls("query LIKE '%" + schema + ".%" + words + "%'");
  }
  int claims() { return count_statements("SKIP LOCKED) r JOIN"); }
  int looks() { return count_statements("SELECT (SELECT min(n.available_at)"); }
  /// Their text has no name of a schema.
  int notifications() { return count_calls("query LIKE '%pg_notify%'"); }
  int count_calls(const std::string& which) {
    ask(*session(), "CREATE EXTENSION IF NOT EXISTS pg_stat_statements WITH SCHEMA public");
    return static_cast<int>(
        ask_number("SELECT coalesce(sum(calls), 0)::bigint FROM public.pg_stat_statements "
                   "WHERE query NOT LIKE '%pg_stat%' AND " +
                   which));
  }
  bool is_taken(const RunId& id) {
    const std::lock_guard lock(mutex);
    return taken_at.contains(id);
  }
  std::size_t count_taken() {
    const std::lock_guard lock(mutex);
    return taken_at.size();
  }
  Duration time_to(const std::function<bool()>& holds) {
    const StoreTime begun = real_env().store_now();
    EXPECT_TRUE(eventually(holds));
    return real_env().store_now() - begun;
  }

  RunId enqueue_in(Store& store, const std::string& queue) {
    NewRun run = a_run(real_env());
    run.row.queue = queue;
    store.enqueue(std::span(&run, 1));
    return run.row.id;
  }
  /// One after the other; the slowest but one, so that a machine that stumbles once is forgiven.
  Duration slowest_of(int runs, const std::function<RunId()>& enqueue_one) {
    std::vector<Duration> times;
    for (int i = 0; i < runs; ++i) {
      const RunId id = enqueue_one();
      times.push_back(time_to([&] { return is_taken(id); }));
    }
    std::ranges::sort(times);
    return times[times.size() - 2];
  }

  std::mutex mutex;
  std::map<RunId, StoreTime> taken_at;
  std::set<std::string> takers;
  std::vector<std::unique_ptr<Idler>> idlers;
};

TEST_F(PostgresWake, OneOfEightIdleWorkersClaimsARun) {
  for (int i = 0; i < 8; ++i) add();
  settle();
  auto caller = open();
  enqueue(*caller);
  ASSERT_TRUE(eventually([&] { return count_taken() == 1; }));
  const int before = claims();
  constexpr int kRuns = 30;
  for (int i = 1; i <= kRuns; ++i) {
    enqueue(*caller);
    ASSERT_TRUE(eventually([&] { return count_taken() == static_cast<std::size_t>(i + 1); }));
    real_env().sleep_for(60ms, {});
  }
  // A slow one is helped by the next.
  EXPECT_LT(claims() - before, 2 * kRuns);
  EXPECT_GT(takers.size(), 4u);
}

/// By its look alone a run would be found within 1.7 s; many in a row sooner have other reasons.
TEST_F(PostgresWake, AnotherTakesTheTurnOfOneThatIsFrozen) {
  add();
  Idler& frozen = add();
  add();
  settle();
  frozen.freeze();
  auto caller = open();
  EXPECT_LT(slowest_of(12, [&] { return enqueue(*caller); }), 1s);
  EXPECT_EQ(takers.count("w1"), 0u);
  // It is not forgotten when it goes on.
  frozen.thaw();
  EXPECT_TRUE(eventually([&] {
    enqueue(*caller);
    real_env().sleep_for(30ms, {});
    const std::lock_guard lock(mutex);
    return takers.contains("w1");
  }));
}

/// Its session for notifications is cut off without a word; the others take it for alive.
TEST_F(PostgresWake, AnotherTakesTheTurnOfOneThatIsGone) {
  TcpProxy proxy(server.port());
  proxy.spoil_only("LISTEN");
  const std::string name = "cut-off";
  add();
  add();
  Idler deaf(open_store(proxied_url(proxy), real_env()), ClaimRequest{name, {offer()}, {}, 1, {}},
             [&](const std::string&, const std::vector<Claimed>& runs) {
               const std::lock_guard lock(mutex);
               for (const Claimed& claimed : runs) taken_at[claimed.run.id] = {};
             });
  ASSERT_TRUE(
      eventually([&] { return ask_number("SELECT count(*) " + notified_sessions()) == 3; }));
  real_env().sleep_for(1s, {});
  proxy.swallow();
  auto caller = open();
  EXPECT_LT(slowest_of(12, [&] { return enqueue(*caller); }), 1s);
  proxy.mend();
}

TEST_F(PostgresWake, OnlyThoseOfItsQueueAreAskedForARun) {
  add({"fast"});
  for (int i = 0; i < 5; ++i) add({"slow"});
  settle();
  auto caller = open();
  EXPECT_LT(slowest_of(12, [&] { return enqueue_in(*caller, "fast"); }), 500ms);
  EXPECT_EQ(takers, std::set<std::string>{"w0"});
}

/// Of the two workers of its process one is idle, for other queues.
TEST_F(PostgresWake, AFullWorkerBesideAnIdleOneIsPassedOver) {
  auto store = open();
  std::stop_source stopping;
  auto caller = open();
  const ClaimRequest fast{"full", {offer()}, {"fast"}, 1, {}};
  auto full = real_env().spawn({}, [&] {
    while (store->claim(fast).runs.empty() && !stopping.stop_requested()) {
      store->wait_for_work(1s, stopping.get_token());
    }
  });
  auto idle = real_env().spawn({}, [&] {
    while (!stopping.stop_requested()) {
      EXPECT_TRUE(store->claim({"idle", {offer()}, {"slow"}, 1, {}}).runs.empty());
      store->wait_for_work(1s, stopping.get_token());
    }
  });
  // Before the threads are joined, whatever happens.
  const std::unique_ptr<std::stop_source, void (*)(std::stop_source*)> ending(
      &stopping, [](std::stop_source* source) { source->request_stop(); });
  ASSERT_TRUE(
      eventually([&] { return ask_number("SELECT count(*) " + notified_sessions()) == 1; }));
  enqueue_in(*caller, "fast");
  full->join();
  add({"fast"});
  ASSERT_TRUE(
      eventually([&] { return ask_number("SELECT count(*) " + notified_sessions()) == 3; }));
  real_env().sleep_for(1s, {});
  const int before = notifications();
  constexpr int kRuns = 20;
  EXPECT_LT(slowest_of(kRuns, [&] { return enqueue_in(*caller, "fast"); }), 1s);
  // Beside those of the runs the one that it is full, once, and what all say now and then.
  EXPECT_LT(notifications() - before, kRuns + 5);
}

/// Nobody else is told of them.
TEST_F(PostgresWake, AProcessWithRoomForAllTakesWhatItQueuesItself) {
  add({}, 10);
  add({}, 10);
  settle();
  enqueue_in(idlers.front()->store(), "default");
  ASSERT_TRUE(eventually([&] { return count_taken() == 1; }));
  const int before = notifications();
  for (std::size_t i = 1; i <= 10; ++i) {
    std::vector<NewRun> runs;
    for (int n = 0; n < 5; ++n) runs.push_back(a_run(real_env()));
    real_env().sleep_for(30ms, {});
    idlers.front()->store().enqueue(runs);
    ASSERT_TRUE(eventually([&] { return count_taken() == 1 + 5 * i; }));
  }
  EXPECT_LT(notifications() - before, 5);
  EXPECT_EQ(takers, std::set<std::string>{"w0"});
}

/// The process goes on without it.
TEST_F(PostgresWake, AWorkerThatHasEndedIsNotCounted) {
  auto store = open();
  auto listener = session();
  listener->execute("LISTEN \"" + schema + ".work\"");
  std::vector<std::string> said;
  const auto says = [&](const std::string& words) {
    return eventually([&] {
      for (const auto& heard : listener->take_notifications()) said.push_back(heard.payload);
      return !said.empty() && has(said.back(), words);
    });
  };
  EXPECT_TRUE(claim(*store, "w").empty());
  store->wait_for_work(1ms, {});
  EXPECT_TRUE(says(R"("here":[{"agents":["agent"])"));
  store->forget_worker("w");
  EXPECT_TRUE(says(R"("here":[])"));
}

/// Told of like one that is due, so that all that is left of the time is waited for. By the looks
/// of its only worker each would be found a second later or more.
TEST_F(PostgresWake, ARunThatFallsDueSoonStartsThen) {
  add();
  settle();
  auto caller = open();
  EXPECT_LT(slowest_of(12,
                       [&] {
                         NewRun run = a_run(real_env());
                         run.delay = 300ms;
                         caller->enqueue(std::span(&run, 1));
                         return run.row.id;
                       }),
            1s);
}

class PostgresIdle : public PostgresWake, public ::testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Notify, PostgresIdle, ::testing::Values("on", "off"),
                         [](const auto& notify) { return notify.param; });

TEST_P(PostgresIdle, WorkerAsksLessThanOnceASecondAndTwoSecondsAtMostGoBy) {
  add({}, 1, "&notify=" + GetParam());
  ASSERT_TRUE(eventually([&] { return looks() > 0; }));
  real_env().sleep_for(1s, {});
  const int all_before = count_statements("");
  const int looks_before = looks();
  real_env().sleep_for(6s, {});
  EXPECT_LE(count_statements("") - all_before, 6);
  EXPECT_GE(looks() - looks_before, 3);
}

TEST_F(PostgresWake, ABurstIsForAllAtOnce) {
  for (int i = 0; i < 8; ++i) add({}, 5);
  settle();
  auto caller = open();
  std::vector<NewRun> runs;
  for (int i = 0; i < 1000; ++i) runs.push_back(a_run(real_env()));
  caller->enqueue(runs);
  EXPECT_TRUE(eventually([&] { return count_taken() == 1000; }));
  EXPECT_EQ(takers.size(), 8u);
}

/// Told once, whatever their number.
TEST_F(PostgresWake, ABurstFromSqlIsForAllSoon) {
  for (int i = 0; i < 8; ++i) add({}, 5);
  settle();
  ask(*session(), R"(SELECT @.enqueue('agent', '{"input": 1}') FROM generate_series(1, 1000))");
  EXPECT_TRUE(eventually([&] { return count_taken() == 1000; }));
  EXPECT_GE(takers.size(), 4u);
}

/// As binaries did that knew of no turns.
TEST_F(PostgresWake, WordsOfAnOlderVersionAreHeard) {
  add();
  add();
  settle();
  auto silent = open("&notify=off");
  EXPECT_LT(slowest_of(12,
                       [&] {
                         RunId id = enqueue(*silent);
                         ask(*session(), "SELECT pg_notify('@.work', '0123456789abcdef agent')");
                         return id;
                       }),
            1s);
}

/// What the first statement took is the best of all agents.
TEST_F(PostgresWake, AClaimForManyAgentsIsOneStatement) {
  auto store = open();
  enqueue(*store);
  enqueue(*store);
  AgentOffer other = offer();
  other.name = "other";
  const int before = claims();
  EXPECT_EQ(store->claim({"w", {other, offer()}, {}, 1, {}}).runs.size(), 1u);
  EXPECT_EQ(claims() - before, 1);
}

/// Of many workers in one process, too.
TEST_F(PostgresWake, OneOfManyThreadsOfAProcessClaimsARun) {
  auto store = open();
  std::stop_source stopping;
  std::atomic<int> taken{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < 8; ++i) {
    threads.push_back(real_env().spawn({}, [&, i] {
      while (!stopping.stop_requested()) {
        const auto found = claim(*store, "w" + std::to_string(i));
        taken += static_cast<int>(found.size());
        if (found.empty()) store->wait_for_work(1s, stopping.get_token());
      }
    }));
  }
  real_env().sleep_for(500ms, {});
  enqueue(*store);
  ASSERT_TRUE(eventually([&] { return taken == 1; }));
  const int before = claims();
  for (int i = 1; i <= 20; ++i) {
    enqueue(*store);
    ASSERT_TRUE(eventually([&] { return taken == i + 1; }));
    real_env().sleep_for(30ms, {});
  }
  EXPECT_LT(claims() - before, 2 * 20);
  stopping.request_stop();
  threads.clear();
}

}  // namespace
}  // namespace holdfast::testing
