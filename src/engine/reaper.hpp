#pragma once

#include <atomic>
#include <memory>

#include "engine/keep_alive.hpp"
#include "engine/vigil.hpp"
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
  Vigil& vigil() { return vigil_; }
  /// Grows when its watcher begins to end the leases of one that is gone, and when it has: odd in
  /// between, where nobody else can prove that one gone. Any thread.
  unsigned burials() const { return burials_; }

 private:
  void sweep_loop();
  /// Waits, in so short pieces that none hides that the machine slept. Whether it did.
  bool rest(Duration wait, std::uint64_t seen, const std::stop_token& stop);
  void presence_loop();
  /// How long until the next one.
  Duration sweep();
  Duration usual_wait();
  /// A write that changes nothing: the store is there for whoever wants to renew.
  void touch();
  /// The store answered. Throws where it had been away.
  void reached();
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
  const int limit_;
  Vigil vigil_;
  const std::unique_ptr<EventCount> asked_;
  std::stop_source stopping_;
  std::atomic<unsigned> burials_{0};
  StoreTime not_before_{};  ///< the sweeper's
  StoreTime awake_{};  ///< the sweeper's last look at the clock, or that of its write in the store
  bool stood_still_ = false;
  std::unique_ptr<Thread> sweeper_;
  std::unique_ptr<Thread> watcher_;
};

}  // namespace holdfast
