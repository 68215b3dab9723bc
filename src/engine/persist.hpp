#pragma once

#include <algorithm>
#include <functional>
#include <optional>

#include "base/guard.hpp"
#include "engine/live_segment.hpp"
#include "engine/trouble.hpp"
#include "store/store.hpp"

namespace holdfast {

/// How long a segment's writes are repeated while the store does not answer. A worker goes on until
/// its grace is over; who executes in the caller's own thread is told after a while.
struct Persistence {
  Env& env;
  LiveSegment& segment;
  Trouble& trouble;
  std::optional<Duration> patience;  ///< none: until the segment must end at once
};

/// Repeats a guarded write until the store answers: a reply that never came is not a refusal (spec,
/// section 3). `write` is told whether an earlier try may have applied. Nothing where it gave up.
template <class F>
std::optional<Write> persist(const Persistence& how, F&& write,
                             const std::function<bool()>& give_up = {}) {
  const StoreTime begun = how.env.store_now();
  Duration pause(10);
  for (bool is_retry = false;; is_retry = true) {
    try {
      const Write answer = write(is_retry);
      how.trouble.over();
      return answer;
    } catch (const StoreError& error) {
      how.trouble.report(error.what());
      if (how.patience && (error.permanent() || how.env.store_now() - begun >= *how.patience)) {
        return std::nullopt;
      }
    }
    const auto seen = how.segment.changed().current();
    // A lost or cancelled run still gets the store's own answer; a stopping worker does not wait.
    if (how.segment.is_grace_over()) return std::nullopt;
    if (give_up && give_up()) return std::nullopt;
    how.segment.changed().wait_past(seen, pause, {});
    pause = std::min(pause * 2, Duration(500));
  }
}

/// Repeats a question until the store answers, as long as a write would be. Throws where it gave
/// up.
template <class F>
auto ask_store(const Persistence& how, F&& question) {
  const StoreTime begun = how.env.store_now();
  Duration pause(10);
  for (;;) {
    const auto seen = how.segment.changed().current();
    try {
      return question();
    } catch (const StoreError& error) {
      how.trouble.report(error.what());
      const bool is_over = how.patience && how.env.store_now() - begun >= *how.patience;
      const bool gives_up = error.permanent() || is_over || how.segment.is_grace_over();
      if (HOLDFAST_GUARD("question_given_up", gives_up)) throw;
    }
    how.segment.changed().wait_past(seen, pause, {});
    pause = std::min(pause * 2, Duration(500));
  }
}

}  // namespace holdfast
