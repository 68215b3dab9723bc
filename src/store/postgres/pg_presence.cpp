#include "store/postgres/pg_presence.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/guard.hpp"
#include "base/log.hpp"
#include "store/postgres/pg_statements.hpp"

namespace holdfast::postgres {
namespace {

/// A presence may be away for 200 ms (spec, section 10).
constexpr Duration kMayBeLost = std::chrono::milliseconds(250);
/// Not more often, however short the interval is: each look is a statement.
constexpr Duration kWatchAtMostEvery = std::chrono::milliseconds(250);
constexpr Duration kTryAtLeastEvery = std::chrono::seconds(5);
constexpr Duration kRetakeEvery = std::chrono::milliseconds(20);
constexpr Duration kReconnectAtMost = std::chrono::seconds(2);
/// Whoever was cut off together with a watcher is back by then: a connect in vain and a pause.
constexpr Duration kAllAreBack = std::chrono::seconds(8);
/// A session that nothing comes from is asked whether it is there.
constexpr Duration kAskEvery = std::chrono::seconds(20);
constexpr std::size_t kKeeperStackBytes = 256u << 10;
/// The server notices a machine that is gone as soon as we notice a server.
constexpr char kKeepPresence[] =
    "SELECT set_config('tcp_keepalives_idle', '5', false), "
    "set_config('tcp_keepalives_interval', '2', false), "
    "set_config('tcp_keepalives_count', '3', false), "
    "set_config('idle_session_timeout', '0', false)";

/// Takes the lock and says so; null where another session has it.
std::unique_ptr<Connection> take_presence(const Target& target, const WorkerId& id) {
  auto db = std::make_unique<Connection>(target);
  db->send(kTryPresence, Params(id));
  db->send(kKeepPresence);
  if (db->flush().front().view(0, 0) != "t") return nullptr;
  const std::string held = "held";
  db->ask(kSayPresence, Params(id, held));
  return db;
}

/// Keeps the lock: a thread waits on the session and takes it anew when it is lost.
class PgHold : public PresenceHold {
 public:
  PgHold(const Target& target, Env& env, PgReaderPool& readers, WorkerId id,
         std::unique_ptr<Connection> db)
      : target_(target),
        env_(env),
        readers_(readers),
        id_(std::move(id)),
        db_(std::move(db)),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    keeper_ = env_.spawn({"hf-hold", kKeeperStackBytes}, [this] { keep(); });
  }
  PgHold(const PgHold&) = delete;
  /// Says that it ends, so that nobody takes it for a death.
  ~PgHold() override {
    stopping_.request_stop();
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto size = write(wake_, &one, sizeof one);
    keeper_->join();
    close(wake_);
    try {
      if (db_) {
        db_->ask(kEndPresence, Params(id_));
        db_->ask(kDropPresence, Params(id_));
      } else {
        readers_.ask([&](PgRows&, Connection& db) { return db.ask(kEndPresence, Params(id_)); });
      }
    } catch (const StoreError&) {
    }
  }
  bool is_intact() override { return is_held_; }

 private:
  void keep() {
    const std::stop_token stop = stopping_.get_token();
    while (!stop.stop_requested()) {
      const bool has_news = db_->wait_readable(kAskEvery, wake_);
      if (stop.stop_requested()) return;
      if (!(has_news ? db_->is_usable() : db_->answers())) retake(stop);
    }
  }

  void retake(const std::stop_token& stop) {
    is_held_ = false;
    db_.reset();
    Duration pause = kRetakeEvery;
    while (!stop.stop_requested()) {
      try {
        db_ = take_presence(target_, id_);
        if (db_) break;
      } catch (const StoreError&) {
        say_away();
        // A quarter longer each time: back soon after a short cut, and no burden in a long one.
        pause = std::min(pause + pause / 4 + Duration(1), kReconnectAtMost);
      }
      env_.sleep_for(pause, stop);
    }
    is_held_ = db_ != nullptr;
  }

  /// Over another session, where there is one: judged by its leases alone from here on.
  void say_away() noexcept {
    try {
      const std::string away = "away";
      readers_.ask(
          [&](PgRows&, Connection& db) { return db.ask(kSayPresence, Params(id_, away)); });
    } catch (const StoreError&) {
    }
  }

  const Target target_;
  Env& env_;
  PgReaderPool& readers_;
  const WorkerId id_;
  std::unique_ptr<Connection> db_;  ///< the keeper's, until it ended
  const int wake_;
  std::atomic<bool> is_held_{true};
  std::stop_source stopping_;
  std::unique_ptr<Thread> keeper_;
};

/// The lock of one that is gone; with it goes what it left.
class PgProof : public PresenceProof {
 public:
  PgProof(std::unique_ptr<Connection> db, WorkerId id) : db_(std::move(db)), id_(std::move(id)) {}
  PgProof(const PgProof&) = delete;
  ~PgProof() override {
    try {
      db_->ask(kEndPresence, Params(id_));
      db_->ask(kDropPresence, Params(id_));
    } catch (const StoreError&) {
    }
  }

 private:
  std::unique_ptr<Connection> db_;
  const WorkerId id_;
};

}  // namespace

PgPresence::PgPresence(const Target& target, Env& env, PgReaderPool& readers)
    : target_(target), env_(env), readers_(readers) {}

std::unique_ptr<PresenceHold> PgPresence::hold(const Identity& identity) {
  auto db = take_presence(target_, identity.id);
  if (!db) {
    throw StoreError(fmt::format("the presence of worker {} is held by another session; it is "
                                 "judged by its leases alone until it is free",
                                 identity.id),
                     false);
  }
  return std::make_unique<PgHold>(target_, env_, readers_, identity.id, std::move(db));
}

std::unique_ptr<PresenceProof> PgPresence::prove_gone(const WorkerId& id) {
  auto db = std::make_unique<Connection>(target_);
  db->send(kTryPresence, Params(id));
  db->send(kMayBury, Params(id));
  const auto results = db->flush();
  const bool is_free = results[0].view(0, 0) == "t";
  if (!HOLDFAST_GUARD("presence_lock", is_free)) return nullptr;
  // Its lock was lost with another server, or it said that it cannot hold one.
  if (!HOLDFAST_GUARD("presence_server", results[1].rows() == 0)) return nullptr;
  return std::make_unique<PgProof>(std::move(db), id);
}

std::vector<WorkerId> PgPresence::lost() {
  return readers_.ask([](PgRows&, Connection& db) {
    const Result result = db.ask(kLostPresences);
    std::vector<WorkerId> found;
    for (int row = 0; row < result.rows(); ++row) found.push_back(result.text(row, 0));
    return found;
  });
}

std::set<WorkerId> PgPresence::gone_among(const std::vector<WorkerId>& ids) {
  Array wanted(Array::Of::texts);
  for (const WorkerId& id : ids) wanted.add(id);
  const auto look = [&](std::set<WorkerId>& without_trace) {
    return readers_.ask([&](PgRows&, Connection& db) {
      without_trace = std::set<WorkerId>(ids.begin(), ids.end());
      std::set<WorkerId> found;
      const Result result = db.ask(kPresencesOf, Params(wanted));
      for (int row = 0; row < result.rows(); ++row) {
        without_trace.erase(result.text(row, 0));
        if (result.view(row, 1) == "t") found.insert(result.text(row, 0));
      }
      return found;
    });
  };
  if (ids.empty()) return {};
  std::set<WorkerId> gone;
  auto found = look(gone);
  if (found.empty()) return gone;
  let_come_back({});
  std::set<WorkerId> ended;
  for (const WorkerId& id : look(ended)) {
    if (found.contains(id)) gone.insert(id);
  }
  return gone;
}

/// A live one whose session was dropped needs about as long for a new one as this process.
void PgPresence::let_come_back(const std::stop_token& stop) {
  const StoreTime begun = env_.store_now();
  const Connection probe(target_);
  const Duration took = env_.store_now() - begun;
  env_.sleep_for(std::max(kMayBeLost - took, 3 * took), stop);
}

PgPresence::Watching PgPresence::try_to_watch() {
  const std::lock_guard lock(mutex_);
  if (watching_ && watching_->is_usable()) return Watching::as_before;
  if (watching_) note_cut_off();
  watching_.reset();
  // Asked over a session that is there: most of the time another process watches.
  const bool is_free = readers_.ask([&](PgRows&, Connection& db) {
    const Result result = db.ask(kMayWatch);
    executors_ = result.number(0, 1);
    return result.view(0, 0) == "t";
  });
  if (!is_free) return Watching::not_here;
  auto db = std::make_unique<Connection>(target_);
  if (db->ask(kTryWatch).view(0, 0) != "t") return Watching::not_here;
  watching_ = std::move(db);
  return Watching::from_now;
}

/// The more they are, the longer: a watcher that died is found out as soon by one of many that ask
/// seldom. Not all at the same moment.
Duration PgPresence::pause_of_others(Duration pace) {
  const std::lock_guard lock(mutex_);
  const Duration pause =
      std::min(pace * std::max<std::int64_t>(executors_, 2), std::max(pace, kTryAtLeastEvery));
  return pause - Duration(static_cast<std::int64_t>(env_.unit_random() *
                                                    static_cast<double>(pause.count()) / 4));
}

/// From here on, until all are back: a watcher that was cut off itself draws no conclusions.
void PgPresence::note_cut_off() { judges_from_ = env_.store_now() + kAllAreBack; }

bool PgPresence::may_judge() const {
  return HOLDFAST_GUARD("watcher_cut_off", env_.store_now() >= judges_from_.load());
}

std::vector<WorkerId> PgPresence::watch(Duration timeout, const std::stop_token& stop) {
  try {
    return look_out(timeout, stop);
  } catch (const StoreError&) {
    note_cut_off();
    throw;
  }
}

std::vector<WorkerId> PgPresence::look_out(Duration timeout, const std::stop_token& stop) {
  // A single look is anybody's.
  if (timeout > Duration(0)) {
    const Duration pace = std::max(timeout, kWatchAtMostEvery);
    const Watching watching = try_to_watch();
    if (watching == Watching::not_here) {
      env_.sleep_for(pause_of_others(pace), stop);
      return {};
    }
    // Who takes over looks at once: nobody did for a while.
    if (watching == Watching::as_before) env_.sleep_for(pace, stop);
    if (stop.stop_requested()) return {};
  }
  const auto before = lost();
  if (before.empty() || !may_judge()) return {};
  let_come_back(stop);
  std::vector<WorkerId> found;
  for (WorkerId& id : lost()) {
    if (std::ranges::find(before, id) != before.end()) found.push_back(std::move(id));
  }
  return found;
}

}  // namespace holdfast::postgres
