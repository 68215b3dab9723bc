#pragma once

// An environment whose time moves only by waiting: nothing really sleeps.

#include <atomic>
#include <functional>
#include <stdexcept>

#include "env/env.hpp"

namespace holdfast::testing {

class FakeEnv : public Env {
 public:
  WallTime wall_now() override { return WallTime(Duration(1'700'000'000'000) + elapsed()); }
  StoreTime store_now() override { return StoreTime(std::chrono::hours(1)) + elapsed(); }
  std::string boot_id() override { return "fake-boot"; }
  std::uint64_t random() override { return random_ += 0x9E3779B97F4A7C15u; }
  std::unique_ptr<EventCount> make_event_count() override { throw unsupported(); }
  std::unique_ptr<Thread> spawn(const ThreadOptions&, std::function<void()>) override {
    throw unsupported();
  }
  void sleep_for(Duration time, const std::stop_token& stop) override {
    if (during_sleep) during_sleep();
    if (!stop.stop_requested()) elapsed_ms_ += time.count();
  }
  Identity make_identity() override { return Identity{"fake-worker", "fake-host", 1, 1}; }

  Duration elapsed() const { return Duration(elapsed_ms_.load()); }
  void advance(Duration time) { elapsed_ms_ += time.count(); }

  std::function<void()> during_sleep;

 private:
  static std::logic_error unsupported() {
    return std::logic_error("this test environment has no threads");
  }

  std::atomic<Duration::rep> elapsed_ms_{0};
  std::atomic<std::uint64_t> random_{1};
};

}  // namespace holdfast::testing
