#include "env/env.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <regex>
#include <set>
#include <thread>
#include <vector>

#include "support/forwarding_env.hpp"

namespace holdfast {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

/// The real one with a clock that stands still.
class FrozenClockEnv final : public testing::ForwardingEnv {
 public:
  WallTime wall_now() override { return WallTime(Duration(1'700'000'000'000)); }
};

std::vector<std::string> make_ids(Env& env, int count) {
  std::vector<std::string> ids;
  ids.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ids.push_back(env.new_id());
  return ids;
}

TEST(Ids, AreVersionSevenUuids) {
  const std::regex form("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  for (const auto& id : make_ids(real_env(), 100)) EXPECT_TRUE(std::regex_match(id, form)) << id;
}

TEST(Ids, BeginWithTheirTime) {
  FrozenClockEnv env;
  EXPECT_EQ(env.new_id().substr(0, 13), "018bcfe5-6800");
}

TEST(Ids, AreUniqueAcrossThreadsWithAFrozenClock) {
  FrozenClockEnv env;
  std::mutex mutex;
  std::set<std::string> all;
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < 16; ++t) {
    threads.push_back(env.spawn({"ids", 1u << 20}, [&] {
      const auto ids = make_ids(env, 2000);
      const std::lock_guard lock(mutex);
      all.insert(ids.begin(), ids.end());
    }));
  }
  for (auto& thread : threads) thread->join();
  EXPECT_EQ(all.size(), 16u * 2000u);
}

TEST(Ids, AreUniqueAfterForkWithAFrozenClock) {
  FrozenClockEnv env;
  make_ids(env, 10);
  std::set<std::string> all;
  constexpr int kChildren = 4;
  constexpr int kIds = 500;
  for (int child = 0; child < kChildren; ++child) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      bool written = true;
      for (const auto& id : make_ids(env, kIds)) {
        written =
            written && write(ends[1], id.data(), id.size()) == static_cast<ssize_t>(id.size());
      }
      _exit(written ? 0 : 1);
    }
    close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(got));
    }
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    ASSERT_EQ(status, 0);
    ASSERT_EQ(text.size(), 36u * kIds);
    for (std::size_t at = 0; at < text.size(); at += 36) all.insert(text.substr(at, 36));
  }
  for (const auto& id : make_ids(env, kIds)) all.insert(id);
  EXPECT_EQ(all.size(), static_cast<std::size_t>((kChildren + 1) * kIds));
}

TEST(Identity, IsFreshAtEachCall) {
  const Identity first = real_env().make_identity();
  const Identity second = real_env().make_identity();
  EXPECT_NE(first.id, second.id);
  EXPECT_EQ(first.pid, getpid());
  EXPECT_GT(first.process_started, 0u);
  EXPECT_EQ(first.process_started, second.process_started);
}

TEST(Identity, IsSafeAsAFileName) {
  const Identity identity = real_env().make_identity();
  EXPECT_TRUE(std::regex_match(identity.id, std::regex("[A-Za-z0-9-]+"))) << identity.id;
  EXPECT_LT(identity.id.size(), 200u);
}

TEST(EventCount, MissesNothingSignalledBeforeTheWait) {
  const auto count = real_env().make_event_count();
  const auto seen = count->current();
  count->notify_all();
  EXPECT_TRUE(count->wait_past(seen, hours(1), {}));
}

TEST(EventCount, WakesAWaiter) {
  const auto count = real_env().make_event_count();
  const auto seen = count->current();
  std::atomic<bool> woken = false;
  const auto thread =
      real_env().spawn({"waiter", 1u << 20}, [&] { woken = count->wait_past(seen, hours(1), {}); });
  count->notify_all();
  thread->join();
  EXPECT_TRUE(woken);
}

TEST(EventCount, GivesUpAtItsTimeout) {
  const auto count = real_env().make_event_count();
  EXPECT_FALSE(count->wait_past(count->current(), milliseconds(1), {}));
  EXPECT_FALSE(count->wait_past(count->current(), milliseconds(-5), {}));
}

TEST(EventCount, GivesUpAtAStop) {
  const auto count = real_env().make_event_count();
  std::stop_source source;
  std::atomic<bool> woken = true;
  const auto thread = real_env().spawn({"waiter", 1u << 20}, [&] {
    woken = count->wait_past(count->current(), Duration::max(), source.get_token());
  });
  source.request_stop();
  thread->join();
  EXPECT_FALSE(woken);
}

TEST(SleepFor, EndsAtAStop) {
  std::stop_source source;
  source.request_stop();
  real_env().sleep_for(hours(1000), source.get_token());
}

TEST(Clocks, DoNotRunBackwards) {
  const auto before = real_env().store_now();
  const auto later = real_env().store_now();
  EXPECT_LE(before, later);
  EXPECT_GT(before.time_since_epoch(), Duration(0));
  EXPECT_GT(real_env().wall_now(), WallTime(Duration(1'600'000'000'000)));
}

TEST(Clocks, BootIdIsAUuid) { EXPECT_EQ(real_env().boot_id().size(), 36u); }

TEST(Random, CoversTheUnitInterval) {
  double lowest = 1;
  double highest = 0;
  for (int i = 0; i < 2000; ++i) {
    const double value = real_env().unit_random();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  EXPECT_LT(lowest, 0.05);
  EXPECT_GT(highest, 0.95);
}

#ifdef HOLDFAST_TESTING
TEST(Clocks, TestsCanMoveTheWallClockAndNothingElse) {
  const std::string path =
      ::testing::TempDir() + "holdfast-wall-offset-" + std::to_string(getpid());
  const auto wall = real_env().wall_now();
  const auto since_boot = real_env().store_now();
  std::ofstream(path) << 3'600'000;
  setenv("HOLDFAST_TEST_WALL_OFFSET_FILE", path.c_str(), 1);
  const auto moved = real_env().wall_now();
  const auto still = real_env().store_now();
  unsetenv("HOLDFAST_TEST_WALL_OFFSET_FILE");
  unlink(path.c_str());
  EXPECT_GE(moved - wall, hours(1));
  EXPECT_LT(still - since_boot, hours(1));
  EXPECT_LT(real_env().wall_now(), moved);
}
#endif

}  // namespace
}  // namespace holdfast
