#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "env/env.hpp"

namespace holdfast {

/// Wakes idle claimers of this process. A thread that looked for work and then waits misses nothing
/// that was announced since it looked. Any thread.
class WorkSignal {
 public:
  explicit WorkSignal(Env& env) : count_(env.make_event_count()) {}

  /// Before looking for work: what is announced from now on ends this thread's next wait.
  void about_to_look() {
    const std::uint64_t seen = count_->current();
    const std::lock_guard lock(mutex_);
    seen_[std::this_thread::get_id()] = seen;
  }

  void announce() { count_->notify_all(); }

  void wait(Duration max, const std::stop_token& stop) {
    count_->wait_past(take_seen(), max, stop);
  }

 private:
  std::uint64_t take_seen() {
    const std::lock_guard lock(mutex_);
    const auto it = seen_.find(std::this_thread::get_id());
    if (it == seen_.end()) return count_->current();
    const std::uint64_t seen = it->second;
    seen_.erase(it);
    return seen;
  }

  std::unique_ptr<EventCount> count_;
  std::mutex mutex_;
  std::map<std::thread::id, std::uint64_t> seen_;
};

}  // namespace holdfast
