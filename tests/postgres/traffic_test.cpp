// What goes to the server: renewals, events in order, notifications, transactions of others.

#include "postgres/postgres_test_support.hpp"
#include "support/pg_bouncer.hpp"

namespace holdfast::testing {
namespace {

class PostgresTraffic : public PostgresTest {
 protected:
  struct Updates {
    std::int64_t all = 0;
    std::int64_t heap_only = 0;
  };
  Updates updates() const {
    const auto result =
        ask(*session(),
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = "
            "'" +
                schema + "' AND relname = 'runs'");
    return {result.number(0, 0), result.number(0, 1)};
  }
};

TEST_F(PostgresTraffic, RenewalsAndStepsAreHeapOnly) {
  auto store = open("&notify=off");
  std::vector<NewRun> batch;
  for (int i = 0; i < 200; ++i) batch.push_back(a_run(real_env()));
  store->enqueue(batch);
  std::vector<Lease> leases;
  for (const Claimed& claimed : claim(*store, "w", 200)) leases.push_back(claimed.lease);
  ASSERT_EQ(leases.size(), 200u);
  // Servers count late: renewals go on until the claims and the first of them are counted.
  const auto renew_until = [&](std::int64_t counted) {
    return eventually([&] {
      store->renew("w", leases);
      real_env().sleep_for(200ms, {});
      return updates().all >= counted;
    });
  };
  ASSERT_TRUE(renew_until(400));
  const Updates before = updates();
  for (const Lease& lease : leases) {
    ASSERT_EQ(store->record(lease, a_step("a")), Write::applied);
  }
  ASSERT_TRUE(renew_until(before.all + 1000));
  const Updates after = updates();
  EXPECT_EQ(after.all - before.all, after.heap_only - before.heap_only);
}

TEST_F(PostgresTraffic, EventsAreNotReadBeforeThoseThatCommitLate) {
  auto store = open();
  std::int64_t cursor = 0;
  const RunId early = enqueue(*store);
  ASSERT_EQ(store->all_events(cursor, 0).size(), 1u);
  // A transaction that has written its event and takes its time to commit.
  auto late = session();
  late->execute("BEGIN");
  ask(*late, "INSERT INTO @.events (run, sequence, position, kind, at, claim, payload) SELECT '" +
                 early +
                 "', 2, (pg_current_xact_id()::text::bigint << 20) + 1, 'woken', 0, 0, '{}'");
  const RunId next = enqueue(*store);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(store->all_events(cursor, 0).empty());
  EXPECT_TRUE(store->all_events(cursor, 0).empty());
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has(said, "held back by a transaction")) << said;
  EXPECT_EQ(said.find("held back"), said.rfind("held back")) << said;
  late->execute("COMMIT");
  const auto events = store->all_events(cursor, 0);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].run, early);
  EXPECT_EQ(events[1].run, next);
}

/// A run's next number is handed out under the lock of its row: who commits late keeps others out.
TEST_F(PostgresTraffic, EventsOfOneRunAreNotReadBeforeOneThatCommitsLate) {
  auto store = open();
  const RunId run = enqueue(*store);
  ASSERT_EQ(store->events(run, 0, 10).size(), 1u);
  auto late = session();
  late->execute("BEGIN");
  ask(*late, "UPDATE @.runs SET last_sequence = 2 WHERE id = '" + run + "'");
  ask(*late, "INSERT INTO @.events (run, sequence, position, kind, at, claim, payload) SELECT '" +
                 run + "', 2, (pg_current_xact_id()::text::bigint << 20) + 1, 'woken', 0, 0, '{}'");
  std::atomic<bool> is_done = false;
  const auto canceller = real_env().spawn({}, [&] {
    store->cancel(run, {"ops", "", real_env().new_id()});
    is_done = true;
  });
  ASSERT_TRUE(eventually([&] {
    return ask_number("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0;
  })) << "the other writer waits for the row";
  EXPECT_TRUE(store->events(run, 1, 10).empty());
  EXPECT_FALSE(is_done);
  late->execute("COMMIT");
  ASSERT_TRUE(eventually([&] { return is_done.load(); }));
  const auto events = store->events(run, 1, 10);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(events[0].kind.is(EventKind::woken));
  EXPECT_EQ(events[1].sequence, 3);
}

/// A transaction may get its number early and a run's lock late, when one with a later number has
/// written to that run and committed.
TEST_F(PostgresTraffic, EventsOfARunStandInItsOrderWhateverTheTransactions) {
  auto store = open();
  const RunId run = enqueue(*store);
  auto other = session();
  other->execute("BEGIN");
  ask(*other, "INSERT INTO @.events (run, sequence, position, kind, at, claim, payload) SELECT '" +
                  run +
                  "', 2, ((pg_current_xact_id()::text::bigint + 3) << 20) + 1, 'woken', 0, 0, "
                  "'{}'");
  ask(*other, "UPDATE @.runs SET last_sequence = 2 WHERE id = '" + run + "'");
  other->execute("COMMIT");
  EXPECT_EQ(store->cancel(run, {"ops", "", real_env().new_id()}).answer,
            ChangeResult::Answer::applied);
  std::vector<std::int64_t> order;
  EXPECT_TRUE(eventually([&] {
    enqueue(*store);  // the numbers of transactions go on
    std::int64_t cursor = 0;
    order.clear();
    for (const Event& event : store->all_events(cursor, 0)) {
      if (event.run == run) order.push_back(event.sequence);
    }
    return order.size() == 3;
  }));
  EXPECT_EQ(order, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_TRUE(store->audit().empty());
}

TEST_F(PostgresTraffic, FollowersMissNothingOfManyWriters) {
  auto store = open();
  auto other = open();
  std::atomic<int> writing{4};
  std::vector<std::unique_ptr<Thread>> writers;
  for (int i = 0; i < 4; ++i) {
    writers.push_back(real_env().spawn({}, [&, i] {
      for (int n = 0; n < 60; ++n) enqueue(i % 2 == 0 ? *store : *other);
      --writing;
    }));
  }
  std::int64_t cursor = 0;
  std::size_t seen = 0;
  EXPECT_TRUE(eventually(
      [&] {
        seen += store->all_events(cursor, 7).size();
        return seen == 240;
      },
      30s));
  writers.clear();
  EXPECT_EQ(writing, 0);
  EXPECT_EQ(seen, 240u);
}

TEST_F(PostgresTraffic, NotificationWakesAWorkerOfAnotherProcess) {
  auto worker = open();
  auto caller = open();
  EXPECT_TRUE(claim(*worker, "w").empty());
  worker->wait_for_work(1ms, {});
  ASSERT_TRUE(
      eventually([&] { return ask_number("SELECT count(*) " + notified_sessions()) == 1; }));
  Duration best = 10s;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(claim(*worker, "w").empty());
    auto calling = real_env().spawn({}, [&] {
      real_env().sleep_for(30ms, {});
      enqueue(*caller);
    });
    best = std::min(best, pick_up(*worker, "w"));
    calling->join();
  }
  EXPECT_LT(best, 1s);
}

TEST_F(PostgresTraffic, LostNotificationsCostTwoSecondsAtMost) {
  auto worker = open("&notify=off");
  auto caller = open("&notify=off");
  EXPECT_TRUE(claim(*worker, "w").empty());
  enqueue(*caller);
  EXPECT_LE(pick_up(*worker, "w"), 2s);
}

TEST_F(PostgresTraffic, EndedSessionForNotificationsComesBack) {
  auto worker = open();
  EXPECT_TRUE(claim(*worker, "w").empty());
  worker->wait_for_work(1ms, {});
  const std::string listening = notified_sessions();
  ASSERT_TRUE(eventually([&] { return ask_number("SELECT count(*) " + listening) == 1; }));
  const auto before = ask_number("SELECT max(pid)::bigint " + listening);
  ask_number("SELECT count(pg_terminate_backend(pid)) " + listening);
  EXPECT_TRUE(eventually([&] {
    return ask_number("SELECT coalesce(max(pid), 0)::bigint " + listening + " AND pid <> " +
                      std::to_string(before)) > 0;
  }));
}

struct Spoilt {
  std::string name;
  void (TcpProxy::*spoil)();
  bool from_the_start;
};
class PostgresNotifications : public PostgresTraffic,
                              public ::testing::WithParamInterface<Spoilt> {};

/// Only the session for notifications is spoilt: runs are picked up as without it, and as before
/// when it is mended.
TEST_P(PostgresNotifications, ThatAreSpoiltCostTheLookAndComeBack) {
  TcpProxy proxy(server.port());
  proxy.spoil_only("LISTEN");
  if (GetParam().from_the_start) (proxy.*GetParam().spoil)();
  auto worker = open_store(proxied_url(proxy), real_env());
  auto caller = open();
  // The caller does not go through the proxy.
  const std::string listening =
      "SELECT count(*) " + notified_sessions() + " AND client_addr IS NOT NULL";
  EXPECT_TRUE(claim(*worker, "w").empty());
  worker->wait_for_work(1ms, {});
  if (!GetParam().from_the_start) {
    ASSERT_TRUE(eventually([&] { return ask_number(listening) == 1; }));
    (proxy.*GetParam().spoil)();
  }
  const int before = proxy.accepted();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(claim(*worker, "w").empty());
    enqueue(*caller);
    EXPECT_LE(pick_up(*worker, "w"), 3s);
  }
  // A way that is closed is not knocked at all the time.
  EXPECT_LE(proxy.accepted() - before, 20);
  proxy.mend();
  ASSERT_TRUE(eventually([&] { return ask_number(listening) == 1; }, 60s));
  // By its own looks alone it is as fast now and then, not several times in a row.
  int in_a_row = 0;
  EXPECT_TRUE(eventually(
      [&] {
        EXPECT_TRUE(claim(*worker, "w").empty());
        auto calling = real_env().spawn({}, [&] {
          real_env().sleep_for(30ms, {});
          enqueue(*caller);
        });
        in_a_row = pick_up(*worker, "w") < 700ms ? in_a_row + 1 : 0;
        calling->join();
        return in_a_row == 8;
      },
      30s));
}

INSTANTIATE_TEST_SUITE_P(Faults, PostgresNotifications,
                         ::testing::Values(Spoilt{"Reset", &TcpProxy::cut, false},
                                           Spoilt{"BlackHole", &TcpProxy::swallow, false},
                                           Spoilt{"ResetAtTheStart", &TcpProxy::cut, true},
                                           Spoilt{"BlackHoleAtTheStart", &TcpProxy::swallow, true}),
                         [](const auto& spoilt) { return spoilt.param.name; });

/// Fewer sessions than the two processes would have, so that they are lent to and fro.
TEST_F(PostgresTraffic, WorksBehindAPoolerForTransactions) {
  const PgBouncer pooler(server, 3);
  const auto pooled = server.tcp_url(pooler.port(), schema, "&pooler=transaction");
  auto store = open_store(pooled, real_env());
  auto other = open_store(pooled, real_env());
  EXPECT_EQ(store->presence(), nullptr);
  std::vector<std::unique_ptr<Thread>> threads;
  std::atomic<int> completed = 0;
  for (const std::string worker : {"w1", "w2", "w3", "w4"}) {
    threads.push_back(real_env().spawn({}, [&, worker] {
      Store& mine = worker < "w3" ? *store : *other;
      for (int i = 0; i < 20; ++i) {
        enqueue(mine);
        for (const Claimed& claimed : claim(mine, worker, 2)) {
          EXPECT_EQ(mine.renew(worker, std::span(&claimed.lease, 1)).answers.at(0), Write::applied);
          EXPECT_EQ(mine.record(claimed.lease, a_step("a")), Write::applied);
          EXPECT_EQ(mine.settle(claimed.lease, settlement(claimed.run, Completed{1}, real_env())),
                    Write::applied);
          EXPECT_EQ(mine.find(claimed.run.id)->status, Status::completed);
          ++completed;
        }
      }
    }));
  }
  for (auto& thread : threads) thread->join();
  while (!claim(*store, "last").empty()) ++completed;
  EXPECT_EQ(completed, 80);
  EXPECT_TRUE(store->audit().empty());
  EXPECT_EQ(ask_number("SELECT count(*) FROM pg_locks k JOIN @.presences p ON k.objid::bigint = "
                       "(p.lock_key & 4294967295) WHERE k.locktype = 'advisory'"),
            0);
}

TEST_F(PostgresTraffic, NoSessionStaysInATransaction) {
  auto store = open();
  enqueue(*store);
  claim(*store, "w");
  store->stats();
  EXPECT_EQ(
      ask_number("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in trans%' AND "
                 "application_name = 'holdfast'"),
      0);
}

}  // namespace
}  // namespace holdfast::testing
