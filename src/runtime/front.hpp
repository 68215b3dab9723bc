#pragma once

// The front door over store, engine and agents. One class; its methods are split over the files of
// this folder by noun: requests.cpp (what is stored), inline_run.cpp (what is executed here),
// run_verbs.cpp, decisions.cpp, bulk.cpp (what people do), insight.cpp and
// health.cpp (what they see).

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/model.hpp"
#include "engine/segment.hpp"
#include "env/env.hpp"
#include "holdfast/runtime.hpp"
#include "store/store.hpp"

namespace holdfast {

/// A runtime over a given environment and store, for the simulator and for tests that put something
/// between. Checks the options as `Runtime::open` does. `chain` takes the place of the one over the
/// options' providers.
std::unique_ptr<Runtime> make_runtime(RuntimeOptions, Env&, std::unique_ptr<Store>,
                                      std::unique_ptr<ModelChain> chain = nullptr);

/// All methods may be called from any thread; `register_task` before anything is executed.
class Front final : public Runtime {
 public:
  Front(RuntimeOptions, Env&, std::unique_ptr<Store>, std::unique_ptr<ModelChain>);

  void register_task(const std::string& name, Handler handler, TaskOptions task) override;

  Run enqueue(const RunRequest&) override;
  std::vector<Run> enqueue(std::span<const RunRequest>) override;
  SegmentResult run(const RunRequest&, const Observer&, std::stop_token stop) override;
  SegmentResult run_inline(const RunRequest&, const Observer&, std::stop_token stop) override;
  std::unique_ptr<WorkerHandle> start_worker(const WorkerSettings&) override;
  ReapReport reap(int limit, bool dry_run) override;

  Run get(const RunId&) override;
  RunPage list(const ListFilter&) override;
  std::vector<Event> events(const RunId&, std::int64_t after, int limit) override;
  std::vector<Event> all_events(std::int64_t& cursor, int limit) override;
  Run wait(const RunId&, std::optional<Duration> timeout, std::stop_token stop) override;

  Run cancel(const RunId&, const Operator&) override;
  DecisionResult decide(const Decision&, const Observer&, std::stop_token stop) override;
  Run redrive(const RunId&, const Operator&) override;
  BulkReport redrive_all(const ListFilter&, bool dry_run, const Operator&) override;
  Run resolve(const ResolveRequest&) override;
  Run hand_over(const RunId&, bool force, const Operator&) override;
  Run wake(const RunId&, const Operator&) override;
  PurgeReport purge(const PurgeRequest&) override;

  Json stats() override;
  Json workers() override;
  Json why(const RunId&) override;
  std::vector<Finding> verify() override;
  std::vector<Finding> doctor() override;
  void backup(const std::string& file) override;
  const RuntimeOptions& options() const override { return options_; }

 private:
  // requests.cpp
  const HandlerEntry& get_handler(const std::string& agent) const;
  void check_budget(const RunRequest&) const;
  NewRun make_new_run(const RunRequest&);
  std::vector<EnqueueResult> store_new(const std::vector<NewRun>&);

  // inline_run.cpp
  /// Throws RefusedError (usage) where this process cannot execute the run: a key is not set.
  void need_executable(const holdfast::Run&) const;
  /// What a worker of this process offers: an agent that it cannot execute is left to others.
  const HandlerSet& executable();
  /// From here on no task can be registered. Throws RefusedError where a provider is not ready.
  void begin_to_execute();
  EngineOptions engine_options() const;
  SegmentResult drive(InlineExecutor&, std::optional<Claimed>, const Run&, const Observer&,
                      const std::stop_token& stop);
  std::optional<Claimed> claim_here(const WorkerId&, const Run&);

  // run_verbs.cpp
  /// What the caller of a change that did not apply is told: not found, or the run's status and
  /// what would help. Returns the run of one that did.
  Run applied_run(const RunId&, const ChangeResult&, std::string_view verb);
  bool is_holder_gone(const WorkerId&);
  void fill_in(Run&, std::map<WorkerId, bool>& known);
  /// How its answer ended is told by its last event.
  void fill_in_finish(Run&);
  Operator minted(Operator);

  // bulk.cpp
  PurgeReport purge_named(const PurgeRequest&);

  // insight.cpp
  std::vector<WorkerRow> live_workers();
  Json shown_circuits();

  // health.cpp
  std::vector<Finding> check_stored(const RunId&, std::int64_t& events);
  Finding check_clock();
  std::vector<Finding> check_workers();

  Env& env_;
  const RuntimeOptions options_;
  const std::unique_ptr<Store> store_;
  const std::unique_ptr<ModelChain> chain_;
  const std::unique_ptr<Toolbox> toolbox_;
  HandlerSet handlers_;
  std::once_flag executable_once_;
  HandlerSet executable_;                        ///< of `executable()`
  std::map<std::string, std::string> queue_of_;  ///< by agent: where its runs go by default
  std::vector<std::string> names_;               ///< of all handlers, for suggestions
  std::atomic<bool> executing_ = false;
  Vigil vigil_;  ///< of the sweeps that are asked for
};

/// Calls `action` again after a StoreError that may pass: a reply that never came is not a refusal,
/// and what is called here is harmless to repeat (spec, section 3 "Lost replies"). Gives up after
/// a few seconds with the last error. `action` is told whether it is a repetition.
template <class Action>
auto until_answered(Env& env, const Action& action) {
  constexpr int kTries = 5;
  auto pause = std::chrono::milliseconds(100);
  for (int attempt = 1;; ++attempt, pause *= 2) {
    try {
      return action(attempt > 1);
    } catch (const StoreError& error) {
      if (error.permanent() || attempt == kTries) throw;
    }
    env.sleep_for(pause, {});
  }
}

/// One sentence with the command that helps in a run's status: "it is failed: `holdfast redrive
/// ID`". A decision helps only before its deadline.
std::string help_for(const Run&, WallTime now);

}  // namespace holdfast
