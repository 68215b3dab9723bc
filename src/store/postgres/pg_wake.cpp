#include "store/postgres/pg_wake.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace holdfast::postgres {
namespace {

/// A run whose notification was lost is found within 2 s (spec, section 9).
constexpr Duration kLookAtLeastEvery = std::chrono::milliseconds(1700);
/// Workers that know of the same due time look one after the other, within the 250 ms that are
/// allowed (spec, section 9).
constexpr Duration kDueSpread = std::chrono::milliseconds(150);
constexpr Duration kTellAtMostEvery = std::chrono::milliseconds(5);
constexpr Duration kFirstRetry = std::chrono::milliseconds(200);
/// So often a process that listens says that it is there, which also shows it a lost session.
constexpr Duration kSayHereEvery = std::chrono::seconds(20);
/// To those who ask: one answer for all that came in a crowd.
constexpr Duration kAnswerAtMostEvery = std::chrono::milliseconds(250);
/// A session that lasted so long was a good one.
constexpr Duration kIsSteady = std::chrono::seconds(10);
constexpr Duration kLongestRetry = std::chrono::seconds(5);
constexpr std::size_t kWakeStackBytes = 256u << 10;
/// Of one message, so that it fits into a notification.
constexpr std::size_t kMostTold = 10;
constexpr char kNotify[] = "SELECT pg_notify('@.work', $1::text)";

Service service_of(const ClaimRequest& request) {
  Service service;
  for (const AgentOffer& offer : request.agents) service.agents.insert(offer.name);
  service.queues.insert(request.queues.begin(), request.queues.end());
  return service;
}

}  // namespace

/// One session, and what was said over it and when.
struct PgWake::Talk {
  Talk(const Target& target, Env& env) : db(target), answered_at(env.store_now()) {}

  Connection db;
  StoreTime answered_at;
  bool is_listening = false;
  bool has_asked = false;
  bool is_heard = false;  ///< what is said reaches those that listen: no pooler stands between
  std::optional<StoreTime> said_at;
  std::optional<StoreTime> here_at;
};

PgWake::PgWake(const Target& target, Env& env)
    : target_(target),
      env_(env),
      name_(fmt::format("{:016x}", env.random())),
      signal_(env),
      bell_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      turns_(name_) {}

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
  if (!has_notifications() || thread_) return;
  thread_ = env_.spawn({"hf-wake", kWakeStackBytes}, [this] { serve(); });
}

void PgWake::look_all() {
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, claimer] : claimers_) claimer.must_look = true;
  }
  signal_.announce();
}

/// Sends threads that wait and serve the kind to claim as many runs, or, where it is not sure that
/// there are any, to look. How many are left for others; those of this process that are looking
/// already look once more for them.
int PgWake::call(const Kind& kind, int runs, bool is_sure) {
  int left = runs;
  for (auto& [id, claimer] : claimers_) {
    if (left <= 0) break;
    if (!claimer.is_waiting || !claimer.service.may_serve(kind)) continue;
    claimer.is_waiting = false;
    claimer.must_look = true;
    if (is_sure) claimer.called_for = {kind, left};
    left -= claimer.room;
  }
  if (left <= 0) return 0;
  for (auto& [id, claimer] : claimers_) {
    if (claimer.service.may_serve(kind)) claimer.must_look = true;
  }
  return left;
}

void PgWake::offer(const Service& service) {
  std::vector<Service> offers = turns_.offers();
  if (std::ranges::find(offers, service) != offers.end()) return;
  offers.push_back(service);
  turns_.offer(std::move(offers));
}

/// Where all that execute something have all they can take. Not told before somebody calls for it:
/// most of the time one of them is idle again by then.
void PgWake::withdraw_full() {
  std::vector<Service> offers = turns_.offers();
  std::erase_if(offers, [&](const Service& service) {
    return std::ranges::none_of(claimers_, [&](const auto& one) {
      return one.second.service == service && !one.second.is_full;
    });
  });
  turns_.offer(std::move(offers));
}

void PgWake::announce(const Queued& queued) {
  bool is_to_tell = false;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [kind, runs] : queued) {
      const int left = call(kind, runs, true);
      if (left == 0 || !has_notifications()) continue;
      untold_[kind] += left;
      is_to_tell = true;
    }
    if (is_to_tell) start();
  }
  signal_.announce();
  if (is_to_tell) ring();
}

void PgWake::wait(Duration max, const std::stop_token& stop) {
  {
    const std::lock_guard lock(mutex_);
    start();
    Claimer& me = self();
    me.is_waiting = true;
    offer(me.service);
    if (turns_.is_here_untold()) ring();
  }
  signal_.wait(max, stop);
  Queued left;
  {
    const std::lock_guard lock(mutex_);
    Claimer& me = self();
    me.is_waiting = false;
    me.has_waited = true;
    if (!stop.stop_requested()) return;
    // It claims no more: what it was called for is for another.
    if (me.called_for) left[me.called_for->kind] = me.called_for->runs;
    claimers_.erase(std::this_thread::get_id());
    note_services();
  }
  if (!left.empty()) announce(left);
}

void PgWake::forget(const WorkerId& worker) {
  const std::lock_guard lock(mutex_);
  std::erase_if(claimers_, [&](const auto& one) { return one.second.worker == worker; });
  note_services();
}

void PgWake::note_services() {
  std::vector<Service> services;
  for (const auto& [id, claimer] : claimers_) {
    if (std::ranges::find(services, claimer.service) == services.end()) {
      services.push_back(claimer.service);
    }
  }
  turns_.serve(std::move(services));
  if (turns_.is_here_untold()) ring();
}

bool PgWake::found_nothing() {
  const std::lock_guard lock(mutex_);
  return self().memory.has_value();
}

std::optional<verbs::Look> PgWake::recall(const ClaimRequest& request) {
  const std::lock_guard lock(mutex_);
  Claimer& me = self();
  Service service = service_of(request);
  if (me.worker != request.worker || me.service != service) {
    me.worker = request.worker;
    me.service = std::move(service);
    me.memory.reset();
    note_services();
  }
  me.room = request.limit;
  if (std::exchange(me.must_look, false)) me.memory.reset();
  me.is_full = false;
  const auto called_for = std::exchange(me.called_for, std::nullopt);
  me.known = called_for ? called_for->runs : 0;
  if (std::exchange(me.has_more, false) || called_for) return verbs::Look{true, std::nullopt};
  if (!me.memory || !me.has_waited) return std::nullopt;
  const StoreTime now = env_.store_now();
  const auto due_at = me.memory->due_at;
  if (now - me.memory->at >= me.memory->lasts || (due_at && now >= *due_at)) return std::nullopt;
  verbs::Look look;
  if (due_at) look.next_due = *due_at - now;
  return look;
}

void PgWake::remember(verbs::Look& look) {
  const std::lock_guard lock(mutex_);
  Claimer& me = self();
  me.has_waited = false;
  me.memory.reset();
  turns_.looked(look.is_due);
  if (turns_.has_missed_untold()) ring();
  if (look.is_due) return;
  const auto up_to = [&](Duration most) {
    return Duration(
        static_cast<std::int64_t>(env_.unit_random() * static_cast<double>(most.count())));
  };
  if (look.next_due && turns_.has_peers()) *look.next_due += up_to(kDueSpread);
  const StoreTime now = env_.store_now();
  me.memory = {now, std::nullopt, kLookAtLeastEvery - up_to(kLookAtLeastEvery / 5)};
  if (look.next_due) me.memory->due_at = now + *look.next_due;
}

void PgWake::remember_claim(const ClaimRequest& request, std::size_t taken) {
  const std::lock_guard lock(mutex_);
  Claimer& me = self();
  if (taken > 0) me.has_waited = false;
  me.is_full = taken > 0 && taken >= static_cast<std::size_t>(request.limit);
  if (!me.is_full) return;
  const bool is_open = me.must_look || turns_.may_have_left_some();
  // It may have been all that it was called for.
  me.has_more = is_open || std::cmp_not_equal(me.known, taken);
  // What came meanwhile, or was more than it could take, is for others.
  if (!is_open) return;
  withdraw_full();
  if (turns_.is_here_untold()) ring();
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
  Talk talk(target_, env_);
  if (is_missed_) log(LogLevel::info, "notifications of new runs are back", {});
  is_missed_ = false;
  while (true) {
    const bool is_last = stop.stop_requested();
    greet(talk);
    hear(talk);
    const StoreTime now = env_.store_now();
    if (is_last || !talk.said_at || now - *talk.said_at >= kTellAtMostEvery) {
      gather(talk);
      tell(talk);
    }
    if (is_last) return;
    if (now - talk.answered_at >= kSayHereEvery) {
      if (!talk.db.answers()) throw PgError("", "the session answers no more", false);
      talk.answered_at = now;
    }
    // What came together with an answer does not make the session readable.
    hear(talk);
    const bool has_news = talk.db.wait_readable(pause(talk), bell_);
    std::uint64_t rung = 0;
    [[maybe_unused]] const auto size = read(bell_, &rung, sizeof rung);
    if (has_news && !talk.db.is_usable()) {
      throw PgError("", "the session for notifications was ended", false);
    }
  }
}

/// Only who waits for runs listens.
void PgWake::greet(Talk& talk) {
  if (talk.is_listening) return;
  {
    const std::lock_guard lock(mutex_);
    if (turns_.offers().empty()) return;
  }
  talk.db.execute(fmt::format("LISTEN \"{}.work\"", target_.schema));
  talk.is_listening = true;
  // What was announced while nobody listened.
  look_all();
}

/// Few messages for all that there is to say since the last.
void PgWake::gather(Talk& talk) {
  const StoreTime now = env_.store_now();
  const std::lock_guard lock(mutex_);
  std::vector<Message> messages(1);
  for (const auto& [kind, runs] : std::exchange(untold_, {})) {
    if (messages.back().queued.size() == kMostTold) messages.emplace_back();
    messages.back().queued.push_back({kind, runs});
  }
  Message& last = messages.back();
  last.missed = turns_.take_missed();
  if (talk.is_listening) {
    last.asks = !std::exchange(talk.has_asked, true);
    last.leaves = talk.here_at && stopping_.stop_requested();
    if (is_here_due(talk, now)) {
      last.here = turns_.offers();
      turns_.here_is_told();
      talk.here_at = now;
    }
  }
  for (Message& message : messages) {
    if (message == Message()) continue;
    message.from = name_;
    message.number = ++number_;
    unsent_.push_back(encode(message));
  }
}

/// Whom no word reaches is not there for others.
bool PgWake::is_here_due(const Talk& talk, StoreTime now) const {
  if (!talk.is_heard) return false;
  if (!talk.here_at || turns_.is_here_untold()) return true;
  const Duration since = now - *talk.here_at;
  return since >= kSayHereEvery || (turns_.is_asked() && since >= kAnswerAtMostEvery);
}

void PgWake::tell(Talk& talk) {
  if (unsent_.empty()) return;
  for (const std::string& payload : unsent_) {
    Params params;
    params.add_raw(payload);
    talk.db.send(kNotify, params);
  }
  talk.db.flush();
  unsent_.clear();
  talk.said_at = talk.answered_at = env_.store_now();
}

/// Until something is to be done without being rung for.
Duration PgWake::pause(const Talk& talk) {
  const StoreTime now = env_.store_now();
  const std::lock_guard lock(mutex_);
  StoreTime next = talk.answered_at + kSayHereEvery;
  if (talk.here_at && turns_.is_asked()) next = std::min(next, *talk.here_at + kAnswerAtMostEvery);
  if (const auto turn = turns_.next_turn()) next = std::min(next, *turn);
  const bool has_to_say = !untold_.empty() || turns_.has_missed_untold() || is_here_due(talk, now);
  if (has_to_say && talk.said_at) next = std::min(next, *talk.said_at + kTellAtMostEvery);
  return std::max(Duration(0), next - now);
}

void PgWake::hear(Talk& talk) {
  const auto heard = talk.db.take_notifications();
  bool is_called = false;
  {
    const StoreTime now = env_.store_now();
    const std::lock_guard lock(mutex_);
    for (const auto& [payload, session] : heard) {
      const Message message = decode_message(payload, session);
      talk.is_heard = talk.is_heard || message.from == name_;
      turns_.hear(message, now);
      // At once: what comes behind it changes whose turn it is for what comes then.
      is_called = take_turns(now) || is_called;
    }
    is_called = take_turns(now) || is_called;
    // Others may have missed who was frozen for a while.
    for (const auto& [id, claimer] : claimers_) {
      if (claimer.is_waiting) offer(claimer.service);
    }
  }
  if (is_called) signal_.announce();
}

bool PgWake::take_turns(StoreTime now) {
  const auto turns = turns_.take_turns(now);
  for (const auto& turn : turns) {
    if (call(turn.kind, turn.runs, turn.is_sure) == turn.runs) withdraw_full();
  }
  return !turns.empty();
}

}  // namespace holdfast::postgres
