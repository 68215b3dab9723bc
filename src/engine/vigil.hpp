#pragma once

#include <mutex>
#include <optional>

#include "env/env.hpp"

namespace holdfast {

/// How long a judge has had the store under its eyes. Whoever tries to renew a lease does so again
/// and again: where the store answered without a break for one heartbeat and a margin, a lease that
/// is over then is over because its holder is gone (spec, section 4, "The stalled judge"). Any
/// thread.
class Vigil {
 public:
  Vigil(Env&, Duration heartbeat, Duration looks_every);

  /// One heartbeat and a margin: time enough for the others to renew.
  Duration doubt() const { return doubt_; }
  /// The store is asked that often, so that a break is noticed that costs anybody a lease.
  Duration looks_every() const { return looks_every_; }
  /// More than this between two looks at the clock is a standstill of the judge.
  Duration shortest_break() const { return break_; }

  /// The store answered. False where it had not for so long that others may have tried in vain.
  bool saw_answer();
  /// How long until it has answered for one heartbeat and a margin; zero: it has.
  Duration left();
  /// With the next answer: the judge itself stood still.
  void begin_anew();

 private:
  Env& env_;
  const Duration doubt_;
  const Duration looks_every_;
  const Duration break_;
  std::mutex mutex_;
  std::optional<StoreTime> since_;  ///< the first answer of those without a break between them
  StoreTime last_{};
};

}  // namespace holdfast
