#pragma once

// A store that fails on demand: before a write, after it (the reply is lost), or by keeping its
// caller waiting.

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "support/passing_store.hpp"

namespace holdfast {

enum class Fault {
  before,   ///< nothing is written
  refused,  ///< nothing is written, and trying again makes no sense
  after     ///< it is written, and the reply never comes
};

/// Decorates any store. Verbs are named as in Store. Any thread.
class FaultyStore final : public PassingStore {
 public:
  explicit FaultyStore(Store& inner) : PassingStore(inner) {}

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

  PresenceBoard* presence() override {
    return other_presence != nullptr ? other_presence : has_presence ? inner().presence() : nullptr;
  }

  // Set before workers start.
  bool has_presence = true;                 ///< false: leases decide alone
  PresenceBoard* other_presence = nullptr;  ///< in place of the store's own

 private:
  struct Plan {
    Fault fault = Fault::before;
    int times = 0;
  };

  void around(StoreCall& passing, const std::function<void()>& call) override {
    const std::string& verb = passing.verb;
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
    call();
    if (fault == Fault::after)
      throw StoreError("the reply of " + verb + " was lost on demand", false);
  }

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
