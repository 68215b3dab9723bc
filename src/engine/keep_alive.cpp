#include "engine/keep_alive.hpp"

#include <algorithm>
#include <limits>

#include "base/guard.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kKeepAliveStackBytes = 256u << 10;
constexpr Duration kFirstRetry = std::chrono::milliseconds(20);
constexpr Duration kLastRetry = std::chrono::milliseconds(500);
constexpr Duration kReportWithoutHeartbeat = std::chrono::seconds(20);
/// A claim that its sender gave up may reach the store that much later, and apply.
constexpr Duration kMayLandFor = std::chrono::minutes(1);

}  // namespace

KeepAlive::KeepAlive(Env& env, Store& store, Trouble& trouble, WorkerId worker, Duration heartbeat,
                     Hooks hooks)
    : env_(env),
      store_(store),
      trouble_(trouble),
      worker_(std::move(worker)),
      heartbeat_(heartbeat),
      hooks_(std::move(hooks)),
      renew_asked_(env.make_event_count()),
      look_asked_(env.make_event_count()) {}

KeepAlive::~KeepAlive() { stop(); }

void KeepAlive::start() {
  renewer_ = env_.spawn({"hf-keepalive", kKeepAliveStackBytes}, [this] { renew_loop(); });
  watcher_ = env_.spawn({"hf-watch", kKeepAliveStackBytes}, [this] { watch_loop(); });
}

void KeepAlive::stop() {
  stopping_.request_stop();
  renew_asked_->notify_all();
  look_asked_->notify_all();
  if (renewer_) renewer_->join();
  if (watcher_) watcher_->join();
}

void KeepAlive::add(std::shared_ptr<LiveSegment> segment) {
  const Key key = key_of(segment->lease());
  const std::lock_guard lock(mutex_);
  segments_.insert_or_assign(key, std::move(segment));
}

void KeepAlive::remove(const LiveSegment& segment, bool answered) {
  const Key key = key_of(segment.lease());
  const std::lock_guard lock(mutex_);
  segments_.erase(key);
  if (!answered) {
    left_.insert(key);
  } else if (in_round_) {
    ended_in_round_.insert(key);
  }
}

std::vector<std::shared_ptr<LiveSegment>> KeepAlive::segments() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<LiveSegment>> all;
  all.reserve(segments_.size());
  for (const auto& [key, segment] : segments_) all.push_back(segment);
  return all;
}

void KeepAlive::claim_unanswered() {
  may_land_until_ = env_.store_now() + kMayLandFor;
  ++unanswered_;
}

void KeepAlive::renew_soon() { renew_asked_->notify_all(); }

void KeepAlive::look_before(StoreTime when) {
  if (when.time_since_epoch().count() < looks_at_) look_asked_->notify_all();
}

bool KeepAlive::all_trusted() const {
  const auto all = segments();
  return std::all_of(all.begin(), all.end(), [](const auto& segment) {
    return !segment->wants_renewal() || segment->is_trusted();
  });
}

void KeepAlive::answer(LiveSegment& segment, Write write, StoreTime sent) {
  switch (write) {
    case Write::applied:
      segment.renewed(sent);
      return;
    case Write::cancelled:
      segment.end(Ending::cancelled);
      return;
    case Write::lost:
      segment.end(Ending::lost);
      return;
  }
}

void KeepAlive::renew_here(LiveSegment& segment) {
  const StoreTime sent = env_.store_now();
  const std::vector<Lease> leases{segment.lease()};
  HOLDFAST_FAILPOINT("renew.before");
  const RenewReport report = store_.renew(worker_, leases);
  HOLDFAST_FAILPOINT("renew.after");
  answer(segment, report.answers.at(0), sent);
}

bool KeepAlive::renew_all() {
  std::vector<std::shared_ptr<LiveSegment>> wanted;
  std::set<Key> left_before;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, segment] : segments_) {
      if (renews() && segment->wants_renewal()) wanted.push_back(segment);
    }
    in_round_ = true;
    ended_in_round_.clear();
    left_before = left_;
  }
  const int unanswered = unanswered_;
  const bool all_landed = HOLDFAST_GUARD("late_claims", env_.store_now() >= may_land_until_.load());
  const bool looks_for_strays = unanswered != looked_for_ || !all_landed;
  bool answered = true;
  if (!wanted.empty() || looks_for_strays) {
    std::vector<Lease> leases;
    for (const auto& segment : wanted) leases.push_back(segment->lease());
    // Trust counts from the moment of sending: a reply says nothing about when it was written.
    const StoreTime sent = env_.store_now();
    try {
      HOLDFAST_FAILPOINT("renew.before");
      RenewReport report = store_.renew(worker_, leases);
      HOLDFAST_FAILPOINT("renew.after");
      if (!leases.empty()) trouble_.over();
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        answer(*wanted[i], report.answers.at(i), sent);
      }
      take_strays(std::move(report.strays), std::move(left_before), unanswered);
    } catch (const StoreError& error) {
      // Says nothing about ownership: tried again within what is left.
      trouble_.report(error.what());
      answered = false;
    }
  }
  const std::lock_guard lock(mutex_);
  in_round_ = false;
  return answered;
}

void KeepAlive::take_strays(std::vector<Claimed> strays, std::set<Key> left_before,
                            int looked_for) {
  // Such a row may be the answer to a claim that is still on its way.
  if (claims_in_flight_ > 0) return;
  std::vector<Claimed> taken;
  {
    const std::lock_guard lock(mutex_);
    for (Claimed& stray : strays) {
      const Key key = key_of(stray.lease);
      left_before.erase(key);
      if (left_.contains(key) || segments_.contains(key) || ended_in_round_.contains(key)) continue;
      taken.push_back(std::move(stray));
    }
    // Those are no longer in this worker's name.
    for (const Key& key : left_before) left_.erase(key);
  }
  for (Claimed& stray : taken) hooks_.on_stray(std::move(stray));
  looked_for_ = looked_for;
}

void KeepAlive::renew_loop() {
  const std::stop_token stop = stopping_.get_token();
  const Duration interval = renews() ? heartbeat_ : kReportWithoutHeartbeat;
  auto seen = renew_asked_->current();
  hooks_.on_round();
  while (!stop.stop_requested()) {
    // Early by up to a tenth, so that workers that began together do not renew together.
    const auto early =
        static_cast<std::int64_t>(static_cast<double>(interval.count()) * 0.1 * env_.unit_random());
    renew_asked_->wait_past(seen, interval - Duration(early), stop);
    Duration retry = kFirstRetry;
    for (;;) {
      if (stop.stop_requested()) return;
      seen = renew_asked_->current();
      if (renew_all()) break;
      env_.sleep_for(std::min(retry, interval), stop);
      retry = std::min(retry * 2, kLastRetry);
    }
    hooks_.on_round();
  }
}

void KeepAlive::watch_loop() {
  const std::stop_token stop = stopping_.get_token();
  while (!stop.stop_requested()) {
    const auto seen = look_asked_->current();
    // From here on whoever starts something urgent asks for a look of its own.
    looks_at_ = std::numeric_limits<std::int64_t>::max();
    StoreTime next = env_.store_now() + std::chrono::seconds(1);
    int stuck = 0;
    for (const auto& segment : segments()) {
      next = std::min(next, segment->tick());
      if (segment->is_stuck()) ++stuck;
    }
    if (stuck_.exchange(stuck) != stuck) {
      hooks_.on_stuck();
      renew_soon();  // the round reports it
    }
    looks_at_ = next.time_since_epoch().count();
    look_asked_->wait_past(seen, std::max(Duration(1), next - env_.store_now()), stop);
  }
}

}  // namespace holdfast
