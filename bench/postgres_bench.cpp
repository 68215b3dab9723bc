// Store-level rates of PostgreSQL over the URL of a database, each in a fresh schema that is
// dropped afterwards.
//
//   postgres_bench URL          URL without options, such as postgresql://USER@HOST/DATABASE

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/decide.hpp"
#include "store/postgres/connection.hpp"
#include "store/store.hpp"

namespace holdfast {
namespace {

constexpr int kCallers = 64;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void by_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < count; ++i) threads.push_back(real_env().spawn({}, [&, i] { work(i); }));
}

void tell_rate(std::string_view what, double count, double time) {
  fmt::print("{:<58} {:>12.0f}/s\n", what, count / time);
}

NewRun new_run() {
  NewRun run;
  run.row.id = real_env().new_id();
  run.row.agent = "agent";
  run.row.input = "do it";
  run.content_digest = std::string(64, 'd');
  return run;
}

ClaimRequest claim_request(int limit) {
  AgentOffer offer;
  offer.name = "agent";
  return {"bench-worker", {offer}, {}, limit, {}};
}

StepRecord new_step(int number) {
  StepRecord step;
  step.key = fmt::format("step#{}", number);
  step.payload = {{"key", step.key}, {"name", "step"}, {"effect", "read"}, {"result", number}};
  return step;
}

/// A store in a fresh schema.
class PgBench {
 public:
  explicit PgBench(const std::string& url)
      : url_(url + (url.find('?') == std::string::npos ? "?" : "&") +
             fmt::format("schema=bench_{:08x}", real_env().random() & 0xffffffff)),
        store(open_store(url_, real_env())) {}
  PgBench(const PgBench&) = delete;
  ~PgBench() {
    store.reset();
    postgres::Connection db(postgres::parse_target(url_));
    db.execute(fmt::format("DROP SCHEMA {} CASCADE", db.target().schema));
  }

  void fill(int count) {
    for (int done = 0; done < count; done += 1000) {
      std::vector<NewRun> batch;
      for (int i = done; i < std::min(count, done + 1000); ++i) batch.push_back(new_run());
      store->enqueue(batch);
    }
  }
  std::vector<Claimed> claim(int count) {
    std::vector<Claimed> all;
    while (static_cast<int>(all.size()) < count) {
      for (auto& claimed : store->claim(claim_request(500)).runs) all.push_back(std::move(claimed));
    }
    return all;
  }

 private:
  const std::string url_;

 public:
  std::unique_ptr<Store> store;
};

void measure_pg_steps(const std::string& url) {
  constexpr int kSteps = 600;
  PgBench bench(url);
  bench.fill(kCallers);
  const auto claims = bench.claim(kCallers);
  const double time = seconds_of([&] {
    by_threads(kCallers, [&](int i) {
      for (int n = 0; n < kSteps; ++n) {
        bench.store->record(claims[static_cast<std::size_t>(i)].lease, new_step(n));
      }
    });
  });
  tell_rate("durable no-op steps, 64 threads", kCallers * kSteps, time);
}

void measure_pg_enqueue(const std::string& url) {
  PgBench bench(url);
  constexpr int kRuns = 50'000;
  std::vector<std::vector<NewRun>> batches(kRuns / 1000);
  for (auto& batch : batches) {
    for (int i = 0; i < 1000; ++i) batch.push_back(new_run());
  }
  tell_rate("enqueue in batches of 1,000", kRuns, seconds_of([&] {
              for (const auto& batch : batches) bench.store->enqueue(batch);
            }));
  constexpr int kEach = 400;
  tell_rate("enqueue one by one, 64 threads", kCallers * kEach, seconds_of([&] {
              by_threads(kCallers, [&](int) {
                for (int i = 0; i < kEach; ++i) {
                  const NewRun run = new_run();
                  bench.store->enqueue(std::span(&run, 1));
                }
              });
            }));
}

/// As a worker with 100 slots: one thread claims, the others settle.
void measure_pg_drain(const std::string& url) {
  constexpr int kRuns = 20'000;
  constexpr int kSettlers = 100;
  PgBench bench(url);
  bench.fill(kRuns);
  std::mutex mutex;
  std::vector<Claimed> claimed;
  std::atomic<int> taken{0};
  std::atomic<int> busy{0};
  tell_rate("claim and settle of 20,000 runs, 100 slots", kRuns, seconds_of([&] {
              std::vector<std::unique_ptr<Thread>> threads;
              threads.push_back(real_env().spawn({}, [&] {
                while (taken < kRuns) {
                  const int free = kSettlers - busy;
                  if (free <= 0) {
                    std::this_thread::yield();
                    continue;
                  }
                  auto some = bench.store->claim(claim_request(free)).runs;
                  taken += static_cast<int>(some.size());
                  busy += static_cast<int>(some.size());
                  const std::lock_guard lock(mutex);
                  for (auto& run : some) claimed.push_back(std::move(run));
                }
              }));
              for (int i = 0; i < kSettlers; ++i) {
                threads.push_back(real_env().spawn({}, [&] {
                  while (true) {
                    std::unique_lock lock(mutex);
                    if (claimed.empty()) {
                      lock.unlock();
                      if (taken >= kRuns && busy == 0) return;
                      real_env().sleep_for(Duration(1), {});
                      continue;
                    }
                    const Claimed run = std::move(claimed.back());
                    claimed.pop_back();
                    lock.unlock();
                    bench.store->settle(run.lease,
                                        decide(run.run, Completed{1}, false, WallTime{}, 0));
                    --busy;
                  }
                }));
              }
            }));
}

void measure_pg_renewals(const std::string& url) {
  constexpr int kRuns = 1000;
  constexpr int kRounds = 20;
  PgBench bench(url);
  bench.fill(kRuns);
  std::vector<Lease> leases;
  for (const Claimed& claimed : bench.claim(kRuns)) leases.push_back(claimed.lease);
  const double time = seconds_of([&] {
    for (int i = 0; i < kRounds; ++i) bench.store->renew("bench-worker", leases);
  });
  fmt::print("{:<58} {:>11.1f} ms\n", "renewing 1,000 leases of one worker", time / kRounds * 1e3);
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: postgres_bench URL\n");
    return 2;
  }
  holdfast::measure_pg_steps(argv[1]);
  holdfast::measure_pg_enqueue(argv[1]);
  holdfast::measure_pg_drain(argv[1]);
  holdfast::measure_pg_renewals(argv[1]);
  return 0;
}
