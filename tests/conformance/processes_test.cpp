// Several processes on one file: what was acknowledged is there, whoever is killed when.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "conformance/store_test_support.hpp"

namespace holdfast::testing {
namespace {

bool is_long() { return std::getenv("HOLDFAST_LONG") != nullptr; }

/// Children of this process, each with its own store on the file.
class Processes : public ::testing::Test {
 protected:
  std::string url() const { return "sqlite:" + folder.file("runs.db"); }

  template <class Body>
  pid_t start(const Body& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    int code = 1;
    try {
      body();
      code = 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    _exit(code);
  }
  static int wait_for(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }
  static void expect_sound(Store& store) {
    for (const Finding& finding : store.check()) {
      EXPECT_NE(finding.grade, Finding::Grade::bad) << finding.text;
    }
  }

  TempFolder folder;
};

/// Ids that a child was promised, told through a pipe as they were acknowledged.
class Ledger {
 public:
  Ledger() {
    if (pipe(ends_) != 0) throw std::runtime_error("no pipe");
  }
  ~Ledger() {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  void add(const RunId& id) {
    const std::string line = id + "\n";
    if (::write(ends_[1], line.data(), line.size()) < 0) std::abort();
  }
  std::vector<RunId> read_all() {
    close(ends_[1]);
    ends_[1] = -1;
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t size = 0; (size = ::read(ends_[0], part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<std::size_t>(size));
    }
    std::vector<RunId> ids;
    for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos;
         at = end + 1) {
      ids.push_back(text.substr(at, end - at));
    }
    return ids;
  }

 private:
  int ends_[2]{};
};

TEST_F(Processes, ManyMigrateAnEmptyFileAtOnce) {
  for (int round = 0; round < (is_long() ? 50 : 4); ++round) {
    std::filesystem::remove_all(folder.path());
    std::filesystem::create_directory(folder.path());
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) {
      children.push_back(start([&] {
        auto store = open_store(url(), real_env());
        const NewRun run = a_run(real_env());
        store->enqueue(std::span(&run, 1));
      }));
    }
    for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
    auto store = open_store(url(), real_env());
    EXPECT_EQ(store->stats().by_status.at("queued"), 6);
    expect_sound(*store);
  }
}

TEST_F(Processes, EveryAcknowledgedWriteSurvivesCommitsCheckpointsAndKills) {
  Ledger ledger;
  const int rounds = is_long() ? 60 : 6;
  for (int round = 0; round < rounds; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
      children.push_back(start([&] {
        auto store = open_store(url(), real_env());
        std::vector<std::unique_ptr<Thread>> threads;
        for (int t = 0; t < 3; ++t) {
          threads.push_back(real_env().spawn({}, [&] {
            // Large inputs, so that checkpoints come often.
            for (int n = 0; n < 40; ++n) {
              NewRun run = a_run(real_env());
              run.row.input = std::string(40'000, 'x');
              store->enqueue(std::span(&run, 1));
              ledger.add(run.row.id);
            }
          }));
        }
      }));
    }
    // Half of them are killed in the midst of it, at another moment each time.
    real_env().sleep_for(Duration(20 + 37 * round % 200), {});
    kill(children[0], SIGKILL);
    kill(children[1], SIGKILL);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const int status = wait_for(children[i]);
      if (i >= 2) {
        EXPECT_EQ(status, 0);
      }
    }
  }
  const auto promised = ledger.read_all();
  EXPECT_GE(promised.size(), static_cast<std::size_t>(rounds) * 240);
  auto store = open_store(url(), real_env());
  for (const RunId& id : promised) ASSERT_TRUE(store->find(id).has_value()) << id;
  expect_sound(*store);
  EXPECT_LT(std::filesystem::file_size(folder.file("runs.db-wal")), 80u << 20);
}

TEST_F(Processes, EachRunIsWorkedOnceByWorkersOfSeveralProcesses) {
  auto store = open_store(url(), real_env());
  std::vector<NewRun> batch;
  for (int i = 0; i < 200; ++i) batch.push_back(a_run(real_env()));
  store->enqueue(batch);
  Ledger ledger;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(start([&] {
      auto own = open_store(url(), real_env());
      const WorkerId id = real_env().make_identity().id;
      while (true) {
        const auto claims = own->claim({id, {offer()}, {}, 5, {}}).runs;
        if (claims.empty()) return;
        for (const Claimed& claimed : claims) {
          if (own->record(claimed.lease, a_step("a")) != Write::applied) std::abort();
          const auto end = settlement(claimed.run, Completed{1}, real_env());
          if (own->settle(claimed.lease, end) != Write::applied) std::abort();
          ledger.add(claimed.run.id);
        }
      }
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  auto done = ledger.read_all();
  std::ranges::sort(done);
  EXPECT_EQ(done.size(), 200u);
  EXPECT_TRUE(std::ranges::adjacent_find(done) == done.end());
  EXPECT_EQ(store->stats().by_status, (std::map<std::string, std::int64_t>{{"completed", 200}}));
  for (const NewRun& run : batch) {
    EXPECT_EQ(kinds(*store, run.row.id), (Kinds{"queued", "claimed", "step", "completed"}));
  }
}

TEST_F(Processes, BusyProcessKeepsNobodyOut) {
  auto store = open_store(url(), real_env());
  const pid_t busy = start([&] {
    auto own = open_store(url(), real_env());
    std::vector<std::unique_ptr<Thread>> threads;
    for (int t = 0; t < 4; ++t) {
      threads.push_back(real_env().spawn({}, [&] {
        while (true) {
          const NewRun run = a_run(real_env());
          own->enqueue(std::span(&run, 1));
        }
      }));
    }
  });
  for (int i = 0; i < 50; ++i) {
    const NewRun run = a_run(real_env());
    EXPECT_EQ(store->enqueue(std::span(&run, 1)).front().answer, EnqueueResult::Answer::stored);
  }
  kill(busy, SIGKILL);
  wait_for(busy);
  expect_sound(*store);
}

}  // namespace
}  // namespace holdfast::testing
