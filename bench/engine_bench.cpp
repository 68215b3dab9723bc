// How fast the engine works runs off over a SQLite store: drain of no-op runs, durable no-op steps,
// resumption of a long journal, memory of many blocked runs.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "engine_rates.hpp"

namespace holdfast {
namespace {

struct Place {
  Place() : folder(std::filesystem::temp_directory_path() / fmt::format("hf-bench-{}", getpid())) {
    std::filesystem::create_directories(folder);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  std::string url(const std::string& name) const {
    return "sqlite:" + (folder / (name + ".db")).string();
  }
  const std::filesystem::path folder;
};

void bench_drain(const Place& place, int runs) {
  const auto store = open_store(place.url("drain"), real_env());
  print(fmt::format("drain of {} no-op runs, concurrency 100", runs), drain_rate(*store, runs),
        "runs/s");
}

void bench_steps(const Place& place, int runs, int steps) {
  const auto store = open_store(place.url("steps"), real_env());
  print(fmt::format("durable no-op steps, {} runs in flight", runs), step_rate(*store, runs, steps),
        "steps/s");
}

void bench_resume(const Place& place, int steps) {
  const auto store = open_store(place.url("resume"), real_env());
  std::atomic<std::int64_t> replayed_ms = -1;
  const HandlerSet set = handlers({{"long", [&](RunContext& run) {
                                      const StoreTime begun = real_env().store_now();
                                      for (int i = 0; i < steps; ++i) {
                                        run.step("s", [] { return Json("result"); });
                                      }
                                      if (run.run().claim > 1) {
                                        replayed_ms = (real_env().store_now() - begun).count();
                                      }
                                      run.sleep("nap", Duration(50));
                                      return Json();
                                    }}});
  const auto ids = enqueue(*store, "long", 1);
  drain(*store, set, 1);
  real_env().sleep_for(Duration(100), {});
  const StoreTime begun = real_env().store_now();
  drain(*store, set, 1);
  print(fmt::format("resuming a run with {} recorded steps, whole drain", steps),
        seconds_since(begun) * 1000, "ms");
  print("  of it the handler's replay", static_cast<double>(replayed_ms), "ms");
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void bench_blocked(const Place& place, int runs) {
  const auto store = open_store(place.url("blocked"), real_env());
  std::atomic<int> blocked = 0;
  const auto gate = real_env().make_event_count();
  const HandlerSet set = handlers({{"blocked", [&](RunContext& run) {
                                      return run.step("wait", {}, [&](const StepContext& context) {
                                        const auto seen = gate->current();
                                        ++blocked;
                                        gate->wait_past(seen, std::chrono::hours(1), context.stop);
                                        return StepResult{};
                                      });
                                    }}});
  print("a process before its worker", resident_mib(), "MiB");
  WorkerSettings settings;
  settings.concurrency = runs;
  const auto worker = start_worker(real_env(), *store, set, EngineOptions{}, settings);
  real_env().sleep_for(std::chrono::seconds(1), {});
  print("idle worker", resident_mib(), "MiB");
  const std::clock_t cpu = std::clock();
  real_env().sleep_for(std::chrono::seconds(5), {});
  print("idle worker", 100.0 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC / 5,
        "% of a core");
  enqueue(*store, "blocked", runs);
  while (blocked < runs) real_env().sleep_for(Duration(10), {});
  print(fmt::format("worker with {} runs in a blocking step", runs), resident_mib(), "MiB");
  gate->notify_all();
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  const auto wanted = [&](const char* name) { return only.empty() || only == name; };
  const holdfast::Place place;
  // Memory first, before the others have grown the heap.
  if (wanted("blocked")) holdfast::bench_blocked(place, 1000);
  if (wanted("drain")) holdfast::bench_drain(place, 20'000);
  if (wanted("steps")) holdfast::bench_steps(place, 64, 2'000);
  if (wanted("resume")) holdfast::bench_resume(place, 1'000);
  return 0;
}
