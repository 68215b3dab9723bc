#pragma once

// Work under way while something happens to the store, and what must be true of it afterwards.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "crash/harness.hpp"

namespace holdfast::crash {

struct LoadSettings {
  int workers = 2;
  int slots = 4;
  int lease_ms = 20000;
  int heartbeat_ms = 2000;
  int step_ms = 15;
};

/// Workers whose every step is a write that must happen once, and somebody who enqueues one run
/// after the other and repeats each until it is acknowledged.
class Load {
 public:
  explicit Load(Site& site, const LoadSettings& settings = {});
  ~Load();
  Load(const Load&) = delete;

  /// So many steps more have begun: it is under way.
  bool goes_on(int steps = 30, milliseconds limit = seconds(60));
  /// Enqueues no more, lets all of it finish, and looks for what was lost or done twice.
  void expect_nothing_lost();
  std::vector<Process>& workers() { return workers_; }

 private:
  void enqueue_on_and_on();

  static constexpr int kSteps = 3;
  Site& site_;
  const LoadSettings settings_;
  std::vector<Process> workers_;
  std::atomic<bool> is_over_{false};
  std::vector<std::string> acknowledged_;  ///< the thread's, until it has ended
  std::thread caller_;
};

}  // namespace holdfast::crash
