// Sessions that are lost, replies that never come, locks that cross.

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "postgres/postgres_test_support.hpp"

namespace holdfast::testing {
namespace {

class PostgresSession : public PostgresTest {
 protected:
  void terminate(const std::string& which) const {
    ask(*session(), "SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a WHERE " +
                        which + " AND a.pid <> pg_backend_pid()");
  }
  /// The session that holds a presence.
  void lose_presence() const {
    terminate("a.pid IN (SELECT k.pid FROM pg_locks k JOIN " + schema +
              ".presences p ON k.objid::bigint = (p.lock_key & 4294967295) WHERE k.locktype = "
              "'advisory')");
  }
  /// The server refuses the next inserts of runs. A sequence does not go back with its transaction:
  /// it counts how often one was tried.
  void refuse_inserts(int times, const std::string& state) const {
    auto db = session();
    db->send_text(db->in_schema("CREATE SEQUENCE @.tries"));
    db->send_text(
        db->in_schema("CREATE FUNCTION @.refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
                      "IF nextval('@.tries') <= " +
                      std::to_string(times) + " THEN RAISE EXCEPTION 'refused' USING ERRCODE = '" +
                      state + "'; END IF; RETURN NEW; END$$"));
    db->send_text(
        db->in_schema("CREATE TRIGGER refuse BEFORE INSERT ON @.runs FOR EACH ROW "
                      "EXECUTE FUNCTION @.refuse()"));
    db->flush();
  }
  std::int64_t tries() const {
    return ask_number("SELECT last_value FROM @.tries WHERE is_called");
  }
  /// Nobody holds the lock: a row like that of a worker that is there, but for these three.
  void say_present(const std::string& worker_server_key) const {
    auto db = session();
    db->send_text(
        db->in_schema("INSERT INTO @.presences (worker, server, lock_key, state) SELECT " +
                      worker_server_key + ", state FROM @.presences LIMIT 1"));
    db->flush();
  }
};

TEST_F(PostgresSession, LostReplyOfACommitIsAskedAgainAndAppliesOnce) {
  open();
  TcpProxy proxy(server.port());
  auto store = open_store(proxied_url(proxy, "&notify=off"), real_env());
  const RunId id = enqueue(*store);
  const Claimed claimed = claim(*store, "w").at(0);
  proxy.lose_reply_after(1);
  StepRecord step = a_step("a");
  EXPECT_THROW(store->record(claimed.lease, step), StoreError);
  EXPECT_TRUE(proxy.has_lost_reply());
  step.is_retry = true;
  EXPECT_EQ(store->record(claimed.lease, step), Write::applied);
  EXPECT_EQ(kinds(*store, id), (Kinds{"queued", "claimed", "step"}));
}

TEST_F(PostgresSession, LostReplyBeforeACommitIsNotNoticed) {
  open();
  TcpProxy proxy(server.port());
  auto store = open_store(proxied_url(proxy, "&notify=off"), real_env());
  enqueue(*store);
  const Claimed claimed = claim(*store, "w").at(0);
  proxy.lose_reply_after(0);
  EXPECT_EQ(store->record(claimed.lease, a_step("a")), Write::applied);
  EXPECT_TRUE(proxy.has_lost_reply());
  EXPECT_EQ(kinds(*store, claimed.run.id), (Kinds{"queued", "claimed", "step"}));
}

TEST_F(PostgresSession, EndedSessionsAreMadeAnew) {
  auto store = open();
  const RunId id = enqueue(*store);
  EXPECT_TRUE(store->find(id).has_value());
  terminate("a.application_name = 'holdfast'");
  enqueue(*store);
  EXPECT_EQ(store->stats().by_status.at("queued"), 2);
}

/// Not one after the other: a worker that stops would outlast its grace.
TEST_F(PostgresSession, WhoWaitsForASilentServerIsToldTogether) {
  open();
  TcpProxy proxy(server.port());
  auto store = open_store(proxied_url(proxy, "&notify=off&connect_timeout=3"), real_env());
  enqueue(*store);
  proxy.cut();
  EXPECT_THROW(enqueue(*store), StoreError);
  proxy.swallow();
  const int before = proxy.accepted();
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] { EXPECT_THROW(enqueue(*store), StoreError); });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(proxy.accepted() - before, 2) << "two at a time, for all of them";
}

TEST_F(PostgresSession, UnreachableServerSaysWhatToDo) {
  open();
  TcpProxy proxy(server.port());
  auto store = open_store(proxied_url(proxy, "&notify=off"), real_env());
  const RunId id = enqueue(*store);
  proxy.cut();
  try {
    real_env().sleep_for(50ms, {});
    store->find(id);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const StoreError& error) {
    EXPECT_FALSE(error.permanent());
    EXPECT_TRUE(has(error.what(), "check that the server runs")) << error.what();
  }
  proxy.mend();
  EXPECT_TRUE(store->find(id).has_value());
  EXPECT_EQ(claim(*store, "w").size(), 1u);
}

TEST_F(PostgresSession, DeadlockIsTriedAgain) {
  auto store = open();
  std::vector<RunId> ids{enqueue(*store), enqueue(*store)};
  std::ranges::sort(ids);
  for (const RunId& id : ids) {
    const Claimed claimed = claim(*store, "w").at(0);
    store->settle(claimed.lease, failing(claimed.run, real_env(), FailureClass::auth));
    EXPECT_FALSE(id.empty());
  }
  auto other = session();
  // So that it is never this session that the server ends.
  other->execute("SET deadlock_timeout = '60s'; BEGIN");
  ask(*other, "SELECT 1 FROM @.runs WHERE id = '" + ids[1] + "' FOR UPDATE");
  std::vector<ChangeResult> results;
  auto redriving = real_env().spawn({}, [&] { results = store->redrive(ids, by()); });
  // It has the first and waits for the second; then the other session wants the first.
  EXPECT_TRUE(eventually([&] {
    return ask_number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") > 0;
  }));
  ask(*other, "SELECT 1 FROM @.runs WHERE id = '" + ids[0] + "' FOR UPDATE");
  other->execute("COMMIT");
  redriving->join();
  ASSERT_EQ(results.size(), 2u);
  for (const auto& result : results) EXPECT_EQ(result.answer, ChangeResult::Answer::applied);
}

TEST_F(PostgresSession, SerializationFailureIsTriedAgain) {
  auto store = open();
  refuse_inserts(2, "40001");
  const RunId id = enqueue(*store);
  EXPECT_EQ(tries(), 3);
  EXPECT_EQ(kinds(*store, id), Kinds{"queued"});
}

TEST_F(PostgresSession, SerializationFailureThatDoesNotPassIsToldInTheEnd) {
  auto store = open();
  refuse_inserts(1000, "40001");
  EXPECT_THROW(enqueue(*store), StoreError);
  EXPECT_GT(tries(), 3);
  EXPECT_LT(tries(), 20);
  EXPECT_TRUE(store->list({}).runs.empty());
}

/// Whoever has set the server up so: transactions that cross are refused there, not made to wait.
TEST_F(PostgresSession, ServerWhoseTransactionsAreSerializableLosesNothing) {
  const std::string serializable = "&options=-c%20default_transaction_isolation%3Dserializable";
  auto first = open(serializable);
  auto second = open(serializable);
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      Store& store = i % 2 == 0 ? *first : *second;
      const WorkerId worker = "w" + std::to_string(i);
      for (int n = 0; n < 10; ++n) {
        enqueue(store);
        for (const Claimed& claimed : claim(store, worker)) {
          EXPECT_EQ(store.record(claimed.lease, a_step("a")), Write::applied);
          EXPECT_EQ(store.settle(claimed.lease,
                                 settlement(claimed.run, Completed{Json("done")}, real_env())),
                    Write::applied);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ask_number("SELECT count(*) FROM @.runs"), 60);
  EXPECT_TRUE(first->audit().empty());
}

TEST_F(PostgresSession, ErrorThatIsNoCollisionIsToldAtOnce) {
  auto store = open();
  refuse_inserts(1000, "P0001");
  EXPECT_THROW(enqueue(*store), StoreError);
  EXPECT_EQ(tries(), 1);
}

TEST_F(PostgresSession, LockHeldByOthersFailsOnlyWhoNeedsIt) {
  auto store = open();
  const RunId locked = enqueue(*store);
  auto other = session();
  other->execute("BEGIN");
  ask(*other, "SELECT 1 FROM @.runs WHERE id = '" + locked + "' FOR UPDATE");
  auto blocked =
      real_env().spawn({}, [&] { EXPECT_THROW(store->cancel(locked, by()), StoreError); });
  for (int i = 0; i < 20; ++i) enqueue(*store);
  blocked->join();
  other->execute("ROLLBACK");
  EXPECT_EQ(store->cancel(locked, by()).answer, ChangeResult::Answer::applied);
}

TEST_F(PostgresSession, LongWaitIsToldOnceWithItsReason) {
  auto db = session();
  ::testing::internal::CaptureStderr();
  db->execute("SELECT pg_sleep(5.2)", 20s, "somebody sleeps");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has(said, "somebody sleeps")) << said;
  EXPECT_EQ(said.find("somebody"), said.rfind("somebody")) << said;
}

TEST_F(PostgresSession, RestartOfTheServerCostsALiveWorkerNothing) {
  auto store = open();
  auto watcher = open();
  const Identity identity = real_env().make_identity();
  auto hold = store->presence()->hold(identity);
  enqueue(*store);
  const Claimed claimed = claim(*store, identity.id).at(0);
  for (const int signal : {SIGINT, SIGQUIT}) {
    server.restart(signal);
    EXPECT_TRUE(watcher->presence()->watch(1s, {}).empty());
    EXPECT_TRUE(eventually([&] { return hold->is_intact(); }));
    EXPECT_EQ(watcher->presence()->prove_gone(identity.id), nullptr);
    EXPECT_EQ(store->renew(identity.id, std::span(&claimed.lease, 1)).answers.at(0),
              Write::applied);
  }
  EXPECT_EQ(store->find(claimed.run.id)->claim, 1);
  // What opens the store tidies up behind the dead, not behind who holds a run.
  session()->execute("INSERT INTO " + schema + ".presences VALUES ('dead', 1, 1, 'held')");
  open();
  EXPECT_EQ(ask_number("SELECT count(*) FROM @.presences"), 1);
}

TEST_F(PostgresSession, LockThatWasLostWithAnotherServerProvesNothing) {
  auto store = open();
  const Identity identity = real_env().make_identity();
  auto hold = store->presence()->hold(identity);
  session()->execute("UPDATE " + schema + ".presences SET server = server - 1");
  lose_presence();
  // As long as it is away: nobody may conclude anything from that.
  session()->execute("UPDATE " + schema + ".presences SET server = server - 1");
  EXPECT_TRUE(store->presence()->watch(0ms, {}).empty());
}

TEST_F(PostgresSession, WorkerThatIsNotYetBackFromAnotherServerIsNotProvenGone) {
  auto store = open();
  const auto hold = store->presence()->hold(real_env().make_identity());
  say_present("'elsewhere', server - 1, lock_key + 1");
  say_present("'here', server, lock_key + 2");
  // Nobody holds a lock in either name. With the server that it was on, the one lost its lock, too.
  EXPECT_EQ(store->presence()->prove_gone("elsewhere"), nullptr);
  EXPECT_NE(store->presence()->prove_gone("here"), nullptr);
}

TEST_F(PostgresSession, DroppedConnectionOfAPresenceIsNoDeath) {
  auto store = open();
  auto watcher = open();
  const Identity identity = real_env().make_identity();
  auto hold = store->presence()->hold(identity);
  for (int i = 0; i < 5; ++i) {
    lose_presence();
    EXPECT_TRUE(watcher->presence()->watch(300ms, {}).empty());
    EXPECT_TRUE(eventually([&] { return hold->is_intact(); }));
  }
  EXPECT_EQ(watcher->presence()->prove_gone(identity.id), nullptr);
}

TEST_F(PostgresSession, KilledProcessIsSeenToBeGone) {
  open();
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = open();
    const Identity identity = real_env().make_identity();
    auto hold = store->presence()->hold(identity);
    [[maybe_unused]] const auto size = ::write(told[1], identity.id.data(), identity.id.size());
    pause();
    _exit(1);
  }
  std::array<char, 256> id{};
  const auto size = read(told[0], id.data(), id.size());
  const WorkerId dead(id.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  auto store = open();
  EXPECT_TRUE(store->presence()->watch(0ms, {}).empty());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::vector<WorkerId> suspects;
  EXPECT_TRUE(eventually([&] {
    suspects = store->presence()->watch(250ms, {});
    return !suspects.empty();
  }));
  EXPECT_EQ(suspects, std::vector<WorkerId>{dead});
  EXPECT_NE(store->presence()->prove_gone(dead), nullptr);
  EXPECT_TRUE(store->presence()->watch(300ms, {}).empty());
  close(told[0]);
  close(told[1]);
}

TEST_F(PostgresSession, WatcherThatWasCutOffItselfSuspectsNobodyYet) {
  auto store = open();
  const auto hold = store->presence()->hold(real_env().make_identity());
  auto watcher = open();
  EXPECT_TRUE(watcher->presence()->watch(1ms, {}).empty());
  say_present("'away', server, lock_key + 1");
  const std::string watching =
      "FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid::bigint = "
      "(hashtextextended('holdfast @. watch', 0) & 4294967295)";
  const auto process = static_cast<pid_t>(ask_number("SELECT pid " + watching));
  terminate("a.pid = " + std::to_string(process));
  EXPECT_TRUE(eventually([&] { return kill(process, 0) != 0; }));
  // What cut it off may have cut off the others, too, and they are about to come back.
  EXPECT_TRUE(watcher->presence()->watch(1ms, {}).empty());
  EXPECT_EQ(store->presence()->watch(0ms, {}), std::vector<WorkerId>{"away"});
}

TEST_F(PostgresSession, ManyProcessesAskSeldomWhoWatches) {
  auto watcher = open();
  auto other = open();
  const auto hold = watcher->presence()->hold(real_env().make_identity());
  const auto time_to_ask = [&] {
    const StoreTime begun = real_env().store_now();
    other->presence()->watch(1ms, {});
    return real_env().store_now() - begun;
  };
  watcher->presence()->watch(1ms, {});
  EXPECT_GE(time_to_ask(), 375ms);
  for (int i = 1; i < 8; ++i) {
    const std::string number = std::to_string(i);
    say_present(fmt::format("'other-{0}', server, lock_key + {0}", number));
  }
  EXPECT_GE(time_to_ask(), 1500ms);
}

TEST_F(PostgresSession, OneProcessWatchesAtATime) {
  auto first = open();
  auto second = open();
  first->presence()->watch(1ms, {});
  second->presence()->watch(1ms, {});
  EXPECT_EQ(ask_number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND "
                       "objid::bigint = (hashtextextended('holdfast @. watch', 0) & 4294967295)"),
            1);
}

}  // namespace
}  // namespace holdfast::testing
