#pragma once

#include <atomic>
#include <memory>

#include "engine/keep_alive.hpp"
#include "engine/worker.hpp"

namespace holdfast {

/// A worker's reaper: a sweep per interval, and at once after a presence was found gone. Two
/// threads; `start` and `stop` from one.
class Reaper {
 public:
  Reaper(Env&, Store&, Trouble&, KeepAlive&, WorkerId own, const EngineOptions&);
  ~Reaper();

  void start();
  void stop();

 private:
  void sweep_loop();
  /// Waits, in so short pieces that none hides that the machine slept. Whether it did.
  bool rest(Duration wait, const std::stop_token& stop);
  void presence_loop();
  void sweep();
  /// Did time pass since its last look at the clock in which others could not renew either? Once
  /// true it stays so for the sweep.
  bool stood_still();
  /// How many leases of the dead were ended.
  int bury(PresenceBoard&, const WorkerId&);
  /// This judge stood still or was cut off: others may have been, too, and live.
  void doubt_itself();

  Env& env_;
  Store& store_;
  Trouble& trouble_;
  KeepAlive& keep_alive_;
  const WorkerId own_;
  const Duration interval_;
  const Duration presence_interval_;
  const Duration doubt_;
  const int limit_;
  const std::unique_ptr<EventCount> asked_;
  std::stop_source stopping_;
  std::atomic<StoreTime> not_before_{StoreTime{}};
  StoreTime awake_{};  ///< the sweeper's last look at the clock, or that of its write in the store
  bool stood_still_ = false;
  std::unique_ptr<Thread> sweeper_;
  std::unique_ptr<Thread> watcher_;
};

}  // namespace holdfast
