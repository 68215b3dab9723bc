#include "latency.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "base/log.hpp"
#include "env/env.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {
namespace {

constexpr int kPickUps = 200;
constexpr int kKills = 100;

double now_ms() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// `stamp` answers when it was started; `survivor` hangs in its first segment and stamps in its
/// second.
std::unique_ptr<Runtime> open(const std::string& url) {
  RuntimeOptions options;
  options.store_url = url;
  auto runtime = Runtime::open(options);
  runtime->register_task("stamp", [](RunContext&) { return Json(now_ms()); });
  runtime->register_task("survivor", [](RunContext& run) -> Json {
    if (run.run().claim > 1) return now_ms();
    for (;;) pause();
  });
  return runtime;
}

class Fleet {
 public:
  Fleet(std::string url, int size) : url_(std::move(url)) {
    for (int i = 0; i < size; ++i) add();
  }
  ~Fleet() {
    for (const pid_t pid : pids_) end(pid);
  }
  void replace(pid_t pid) {
    end(pid);
    std::erase(pids_, pid);
    add();
  }

 private:
  void add() {
    const pid_t pid = fork();
    if (pid == 0) {
      execl("/proc/self/exe", "worker", "worker", url_.c_str(), nullptr);
      _exit(127);
    }
    pids_.push_back(pid);
  }
  static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  std::string url_;
  std::vector<pid_t> pids_;
};

void tell(const std::string& what, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  fmt::print("{:<52} p50 {:6.1f} ms  p99 {:6.1f} ms\n", what, times[times.size() / 2],
             times[times.size() * 99 / 100]);
}

RunRequest request(const char* task) {
  RunRequest made;
  made.agent = task;
  return made;
}

double answer_of(Runtime& runtime, const RunId& id) {
  return runtime.wait(id, std::nullopt, {}).answer.value().get<double>();
}

void measure_pick_up(Runtime& runtime) {
  std::vector<double> times;
  for (int i = 0; i <= kPickUps; ++i) {
    real_env().sleep_for(Duration(10 + i % 17), {});
    const double start = now_ms();
    const Run run = runtime.enqueue(request("stamp"));
    const double took = answer_of(runtime, run.id) - start;
    if (i > 0) times.push_back(took);  // the first one waits for the process to be up
  }
  tell("pick-up by an idle worker in another process", times);
}

pid_t holder_of(Runtime& runtime, const RunId& id) {
  for (;;) {
    const Run run = runtime.get(id);
    if (run.status.is(Status::running)) {
      for (const Json& worker : runtime.workers()) {
        if (worker.at("id") == *run.claimed_by) return worker.at("pid").get<pid_t>();
      }
    }
    real_env().sleep_for(Duration(5), {});
  }
}

void measure_second_start(Runtime& runtime, Fleet& fleet) {
  std::vector<double> times;
  for (int i = 0; i < kKills; ++i) {
    const Run run = runtime.enqueue(request("survivor"));
    const pid_t holder = holder_of(runtime, run.id);
    const double start = now_ms();
    kill(holder, SIGKILL);
    times.push_back(answer_of(runtime, run.id) - start);
    fleet.replace(holder);
  }
  tell("second start after SIGKILL of the worker", times);
}

}  // namespace

int work(const std::string& url) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  set_log_level(LogLevel::error);  // that its forerunner is gone is known
  const auto runtime = open(url);
  WorkerSettings settings;
  settings.concurrency = 1;
  const auto worker = runtime->start_worker(settings);
  worker->join();
  return 0;
}

void measure_pick_up(const std::string& url) {
  const auto runtime = open(url);
  const Fleet one(url, 1);
  measure_pick_up(*runtime);
}

void measure_second_start(const std::string& url) {
  const auto runtime = open(url);
  Fleet two(url, 2);
  measure_second_start(*runtime, two);
}

void with_idle_workers(const std::string& url, int workers, const std::function<void()>& look) {
  open(url);
  const Fleet fleet(url, workers);
  look();
}

void run_singly(const std::string& url, int runs) {
  const auto runtime = open(url);
  for (int i = 0; i < runs; ++i) {
    real_env().sleep_for(Duration(50), {});
    answer_of(*runtime, runtime->enqueue(request("stamp")).id);
  }
}

}  // namespace holdfast
