#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "env/env.hpp"

namespace holdfast {

/// Says that the store cannot be used: one line when it begins, one every ten seconds while it
/// lasts, one when it is over. Any thread.
class Trouble {
 public:
  Trouble(Env& env, std::string worker) : env_(env), worker_(std::move(worker)) {}

  void report(const std::string& what) {
    {
      const std::lock_guard lock(mutex_);
      const StoreTime now = env_.store_now();
      lasts_ = true;
      if (said_ && now - *said_ < kBetweenLines) return;
      said_ = now;
    }
    log(LogLevel::error, "the store cannot be used; this worker goes on trying",
        {{"worker", worker_}, {"error", what}});
  }
  void over() {
    {
      const std::lock_guard lock(mutex_);
      if (!lasts_) return;
      lasts_ = false;
    }
    log(LogLevel::info, "the store can be used again", {{"worker", worker_}});
  }

 private:
  static constexpr Duration kBetweenLines = std::chrono::seconds(10);
  Env& env_;
  const std::string worker_;
  std::mutex mutex_;
  std::optional<StoreTime> said_;
  bool lasts_ = false;
};

}  // namespace holdfast
