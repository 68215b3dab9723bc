#include "engine/vigil.hpp"

#include <algorithm>

#include "base/guard.hpp"

namespace holdfast {
namespace {

constexpr Duration kShortestMargin = std::chrono::milliseconds(500);
constexpr Duration kShortestBreak = std::chrono::milliseconds(250);
constexpr Duration kLongestBreak = std::chrono::seconds(1);

/// Half a heartbeat and a quarter: less than any lease has left when it is to be renewed.
Duration look_interval(Duration heartbeat, Duration wanted) {
  return heartbeat > Duration::zero() ? std::min(wanted, std::max(heartbeat / 2, Duration(1)))
                                      : wanted;
}

Duration break_of(Duration heartbeat) {
  return heartbeat > Duration::zero() ? std::clamp(heartbeat / 4, kShortestBreak, kLongestBreak)
                                      : kLongestBreak;
}

}  // namespace

Vigil::Vigil(Env& env, Duration heartbeat, Duration looks_every)
    : env_(env),
      doubt_(heartbeat + std::max(kShortestMargin, heartbeat * 3 / 10)),
      looks_every_(look_interval(heartbeat, looks_every)),
      break_(break_of(heartbeat)) {}

bool Vigil::saw_answer() {
  const std::lock_guard lock(mutex_);
  const StoreTime now = env_.store_now();
  const bool is_first = !since_;
  const bool was_away =
      !is_first && !HOLDFAST_GUARD("judge_cut_off", now - last_ <= looks_every_ + break_);
  if (is_first || was_away) since_ = now;
  last_ = now;
  return !was_away;
}

Duration Vigil::left() {
  const std::lock_guard lock(mutex_);
  if (!since_) return doubt_;
  return std::max(Duration::zero(), *since_ + doubt_ - env_.store_now());
}

void Vigil::begin_anew() {
  const std::lock_guard lock(mutex_);
  since_.reset();
}

}  // namespace holdfast
