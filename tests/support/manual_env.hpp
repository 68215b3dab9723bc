#pragma once

// Real threads and waits under clocks that a test sets: for stores, which judge by time but hardly
// wait.

#include <atomic>
#include <string>

#include "support/forwarding_env.hpp"

namespace holdfast::testing {

/// Any thread.
class ManualEnv : public ForwardingEnv {
 public:
  WallTime wall_now() override { return WallTime(Duration(wall_ms_.load())); }
  StoreTime store_now() override { return StoreTime(Duration(store_ms_.load())); }
  std::string boot_id() override { return boot_id_; }

  /// Both clocks go on.
  void advance(Duration time) {
    wall_ms_ += time.count();
    store_ms_ += time.count();
  }
  void jump_wall(Duration time) { wall_ms_ += time.count(); }
  void reboot(const std::string& boot_id) {
    boot_id_ = boot_id;
    store_ms_ = 1000;
  }

 private:
  std::atomic<Duration::rep> wall_ms_{1'700'000'000'000};
  std::atomic<Duration::rep> store_ms_{3'600'000};
  std::string boot_id_ = "first-boot";
};

}  // namespace holdfast::testing
