// Store-level rates of SQLite with synchronous=FULL, and beside them the raw limit: a bare loop of
// the same statements in the same run. Files go to the temporary folder ($TMPDIR).
//
//   store_bench [FINISHED]   how many finished runs the queue is measured beside (1000000)

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/decide.hpp"
#include "store/sqlite/db.hpp"
#include "store/sqlite/statements.hpp"
#include "store/store.hpp"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kThreads = 64;

double seconds(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < count; ++i) threads.push_back(real_env().spawn({}, [&, i] { work(i); }));
}

void tell(std::string_view what, std::string_view value) {
  fmt::print("{:<58} {:>14}\n", what, value);
}

std::string rate(double count, double time) { return fmt::format("{:.0f}/s", count / time); }

NewRun a_run() {
  NewRun run;
  run.row.id = real_env().new_id();
  run.row.agent = "agent";
  run.row.input = "do it";
  run.content_digest = std::string(64, 'd');
  return run;
}

ClaimRequest request(int limit) {
  AgentOffer offer;
  offer.name = "agent";
  return {"bench-worker", {offer}, {}, limit, {}};
}

StepRecord a_step(int number) {
  StepRecord step;
  step.key = fmt::format("step#{}", number);
  step.payload = {{"key", step.key}, {"name", "step"}, {"effect", "read"}, {"result", number}};
  return step;
}

/// A store on a fresh file.
class Bench {
 public:
  Bench() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    store = open_store("sqlite:" + path(), real_env());
  }
  ~Bench() {
    store.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return (folder_ / "bench.db").string(); }

  void fill(int count) {
    for (int done = 0; done < count; done += 1000) {
      std::vector<NewRun> batch;
      for (int i = done; i < std::min(count, done + 1000); ++i) batch.push_back(a_run());
      store->enqueue(batch);
    }
  }
  std::vector<Claimed> claim(int count) {
    std::vector<Claimed> all;
    while (static_cast<int>(all.size()) < count) {
      for (auto& claimed : store->claim(request(500)).runs) all.push_back(std::move(claimed));
    }
    return all;
  }

  std::unique_ptr<Store> store;

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("holdfast-bench-{}", ::getpid());
};

/// The statements of a step without anything around them, 64 to a commit.
double raw_steps(const Bench& bench, const std::vector<Claimed>& claims, int count) {
  sqlite::Connection db(bench.path(), false);
  db.execute("PRAGMA synchronous = FULL; PRAGMA cache_size = -16384");
  std::vector<std::int64_t> rows;
  for (const Claimed& claimed : claims) {
    auto cursor = db.query(sqlite::kLoad, claimed.run.id);
    if (cursor.next()) rows.push_back(cursor.number(0));
  }
  const std::string payload = a_step(1).payload.dump();
  std::int64_t position = 0;
  {
    auto cursor = db.query(sqlite::kLastPosition);
    if (cursor.next()) position = cursor.number(0);
  }
  std::vector<std::int64_t> sequences(claims.size(), 1'000'000);
  return seconds([&] {
    for (int done = 0; done < count; done += kThreads) {
      db.run("BEGIN IMMEDIATE");
      for (std::size_t i = 0; i < claims.size(); ++i) {
        {
          auto cursor = db.query(sqlite::kLoad, claims[i].run.id);
          cursor.next();
        }
        db.run(sqlite::kUpdateStep, rows[i], std::int64_t{done}, 0, 0, 0, 0, 0.0, std::nullopt,
               ++sequences[i], position);
        db.run(sqlite::kInsertEvent, position + 1, rows[i], sequences[i], "step",
               std::int64_t{done}, 1, position, payload);
        ++position;
      }
      db.run("COMMIT");
      if (done % 6400 == 0) db.execute("PRAGMA wal_checkpoint(PASSIVE)");
    }
  });
}

void measure_steps() {
  constexpr int kSteps = 1000;
  Bench bench;
  bench.fill(kThreads);
  const auto claims = bench.claim(kThreads);
  const double time = seconds([&] {
    in_threads(kThreads, [&](int i) {
      for (int n = 0; n < kSteps; ++n) {
        bench.store->record(claims[static_cast<std::size_t>(i)].lease, a_step(n));
      }
    });
  });
  const double raw = raw_steps(bench, claims, kThreads * kSteps);
  tell("durable no-op steps, 64 threads", rate(kThreads * kSteps, time));
  tell("  the same statements bare, 64 to a commit", rate(kThreads * kSteps, raw));
  tell("  share of the raw limit", fmt::format("{:.0f} %", 100 * raw / time));
  std::size_t size = 0;
  const double replay = seconds([&] { size = bench.store->events(claims[0].run.id, 0, 0).size(); });
  tell(fmt::format("reading a journal of {} events", size), fmt::format("{:.1f} ms", replay * 1e3));
}

void measure_enqueue() {
  {
    constexpr int kRuns = 100'000;
    Bench bench;
    std::vector<std::vector<NewRun>> batches;
    for (int i = 0; i < kRuns / 1000; ++i) {
      batches.emplace_back();
      for (int j = 0; j < 1000; ++j) batches.back().push_back(a_run());
    }
    const double time = seconds([&] {
      for (const auto& batch : batches) bench.store->enqueue(batch);
    });
    tell("enqueue in batches of 1,000", rate(kRuns, time));
  }
  constexpr int kEach = 600;
  Bench bench;
  const double time = seconds([&] {
    in_threads(kThreads, [&](int) {
      for (int i = 0; i < kEach; ++i) {
        const NewRun run = a_run();
        bench.store->enqueue(std::span(&run, 1));
      }
    });
  });
  tell("enqueue one by one, 64 threads", rate(kThreads * kEach, time));
}

double drain(Bench& bench, int count) {
  std::atomic<int> done{0};
  return seconds([&] {
    in_threads(8, [&](int) {
      while (done < count) {
        const auto claims = bench.store->claim(request(50)).runs;
        if (claims.empty()) return;
        std::vector<std::unique_ptr<Thread>> settling;
        constexpr std::size_t kShare = 7;
        for (std::size_t from = 0; from < claims.size(); from += kShare) {
          settling.push_back(real_env().spawn({}, [&, from] {
            for (std::size_t i = from; i < std::min(from + kShare, claims.size()); ++i) {
              const auto end = decide(claims[i].run, Completed{1}, false, WallTime{}, 0);
              bench.store->settle(claims[i].lease, end);
              ++done;
            }
          }));
        }
      }
    });
  });
}

void measure_drain(int finished) {
  constexpr int kRuns = 20'000;
  double empty = 0;
  {
    Bench bench;
    bench.fill(kRuns);
    empty = drain(bench, kRuns);
    tell("claim and settle of 20,000 runs", rate(kRuns, empty));
  }
  Bench bench;
  bench.fill(1);
  bench.store->settle(bench.claim(1)[0].lease, decide({}, Completed{1}, false, WallTime{}, 0));
  {
    sqlite::Connection db(bench.path(), false);
    db.execute(fmt::format(
        "BEGIN; WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i <= {}) "
        "INSERT INTO runs SELECT i, printf('00000000-0000-7000-8000-%012d', i), agent, queue, "
        "status, reason, origin, priority, created_at, available_at, started_at, finished_at + i, "
        "claimed_by, claim, lease_until, lease_key, lease_lost_by_presence, failing_since, "
        "requeue_count, max_requeues, reclaim_count, redrive_count, iterations, prompt_tokens, "
        "completion_tokens, total_tokens, cost_usd, policy, error, fence, waiting, wait_deadline, "
        "last_sequence, last_position FROM n, runs WHERE row = 1; COMMIT",
        finished));
  }
  bench.fill(kRuns);
  const double full = drain(bench, kRuns);
  tell(fmt::format("  beside {} finished runs", finished), rate(kRuns, full));
  tell("  share of the empty rate", fmt::format("{:.0f} %", 100 * empty / full));
}

void measure_reap() {
  constexpr int kRuns = 10'000;
  Bench bench;
  bench.fill(kRuns);
  bench.claim(kRuns);
  const double expire =
      seconds([&] { bench.store->expire_leases_of("bench-worker", real_env().store_now()); });
  int reaped = 0;
  const auto lost = [](const Run& run) {
    return decide(run, WorkerLost{run.claimed_by.value_or("")}, false, WallTime{}, 0);
  };
  const double time = seconds([&] {
    while (true) {
      const auto report = bench.store->reap(50, false, lost);
      reaped += report.requeued;
      if (!report.full) break;
    }
  });
  tell("ending 10,000 leases of a dead worker", fmt::format("{:.0f} ms", expire * 1e3));
  tell(fmt::format("reaping {} stale runs, 50 a sweep", reaped),
       fmt::format("{:.0f} ms", time * 1e3));
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  const int finished = argc > 1 ? std::atoi(argv[1]) : 1'000'000;
  holdfast::measure_steps();
  holdfast::measure_enqueue();
  holdfast::measure_drain(finished);
  holdfast::measure_reap();
  return 0;
}
