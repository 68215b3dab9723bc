#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "env/env.hpp"

namespace holdfast {

/// Says that the store cannot be used: one line when it begins, one every ten seconds while it
/// lasts, one when it is over, and of each at most one in ten seconds. Over means that something
/// was written: a full disk can still be read. Any thread.
class Trouble {
 public:
  Trouble(Env& env, std::string worker) : env_(env), worker_(std::move(worker)) {}

  void report(const std::string& what) {
    {
      const std::lock_guard lock(mutex_);
      const StoreTime now = env_.store_now();
      if (said_ && now - *said_ < kBetweenLines) return;
      said_ = now;
      is_announced_ = true;
    }
    log(LogLevel::error, "the store cannot be used; this worker goes on trying",
        {{"worker", worker_}, {"error", what}});
  }
  /// A write succeeded.
  void over() {
    {
      const std::lock_guard lock(mutex_);
      if (!is_announced_) return;
      is_announced_ = false;
    }
    log(LogLevel::info, "the store can be used again", {{"worker", worker_}});
  }

 private:
  static constexpr Duration kBetweenLines = std::chrono::seconds(10);
  Env& env_;
  const std::string worker_;
  std::mutex mutex_;
  std::optional<StoreTime> said_;
  bool is_announced_ = false;  ///< the last line said that it cannot be used
};

}  // namespace holdfast
