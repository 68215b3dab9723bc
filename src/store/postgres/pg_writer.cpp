#include "store/postgres/pg_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/guard.hpp"
#include "store/postgres/pg_statements.hpp"

namespace holdfast::postgres {
namespace {

constexpr int kMostLeaders = 2;
constexpr std::size_t kMostInBatch = 512;
/// How often a transaction that met another one is tried: that of several writers, who go on one by
/// one then, and that of one alone.
constexpr int kMostTriesTogether = 6;
constexpr int kMostTries = 12;
/// The longest pause before the second try, doubled for each further one, up to more than a
/// transaction takes on a busy server: those that keep meeting come apart. 3 s in all at most.
constexpr double kFirstPauseMs = 10;
constexpr double kMostPauseMs = 400;
/// A commit may wait for a standby. Whoever gives up waiting does not know.
constexpr Duration kCommitPatience = std::chrono::seconds(30);

/// The answer never came, or says that it is not sure: nothing of it may be done again here.
class UnknownCommit : public StoreError {
 public:
  UnknownCommit(const Target& target, std::string_view why)
      : StoreError(fmt::format("it is not known whether the store {} keeps a write: {}",
                               target.shown, why),
                   false) {}
};

/// Thrown where it is known that nothing was stored and a new session may do better.
struct LostBeforeCommit {
  std::exception_ptr error;
  bool has_session = true;  ///< else there was none to be had
};

/// A server that refuses at once may be back at once; one that says nothing has been waited for.
constexpr Duration kRefusedAtOnce = std::chrono::seconds(1);

/// Only a collision is gone the next time.
bool may_try_again(const PgError& error, int tries, std::size_t writers) {
  return HOLDFAST_GUARD("collision_retried", error.is_collision()) &&
         tries < (writers == 1 ? kMostTries : kMostTriesTogether);
}

}  // namespace

PgWriter::PgWriter(const Target& target, Env& env, PgRows::IsGone is_gone, PgRows::Clock clock,
                   OnQueued on_queued)
    : target_(target),
      env_(env),
      is_gone_(std::move(is_gone)),
      clock_(std::move(clock)),
      on_queued_(std::move(on_queued)) {}

void PgWriter::run(const Work& work, const Foresight& foresight) {
  Waiter self;
  self.work = &work;
  self.foresight = &foresight;
  bool must_wait = false;
  {
    const std::lock_guard lock(mutex_);
    if (leaders_ < kMostLeaders) {
      ++leaders_;
      self.leads = true;
    } else {
      waiting_.push_back(&self);
      must_wait = true;
    }
  }
  // Until it wakes this thread another leader may write to `self`: it is not looked at before.
  if (must_wait) self.awake.acquire();
  if (self.leads) lead(self);
  if (self.error) std::rethrow_exception(self.error);
}

/// The next leader starts before the others are told.
void PgWriter::lead(Waiter& self) {
  Batch batch = take_batch(self);
  execute(batch);
  Waiter* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      --leaders_;
    } else {
      next = waiting_.front();
      waiting_.pop_front();
      next->leads = true;
    }
  }
  if (next != nullptr) next->awake.release();
  for (Waiter* waiter : batch) {
    if (waiter != &self) waiter->awake.release();
  }
}

PgWriter::Batch PgWriter::take_batch(Waiter& self) {
  Batch batch{&self};
  take_waiting(batch);
  return batch;
}

void PgWriter::take_waiting(Batch& batch) {
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty() && batch.size() < kMostInBatch) {
    batch.push_back(waiting_.front());
    waiting_.pop_front();
  }
}

std::unique_ptr<PgWriter::Session> PgWriter::take_session() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Session>(is_gone_, clock_);
  auto session = std::move(idle_.back());
  idle_.pop_back();
  return session;
}

void PgWriter::execute(Batch& batch) {
  auto session = take_session();
  session->queued.clear();
  try {
    commit_together(*session, batch);
    HOLDFAST_FAILPOINT("commit.after");
  } catch (const LostBeforeCommit& lost) {
    // There is no server: whoever waited for this has waited for the same.
    if (!lost.has_session) take_waiting(batch);
    for (Waiter* waiter : batch) waiter->error = lost.error;
  } catch (...) {
    for (Waiter* waiter : batch) waiter->error = std::current_exception();
  }
  if (!session->queued.empty()) on_queued_(session->queued);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(session));
}

void PgWriter::commit_together(Session& session, const Batch& batch) {
  for (int lost = 0;; ++lost) {
    const StoreTime begun = env_.store_now();
    try {
      try_batch(session, batch);
      return;
    } catch (const LostBeforeCommit& gone) {
      // A session that a restart or a failover ended, perhaps while it was idle.
      const bool is_silent = !gone.has_session && env_.store_now() - begun >= kRefusedAtOnce;
      if (lost == 1 || is_silent) throw;
    } catch (const UnknownCommit&) {
      throw;
    } catch (...) {
      if (batch.size() == 1) throw;
      break;
    }
  }
  // One of them failed: each by itself, so that it fails for its own sake only.
  for (Waiter* waiter : batch) commit_alone(session, *waiter);
}

void PgWriter::commit_alone(Session& session, Waiter& waiter) {
  try {
    try_batch(session, {&waiter});
  } catch (const LostBeforeCommit& gone) {
    waiter.error = gone.error;
  } catch (...) {
    waiter.error = std::current_exception();
  }
}

/// The other one is to get what it waits for first.
void PgWriter::pause_before_retry(int tries) {
  const double most = std::min(kMostPauseMs, std::ldexp(kFirstPauseMs, tries - 1));
  env_.sleep_for(Duration(2 + static_cast<std::int64_t>(env_.unit_random() * most)), {});
}

/// One transaction, again where it met another one.
void PgWriter::try_batch(Session& session, const Batch& batch) {
  for (int tries = 1;; ++tries) {
    try {
      begin(session, batch);
      for (Waiter* waiter : batch) (*waiter->work)(session.rows);
      session.rows.send_changes();
      HOLDFAST_FAILPOINT("commit.before");
    } catch (const PgError& error) {
      if (session.db != nullptr) session.db->roll_back();
      session.rows.rolled_back();
      if (error.is_lost() || (session.db != nullptr && session.db->is_broken())) {
        throw LostBeforeCommit{std::current_exception(), session.db != nullptr};
      }
      if (!may_try_again(error, tries, batch.size())) throw;
      pause_before_retry(tries);
      continue;
    } catch (...) {
      if (session.db != nullptr) session.db->roll_back();
      session.rows.rolled_back();
      throw;
    }
    try {
      commit(session);
      return;
    } catch (const PgError& error) {
      session.db->roll_back();
      session.rows.rolled_back();
      if (error.is_lost()) throw UnknownCommit(target_, error.what());
      if (!may_try_again(error, tries, batch.size())) throw;
      pause_before_retry(tries);
    }
  }
}

void PgWriter::begin(Session& session, const Batch& batch) {
  if (!session.db || !session.db->is_usable()) {
    session.db.reset();
    session.db = Connection::make_tuned(target_);
  }
  std::vector<const Foresight*> foresights;
  for (const Waiter* waiter : batch) foresights.push_back(waiter->foresight);
  session.rows.begin(*session.db, foresights);
}

void PgWriter::commit(Session& session) {
  Connection& db = *session.db;
  db.send(kUntimed);
  db.send(kCommit);
  const auto results =
      db.flush(kCommitPatience, "a synchronous standby of the server does not answer");
  // Cut short on its way to the standby: it stands here, and perhaps nowhere else.
  if (!db.warning().empty()) throw UnknownCommit(target_, db.warning());
  if (results.back().command() != "COMMIT") throw UnknownCommit(target_, "it ended otherwise");
  session.rows.committed();
  for (const auto& [what, number] : session.rows.queued()) session.queued[what] += number;
}

}  // namespace holdfast::postgres
