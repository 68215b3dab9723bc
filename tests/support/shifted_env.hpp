#pragma once

// The real environment under clocks that a test moves while threads wait and work as ever.

#include <atomic>

#include "support/forwarding_env.hpp"

namespace holdfast::testing {

/// Any thread.
class ShiftedEnv : public ForwardingEnv {
 public:
  WallTime wall_now() override { return real_env().wall_now() + Duration(wall_ms_.load()); }
  StoreTime store_now() override { return real_env().store_now() + Duration(store_ms_.load()); }

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
