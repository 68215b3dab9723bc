#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "env/env.hpp"
#include "store/postgres/pg_rows.hpp"
#include "store/wake_up.hpp"

namespace holdfast::postgres {

/// The writers of this process. Callers queue up; up to two of them lead at a time, each with a
/// session of its own: one runs everything that is waiting in one transaction and makes it durable
/// with one commit (group commit) while the other waits for its commit. Each caller learns its own
/// result. Any thread.
class PgWriter {
 public:
  using Work = std::function<void(Rows&)>;
  /// Runs were put on the queue, by what is committed.
  using OnQueued = std::function<void(const Queued&)>;

  PgWriter(const Target&, Env&, PgRows::IsGone, PgRows::Clock, OnQueued);
  PgWriter(const PgWriter&) = delete;

  /// Runs `work` in a transaction; returns when it is durable. Throws what `work` threw (its own
  /// changes are undone, nobody else's), or StoreError: then nothing of it is stored, or the answer
  /// is not known.
  void run(const Work& work, const Foresight&);

 private:
  struct Waiter {
    const Work* work = nullptr;
    const Foresight* foresight = nullptr;
    std::exception_ptr error;
    bool leads = false;
    WakeUp awake;
  };
  struct Session {
    Session(PgRows::IsGone is_gone, PgRows::Clock clock)
        : rows(std::move(is_gone), std::move(clock)) {}
    std::unique_ptr<Connection> db;
    PgRows rows;
    Queued queued;  ///< by what the batch has committed
  };
  using Batch = std::vector<Waiter*>;

  void lead(Waiter& self);
  Batch take_batch(Waiter& self);
  void take_waiting(Batch&);
  void execute(Batch&);
  void commit_together(Session&, const Batch&);
  void commit_alone(Session&, Waiter&);
  void try_batch(Session&, const Batch&);
  void pause_before_retry(int tries);
  void begin(Session&, const Batch&);
  void commit(Session&);
  std::unique_ptr<Session> take_session();

  const Target target_;
  Env& env_;
  const PgRows::IsGone is_gone_;
  const PgRows::Clock clock_;
  const OnQueued on_queued_;
  std::mutex mutex_;
  std::deque<Waiter*> waiting_;
  int leaders_ = 0;
  std::vector<std::unique_ptr<Session>> idle_;
};

}  // namespace holdfast::postgres
