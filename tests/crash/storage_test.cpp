// The store under what happens to files: many processes at once, damage, removal, copies, a writer
// that stands still.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "crash/harness.hpp"

namespace holdfast::crash {
namespace {

/// A run with an input of a megabyte.
void enqueue_large(Site& site) {
  RunRequest large;
  large.agent = "count";
  large.input = std::string(1000u << 10, 'x');
  site.runtime().enqueue(large);
}

/// Where `verify` would take a minute of this build for what filled the log.
void expect_whole_file(const Site& site) {
  EXPECT_EQ(site.sql("PRAGMA integrity_check"), std::vector<std::string>{"ok"});
}

TEST(Storage, TheLogStaysSmallUnderManyReaders) {
  Site site;
  std::vector<Process> readers;
  for (int i = 0; i < scaled(5, 20); ++i) {
    readers.emplace_back(site.command({"--json", "events", "--all", "--follow"}));
  }
  Process worker = site.app({"worker", "--slots", "16"});
  std::vector<RunRequest> requests(static_cast<std::size_t>(scaled(600, 20000)));
  for (RunRequest& request : requests) {
    request.agent = "count";
    request.input = {{"steps", 5}};
  }
  for (std::size_t i = 0; i < requests.size(); i += 200) {
    site.runtime().enqueue(
        std::span(requests).subspan(i, std::min<std::size_t>(200, requests.size() - i)));
  }
  std::uintmax_t largest = 0;
  const fs::path log = site.database().string() + "-wal";
  const auto all = static_cast<std::int64_t>(requests.size());
  ASSERT_TRUE(eventually(seconds(scaled(120, 1200)), [&] {
    std::error_code none;
    const auto size = fs::file_size(log, none);
    if (!none) largest = std::max(largest, size);
    return site.runtime().stats().at("by_status").value("completed", std::int64_t{0}) == all;
  })) << site.runtime().stats().dump(1);
  EXPECT_LT(largest, 80u << 20);
  readers.clear();
  worker.kill();
  site.expect_sound();
  // With the readers goes what they held: the next that is copied back is copied back whole, and
  // the log begins anew from its start.
  for (int i = 0; i < 40; ++i) enqueue_large(site);
  EXPECT_LT(fs::file_size(log), std::max(largest, std::uintmax_t{16u << 20}) + (1u << 20));
  expect_whole_file(site);
}

TEST(Storage, ReadersThatNobodyDrainsHoldUpNeitherLogNorWriters) {
  Site site;
  std::vector<RunRequest> small(1000);
  for (RunRequest& request : small) request.agent = "count";
  site.runtime().enqueue(small);
  const std::string pipe_path = (site.folder() / "undrained").string();
  ASSERT_EQ(mkfifo(pipe_path.c_str(), 0600), 0);
  const int pipe_end = open(pipe_path.c_str(), O_RDWR | O_CLOEXEC);
  Command command = site.command({"--json", "events", "--all", "--follow"});
  command.output = pipe_path;
  Process stuck(command);
  // Full to the last page: whoever writes to it waits.
  ASSERT_TRUE(eventually(seconds(30), [&] {
    int waiting = 0;
    return ioctl(pipe_end, FIONREAD, &waiting) == 0 && waiting > 60'000;
  }));
  let_pass(milliseconds(200));
  stuck.signal(SIGSTOP);
  std::uintmax_t largest = 0;
  for (int i = 0; i < scaled(75, 400); ++i) {
    enqueue_large(site);
    largest = std::max(largest, fs::file_size(site.database().string() + "-wal"));
  }
  EXPECT_LT(largest, 40u << 20);  // a reader that held the log would leave all of it there
  stuck.kill();
  close(pipe_end);
  expect_whole_file(site);
}

TEST(Storage, ADamagedOrMisplacedFileIsRefusedAndNotTouched) {
  Site made;
  made.enqueue("plain");
  made.sql("PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string good = read_file(made.database());
  ASSERT_GT(good.size(), 8192u);
  std::string torn = good.substr(0, good.size() / 2 + 100);
  std::string scribbled = good;
  for (std::size_t i = 0; i < 100; ++i) scribbled[i] = static_cast<char>(i * 7 + 1);
  std::string holed = good;
  for (std::size_t i = 4096; i < holed.size(); ++i) holed[i] = static_cast<char>(i * 31);
  const std::map<std::string, std::string> kinds = {{"cut in the middle of a page", torn},
                                                    {"a random header", scribbled},
                                                    {"random pages", holed}};
  for (const auto& [kind, bytes] : kinds) {
    SCOPED_TRACE(kind);
    Site site;
    site.write("runs.db", bytes);
    for (const std::vector<std::string>& args : {std::vector<std::string>{"list"},
                                                 {"enqueue", "plain", "--input", "x"},
                                                 {"worker", "--drain"},
                                                 {"reap"},
                                                 {"migrate"}}) {
      const Result result = site.cli(args);
      EXPECT_EQ(result.code, 1) << args[0] << ": " << result.out << result.err;
      EXPECT_NE(result.err.find("runs.db"), std::string::npos) << args[0] << ": " << result.err;
    }
    EXPECT_EQ(site.read("runs.db"), bytes) << "the file was changed";
    EXPECT_NE(site.cli({"doctor"}).code, 0);
  }
}

TEST(Storage, ANewerStoreIsRefusedAndNotTouched) {
  Site site;
  site.enqueue("plain");
  site.sql("PRAGMA user_version = 99");
  site.sql("PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string bytes = site.read("runs.db");
  for (const std::vector<std::string>& args : {std::vector<std::string>{"list"},
                                               {"enqueue", "plain", "--input", "x"},
                                               {"worker", "--drain"},
                                               {"reap"},
                                               {"migrate"},
                                               {"verify"}}) {
    const Result result = site.cli(args);
    EXPECT_EQ(result.code, 1) << args[0] << ": " << result.out << result.err;
    EXPECT_NE(result.err.find("99"), std::string::npos) << result.err;
  }
  EXPECT_EQ(site.read("runs.db"), bytes);
}

TEST(Storage, ADatabaseOfAnotherProgramIsNotTakenForAFreshOne) {
  Site site;
  site.write("runs.db", "");
  site.sql("CREATE TABLE customers (name TEXT)");
  const std::string bytes = site.read("runs.db");
  EXPECT_EQ(site.cli({"list"}).code, 1);
  EXPECT_EQ(site.cli({"enqueue", "plain", "--input", "x"}).code, 1);
  EXPECT_EQ(site.read("runs.db"), bytes);
}

TEST(Storage, AnEmptyFileBecomesAStore) {
  Site site;
  site.write("runs.db", "");
  const std::string run = site.enqueue("plain");
  EXPECT_EQ(site.status(run), "queued");
}

TEST(Storage, AStoreThatWasEmptiedIsNotTakenForAFreshOne) {
  Site site;
  site.enqueue("plain");
  EXPECT_EQ(site.cli({"worker", "--drain"}).code, 0);
  for (const char* ending : {"-wal", "-shm"}) fs::remove(site.database().string() + ending);
  fs::resize_file(site.database(), 0);
  const Result refused = site.cli({"list"});
  EXPECT_EQ(refused.code, 1) << refused.out;
  EXPECT_NE(refused.err.find("put a backup back"), std::string::npos) << refused.err;
  EXPECT_EQ(fs::file_size(site.database()), 0u);
  fs::remove(site.database());
  EXPECT_EQ(site.cli({"list"}).code, 0) << "what was removed on purpose begins anew";
}

TEST(Storage, AStoreThatIsRemovedWhileItIsUsedIsReportedAndNotReplaced) {
  Site site;
  site.hold("lookup");
  site.enqueue("reader");
  Process worker = site.worker();
  ASSERT_TRUE(site.has_started("lookup"));
  for (const char* ending : {"", "-wal", "-shm"}) {
    fs::rename(site.database().string() + ending, site.folder() / (std::string("kept") + ending));
  }
  site.let_go("lookup");
  EXPECT_TRUE(eventually(seconds(10), [&] {
    return site.log_of(worker).find("removed or replaced") != std::string::npos;
  })) << site.log_of(worker);
  EXPECT_FALSE(fs::exists(site.database())) << "a fresh store was put in its place";
  worker.kill();
  for (const char* ending : {"", "-wal", "-shm"}) {
    fs::rename(site.folder() / (std::string("kept") + ending), site.database().string() + ending);
  }
  Process again = site.worker();
  EXPECT_TRUE(eventually(seconds(20), [&] {
    return site.runtime().stats().at("by_status").value("completed", 0) == 1;
  })) << site.runtime().stats().dump(1);
  again.kill();
  site.expect_sound();
}

TEST(Storage, AWriterFrozenInsideItsLockIsNamedAndTheOthersGoOnWhenItIsKilled) {
  Site site;
  site.enqueue("plain");
  site.enqueue("plain");
  Command stopping = site.command({"enqueue", "plain", "--input", "y"},
                                  {{"HOLDFAST_FAILPOINTS", "commit.before=stop@1"}});
  Process holder(stopping);
  ASSERT_TRUE(eventually(seconds(20), [&] { return holder.is_frozen(); }));
  Command waiting = site.command({"enqueue", "plain", "--input", "z"});
  Process waiter(waiting);
  EXPECT_FALSE(waiter.wait(seconds(4))) << "safety holds, liveness does not";
  const std::string pid = std::to_string(holder.pid());
  EXPECT_NE(read_file(waiting.errors).find("pid=" + pid), std::string::npos)
      << read_file(waiting.errors);
  const Result doctor = site.cli({"doctor"});
  EXPECT_NE((doctor.out + doctor.err).find(pid), std::string::npos) << doctor.out << doctor.err;
  EXPECT_EQ(site.runtime().list({}).runs.size(), 2u) << "reading goes on";
  holder.kill();
  EXPECT_EQ(waiter.wait(seconds(20)), 0);
  EXPECT_EQ(site.runtime().list({}).runs.size(), 3u);
  site.expect_sound();
}

TEST(Storage, AFolderInPlaceOfTheFileIsNamed) {
  Site site;
  fs::create_directory(site.database());
  const Result result = site.cli({"list"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("runs.db"), std::string::npos) << result.err;
}

TEST(Storage, AReadOnlyFolderIsNamedAndTheFileLeftAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  Site site;
  const std::string run = site.enqueue("plain");
  site.sql("PRAGMA wal_checkpoint(TRUNCATE)");
  fs::permissions(site.folder(), fs::perms::owner_all | fs::perms::group_read |
                                     fs::perms::group_exec | fs::perms::others_read |
                                     fs::perms::others_exec);
  Command command = site.command({"enqueue", "plain", "--input", "x"});
  // The other user may write into these, though not make them.
  for (const std::string& file : {command.output, command.errors}) {
    std::ofstream(file).close();
    fs::permissions(file, fs::perms::all);
  }
  command.uid = 65534;
  Process process(command);
  const int code = process.wait(seconds(30)).value_or(-1);
  const std::string said = read_file(command.errors);
  if (code == 126 || code == 127) GTEST_SKIP() << "the other user cannot reach the binary";
  EXPECT_EQ(code, 1) << said;
  EXPECT_NE(said.find(site.database().string()), std::string::npos) << said;
  EXPECT_EQ(site.runtime().list({}).runs.size(), 1u);
}

TEST(Storage, ABackupOfALiveStoreIsWholeAndGoesOnElsewhere) {
  Site site;
  std::vector<RunRequest> requests(static_cast<std::size_t>(scaled(200, 2000)));
  for (RunRequest& request : requests) {
    request.agent = "count";
    request.input = {{"steps", 4}};
  }
  Process worker = site.app({"worker", "--slots", "8"});
  const auto runs = site.runtime().enqueue(requests);
  ASSERT_TRUE(eventually(seconds(30), [&] { return site.times("count") > 20; }));
  const std::string copy = (site.folder() / "copy.db").string();
  ASSERT_EQ(site.cli({"backup", copy}).code, 0);
  EXPECT_EQ(site.cli({"backup", copy}).code == 0, false) << "it does not overwrite";
  worker.kill();

  fs::create_directory(site.folder() / "restored");
  fs::rename(copy, site.folder() / "restored" / "runs.db");
  Site elsewhere;
  elsewhere.move_store(site.folder() / "restored");
  elsewhere.configure({});
  EXPECT_EQ(elsewhere.sql("PRAGMA integrity_check"), std::vector<std::string>{"ok"});
  std::set<std::string> known;
  for (const auto& run : runs) {
    EXPECT_NO_THROW(elsewhere.runtime().get(run.id));
    for (const Event& event : elsewhere.events(run.id)) {
      if (event.payload.contains("key")) {
        known.insert(run.id + ":" + event.payload.at("key").get<std::string>());
      }
    }
    const Json pending = elsewhere.show(run.id).at("pending");
    if (!pending.is_null()) known.insert(pending.at("idempotency_key").get<std::string>());
  }
  EXPECT_FALSE(known.empty());
  Process second =
      elsewhere.app({"worker", "--slots", "8", "--lease", "1000", "--heartbeat", "300"});
  const auto in_the_copy = [&](const std::string& status) {
    return elsewhere.runtime().stats().at("by_status").value(status, std::int64_t{0});
  };
  ASSERT_TRUE(eventually(seconds(120), [&] {
    return in_the_copy("queued") + in_the_copy("running") == 0;
  })) << elsewhere.runtime().stats().dump(1);
  EXPECT_EQ(in_the_copy("completed") + in_the_copy("failed"),
            static_cast<std::int64_t>(runs.size()));
  for (const LedgerLine& line : elsewhere.ledger()) {
    EXPECT_FALSE(known.contains(line.key)) << line.key << " was begun before the copy was made";
  }
  EXPECT_GT(elsewhere.times("count"), 0);
  second.kill();
  elsewhere.expect_sound();
}

TEST(Storage, ManyProcessesCreateOneStoreTogether) {
  for (int round = 0; round < scaled(4, 50); ++round) {
    Site site;
    std::vector<Command> commands;
    for (int i = 0; i < 12; ++i) {
      commands.push_back(i % 3 == 0   ? site.command({"migrate"})
                         : i % 3 == 1 ? site.command({"enqueue", "plain", "--input", "x"})
                                      : site.command({"worker", "--drain"}));
    }
    std::vector<Process> all;
    for (const Command& command : commands) all.emplace_back(command);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].wait(seconds(60)), 0) << read_file(commands[i].errors);
    }
    EXPECT_EQ(site.runtime().list({}).runs.size(), 4u);
    site.expect_sound();
  }
}

TEST(Keys, OneKeyFromManyProcessesIsOneRun) {
  Site site;
  std::vector<Command> commands;
  std::vector<Process> all;
  for (int i = 0; i < scaled(12, 100); ++i) {
    commands.push_back(
        site.command({"enqueue", "plain", "--input", "x", "--idempotency-key", "order-7"}));
  }
  for (const Command& command : commands) all.emplace_back(command);
  std::set<std::string> ids;
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i].wait(seconds(90)), 0) << read_file(commands[i].errors);
    ids.insert(read_file(commands[i].output));
  }
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(site.runtime().list({}).runs.size(), 1u);
  EXPECT_EQ(site.cli({"enqueue", "plain", "--input", "other", "--idempotency-key", "order-7"}).code,
            4);
  // A caller that dies after the commit, before its reply, asks again and finds its run.
  for (const std::string& place : failpoints()) {
    if (place.rfind("enqueue", 0) != 0) continue;
    const std::vector<std::string> again = {"enqueue",           "plain", "--input", "y",
                                            "--idempotency-key", place};
    site.cli(again, {{"HOLDFAST_FAILPOINTS", place + "=kill@1"}});
    const std::string first = site.cli(again).out;
    EXPECT_EQ(site.cli(again).out, first);
  }
  site.expect_sound();
}

TEST(Storage, IdsOfManyProcessesAndThreadsDiffer) {
  Site site;
  std::vector<Command> commands;
  std::vector<Process> all;
  const int each = scaled(3000, 100000);
  for (int i = 0; i < scaled(4, 16); ++i) {
    Command command = site.command({});
    command.args = {crash_app(), site.store_url(),    site.folder().string(), "ids",
                    "8",         std::to_string(each)};
    commands.push_back(command);
  }
  for (const Command& command : commands) all.emplace_back(command);
  std::set<std::string> ids;
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i].wait(seconds(300)), 0);
    std::ifstream lines(commands[i].output);
    for (std::string id; std::getline(lines, id);) ids.insert(id);
  }
  EXPECT_EQ(ids.size(), commands.size() * 8 * static_cast<std::size_t>(each));
}

TEST(Storage, AnIdleWorkerCostsNextToNothing) {
  Site site;
  Process worker = site.worker();
  ASSERT_TRUE(eventually(seconds(20), [&] { return !site.runtime().workers().empty(); }));
  let_pass(milliseconds(500));
  const auto ticks = [&] {
    const std::string stat = read_file("/proc/" + std::to_string(worker.pid()) + "/stat");
    std::istringstream words(stat.substr(stat.rfind(')') + 2));
    std::string word;
    long used = 0;
    for (int i = 3; i <= 15 && words >> word; ++i) {
      if (i == 14 || i == 15) used += std::stol(word);
    }
    return used;
  };
  const long before = ticks();
  const int length = scaled(4, 60);
  let_pass(seconds(length));
  const double share =
      static_cast<double>(ticks() - before) / (static_cast<double>(sysconf(_SC_CLK_TCK)) * length);
  EXPECT_LT(share, 0.05) << "of a core, under the sanitizers";
}

}  // namespace
}  // namespace holdfast::crash
