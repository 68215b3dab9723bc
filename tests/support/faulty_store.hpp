#pragma once

// A store that fails on demand: before a write, after it (the reply is lost), or by keeping its
// caller waiting.

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "store/store.hpp"

namespace holdfast {

enum class Fault {
  before,   ///< nothing is written
  refused,  ///< nothing is written, and trying again makes no sense
  after     ///< it is written, and the reply never comes
};

/// Decorates any store. Verbs are named as in Store. Any thread.
class FaultyStore final : public Store {
 public:
  explicit FaultyStore(Store& inner) : inner_(inner) {}

  /// The next `times` calls of the verb fail.
  void fail(const std::string& verb, Fault fault, int times = 1) {
    const std::lock_guard lock(mutex_);
    plans_[verb] = {fault, times};
  }
  /// While it is down every call fails before it does anything.
  void set_down(bool down) {
    const std::lock_guard lock(mutex_);
    down_ = down;
  }
  /// Calls of the verb wait, before they do anything, until `let_go`.
  void hold(const std::string& verb) {
    const std::lock_guard lock(mutex_);
    held_.insert(verb);
  }
  void let_go(const std::string& verb) {
    {
      const std::lock_guard lock(mutex_);
      held_.erase(verb);
    }
    changed_.notify_all();
  }
  /// The next call of the verb first does this, once. A reap that only looks is `look`.
  void before(const std::string& verb, std::function<void()> hook) {
    const std::lock_guard lock(mutex_);
    hooks_[verb] = std::move(hook);
  }
  int calls(const std::string& verb) const {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(verb);
    return found == calls_.end() ? 0 : found->second;
  }
  int faults() const {
    const std::lock_guard lock(mutex_);
    return faults_;
  }

  std::vector<EnqueueResult> enqueue(std::span<const NewRun> runs) override {
    return pass("enqueue", [&] { return inner_.enqueue(runs); });
  }
  Claimed start(const NewRun& run, const WorkerId& worker) override {
    return pass("start", [&] { return inner_.start(run, worker); });
  }
  ClaimResult claim(const ClaimRequest& request) override {
    return pass("claim", [&] { return inner_.claim(request); });
  }
  RenewReport renew(const WorkerId& worker, std::span<const Lease> leases) override {
    return pass("renew", [&] { return inner_.renew(worker, leases); });
  }
  Write fence(const Lease& lease, const Fence& fence) override {
    return pass("fence", [&] { return inner_.fence(lease, fence); });
  }
  Write unfence(const Lease& lease, const Unfence& unfence) override {
    return pass("unfence", [&] { return inner_.unfence(lease, unfence); });
  }
  Write record(const Lease& lease, const StepRecord& step) override {
    return pass("record", [&] { return inner_.record(lease, step); });
  }
  Write settle(const Lease& lease, const Settlement& settlement) override {
    return pass("settle", [&] { return inner_.settle(lease, settlement); });
  }
  Write acknowledge_cancel(const Lease& lease) override {
    return pass("acknowledge_cancel", [&] { return inner_.acknowledge_cancel(lease); });
  }
  ReapReport reap(int limit, bool dry_run, const Decider& decider) override {
    return pass(dry_run ? "look" : "reap", [&] { return inner_.reap(limit, dry_run, decider); });
  }
  int expire_leases_of(const WorkerId& worker, StoreTime since) override {
    return pass("expire_leases_of", [&] { return inner_.expire_leases_of(worker, since); });
  }
  ChangeResult cancel(const RunId& run, const Operator& by) override {
    return pass("cancel", [&] { return inner_.cancel(run, by); });
  }
  ChangeResult answer(const Decision& decision, const Continuation& go_on) override {
    return pass("answer", [&] { return inner_.answer(decision, go_on); });
  }
  std::vector<ChangeResult> redrive(std::span<const RunId> runs, const Operator& by) override {
    return pass("redrive", [&] { return inner_.redrive(runs, by); });
  }
  ChangeResult resolve(const ResolveRequest& request) override {
    return pass("resolve", [&] { return inner_.resolve(request); });
  }
  ChangeResult hand_over(const RunId& run, bool force, const Operator& by) override {
    return pass("hand_over", [&] { return inner_.hand_over(run, force, by); });
  }
  ChangeResult wake(const RunId& run, const Operator& by) override {
    return pass("wake", [&] { return inner_.wake(run, by); });
  }
  PurgeReport purge(const PurgeRequest& request, int limit) override {
    return pass("purge", [&] { return inner_.purge(request, limit); });
  }
  std::optional<Run> find(const RunId& run) override {
    return pass("find", [&] { return inner_.find(run); });
  }
  RunPage list(const ListFilter& filter) override {
    return pass("list", [&] { return inner_.list(filter); });
  }
  std::vector<Event> events(const RunId& run, std::int64_t after, int limit) override {
    return pass("events", [&] { return inner_.events(run, after, limit); });
  }
  std::vector<Event> all_events(std::int64_t& cursor, int limit) override {
    return pass("all_events", [&] { return inner_.all_events(cursor, limit); });
  }
  StoreStats stats() override {
    return pass("stats", [&] { return inner_.stats(); });
  }
  void report_worker(const WorkerRow& row) override {
    pass("report_worker", [&] { return inner_.report_worker(row), 0; });
  }
  void forget_worker(const WorkerId& worker) override {
    pass("forget_worker", [&] { return inner_.forget_worker(worker), 0; });
  }
  std::vector<WorkerRow> workers() override {
    return pass("workers", [&] { return inner_.workers(); });
  }
  PresenceBoard* presence() override {
    return other_presence != nullptr ? other_presence : has_presence ? inner_.presence() : nullptr;
  }
  void wait_for_work(Duration max, const std::stop_token& stop) override {
    inner_.wait_for_work(max, stop);
  }
  StoreTime now() override { return inner_.now(); }
  WallTime wall_now() override {
    return pass("wall_now", [&] { return inner_.wall_now(); });
  }
  void backup(const std::string& file) override { inner_.backup(file); }
  std::vector<Finding> audit() override {
    return pass("audit", [&] { return inner_.audit(); });
  }
  std::vector<Finding> check() override { return inner_.check(); }

  // Set before workers start.
  bool has_presence = true;                 ///< false: leases decide alone
  PresenceBoard* other_presence = nullptr;  ///< in place of the store's own

 private:
  struct Plan {
    Fault fault = Fault::before;
    int times = 0;
  };

  template <class Call>
  std::invoke_result_t<Call> pass(const std::string& verb, const Call& call) {
    std::optional<Fault> fault;
    std::function<void()> hook;
    {
      std::unique_lock lock(mutex_);
      ++calls_[verb];
      hook.swap(hooks_[verb]);
      changed_.wait(lock, [&] { return !held_.contains(verb); });
      Plan& plan = plans_[verb];
      if (down_) {
        fault = Fault::before;
      } else if (plan.times > 0) {
        --plan.times;
        fault = plan.fault;
      }
      if (fault) ++faults_;
    }
    if (hook) hook();
    if (fault == Fault::before) throw StoreError(verb + " failed on demand", false);
    if (fault == Fault::refused) throw StoreError(verb + " was refused on demand", true);
    auto result = call();
    if (fault == Fault::after)
      throw StoreError("the reply of " + verb + " was lost on demand", false);
    return result;
  }

  Store& inner_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Plan> plans_;
  std::map<std::string, int> calls_;
  std::map<std::string, std::function<void()>> hooks_;
  std::set<std::string> held_;
  bool down_ = false;
  int faults_ = 0;
};

}  // namespace holdfast
