// A store whose disk fills up: nothing is lost, nothing runs twice, and work goes on with room.

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <fstream>

#include "crash/harness.hpp"

namespace holdfast::crash {
namespace {

/// A small file system in memory, mounted below a folder; needs root.
class SmallDisk {
 public:
  explicit SmallDisk(const fs::path& folder, const char* size) : folder_(folder) {
    fs::create_directories(folder_);
    const std::string options = std::string("size=") + size;
    mounted_ = mount("tmpfs", folder_.c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_mounted() const { return mounted_; }
  /// Leaves `left` bytes free.
  void fill(std::uintmax_t left = 0) const {
    const std::uintmax_t free = fs::space(folder_).available;
    if (free <= left) return;
    std::ofstream ballast(folder_ / "ballast", std::ios::binary | std::ios::app);
    const std::string block(4096, 'x');
    for (std::uintmax_t written = 0; written < free - left && ballast; written += block.size()) {
      ballast << block << std::flush;
    }
  }
  void clear() const { fs::remove(folder_ / "ballast"); }

 private:
  fs::path folder_;
  bool mounted_ = false;
};

int count_lines(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

/// The tool that is held for as long as the disk is full.
constexpr const char* kRenewed = "label";

/// The disk fills up while `held` runs; nothing exits, nothing runs twice, and work goes on when
/// there is room again.
void expect_to_survive_a_full_disk(const std::string& held, const Settings& settings = {}) {
  Site site(settings);
  const SmallDisk disk(site.folder() / "disk", "4m");
  if (!disk.is_mounted()) GTEST_SKIP() << "a small file system cannot be mounted here (needs root)";
  site.move_store(site.folder() / "disk");
  site.configure(settings);
  if (!held.empty()) site.hold(held);
  const std::string run =
      site.enqueue("errand", held.empty() ? std::vector<std::string>{"--delay", "1s"}
                                          : std::vector<std::string>{});
  Process worker = site.worker();
  if (held.empty()) {
    let_pass(milliseconds(500));
  } else {
    ASSERT_TRUE(site.has_started(held));
  }
  disk.fill();
  if (!held.empty() && held != kRenewed) site.let_go(held);
  const Result refused = site.cli({"enqueue", "plain", "--input", std::string(100000, 'x')});
  EXPECT_EQ(refused.code, 1) << refused.out << refused.err;
  EXPECT_FALSE(refused.err.empty());
  const Result looked = site.cli({"doctor"});
  EXPECT_EQ(looked.code, 1) << looked.out;
  EXPECT_NE(looked.out.find("0 MiB free"), std::string::npos) << looked.out;
  let_pass(seconds(scaled(3, 30)));
  EXPECT_FALSE(worker.status()) << "it exited: " << site.log_of(worker);
  EXPECT_LE(count_lines(site.log_of(worker), "level=error"), 3 + scaled(3, 30) / 10)
      << "it reports in a tight loop:\n"
      << site.log_of(worker);
  disk.clear();
  if (held == kRenewed) site.let_go(held);
  ASSERT_TRUE(site.reaches(run, "completed", seconds(60))) << site.log_of(worker);
  EXPECT_EQ(site.times("lookup"), 1);
  EXPECT_EQ(site.times("pay"), 1);
  EXPECT_EQ(site.show(run).at("requeue_count"), 0);
  worker.kill();
  site.expect_sound();
}

TEST(FullDisk, BeforeTheClaim) { expect_to_survive_a_full_disk(""); }
TEST(FullDisk, InsideARead) { expect_to_survive_a_full_disk("lookup"); }
TEST(FullDisk, InsideANonIdempotentWrite) { expect_to_survive_a_full_disk("pay"); }
TEST(FullDisk, AcrossManyRenewals) {
  Settings settings;
  settings.heartbeat = "200ms";
  expect_to_survive_a_full_disk(kRenewed, settings);
}

TEST(FullDisk, AStopMeanwhileEndsTheWorkerAndStrandsNothing) {
  Site site;
  const SmallDisk disk(site.folder() / "disk", "4m");
  if (!disk.is_mounted()) GTEST_SKIP() << "a small file system cannot be mounted here (needs root)";
  site.move_store(site.folder() / "disk");
  site.configure({});
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process worker = site.worker({"--grace", "1s"});
  ASSERT_TRUE(site.has_started("lookup"));
  disk.fill();
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(seconds(30)), 0) << site.log_of(worker);
  disk.clear();
  site.let_go("lookup");
  Process second = site.worker();
  ASSERT_TRUE(site.reaches(run, "completed")) << "found by the presence that is gone";
  second.kill();
  site.expect_sound();
}

TEST(FullDisk, ANewStoreThatCannotBeMadeLeavesNothingBehind) {
  Site site;
  const SmallDisk disk(site.folder() / "disk", "4m");
  if (!disk.is_mounted()) GTEST_SKIP() << "a small file system cannot be mounted here (needs root)";
  site.move_store(site.folder() / "disk");
  site.configure({});
  for (const std::uintmax_t left : {0U, 8U, 40U}) {
    disk.fill(left << 10);
    const Result refused = site.cli({"enqueue", "plain", "--input", "x"});
    EXPECT_EQ(refused.code, 1) << left << refused.out << refused.err;
    EXPECT_NE(refused.err.find(site.database().string()), std::string::npos) << refused.err;
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(site.folder() / "disk")) {
      names.push_back(entry.path().filename());
    }
    EXPECT_EQ(names, std::vector<std::string>{"ballast"}) << left << " KiB were left";
    disk.clear();
  }
  site.enqueue("plain");
}

/// The log cannot be copied back, while there is still room for the log itself.
TEST(FullDisk, ExactlyAtACheckpointLosesNothing) {
  Site site;
  const SmallDisk disk(site.folder() / "disk", "32m");
  if (!disk.is_mounted()) GTEST_SKIP() << "a small file system cannot be mounted here (needs root)";
  site.move_store(site.folder() / "disk");
  site.configure({});
  const fs::path log = site.database().string() + "-wal";
  const auto write_mebibytes = [&](int mebibytes) {
    RunRequest request;
    request.agent = "count";
    request.input = {{"steps", 1}, {"ballast", std::string(1000u << 10, 'x')}};
    for (int i = 0; i < mebibytes; ++i) site.runtime().enqueue(request);
  };
  write_mebibytes(6);
  Process worker = site.worker();
  ASSERT_TRUE(site.is_up(worker));
  const auto database_bytes = fs::file_size(site.database());
  disk.fill(3u << 20);
  write_mebibytes(2);
  ASSERT_GT(fs::file_size(log), 8u << 20);
  EXPECT_LT(fs::file_size(site.database()), database_bytes + (4u << 20)) << "it had to fail";
  // What the database took of the disk before it failed is missing to the log now.
  disk.fill();
  EXPECT_EQ(site.cli({"enqueue", "plain", "--input", std::string(100'000, 'x')}).code, 1);
  let_pass(seconds(2));
  EXPECT_FALSE(worker.status()) << "it exited: " << site.log_of(worker);
  EXPECT_LE(count_lines(site.log_of(worker), "level="), 10) << site.log_of(worker);
  disk.clear();
  write_mebibytes(4);
  EXPECT_GT(fs::file_size(site.database()), 8u << 20);
  const std::string after = site.enqueue("errand");
  EXPECT_TRUE(site.reaches(after, "completed"));
  EXPECT_EQ(site.times("pay"), 1);
  EXPECT_EQ(site.runtime().stats().at("by_status").at("queued"), 12) << "what was stored is there";
  worker.kill();
  site.expect_sound();
}

}  // namespace
}  // namespace holdfast::crash
