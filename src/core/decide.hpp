#pragma once

// What a segment's end means for its run: the one place that decides, used by workers and reapers
// alike (spec, section 6 "recovery"). Pure.

#include <optional>
#include <string>
#include <variant>

#include "holdfast/run.hpp"

namespace holdfast {

struct Completed {
  Json answer;
  std::string finish = {};  ///< how the answer ended, where it is not whole
};
/// The handler ended the run with a reason of its own.
struct Ended {
  Reason reason;
  std::string message;
  std::optional<Json> answer;
  std::string finish = {};
};
struct Failed {
  Failure failure;
  bool in_agent = false;  ///< an exception of unknown kind from an LLM agent is not retried
  /// The probe of the write that stands could not be asked, for a reason that may pass: whoever
  /// claims the run next asks it.
  bool probe_is_open = false;
  /// Payload of the event that says that the probe was asked and does not know; null: it was not.
  Json probed = {};
};
struct Suspended {
  Wait wait;
};
struct Slept {
  std::string key;
  std::string name;
  WallTime until;
};
/// Handed back, nothing charged: a graceful stop, or a process that cannot execute this run.
struct Interrupted {
  std::string why = {};                ///< for people; empty: the worker stops
  std::optional<Duration> delay = {};  ///< not available before; none: at once
};
/// The reaper's outcome.
struct WorkerLost {
  std::string worker;
};
using SegmentEnd =
    std::variant<Completed, Ended, Failed, Suspended, Slept, Interrupted, WorkerLost>;

/// The one write that ends a segment.
struct Settlement {
  Status next = Status::failed;
  std::optional<Reason> reason;
  EventKind event = EventKind::failed;
  Outcome outcome = Outcome::failed;
  std::optional<Duration>
      delay;  ///< queued: available this long after the write; none and no `at`: now
  std::optional<WallTime> at;  ///< queued: not before
  bool charged = false;        ///< requeue_count + 1
  /// The writing work is known to have ended (this segment saw it): "not landed" may be believed at
  /// once.
  bool executor_ended = false;
  bool clears_fence = false;  ///< the write is known not to have started
  std::optional<Json> answer;
  std::optional<Failure> failure;  ///< becomes the run's error
  std::optional<Wait> wait;
  Json probed;   ///< of an event `probed` that goes before; null: none
  Json payload;  ///< of the event, without what the store adds (available_at)
};

/// `interactive`: the segment has no lease and no recovery. `unit_random` in [0, 1) is the jitter.
Settlement decide(const Run&, const SegmentEnd&, bool interactive, WallTime now,
                  double unit_random);

/// What becomes of a run whose end meets a fence that forbids it: failed, `not_retryable`, fence
/// kept (spec, section 3). `after` is what happened, where a failure led here.
Settlement fence_forbids(const Run&, const std::optional<Failure>& after);

/// The payload of `requeued`, `parked` and `failed` events, `available_at` still null.
Json failure_payload(const Failure&, bool charged);

}  // namespace holdfast
