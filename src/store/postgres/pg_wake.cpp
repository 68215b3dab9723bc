#include "store/postgres/pg_wake.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.hpp"

namespace holdfast::postgres {
namespace {

/// A run whose notification was lost is found within 2 s (spec, section 9).
constexpr Duration kLookAtLeastEvery = std::chrono::milliseconds(1700);
/// Workers that are told at once look one after the other.
constexpr Duration kSpread = std::chrono::milliseconds(4);
constexpr Duration kTellAtMostEvery = std::chrono::milliseconds(5);
constexpr Duration kFirstRetry = std::chrono::milliseconds(200);
/// A session that nothing comes from is asked whether it is there.
constexpr Duration kAskEvery = std::chrono::seconds(20);
/// A session that lasted so long was a good one.
constexpr Duration kIsSteady = std::chrono::seconds(10);
constexpr Duration kLongestRetry = std::chrono::seconds(5);
constexpr std::size_t kWakeStackBytes = 256u << 10;
/// Well under what a notification may carry.
constexpr std::size_t kMostPayload = 4000;
constexpr char kNotify[] = "SELECT pg_notify('@.work', $1::text)";

bool is_plain_word(const std::string& text) {
  return text.find_first_of(std::string(" \\\0", 3)) == std::string::npos;
}

}  // namespace

PgWake::PgWake(const Target& target, Env& env)
    : target_(target),
      env_(env),
      sender_(fmt::format("{:016x}", env.random())),
      signal_(env),
      bell_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

PgWake::~PgWake() {
  stopping_.request_stop();
  ring();
  if (thread_) thread_->join();
  close(bell_);
}

void PgWake::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto size = write(bell_, &one, sizeof one);
}

void PgWake::start() {
  if (!target_.notifies || !target_.has_sessions() || thread_) return;
  thread_ = env_.spawn({"hf-wake", kWakeStackBytes}, [this] { serve(); });
}

bool PgWake::is_anybody_idle_for(const std::string& agent, int runs) const {
  return std::ranges::count_if(idle_, [&](const auto& waiting) {
           return std::ranges::find(waiting.second, agent) != waiting.second.end();
         }) >= runs;
}

void PgWake::wake_here() {
  ++news_;
  signal_.announce();
}

void PgWake::announce(const std::map<std::string, int>& queued) {
  bool is_to_tell = false;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [agent, runs] : queued) {
      if (is_anybody_idle_for(agent, runs)) continue;
      untold_.insert(agent);
      is_to_tell = true;
    }
    if (is_to_tell) start();
  }
  wake_here();
  if (is_to_tell) ring();
}

void PgWake::wait(Duration max, const std::stop_token& stop) {
  const auto self = std::this_thread::get_id();
  {
    const std::lock_guard lock(mutex_);
    start();
    idle_[self] = agents_of_[self];
  }
  signal_.wait(max, stop);
  const std::lock_guard lock(mutex_);
  idle_.erase(self);
  waited_.insert(self);
}

bool PgWake::found_nothing(const WorkerId& worker) {
  const std::lock_guard lock(mutex_);
  return memories_.contains(worker);
}

std::optional<verbs::Look> PgWake::recall(const ClaimRequest& request) {
  const std::lock_guard lock(mutex_);
  auto& agents = agents_of_[std::this_thread::get_id()];
  agents.clear();
  for (const AgentOffer& offer : request.agents) {
    agents.push_back(offer.name);
    served_.insert(offer.name);
  }
  if (full_.contains(request.worker)) return verbs::Look{true, std::nullopt};
  const auto it = memories_.find(request.worker);
  if (it == memories_.end() || !waited_.contains(std::this_thread::get_id())) return std::nullopt;
  const Memory& memory = it->second;
  const StoreTime now = env_.store_now();
  if (memory.news != news_ || now - memory.at >= memory.lasts ||
      (memory.due_at && now >= *memory.due_at) || memory.agents != agents ||
      memory.queues != request.queues) {
    return std::nullopt;
  }
  verbs::Look look;
  if (memory.due_at) look.next_due = *memory.due_at - now;
  return look;
}

void PgWake::remember(const ClaimRequest& request, const verbs::Look& look, std::uint64_t news) {
  const std::lock_guard lock(mutex_);
  waited_.erase(std::this_thread::get_id());
  if (look.is_due) {
    memories_.erase(request.worker);
    return;
  }
  Memory memory;
  memory.news = news;
  memory.at = env_.store_now();
  if (look.next_due) memory.due_at = memory.at + *look.next_due;
  memory.lasts = kLookAtLeastEvery -
                 Duration(static_cast<std::int64_t>(
                     env_.unit_random() * 0.2 * static_cast<double>(kLookAtLeastEvery.count())));
  for (const AgentOffer& offer : request.agents) memory.agents.push_back(offer.name);
  memory.queues = request.queues;
  memories_[request.worker] = std::move(memory);
}

void PgWake::remember_claim(const ClaimRequest& request, std::size_t taken) {
  const std::lock_guard lock(mutex_);
  if (taken > 0 && taken >= static_cast<std::size_t>(request.limit)) {
    full_.insert(request.worker);
  } else {
    full_.erase(request.worker);
  }
}

bool PgWake::serves_any(const std::string& payload) {
  if (payload.starts_with(sender_)) return false;
  const std::lock_guard lock(mutex_);
  std::size_t at = payload.find(' ');
  while (at != std::string::npos) {
    const auto end = payload.find(' ', at + 1);
    const auto agent = payload.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    if (agent == "*" || served_.contains(agent)) return true;
    at = end;
  }
  return false;
}

/// One notification for all that was put on the queue since the last.
bool PgWake::tell(Connection& db) {
  std::set<std::string> agents;
  {
    const std::lock_guard lock(mutex_);
    agents.swap(untold_);
  }
  if (agents.empty()) return false;
  std::string payload = sender_;
  for (const std::string& agent : agents) {
    if (!is_plain_word(agent) || payload.size() + agent.size() > kMostPayload) {
      payload = sender_ + " *";
      break;
    }
    payload += " " + agent;
  }
  db.ask(kNotify, Params(payload));
  return true;
}

void PgWake::serve() {
  const std::stop_token stop = stopping_.get_token();
  Duration retry = kFirstRetry;
  while (true) {
    const StoreTime begun = env_.store_now();
    try {
      serve_session(stop);
      return;
    } catch (const StoreError& error) {
      if (stop.stop_requested()) return;
      // One that comes and goes is told once.
      if (env_.store_now() - begun > kIsSteady) retry = kFirstRetry;
      if (retry == kFirstRetry) {
        is_missed_ = true;
        log(LogLevel::warn, "no notifications of new runs for now; workers look by themselves",
            {{"error", error.what()}});
      }
    }
    // Not all processes at the same moment.
    env_.sleep_for(Duration(static_cast<std::int64_t>(static_cast<double>(retry.count()) *
                                                      (0.5 + env_.unit_random() / 2))),
                   stop);
    retry = std::min(retry * 2, kLongestRetry);
    if (stop.stop_requested()) return;
  }
}

void PgWake::serve_session(const std::stop_token& stop) {
  Connection db(target_);
  db.execute(fmt::format("LISTEN \"{}.work\"", target_.schema));
  if (is_missed_) log(LogLevel::info, "notifications of new runs are back", {});
  is_missed_ = false;
  // What was announced while nobody listened.
  wake_here();
  while (true) {
    const bool has_told = tell(db);
    if (stop.stop_requested()) return;
    if (has_told) env_.sleep_for(kTellAtMostEvery, stop);
    const bool is_there = db.wait_readable(kAskEvery, bell_) || db.answers();
    if (!is_there) throw PgError("", "the session for notifications answers no more", false);
    std::uint64_t rung = 0;
    [[maybe_unused]] const auto size = read(bell_, &rung, sizeof rung);
    const auto payloads = db.take_notifications();
    if (!db.is_usable()) throw PgError("", "the session for notifications was ended", false);
    if (std::ranges::any_of(payloads, [&](const auto& text) { return serves_any(text); })) {
      env_.sleep_for(Duration(static_cast<std::int64_t>(env_.unit_random() *
                                                        static_cast<double>(kSpread.count() + 1))),
                     stop);
      wake_here();
    }
  }
}

}  // namespace holdfast::postgres
