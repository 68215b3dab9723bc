#include "engine/reaper.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/guard.hpp"
#include "engine/segment.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kReaperStackBytes = 256u << 10;
constexpr Duration kFirstSweepWithin = std::chrono::seconds(1);
constexpr Duration kAskAgainAfter = std::chrono::milliseconds(50);
constexpr Duration kTellEvery = std::chrono::seconds(10);
constexpr Duration kOwnRenewal = std::chrono::milliseconds(50);

/// A judge stood still on the way to its verdict. Thrown inside the write, which changes nothing
/// then.
struct StoodStill {};

Decider worker_lost(Env& env) {
  return [&env](const Run& run) {
    return decide(run, WorkerLost{run.claimed_by.value_or("?")}, false, env.wall_now(),
                  env.unit_random());
  };
}

ReapReport reap_some(Store& store, int limit, bool dry_run, const Decider& decider) {
  HOLDFAST_FAILPOINT("reap.before");
  const ReapReport report = store.reap(limit, dry_run, decider);
  HOLDFAST_FAILPOINT("reap.after");
  return report;
}

/// The holder's lock is held while its leases are ended. How many were; nothing while it lives.
std::optional<int> expire_gone(Store& store, PresenceBoard& board, const WorkerId& worker) {
  // Before the proof: a renewal that arrives later is a living worker's.
  const StoreTime seen = store.now();
  const auto proof = board.prove_gone(worker);
  if (!HOLDFAST_GUARD("presence_proof", proof != nullptr)) return std::nullopt;
  HOLDFAST_FAILPOINT("expire.before");
  const int expired = store.expire_leases_of(worker, seen);
  HOLDFAST_FAILPOINT("expire.after");
  store.forget_worker(worker);
  return expired;
}

/// Counts the beginning and the end of what it lives through.
class Counted {
 public:
  explicit Counted(std::atomic<unsigned>& count) : count_(count) { ++count_; }
  ~Counted() { ++count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<unsigned>& count_;
};

/// Notes who holds the leases that are over, but those that were ended by a proof.
Decider noting(const Decider& decider, std::set<WorkerId>& holders) {
  return [&](const Run& run) {
    if (run.claimed_by && !run.lease_lost_by_presence) holders.insert(*run.claimed_by);
    return decider(run);
  };
}

/// One of them has said that it is there, and nothing proves that it is gone.
bool may_live(Store& store, const std::set<WorkerId>& holders) {
  if (holders.empty()) return false;
  const auto rows = store.workers();
  const bool has_none = std::ranges::none_of(
      rows, [&](const WorkerRow& row) { return !row.is_gone && holders.contains(row.id); });
  return !HOLDFAST_GUARD("judge_is_new", has_none);
}

/// Until whoever may live and holds a lease that is over has had time to renew it.
void be_patient(Env& env, Store& store, Vigil& vigil, int limit, const std::stop_token& stop) {
  const Decider decider = worker_lost(env);
  while (!stop.stop_requested()) {
    std::set<WorkerId> holders;
    reap_some(store, limit, true, noting(decider, holders));
    vigil.saw_answer();
    const Duration left = vigil.left();
    if (left <= Duration::zero() || !may_live(store, holders)) return;
    env.sleep_for(std::min(left, vigil.shortest_break()), stop);
  }
}

std::vector<Run> running(Store& store) {
  ListFilter filter;
  filter.status = to_word(Status::running);
  filter.limit = 500;
  std::vector<Run> runs;
  do {
    RunPage page = store.list(filter);
    std::ranges::move(page.runs, std::back_inserter(runs));
    filter.after = page.next;
  } while (filter.after);
  return runs;
}

/// What would become of the runs whose holder is gone while their leases last. Takes no proof: with
/// a proof goes the trace of the dead.
void foresee_gone(Env& env, Store& store, ReapReport& report) {
  std::set<WorkerId> gone;
  for (const WorkerRow& worker : store.workers()) {
    if (worker.is_gone) gone.insert(worker.id);
  }
  if (gone.empty()) return;
  const Decider decider = worker_lost(env);
  const Now now{store.wall_now(), store.now()};
  for (const Run& run : running(store)) {
    if (!run.claimed_by || !gone.contains(*run.claimed_by) || is_stale(run, now)) continue;
    const auto over = lease_expired_by_presence(run, *run.claimed_by, now.store, now);
    const auto* expired = std::get_if<Change>(&over);
    if (expired == nullptr) continue;
    const auto then = reaped(expired->row, decider(expired->row), true, now);
    const auto* change = std::get_if<Change>(&then);
    if (change == nullptr) continue;
    ++(change->row.status.is(Status::queued) ? report.requeued : report.dead_lettered);
  }
}

}  // namespace

ReapReport reap_once(Env& env, Store& store, int limit, bool dry_run, Vigil* vigil,
                     const std::stop_token& stop) {
  PresenceBoard* board = store.presence();
  if (board != nullptr && !dry_run) {
    for (const WorkerId& worker : board->watch(Duration::zero(), {})) {
      expire_gone(store, *board, worker);
    }
  }
  if (vigil != nullptr && !dry_run) be_patient(env, store, *vigil, limit, stop);
  if (stop.stop_requested()) return {};
  ReapReport report = reap_some(store, limit, dry_run, worker_lost(env));
  if (board != nullptr && dry_run) foresee_gone(env, store, report);
  return report;
}

Reaper::Reaper(Env& env, Store& store, Trouble& trouble, KeepAlive& keep_alive, WorkerId own,
               const EngineOptions& options)
    : env_(env),
      store_(store),
      trouble_(trouble),
      keep_alive_(keep_alive),
      own_(std::move(own)),
      interval_(options.reaper_interval),
      presence_interval_(options.presence_interval),
      limit_(options.reaper_limit),
      vigil_(env, options.heartbeat, options.reaper_interval),
      asked_(env.make_event_count()) {}

Reaper::~Reaper() { stop(); }

void Reaper::start() {
  if (interval_ <= Duration::zero()) return;
  sweeper_ = env_.spawn({"hf-reaper", kReaperStackBytes}, [this] { sweep_loop(); });
  if (store_.presence() != nullptr && presence_interval_ > Duration::zero()) {
    watcher_ = env_.spawn({"hf-presence", kReaperStackBytes}, [this] { presence_loop(); });
  }
}

void Reaper::stop() {
  stopping_.request_stop();
  asked_->notify_all();
  if (watcher_) watcher_->join();
  if (sweeper_) sweeper_->join();
}

void Reaper::doubt_itself() {
  vigil_.begin_anew();
  not_before_ = env_.store_now() + vigil_.doubt();
}

bool Reaper::stood_still() {
  const StoreTime now = env_.store_now();
  if (now - std::exchange(awake_, now) > vigil_.shortest_break()) stood_still_ = true;
  return !HOLDFAST_GUARD("judge_awake", !stood_still_);
}

void Reaper::reached() {
  if (!vigil_.saw_answer()) throw StoodStill{};
}

void Reaper::touch() {
  store_.forget_worker("nobody");
  trouble_.over();
  reached();
}

Duration Reaper::sweep() {
  const std::stop_token stop = stopping_.get_token();
  const Decider decider = worker_lost(env_);
  std::set<WorkerId> holders;
  const ReapReport look = reap_some(store_, limit_, true, noting(decider, holders));
  reached();
  if (look.requeued + look.dead_lettered + look.expired == 0) return usual_wait();
  if (stood_still()) throw StoodStill{};
  // Whoever began a moment ago does not know whether the store was there for the others.
  const Duration left = vigil_.left();
  if (left > Duration::zero() && may_live(store_, holders)) return std::min(usual_wait(), left);
  // Whoever holds up all writers would hold up this sweep, too, and then it would find leases over
  // whose renewals stand in the same queue. So a write that changes nothing goes first.
  touch();
  if (stood_still()) throw StoodStill{};
  // And what comes between that and the verdict is seen inside the write.
  const Decider awake = [&](const Run& run) {
    if (stood_still()) throw StoodStill{};
    return decider(run);
  };
  StoreTime told = env_.store_now();
  int handled = 0;
  bool has_more = true;
  while (has_more && !stop.stop_requested()) {
    const ReapReport report = reap_some(store_, limit_, false, awake);
    has_more = report.full;
    handled += report.requeued + report.dead_lettered + report.expired;
    if (const StoreTime now = env_.store_now(); has_more && now - told >= kTellEvery) {
      told = now;
      log(LogLevel::info, "a sweep of the reaper goes on",
          {{"worker", own_}, {"runs", std::to_string(handled)}});
    }
    vigil_.saw_answer();
    // The holders of the next ones have not been looked at.
    if (has_more && left > Duration::zero()) return Duration::zero();
  }
  return usual_wait();
}

Duration Reaper::usual_wait() {
  return interval_ - Duration(static_cast<std::int64_t>(static_cast<double>(interval_.count()) *
                                                        0.1 * env_.unit_random()));
}

bool Reaper::rest(Duration wait, std::uint64_t seen, const std::stop_token& stop) {
  const StoreTime end = env_.store_now() + wait;
  stood_still_ = false;
  bool has_slept = false;
  bool is_asked = false;
  do {
    const StoreTime now = env_.store_now();
    const Duration look =
        std::clamp<Duration>(end - now, Duration::zero(), vigil_.shortest_break() / 2);
    awake_ = now + look;
    is_asked = asked_->wait_past(seen, look, stop);
    has_slept = stood_still();
  } while (!is_asked && !stop.stop_requested() && env_.store_now() < end);
  return has_slept;
}

void Reaper::sweep_loop() {
  const std::stop_token stop = stopping_.get_token();
  // At random, so that workers that began together do not sweep together.
  Duration wait(static_cast<std::int64_t>(
      static_cast<double>(std::min<Duration>(interval_, kFirstSweepWithin).count()) * 0.1 *
      env_.unit_random()));
  StoreTime sweep_at = env_.store_now() + wait;
  Duration retry = kAskAgainAfter;
  while (!stop.stop_requested()) {
    const auto seen = asked_->current();
    if (rest(wait, seen, stop)) doubt_itself();
    if (stop.stop_requested()) return;
    if (asked_->current() != seen) sweep_at = env_.store_now();
    if (!keep_alive_.all_trusted()) {
      // A worker renews its own leases before it judges those of others.
      keep_alive_.renew_soon();
      wait = std::min(vigil_.looks_every(), kOwnRenewal);
      continue;
    }
    try {
      if (env_.store_now() < std::max(not_before_, sweep_at)) {
        touch();
      } else {
        const Duration next = sweep();
        sweep_at = env_.store_now() + next;
      }
      retry = kAskAgainAfter;
    } catch (const StoodStill&) {
      doubt_itself();
    } catch (const StoreError& error) {
      // How long it was away is seen when it answers again.
      trouble_.report(error.what());
      wait = std::exchange(retry, std::min(retry * 2, vigil_.looks_every()));
      continue;
    }
    const Duration left = std::max(not_before_, sweep_at) - env_.store_now();
    wait = std::clamp(left, Duration(1), vigil_.looks_every());
  }
}

int Reaper::bury(PresenceBoard& board, const WorkerId& worker) {
  const Counted counted(burials_);
  const auto expired = expire_gone(store_, board, worker);
  if (!expired) return 0;
  log(LogLevel::info, "a worker is gone",
      {{"worker", worker}, {"leases", std::to_string(*expired)}});
  return *expired;
}

void Reaper::presence_loop() {
  const std::stop_token stop = stopping_.get_token();
  PresenceBoard& board = *store_.presence();
  while (!stop.stop_requested()) {
    bool progressed = false;
    try {
      const auto suspects = board.watch(presence_interval_, stop);
      int expired = 0;
      for (const WorkerId& worker : suspects) {
        if (worker == own_ || stop.stop_requested()) continue;
        expired += bury(board, worker);
      }
      if (expired > 0) asked_->notify_all();
      progressed = suspects.empty() || expired > 0;
    } catch (const StoreError& error) {
      trouble_.report(error.what());
    }
    // A suspect that cannot be told apart from a living worker, or is this one, must not keep this
    // loop spinning.
    if (!progressed) env_.sleep_for(presence_interval_, stop);
  }
}

}  // namespace holdfast
