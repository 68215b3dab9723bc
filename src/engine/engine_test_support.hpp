#pragma once

// What the engine's tests share: a memory store that fails on demand, handlers, and waiting for
// what must come true.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/segment.hpp"
#include "support/faulty_store.hpp"

namespace holdfast::engine_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// True as soon as the condition is; false after a time that no working engine needs.
inline bool eventually(const std::function<bool()>& condition, Duration limit = seconds(60)) {
  const StoreTime begun = real_env().store_now();
  while (!condition()) {
    if (real_env().store_now() - begun > limit) return false;
    real_env().sleep_for(milliseconds(1), {});
  }
  return true;
}

/// A door that steps wait at. Any thread.
class Gate {
 public:
  void open() {
    open_ = true;
    changed_->notify_all();
  }
  /// Someone stands at it.
  bool is_reached() const { return reached_ > 0; }
  int reached() const { return reached_; }
  /// False when `stop` was requested first.
  bool pass(const std::stop_token& stop = {}) {
    ++reached_;
    for (;;) {
      const auto seen = changed_->current();
      if (open_) return true;
      if (stop.stop_requested()) return false;
      changed_->wait_past(seen, hours(1), stop);
    }
  }

 private:
  std::atomic<bool> open_ = false;
  std::atomic<int> reached_ = 0;
  std::unique_ptr<EventCount> changed_ = real_env().make_event_count();
};

/// Opens a gate when its scope is left, so that a test that fails ends, too.
class OpenedAtEnd {
 public:
  explicit OpenedAtEnd(Gate& gate) : gate_(gate) {}
  OpenedAtEnd(const OpenedAtEnd&) = delete;
  ~OpenedAtEnd() { gate_.open(); }

 private:
  Gate& gate_;
};

inline Policy patient_policy() {
  Policy policy;
  policy.lease = seconds(60);
  policy.backoff_base = milliseconds(1);
  policy.backoff_cap = milliseconds(2);
  return policy;
}

/// Leases that are over within the test's patience.
inline Policy hasty_policy(Duration lease = milliseconds(300)) {
  Policy policy = patient_policy();
  policy.lease = lease;
  return policy;
}

class EngineTest : public ::testing::Test {
 protected:
  using Row = holdfast::Run;  // gtest has a Run of its own

  explicit EngineTest(Env& env = real_env()) : env_(env), memory_(open_store("memory:", env)) {
    options_.heartbeat = seconds(20);
    options_.reaper_interval = Duration(0);
  }

  void handle(const std::string& name, Handler handler, bool is_agent = false) {
    handlers_.add({{name, patient_policy(), nullptr}, std::move(handler), is_agent});
  }
  std::unique_ptr<WorkerHandle> work(int concurrency = 4, bool drain = false,
                                     Duration grace = seconds(30)) {
    WorkerSettings settings;
    settings.concurrency = concurrency;
    settings.drain = drain;
    settings.grace = grace;
    return start_worker(env_, store_, handlers_, options_, settings);
  }
  void work_off() { work(4, true)->join(); }

  NewRun new_run(const std::string& agent, const Policy& policy = patient_policy(),
                 Json input = nullptr) {
    NewRun run;
    run.row.id = env_.new_id();
    run.row.agent = agent;
    run.row.input = std::move(input);
    run.row.policy = policy;
    run.row.max_requeues = policy.max_requeues;
    run.content_digest = run.row.id;
    return run;
  }
  RunId enqueue(const std::string& agent, const Policy& policy = patient_policy(),
                Json input = nullptr) {
    return enqueue(new_run(agent, policy, std::move(input)));
  }
  RunId enqueue(const NewRun& run) {
    memory_->enqueue(std::vector{run});
    return run.row.id;
  }
  /// Claims a run for somebody who then does nothing with it.
  Claimed claim_as(const WorkerId& worker, const RunId& id) {
    ClaimRequest request;
    request.worker = worker;
    request.agents = handlers_.offers();
    request.only = id;
    return memory_->claim(request).runs.at(0);
  }

  Row get(const RunId& id) { return memory_->find(id).value(); }
  bool is(const RunId& id, Status status) { return get(id).status.is(status); }
  std::vector<Event> events(const RunId& id) { return memory_->events(id, 0, 0); }
  int count(const RunId& id, EventKind kind) {
    int number = 0;
    for (const Event& event : events(id)) number += event.kind.is(kind) ? 1 : 0;
    return number;
  }
  std::string error_of(const RunId& id) {
    const Row run = get(id);
    return run.error ? run.error->message : "";
  }

  Env& env_;
  const std::unique_ptr<Store> memory_;
  FaultyStore store_{*memory_};
  HandlerSet handlers_;
  EngineOptions options_;
};

inline StepOptions writing(Effect effect) {
  StepOptions options;
  options.effect = effect;
  return options;
}
inline StepOptions payment() { return writing(Effect::non_idempotent_write); }

}  // namespace holdfast::engine_test
