#include "engine/worker.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/guard.hpp"
#include "engine/keep_alive.hpp"
#include "engine/reaper.hpp"
#include "engine/segment.hpp"
#include "engine/segment_run.hpp"
#include "engine/slots.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kWorkerStackBytes = 512u << 10;
/// Finds a run whose notification was lost (spec, section 9).
constexpr Duration kPoll = std::chrono::milliseconds(200);
constexpr int kManySlots = 16;
constexpr Duration kGather = std::chrono::milliseconds(1);
constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::seconds(5);
constexpr Duration kSaidAgain = std::chrono::seconds(10);
const Observer kNobody;

/// A worker: one thread that claims and, at the end, winds down; slots that execute. `stop`,
/// `stop_now` and `join` from any thread.
class Worker final : public WorkerHandle {
 public:
  Worker(Env&, Store&, const HandlerSet&, const EngineOptions&, const WorkerSettings&);
  ~Worker() override;

  void start();
  void stop() override;
  void stop_now() override;
  void join() override;
  const WorkerId& id() const override { return identity_.id; }

 private:
  void run();
  void claim_until_stopped();
  /// One look for work. True: there may be more, look again at once.
  bool claim_some(int limit);
  bool has_reaped();
  void assign(Claimed, StoreTime sent);
  void work_once(const Assignment&);
  void release(const Claimed&);
  void adopt(Claimed);
  SegmentParts parts(LiveSegment&);
  Duration pause(Duration longest);

  void wind_down();
  void wait_for_unanswered_claims(StoreTime until);
  bool wait_until_idle(std::optional<StoreTime> until);
  void end_segments(Ending);
  bool is_stopping() const { return stopping_.stop_requested(); }

  void hold_presence();
  void report();

  Env& env_;
  Store& store_;
  const HandlerSet& handlers_;
  const EngineOptions options_;
  const WorkerSettings settings_;
  const Identity identity_;
  Trouble trouble_;
  ClaimRequest request_;
  std::stop_source stopping_;
  std::atomic<bool> at_once_ = false;
  std::optional<Duration> next_due_;  ///< the claiming thread's

  std::unique_ptr<PresenceHold> presence_;  ///< before the keep-alive starts and after it: the
  std::string presence_state_ = "off";      ///< claiming thread's; in between: the keep-alive's
  WorkerRow row_;

  Slots slots_;
  KeepAlive keep_alive_;
  Reaper reaper_;
  const std::unique_ptr<EventCount> ended_;
  std::atomic<bool> has_ended_ = false;
  std::unique_ptr<Thread> thread_;
};

Worker::Worker(Env& env, Store& store, const HandlerSet& handlers, const EngineOptions& options,
               const WorkerSettings& settings)
    : env_(env),
      store_(store),
      handlers_(handlers),
      options_(options),
      settings_(settings),
      identity_(env.make_identity()),
      trouble_(env, identity_.id),
      slots_(env, settings.concurrency, [this](const Assignment& work) { work_once(work); }),
      keep_alive_(env, store, trouble_, identity_.id, options.heartbeat,
                  {[this](Claimed stray) { adopt(std::move(stray)); }, [this] { report(); },
                   [this] { slots_.set_stuck(keep_alive_.stuck()); }}),
      reaper_(env, store, trouble_, keep_alive_, identity_.id, options_),
      ended_(env.make_event_count()) {
  request_.worker = identity_.id;
  request_.agents = handlers.offers();
  request_.queues = settings.queues;
  row_.id = identity_.id;
  row_.name = settings.name;
  row_.host = identity_.host;
  row_.pid = identity_.pid;
  row_.started_at = env.wall_now();
  for (const AgentOffer& offer : request_.agents) row_.agents.push_back(offer.name);
  row_.queues = settings.queues;
  row_.slots = settings.concurrency;
}

Worker::~Worker() {
  stop();
  if (thread_) thread_->join();
}

void Worker::start() {
  hold_presence();
  keep_alive_.start();
  if (settings_.with_reaper) reaper_.start();
  thread_ = env_.spawn({"hf-worker", kWorkerStackBytes}, [this] { run(); });
}

void Worker::stop() {
  stopping_.request_stop();
  // At once, not when the claiming thread comes to it: after this call no new step begins.
  end_segments(Ending::at_boundary);
}

void Worker::stop_now() {
  at_once_ = true;
  stopping_.request_stop();
  end_segments(Ending::at_once);
  slots_.changed().notify_all();
}

void Worker::join() {
  for (;;) {
    const auto seen = ended_->current();
    if (has_ended_) return;
    ended_->wait_past(seen, std::chrono::hours(1), {});
  }
}

void Worker::run() {
  claim_until_stopped();
  wind_down();
  has_ended_ = true;
  ended_->notify_all();
}

Duration Worker::pause(Duration longest) {
  return longest - Duration(static_cast<std::int64_t>(static_cast<double>(longest.count()) * 0.25 *
                                                      env_.unit_random()));
}

void Worker::claim_until_stopped() {
  const std::stop_token stop = stopping_.get_token();
  Duration retry = kFirstPause;
  while (!stop.stop_requested()) {
    const auto seen = slots_.changed().current();
    // In this order: a stray is in a slot before it is no longer looked for.
    const bool was_idle = !keep_alive_.is_unsure_of_claims() && slots_.busy() == 0;
    const int free = slots_.free();
    if (free <= 0) {
      slots_.changed().wait_past(seen, std::chrono::hours(1), stop);
      // Runs that ended with one commit free their slots one after another: one claim for all.
      if (settings_.concurrency >= kManySlots) env_.sleep_for(kGather, stop);
      continue;
    }
    try {
      if (claim_some(free)) continue;
      retry = kFirstPause;
      const Duration wait = std::min(next_due_.value_or(kPoll), pause(kPoll));
      if (settings_.drain) {
        if (was_idle && !has_reaped()) {
          // Another reaper may have put a run back between that look and this one.
          if (claim_some(free)) continue;
          return;
        }
        slots_.changed().wait_past(seen, wait, stop);
      } else {
        store_.wait_for_work(wait, stop);
      }
    } catch (const StoreError& error) {
      trouble_.report(error.what());
      // What it may have claimed is found by the next renewal.
      keep_alive_.claim_unanswered();
      keep_alive_.renew_soon();
      env_.sleep_for(pause(retry), stop);
      retry = std::min(retry * 2, kLongestPause);
    }
  }
}

bool Worker::claim_some(int limit) {
  const KeepAlive::Claiming claiming(keep_alive_);
  request_.limit = limit;
  const StoreTime sent = env_.store_now();
  HOLDFAST_FAILPOINT("claim.before");
  ClaimResult result = store_.claim(request_);
  HOLDFAST_FAILPOINT("claim.after");
  if (!result.runs.empty()) trouble_.over();
  next_due_ = result.next_due;
  for (Claimed& claimed : result.runs) assign(std::move(claimed), sent);
  return !result.runs.empty();
}

/// Before a draining worker ends: what a dead one left behind may be claimable now.
bool Worker::has_reaped() {
  if (!settings_.with_reaper || options_.reaper_interval <= Duration::zero()) return false;
  const unsigned burials = reaper_.burials();
  const ReapReport report = reap_once(env_, store_, options_.reaper_limit, false, &reaper_.vigil(),
                                      stopping_.get_token());
  // What its own watcher was taking from a dead one meanwhile was not seen here.
  const bool was_alone = burials % 2 == 0 && reaper_.burials() == burials;
  return report.requeued > 0 || !was_alone;
}

void Worker::assign(Claimed claimed, StoreTime sent) {
  Slots::Slot* slot = nullptr;
  try {
    slot = &slots_.take();
  } catch (const std::exception& error) {
    log(LogLevel::error, "no thread for a claimed run; it is handed back",
        {{"run", claimed.run.id}, {"error", error.what()}});
    release(claimed);
    return;
  }
  auto segment = std::make_shared<LiveSegment>(
      LiveSegment::Setup{claimed.lease, claimed.run.policy, sent, keep_alive_.renews()}, env_,
      *slot->signal);
  keep_alive_.add(segment);
  // In this order: who asks for a stop either finds it there or has asked before.
  if (is_stopping()) segment->end(at_once_ ? Ending::at_once : Ending::at_boundary);
  slots_.start(*slot, Assignment{std::move(claimed.run), std::move(segment)});
}

SegmentParts Worker::parts(LiveSegment& segment) {
  return SegmentParts{env_,    store_,  keep_alive_, trouble_, options_.limits,
                      segment, kNobody, false,       {},       std::nullopt};
}

void Worker::work_once(const Assignment& work) {
  LiveSegment& segment = *work.segment;
  const HandlerEntry* entry = handlers_.find(work.run.agent);
  const bool begins = entry != nullptr && segment.ending() == Ending::none;
  const SegmentOutcome done = begins ? run_segment(parts(segment), *entry, work.run)
                                     : release_segment(parts(segment), work.run);
  keep_alive_.remove(segment, done.answered);
  if (done.outcome == Outcome::lease_lost) {
    log(LogLevel::warn, "the lease of a run was lost",
        {{"run", work.run.id}, {"claim", std::to_string(work.run.claim)}, {"worker", id()}});
  }
}

void Worker::release(const Claimed& claimed) {
  const auto signal = env_.make_event_count();
  LiveSegment segment({claimed.lease, claimed.run.policy, env_.store_now(), false}, env_, *signal);
  // One try: what is still held in this worker's name is found again by a later renewal.
  segment.end(Ending::at_once);
  if (!release_segment(parts(segment), claimed.run).answered) keep_alive_.claim_unanswered();
}

void Worker::adopt(Claimed stray) {
  if (is_stopping() || slots_.free() <= 0) {
    release(stray);
    return;
  }
  // Nothing is known of when its lease began: it is renewed before it starts anything.
  assign(std::move(stray), StoreTime{});
  keep_alive_.renew_soon();
}

void Worker::end_segments(Ending ending) {
  for (const auto& segment : keep_alive_.segments()) segment->end(ending);
}

void Worker::wind_down() {
  const StoreTime grace_over = env_.store_now() + settings_.grace;
  reaper_.stop();
  end_segments(at_once_ ? Ending::at_once : Ending::at_boundary);
  wait_for_unanswered_claims(grace_over);
  if (!wait_until_idle(grace_over)) {
    end_segments(Ending::at_once);
    wait_until_idle(std::nullopt);
  }
  slots_.stop();
  keep_alive_.stop();
  try {
    store_.forget_worker(id());
  } catch (const StoreError& error) {
    trouble_.report(error.what());
  }
  presence_.reset();
}

void Worker::wait_for_unanswered_claims(StoreTime until) {
  while (keep_alive_.is_unsure_of_claims() && !at_once_ && env_.store_now() < until) {
    keep_alive_.renew_soon();
    env_.sleep_for(kFirstPause / 10, {});
  }
}

bool Worker::wait_until_idle(std::optional<StoreTime> until) {
  const StoreTime begun = env_.store_now();
  StoreTime said = begun;
  for (;;) {
    const auto seen = slots_.changed().current();
    if (slots_.busy() == 0) return true;
    const StoreTime now = env_.store_now();
    if (until && (at_once_ || now >= *until)) return false;
    slots_.changed().wait_past(seen, until ? *until - now : kSaidAgain, {});
    if (until || env_.store_now() - said < kSaidAgain) continue;
    said = env_.store_now();
    for (const auto& segment : keep_alive_.segments()) {
      log(LogLevel::warn, "waiting for a task that ignores its interruption",
          {{"run", segment->lease().run}, {"worker", id()}});
    }
  }
}

void Worker::hold_presence() {
  PresenceBoard* board = store_.presence();
  if (board == nullptr || (presence_ && presence_->is_intact())) return;
  try {
    presence_.reset();
    presence_ = board->hold(identity_);
    presence_state_ = "held";
  } catch (const StoreError& error) {
    presence_state_ = error.what();
  }
}

void Worker::report() {
  hold_presence();
  WorkerRow row = row_;
  row.busy = slots_.busy();
  row.stuck = keep_alive_.stuck();
  row.presence = presence_state_;
  try {
    store_.report_worker(row);
    trouble_.over();
  } catch (const StoreError& error) {
    trouble_.report(error.what());
  }
}

}  // namespace

std::unique_ptr<WorkerHandle> start_worker(Env& env, Store& store, const HandlerSet& handlers,
                                           const EngineOptions& options,
                                           const WorkerSettings& settings) {
  auto worker = std::make_unique<Worker>(env, store, handlers, options, settings);
  worker->start();
  return worker;
}

}  // namespace holdfast
