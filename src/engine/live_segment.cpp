#include "engine/live_segment.hpp"

#include <algorithm>

#include "base/guard.hpp"

namespace holdfast {
namespace {

/// An interrupted step that still runs after this time ignores its interruption.
constexpr Duration kIgnoredAfter = std::chrono::seconds(5);
constexpr Duration kLongestLook = std::chrono::seconds(1);

}  // namespace

Duration margin_of(const Policy& policy) {
  if (policy.margin >= Duration::zero()) return std::min(policy.margin, policy.lease / 3);
  return std::min(std::max(policy.lease / 10, Duration(500)), policy.lease / 3);
}

LiveSegment::LiveSegment(Setup setup, Env& env, EventCount& changed)
    : setup_(std::move(setup)),
      margin_(margin_of(setup_.policy)),
      env_(env),
      changed_(changed),
      trusted_until_(setup_.trusted_from + setup_.policy.lease) {}

bool LiveSegment::trusts(StoreTime now) const {
  return setup_.lease.interactive || trusted_until_ - now > margin_;
}

bool LiveSegment::is_trusted() const {
  const std::lock_guard lock(mutex_);
  return trusts(env_.store_now());
}

Ending LiveSegment::ending() const {
  const std::lock_guard lock(mutex_);
  return ending_;
}

bool LiveSegment::is_grace_over() const {
  const std::lock_guard lock(mutex_);
  return is_grace_over_;
}

std::optional<std::stop_token> LiveSegment::begin_step(Effect effect, Duration timeout, int place) {
  const std::lock_guard lock(mutex_);
  const StoreTime now = env_.store_now();
  if (ending_ != Ending::none) return std::nullopt;
  if (!HOLDFAST_GUARD("trust_before_work", trusts(now))) return std::nullopt;
  Step& step = steps_[place];
  step = Step{};
  step.effect = effect;
  step.deadline = now + timeout;
  return step.source.get_token();
}

Cut LiveSegment::end_step(int place) {
  const std::lock_guard lock(mutex_);
  const auto step = steps_.find(place);
  if (step == steps_.end()) return Cut::none;
  const Cut cut = step->second.cut;
  steps_.erase(step);
  return cut;
}

void LiveSegment::stop_steps() {
  Sources fire;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [place, step] : steps_) cut(step, Cut::ending, env_.store_now(), fire);
  }
  for (std::stop_source& source : fire) source.request_stop();
}

void LiveSegment::handler_goes_on() {
  const std::lock_guard lock(mutex_);
  handler_since_ = env_.store_now();
}

void LiveSegment::engine_goes_on() {
  const std::lock_guard lock(mutex_);
  handler_since_.reset();
  over_gap_ = false;
}

void LiveSegment::renewed(StoreTime sent) {
  {
    const std::lock_guard lock(mutex_);
    trusted_until_ = std::max(trusted_until_, sent + setup_.policy.lease);
  }
  changed_.notify_all();
}

void LiveSegment::end(Ending ending) {
  Sources fire;
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    if (ending == Ending::at_once && !is_grace_over_) {
      is_grace_over_ = true;
      is_news = true;
    }
    if (ending > ending_) {
      ending_ = ending;
      is_news = true;
      if (ending >= Ending::at_once) {
        for (auto& [place, step] : steps_) cut(step, Cut::ending, env_.store_now(), fire);
      }
    }
  }
  if (!is_news) return;
  // Callbacks of a stop token run in here: never under the lock.
  if (ending >= Ending::at_once) ending_source_.request_stop();
  for (std::stop_source& source : fire) source.request_stop();
  changed_.notify_all();
}

bool LiveSegment::ignores() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const auto& entry) { return entry.second.ignores; });
}

bool LiveSegment::wants_renewal() const {
  const std::lock_guard lock(mutex_);
  return !setup_.lease.interactive && ending_ < Ending::cancelled && !ignores() && !over_gap_;
}

bool LiveSegment::is_stuck() const {
  const std::lock_guard lock(mutex_);
  return ignores() || (over_gap_ && env_.store_now() >= trusted_until_);
}

void LiveSegment::cut(Step& step, Cut why, StoreTime now, Sources& fire) {
  if (step.cut != Cut::none) {
    // What outranks it decides what becomes of the step.
    if (why == Cut::ending) step.cut = why;
    return;
  }
  step.cut = why;
  step.cut_at = now;
  fire.push_back(step.source);
}

void LiveSegment::watch(Step& step, StoreTime now, StoreTime& next, Sources& fire) const {
  // A non-idempotent write goes on: its fence holds off everybody else, and its result may still be
  // recorded.
  const bool watches_trust = setup_.keeps_alive && !setup_.lease.interactive &&
                             step.effect != Effect::non_idempotent_write;
  if (now >= step.deadline) {
    cut(step, Cut::deadline, now, fire);
  } else if (watches_trust && !trusts(now)) {
    cut(step, Cut::trust, now, fire);
  }
  if (step.cut == Cut::none) {
    next = std::min(next, step.deadline);
    if (watches_trust) next = std::min(next, trusted_until_ - margin_);
  } else if (now - step.cut_at >= kIgnoredAfter) {
    step.ignores = true;
  }
}

StoreTime LiveSegment::tick() {
  Sources fire;
  StoreTime next{};
  {
    const std::lock_guard lock(mutex_);
    const StoreTime now = env_.store_now();
    next = now + kLongestLook;
    for (auto& [place, step] : steps_) watch(step, now, next, fire);
    if (handler_since_ && now - *handler_since_ >= setup_.policy.gap_timeout) over_gap_ = true;
  }
  for (std::stop_source& source : fire) source.request_stop();
  return next;
}

}  // namespace holdfast
