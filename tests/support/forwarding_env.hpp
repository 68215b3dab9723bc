#pragma once

// The real environment, for tests that put something else in the place of a part of it.

#include <string>
#include <utility>

#include "env/env.hpp"

namespace holdfast::testing {

/// Any thread.
class ForwardingEnv : public Env {
 public:
  WallTime wall_now() override { return real_env().wall_now(); }
  StoreTime store_now() override { return real_env().store_now(); }
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
};

}  // namespace holdfast::testing
