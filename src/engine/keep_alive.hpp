#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "engine/live_segment.hpp"
#include "engine/trouble.hpp"
#include "store/store.hpp"

namespace holdfast {

/// Keeps the leases of one worker: renews them all in one statement per heartbeat, passes on what
/// the answers say, and watches deadlines and trust. Two threads, so that a renewal that hangs does
/// not keep a step from being interrupted. Any thread may call.
class KeepAlive {
 public:
  struct Hooks {
    /// A running row of this worker that no slot executes; on the renewing thread.
    std::function<void(Claimed)> on_stray;
    /// After every round of renewals, and when the number of stuck slots changed; on the renewing
    /// thread.
    std::function<void()> on_round;
    /// The number of stuck slots changed; on the watching thread.
    std::function<void()> on_stuck;
  };
  KeepAlive(Env&, Store&, Trouble&, WorkerId, Duration heartbeat, Hooks);
  ~KeepAlive();

  void start();
  /// The last thing that a stopping worker stops.
  void stop();

  /// False for `heartbeat = "0s"`: renewed at step boundaries only.
  bool renews() const { return heartbeat_ > Duration::zero(); }

  void add(std::shared_ptr<LiveSegment>);
  /// `answered`: its settlement was; else the row may still be running in this worker's name, and
  /// is left to expire.
  void remove(const LiveSegment&, bool answered);
  std::vector<std::shared_ptr<LiveSegment>> segments() const;

  /// While this lives a claim request is unanswered, and no row counts as stray.
  class Claiming {
   public:
    explicit Claiming(KeepAlive& owner) : owner_(owner) { ++owner_.claims_in_flight_; }
    Claiming(const Claiming&) = delete;
    Claiming& operator=(const Claiming&) = delete;
    ~Claiming() { --owner_.claims_in_flight_; }

   private:
    KeepAlive& owner_;
  };
  /// A claim's reply never came: the next round looks for what it may have claimed, and so do those
  /// behind it while it may still be on its way to the store.
  void claim_unanswered();
  bool is_unsure_of_claims() const { return unanswered_ != looked_for_; }

  /// Asks for a round now.
  void renew_soon();
  /// Renews one lease on the caller's thread, where there is no heartbeat.
  void renew_here(LiveSegment&);
  /// For a step that must be looked at before the watching thread's next look.
  void look_before(StoreTime);

  int stuck() const { return stuck_; }
  /// Every lease that it keeps has been renewed in time.
  bool all_trusted() const;

 private:
  using Key = std::pair<RunId, std::int64_t>;
  static Key key_of(const Lease& lease) { return {lease.run, lease.claim}; }

  void renew_loop();
  void watch_loop();
  bool renew_all();
  void answer(LiveSegment&, Write, StoreTime sent);
  void take_strays(std::vector<Claimed>, std::set<Key> left_before, int looked_for);

  Env& env_;
  Store& store_;
  Trouble& trouble_;
  const WorkerId worker_;
  const Duration heartbeat_;
  const Hooks hooks_;
  const std::unique_ptr<EventCount> renew_asked_;
  const std::unique_ptr<EventCount> look_asked_;
  std::stop_source stopping_;
  std::atomic<int> claims_in_flight_ = 0;
  std::atomic<int> unanswered_ = 0;  ///< claims whose reply never came …
  std::atomic<int> looked_for_ = 0;  ///< … and how many of them have been looked for
  std::atomic<StoreTime> may_land_until_ = StoreTime();  ///< the last of them
  std::atomic<int> stuck_ = 0;
  std::atomic<std::int64_t> looks_at_ = 0;  ///< the watching thread's next look

  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<LiveSegment>> segments_;
  std::set<Key> left_;            ///< ended without an answer: not to be taken for strays
  std::set<Key> ended_in_round_;  ///< ended while a round was under way
  bool in_round_ = false;

  std::unique_ptr<Thread> renewer_;
  std::unique_ptr<Thread> watcher_;
};

}  // namespace holdfast
