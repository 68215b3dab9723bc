// How the writers of one process and of several share a file.

#include <atomic>

#include "conformance/sqlite_file_support.hpp"

namespace holdfast::testing {
namespace {

using SqliteWriter = SqliteFile;

/// What a process remembers of its rows ends with another one's write.
TEST_F(SqliteWriter, AStoreSeesWhatAnotherOneWroteInBetween) {
  auto first = open();
  auto second = open();
  const auto run = enqueue(*first);
  const auto claimed = first->claim({"w1", {offer()}, {}, 1, {}}).runs.at(0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(first->record(claimed.lease, a_step(std::to_string(2 * i))), Write::applied);
    ASSERT_EQ(second->record(claimed.lease, a_step(std::to_string(2 * i + 1))), Write::applied);
  }
  const auto events = first->events(run.id, 0, 0);
  ASSERT_EQ(events.size(), 8u);
  for (std::size_t i = 2; i < 8; ++i) EXPECT_EQ(events[i].payload["key"], std::to_string(i - 2));
  ASSERT_EQ(second->cancel(run.id, by()).answer, ChangeResult::Answer::applied);
  // One step that was in flight is still taken; the run stays cancelled.
  EXPECT_NE(first->record(claimed.lease, a_step("late")), Write::applied);
  EXPECT_EQ(first->find(run.id)->status, Status::cancelled);
}

/// What was undone is not remembered.
TEST_F(SqliteWriter, AClaimThatWasUndoneCanBeMadeAgain) {
  auto store = open();
  const auto first = enqueue(*store);
  const auto second = enqueue(*store);
  execute("CREATE TRIGGER full BEFORE UPDATE ON runs WHEN new.claimed_by = 'w1' AND new.id = '" +
          second.id + "' BEGIN SELECT RAISE(ABORT, 'no'); END");
  EXPECT_THROW(store->claim({"w1", {offer()}, {}, 2, {}}), StoreError);
  EXPECT_EQ(store->find(first.id)->status, Status::queued);
  const auto claimed = store->claim({"w2", {offer()}, {}, 2, {}}).runs;
  ASSERT_EQ(claimed.size(), 2u);
  for (const Claimed& run : claimed) {
    EXPECT_EQ(run.lease.claim, 1);
    EXPECT_EQ(store->record(run.lease, a_step("1")), Write::applied);
    EXPECT_EQ(kinds(*store, run.run.id), (Kinds{"queued", "claimed", "step"}));
  }
}

TEST_F(SqliteWriter, FailingWriteIsUndoneAloneAmongOthers) {
  auto store = open();
  const NewRun taken = a_run(env);
  store->start(taken, "caller");
  std::atomic<int> stored{0};
  std::atomic<int> refused{0};
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int t = 0; t < 8; ++t) {
      threads.push_back(env.spawn({}, [&, t] {
        for (int i = 0; i < 10; ++i) {
          try {
            if (t % 4 == 0) {
              store->start(taken, "another");
            } else {
              enqueue(*store);
              ++stored;
            }
          } catch (const RefusedError&) {
            ++refused;
          }
        }
      }));
    }
  }
  EXPECT_EQ(stored, 60);
  EXPECT_EQ(refused, 20);
  EXPECT_EQ(store->stats().by_status.at("queued"), 60);
}

/// As a process leaves it that is frozen between two tries.
TEST_F(SqliteWriter, WhoeverIsFrozenWhileItWaitsItsTurnHoldsUpNobody) {
  auto store = open();
  const int lock = ::open((path() + "-lock").c_str(), O_RDWR | O_CLOEXEC);
  struct flock turn {};
  turn.l_type = F_WRLCK;
  turn.l_whence = SEEK_SET;
  turn.l_len = 1;
  ASSERT_EQ(fcntl(lock, F_OFD_SETLK, &turn), 0);
  std::atomic<bool> is_first_written{false};
  std::atomic<bool> is_done{false};
  std::atomic<bool> was_in_vain{false};
  auto clock = env.spawn({}, [&] {
    for (int i = 0; i < 10'000 && !is_done; ++i) {
      if (!is_first_written) env.advance(1ms);
      env.sleep_for(2ms, {});
    }
    was_in_vain = !is_done;
    close(lock);
  });
  enqueue(*store);
  is_first_written = true;
  // Time stands still from here on: no write waits anew.
  for (int i = 0; i < 5; ++i) enqueue(*store);
  is_done = true;
  clock.reset();
  EXPECT_FALSE(was_in_vain) << "written only when the turn was free";
  EXPECT_EQ(store->stats().by_status.at("queued"), 6);
}

TEST_F(SqliteWriter, FrozenWriterIsNamedAndStopsNobodysReading) {
  auto store = open();
  const auto run = enqueue(*store);
  const int lock = ::open((path() + "-lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_TRUE(store->find(run.id).has_value());
  EXPECT_TRUE(store->claim({"w", {offer("none")}, {}, 1, {}}).runs.empty());
  auto clock = env.spawn({}, [&] {
    for (int i = 0; i < 200; ++i) {
      env.advance(100ms);
      env.sleep_for(2ms, {});
    }
  });
  bool is_named = false;
  for (const Finding& finding : store->check()) {
    is_named = is_named || (finding.grade == Finding::Grade::bad && finding.subject == "writer" &&
                            has(finding.text, std::to_string(getpid())));
  }
  clock.reset();
  close(lock);
  EXPECT_TRUE(is_named);
  enqueue(*store);
}

TEST_F(SqliteWriter, WritersGoOnWhenTheLockFileIsRemoved) {
  auto store = open();
  enqueue(*store);
  unlink((path() + "-lock").c_str());
  auto other = open();
  std::vector<std::unique_ptr<Thread>> threads;
  for (Store* each : {store.get(), other.get()}) {
    threads.push_back(env.spawn({}, [this, each] {
      for (int i = 0; i < 50; ++i) enqueue(*each);
    }));
  }
  threads.clear();
  EXPECT_EQ(store->stats().by_status.at("queued"), 101);
}

/// All wait for one lock, also those that opened the file that was removed.
TEST_F(SqliteWriter, AWriterTakesTheLockFileThatIsThereNow) {
  auto store = open();
  enqueue(*store);
  const std::string lock = path() + "-lock";
  unlink(lock.c_str());
  const int others = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(others, LOCK_EX | LOCK_NB), 0);
  std::atomic<bool> is_done = false;
  const auto writing = env.spawn({}, [&] {
    enqueue(*store);
    is_done = true;
  });
  real_env().sleep_for(300ms, {});
  EXPECT_FALSE(is_done);
  EXPECT_EQ(flock(others, LOCK_UN), 0);
  writing->join();
  EXPECT_TRUE(is_done);
  close(others);
}

/// Nobody can empty the log under a reader that stands still; but all go on, it is said, and it is
/// mended by the end of that reader alone.
TEST_F(SqliteWriter, AReaderThatStandsStillIsTold) {
  auto store = open();
  enqueue(*store);
  const auto claimed = store->claim({"w", {offer()}, {}, 1, {}}).runs.at(0);
  const auto log_finding = [&] {
    for (const Finding& finding : store->check()) {
      if (finding.subject == "log") return finding;
    }
    return Finding{Finding::Grade::bad, "", ""};
  };
  const auto write_much = [&](int mebibytes) {
    NewRun run = a_run(env);
    run.row.input = std::string(1u << 20, 'x');
    for (int i = 0; i < mebibytes; ++i) {
      run.row.id = env.new_id();
      run.content_digest = run.row.id;
      ASSERT_EQ(store->enqueue(std::span(&run, 1)).front().answer, EnqueueResult::Answer::stored);
      ASSERT_EQ(store->renew("w", std::span(&claimed.lease, 1)).answers.front(), Write::applied);
    }
  };
  sqlite3* frozen = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &frozen), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(frozen, "BEGIN; SELECT count(*) FROM runs", nullptr, nullptr, nullptr),
            SQLITE_OK);
  EXPECT_EQ(log_finding().grade, Finding::Grade::ok);
  write_much(70);
  EXPECT_EQ(log_finding().grade, Finding::Grade::warning);
  EXPECT_TRUE(has(log_finding().text, "reading")) << log_finding().text;
  sqlite3_close(frozen);
  write_much(4);
  EXPECT_EQ(log_finding().grade, Finding::Grade::ok) << log_finding().text;
}

/// There is always somebody who reads, so that the log never begins anew by itself; but nobody
/// reads for as long as the store waits for a reader.
TEST_F(SqliteWriter, LogStaysSmallBesideReaders) {
  auto store = open();
  enqueue(*store);
  std::stop_source stop;
  std::vector<std::unique_ptr<Thread>> readers;
  for (int i = 0; i < 3; ++i) {
    readers.push_back(env.spawn({}, [&] {
      sqlite3* db = nullptr;
      EXPECT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
      while (!stop.stop_requested()) {
        EXPECT_EQ(sqlite3_exec(db, "BEGIN; SELECT 1 FROM runs LIMIT 1", nullptr, nullptr, nullptr),
                  SQLITE_OK);
        real_env().sleep_for(20ms, {});
        sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
      }
      sqlite3_close(db);
    }));
  }
  for (int i = 0; i < 190; ++i) {
    std::vector<NewRun> batch;
    for (int j = 0; j < 10; ++j) {
      batch.push_back(a_run(env));
      batch.back().row.input = std::string(60'000, 'x');
    }
    store->enqueue(batch);
  }
  stop.request_stop();
  readers.clear();
  EXPECT_LT(std::filesystem::file_size(path() + "-wal"), 80u << 20)
      << "of 114 MB that were written";
}

}  // namespace
}  // namespace holdfast::testing
