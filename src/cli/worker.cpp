#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/support.hpp"

namespace holdfast {
namespace {

constexpr int kMaxConcurrency = 100'000;

WorkerSettings settings_of(Invocation& call) {
  const auto& args = call.args;
  WorkerSettings settings;
  settings.concurrency = args.find_integer("--concurrency", 1).value_or(settings.concurrency);
  if (settings.concurrency > kMaxConcurrency) {
    throw RefusedError(Refusal::usage, fmt::format("--concurrency: expected at most {}, got {}",
                                                   kMaxConcurrency, settings.concurrency));
  }
  settings.grace = args.find_duration("--grace").value_or(settings.grace);
  settings.drain = args.has("--drain");
  settings.name = clean_utf8(args.find_text("--name").value_or(""));
  for (const auto& queue : args.texts("--queue")) settings.queues.push_back(queue);
  return settings;
}

void need_served_agents(Invocation& call) {
  if (!call.host.options().agents.empty()) return;
  const auto file = call.host.config_file();
  throw RefusedError(
      Refusal::not_found,
      file ? fmt::format("{} has no agent that a worker could execute: add [agents.NAME]", *file)
           : std::string("there is no agent that a worker could execute: no configuration was "
                         "found (--config, $HOLDFAST_CONFIG, ./holdfast.toml); `holdfast init` "
                         "writes one"));
}

std::string ready_line(const WorkerHandle& worker, const WorkerSettings& settings,
                       const RuntimeOptions& options) {
  std::vector<std::string> agents;
  agents.reserve(options.agents.size());
  for (const auto& agent : options.agents) agents.push_back(agent.name);
  return safe_line(fmt::format(
      "worker {} ready: {} slots, agents {}, queues {}", worker.id(), settings.concurrency,
      fmt::join(agents, " "),
      settings.queues.empty() ? "all" : fmt::format("{}", fmt::join(settings.queues, " "))));
}

/// Signals that come before there is a worker are remembered for it.
class Stopping {
 public:
  explicit Stopping(Invocation& call) : host_(&call.host) {
    host_->on_signal([this, &call](int count) {
      const std::lock_guard lock(mutex_);
      count_ = count;
      if (count > 2) call.host.leave(kInterrupted);
      call.out.note(count == 1
                        ? "worker stopping: no more claims, steps go on to their boundary; a "
                          "second signal stops at once"
                        : "worker stopping at once");
      apply();
    });
  }
  ~Stopping() { host_->on_signal(nullptr); }
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;

  void set_worker(WorkerHandle* worker) {
    const std::lock_guard lock(mutex_);
    worker_ = worker;
    apply();
  }

 private:
  void apply() {
    if (worker_ == nullptr || count_ == 0) return;
    count_ == 1 ? worker_->stop() : worker_->stop_now();
  }

  Host* host_;
  std::mutex mutex_;
  WorkerHandle* worker_ = nullptr;
  int count_ = 0;
};

}  // namespace

int run_worker(Invocation& call) {
  const auto settings = settings_of(call);
  need_served_agents(call);
  auto& runtime = call.host.runtime();
  Stopping stopping(call);
  const auto worker = runtime.start_worker(settings);
  stopping.set_worker(worker.get());
  call.out.note(ready_line(*worker, settings, runtime.options()));
  worker->join();
  stopping.set_worker(nullptr);
  call.out.note(safe_line(fmt::format("worker {} stopped", worker->id())));
  return kDone;
}

}  // namespace holdfast
