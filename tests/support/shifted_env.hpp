#pragma once

// The real environment under clocks that a test moves while threads wait and work as ever.

#include <atomic>
#include <string>
#include <utility>

#include "env/env.hpp"

namespace holdfast::testing {

/// Any thread.
class ShiftedEnv : public Env {
 public:
  WallTime wall_now() override { return real_env().wall_now() + Duration(wall_ms_.load()); }
  StoreTime store_now() override { return real_env().store_now() + Duration(store_ms_.load()); }
  std::string boot_id() override { return real_env().boot_id(); }
  std::uint64_t random() override { return real_env().random(); }
  std::unique_ptr<EventCount> make_event_count() override { return real_env().make_event_count(); }
  std::unique_ptr<Thread> spawn(const ThreadOptions& options, std::function<void()> body) override {
    return real_env().spawn(options, std::move(body));
  }
  void sleep_for(Duration time, const std::stop_token& stop) override {
    real_env().sleep_for(time, stop);
  }
  Identity make_identity() override { return real_env().make_identity(); }

  /// Somebody sets the wall clock.
  void jump_wall(Duration by) { wall_ms_ += by.count(); }
  /// The machine sleeps: when it wakes up, every clock has gone on.
  void suspend(Duration time) {
    wall_ms_ += time.count();
    store_ms_ += time.count();
  }

 private:
  std::atomic<Duration::rep> wall_ms_{0};
  std::atomic<Duration::rep> store_ms_{0};
};

}  // namespace holdfast::testing
