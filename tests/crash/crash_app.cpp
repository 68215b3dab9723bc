// An application made of the library, with tasks that misbehave on request.
//   crash_app STORE FOLDER worker [--lease MS] [--heartbeat MS] [--budget N] [--slots N]
//   crash_app STORE FOLDER ids THREADS COUNT
// Tasks append to FOLDER/ledger, as the tools of the other tests do.

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "env/env.hpp"
#include "holdfast/runtime.hpp"

namespace {

using namespace holdfast;
namespace fs = std::filesystem;

class Ledger {
 public:
  explicit Ledger(fs::path folder) : folder_(std::move(folder)) {}

  void append(const std::string& tool, const std::string& phase, const std::string& key) const {
    const std::string line = fmt::format("{} {} {} {}\n", tool, phase, key, getpid());
    const int file = open((folder_ / "ledger").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      std::abort();
    }
    close(file);
  }

  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

/// `steps` writes of `ms` each, in the ledger; waits between them while FOLDER/hold.count is there.
Json count(RunContext& context, const Ledger& ledger) {
  const int steps = context.run().input.value("steps", 3);
  const int pause = context.run().input.value("ms", 0);
  for (int i = 0; i < steps; ++i) {
    StepOptions options;
    options.effect = Effect::non_idempotent_write;
    context.step("count", options, [&](const StepContext& step) {
      ledger.append("count", "start", step.idempotency_key);
      while (fs::exists(ledger.folder() / "hold.count") && !step.stop.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(pause));
      return StepResult{Json(i), std::nullopt};
    });
  }
  return steps;
}

/// A step that takes the whole process with it.
Json abort_process(RunContext& context, const Ledger& ledger) {
  context.step("boom", [&]() -> Json {
    ledger.append("abort", "start", context.run().id);
    std::_Exit(134);
  });
  return Json();
}

/// Meets the faults of its input one after another, one per execution; then succeeds. `huge` is a
/// `503` of two million bytes.
Json faults(RunContext& context, const Ledger& ledger) {
  context.step("fault", [&]() -> Json {
    const fs::path counter = ledger.folder() / ("executions." + context.run().id);
    std::size_t execution = 0;
    std::ifstream(counter) >> execution;
    std::ofstream(counter) << execution + 1;
    ledger.append("faults", "start", context.run().id);
    const Json sequence = context.run().input.at("faults");
    if (execution >= sequence.size()) return "survived";
    const std::string fault = sequence.at(execution).get<std::string>();
    if (fault == "503" || fault == "huge") {
      Failure failure;
      failure.cls = FailureClass::overloaded;
      failure.code = "503";
      failure.message = "the other side answered 503";
      if (fault == "huge") failure.message += std::string(2'000'000, '!');
      throw FailureError(failure);
    }
    kill(getpid(), fault == "kill" ? SIGKILL : SIGSTOP);
    // Frozen, then thawed: what it does now must not count.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return "too late";
  });
  return "survived";
}

/// Turns of a paid call and a write, the write idempotent and not by turns, of `ms` each. The
/// result of a paid call names the process that made it.
Json journey(RunContext& context, const Ledger& ledger) {
  const int turns = context.run().input.value("turns", 3);
  const auto pause = std::chrono::milliseconds(context.run().input.value("ms", 5));
  const auto step = [&](const std::string& name, Effect effect) {
    StepOptions options;
    options.effect = effect;
    context.step(name, options, [&](const StepContext& live) {
      ledger.append(name, "start", live.idempotency_key);
      std::this_thread::sleep_for(pause);
      ledger.append(name, "end", live.idempotency_key);
      return StepResult{Json(getpid()), std::nullopt};
    });
  };
  for (int turn = 0; turn < turns; ++turn) {
    step("ask", Effect::read);
    if (turn % 2 == 0) step("count", Effect::non_idempotent_write);
    if (turn % 2 == 1) step("label", Effect::idempotent_write);
  }
  return turns;
}

/// Blocks for `ms`, and while FOLDER/hold.burn is there, without looking at its stop token: a
/// handler that ignores its interruption.
Json burn(RunContext& context, const Ledger& ledger) {
  context.step("burn", [&]() -> Json {
    ledger.append("burn", "start", context.run().id);
    while (fs::exists(ledger.folder() / "hold.burn")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(context.run().input.value("ms", 1000)));
    return Json();
  });
  return Json();
}

int work(const std::string& store, const Ledger& ledger,
         const std::map<std::string, int>& options) {
  const auto option = [&](const std::string& name, int otherwise) {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : found->second;
  };
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  RuntimeOptions made;
  made.store_url = store;
  made.policy.lease = Duration(option("--lease", 60000));
  made.policy.max_requeues = option("--budget", 3);
  made.policy.backoff_base = Duration(20);
  made.policy.backoff_cap = Duration(100);
  made.heartbeat = Duration(option("--heartbeat", 20000));
  made.reaper_interval = Duration(200);
  const auto runtime = Runtime::open(made);
  runtime->register_task("count", [&](RunContext& context) { return count(context, ledger); });
  runtime->register_task("journey", [&](RunContext& context) { return journey(context, ledger); });
  runtime->register_task("abort",
                         [&](RunContext& context) { return abort_process(context, ledger); });
  runtime->register_task("faults", [&](RunContext& context) { return faults(context, ledger); });
  runtime->register_task("burn", [&](RunContext& context) { return burn(context, ledger); });
  WorkerSettings settings;
  settings.concurrency = option("--slots", 4);
  settings.grace = Duration(2000);
  const auto worker = runtime->start_worker(settings);
  int received = 0;
  sigwait(&signals, &received);
  worker->stop();
  worker->join();
  return 0;
}

int print_ids(int threads, int each) {
  std::mutex mutex;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      std::string text;
      for (int n = 0; n < each; ++n) text += real_env().new_id() + "\n";
      const std::lock_guard lock(mutex);
      std::fwrite(text.data(), 1, text.size(), stdout);
    });
  }
  for (std::thread& thread : all) thread.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() < 3) return 2;
  if (args[2] == "ids" && args.size() == 5)
    return print_ids(std::stoi(args[3]), std::stoi(args[4]));
  std::map<std::string, int> options;
  for (std::size_t i = 3; i + 1 < args.size(); i += 2) options[args[i]] = std::stoi(args[i + 1]);
  try {
    return work(args[0], Ledger(args[1]), options);
  } catch (const StoreError& error) {
    std::fputs(error.what(), stderr);
    return 1;
  }
}
