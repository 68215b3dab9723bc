// Who lives and who is gone is told by locks, not by names, numbers of processes or files that
// somebody tidies up.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <set>

#include "crash/harness.hpp"

namespace holdfast::crash {
namespace {

/// The process that another one has started, in whatever namespace.
pid_t child_of(pid_t parent) {
  pid_t child = 0;
  eventually(seconds(20), [&] {
    const std::string text = read_file("/proc/" + std::to_string(parent) + "/task/" +
                                       std::to_string(parent) + "/children");
    child = text.empty() ? 0 : static_cast<pid_t>(std::stol(text));
    return child != 0;
  });
  return child;
}

bool has_own_numbers_of_processes() {
  if (geteuid() != 0) return false;
  Command probe;
  probe.args = {"/bin/sh", "-c", "unshare --pid --fork --kill-child true 2>/dev/null"};
  return Process(probe).wait(seconds(20)) == 0;
}

TEST(Presence, OfTwoContainersWithOneHostNameAndOneProcessIdIsTold) {
  if (!has_own_numbers_of_processes()) GTEST_SKIP() << "namespaces of processes need root";
  Settings settings;
  settings.lease = "1500ms";
  settings.heartbeat = "400ms";
  settings.reaper = "200ms";
  Site site(settings);
  site.hold("lookup");
  std::vector<std::string> runs;
  for (int i = 0; i < scaled(6, 100); ++i) runs.push_back(site.enqueue("errand"));
  const auto contained = [&] {
    Command command = site.command({"worker", "--name", "alpha", "--concurrency", "2"});
    command.args.insert(command.args.begin(),
                        {"/usr/bin/env", "unshare", "--pid", "--fork", "--kill-child"});
    return Process(command);
  };
  Process first = contained();
  ASSERT_TRUE(site.has_started("lookup", 2));
  Process second = contained();
  ASSERT_TRUE(site.has_started("lookup", 4));
  std::set<std::string> ids;
  for (const Json& worker : site.runtime().workers()) {
    EXPECT_EQ(worker.at("pid"), 1);
    ids.insert(worker.at("id"));
  }
  EXPECT_EQ(ids.size(), 2u) << "each has an identity of its own";
  for (const std::string& run : runs) EXPECT_EQ(site.count_events(run, EventKind::reaped), 0);

  const pid_t frozen = child_of(first.pid());
  ASSERT_GT(frozen, 0);
  site.freeze(frozen);
  const auto reaped = [&] {
    int count = 0;
    for (const std::string& run : runs) count += site.count_events(run, EventKind::reaped);
    return count;
  };
  EXPECT_TRUE(eventually(seconds(30), [&] { return reaped() == 2; })) << reaped();
  site.let_go("lookup");
  for (const std::string& run : runs) ASSERT_TRUE(site.reaches(run, "completed", seconds(60)));
  ::kill(frozen, SIGCONT);
  const std::string fresh = site.enqueue("plain");
  ASSERT_TRUE(site.reaches(fresh, "completed"));
  for (const std::string& run : runs) {
    EXPECT_EQ(site.count_events(run, EventKind::completed), 1);
    EXPECT_EQ(site.count_events(run, EventKind::tool), 3);
  }
  EXPECT_EQ(site.times("pay"), static_cast<int>(runs.size()));
  first.kill();
  second.kill();
  site.expect_sound();
}

TEST(Presence, ThatIsTakenAwayFromOutsideIsTakenBackAndNothingRunsTwice) {
  Settings settings;
  settings.heartbeat = "1s";
  Site site(settings);
  site.hold("label");
  const std::string run = site.enqueue("errand");
  Process first = site.worker({"--concurrency", "1"});
  ASSERT_TRUE(site.has_started("label"));
  Process second = site.worker({"--concurrency", "1"});
  ASSERT_TRUE(site.is_up(second));
  const std::string id = site.show(run).at("claimed_by");
  const fs::path file = site.database().string() + "-workers/" + id;
  ASSERT_TRUE(fs::remove(file));
  // Who proves a worker gone makes the file, too, but writes nothing into it.
  EXPECT_TRUE(eventually(seconds(20), [&] {
    std::error_code none;
    const auto size = fs::file_size(file, none);
    return !none && size > 0;
  })) << "it was not taken back";
  site.let_go("label");
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.times("pay"), 1);
  EXPECT_EQ(site.count_events(run, EventKind::tool), 3);
  EXPECT_EQ(site.count_events(run, EventKind::completed), 1);
  EXPECT_LE(site.show(run).at("reclaim_count").get<int>(), 1);

  // It is worth as much as before: held for alive, and told when its process dies.
  second.kill();
  site.hold("lookup");
  const int before = site.times("lookup");
  const std::string next = site.enqueue("reader");
  ASSERT_TRUE(site.has_started("lookup", before + 1));
  Process third = site.worker({"--concurrency", "1"});
  ASSERT_TRUE(site.is_up(third));
  let_pass(milliseconds(1500));
  EXPECT_EQ(site.count_events(next, EventKind::reaped), 0);
  first.kill();
  ASSERT_TRUE(site.has_started("lookup", before + 2)) << "long before its lease is over";
  site.let_go("lookup");
  ASSERT_TRUE(site.reaches(next, "completed"));
  third.kill();
  site.expect_sound();
}

}  // namespace
}  // namespace holdfast::crash
