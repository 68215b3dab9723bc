#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/transition.hpp"
#include "env/env.hpp"

namespace holdfast {

/// Below this much of its lease a segment starts nothing and interrupts what it may (spec, section
/// 4 "Self-fencing"): the policy's margin, else a tenth of the lease, at least 500 ms, at most a
/// third.
Duration margin_of(const Policy&);

/// Why a segment must end. Later ones outrank earlier ones.
enum class Ending {
  none,
  at_boundary,  ///< a graceful stop: at the next boundary
  at_once,      ///< the grace is over: what is in flight is interrupted
  cancelled,
  lost
};

/// Why a step was interrupted.
enum class Cut { none, trust, deadline, ending };

/// What of a running segment its executing threads and its worker's watching threads share: trust
/// in the lease, the steps in flight, and whether it must end. Any thread; never waits.
class LiveSegment {
 public:
  struct Setup {
    Lease lease;
    Policy policy;
    StoreTime trusted_from{};  ///< when the claim that made it was sent
    bool keeps_alive = true;   ///< false: renewed at boundaries only (`heartbeat = "0s"`)
  };
  /// `changed` is signalled at every renewal and ending; it must outlive this.
  LiveSegment(Setup, Env&, EventCount& changed);

  const Lease& lease() const { return setup_.lease; }
  const Policy& policy() const { return setup_.policy; }
  EventCount& changed() { return changed_; }

  // The executing threads.

  /// More than the margin is left of the lease; always so without one.
  bool is_trusted() const;
  Ending ending() const;
  /// The worker stops at once, whatever else has become of the run: nobody waits for the store now.
  bool is_grace_over() const;

  /// The last instant before a step's work: its stop token, or nothing where the trust ran out or
  /// the segment must end. Reads that run at the same time have places of their own.
  std::optional<std::stop_token> begin_step(Effect, Duration timeout, int place = 0);
  Cut end_step(int place = 0);
  /// What is in flight is of no use any more.
  void stop_steps();

  /// The time between steps is kept alive for `gap_timeout` only: whose turn it is.
  void handler_goes_on();
  void engine_goes_on();

  // The watching threads.

  /// A renewal that was sent at `sent` applied.
  void renewed(StoreTime sent);
  void end(Ending);
  /// Requested when the segment should come to its end.
  std::stop_token stop_token() const { return ending_source_.get_token(); }

  /// False while the handler computes for longer than the gap timeout or ignores its interruption:
  /// then the lease is left to expire.
  bool wants_renewal() const;
  /// Its slot makes no progress, and its lease is no longer renewed.
  bool is_stuck() const;
  /// Interrupts what is over its deadline or has too little of its lease left. When to look again.
  StoreTime tick();

 private:
  struct Step {
    std::stop_source source;
    Effect effect;
    StoreTime deadline;
    Cut cut = Cut::none;
    StoreTime cut_at{};
    bool ignores = false;  ///< it did not end at its interruption
  };
  using Sources = std::vector<std::stop_source>;
  bool trusts(StoreTime now) const;
  bool ignores() const;
  static void cut(Step&, Cut, StoreTime now, Sources& fire);
  void watch(Step&, StoreTime now, StoreTime& next, Sources& fire) const;

  const Setup setup_;
  const Duration margin_;
  Env& env_;
  EventCount& changed_;
  std::stop_source ending_source_;

  mutable std::mutex mutex_;
  StoreTime trusted_until_;
  Ending ending_ = Ending::none;
  bool is_grace_over_ = false;  ///< what outranks `at_once` does not hide it
  std::map<int, Step> steps_;   ///< in flight, by place
  std::optional<StoreTime> handler_since_;
  bool over_gap_ = false;
};

}  // namespace holdfast
