#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "env/env.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/pg_turns.hpp"
#include "store/store.hpp"
#include "store/verbs.hpp"
#include "store/work_signal.hpp"

namespace holdfast::postgres {

/// Tells idle workers that runs were put on the queue, one for each. Those of this process are told
/// directly; the others by one session for LISTEN and NOTIFY, only as far as nobody here is idle
/// for them, at most once in a while, and behind the commit, which it therefore never holds up.
/// Which process is to look, `Turns` knows. Without notifications (off, lost, a pooler) workers
/// look by themselves. Any thread.
class PgWake {
 public:
  PgWake(const Target&, Env&);
  PgWake(const PgWake&) = delete;
  /// Tells what is to be told still.
  ~PgWake();

  /// Runs were put on the queue by this process.
  void announce(const Queued&);
  void about_to_look() { signal_.about_to_look(); }
  void wait(Duration max, const std::stop_token& stop);

  /// What a look would say, where that is known: behind a claim that took as many as it wanted
  /// there may be more, and where it is this worker's turn there is something; what a look that
  /// found nothing said holds until this worker is told of something, something that it knew of
  /// falls due, or a while has passed.
  std::optional<verbs::Look> recall(const ClaimRequest&);
  void remember(verbs::Look&);
  /// The last look of this thread found nothing.
  bool found_nothing();
  void remember_claim(const ClaimRequest&, std::size_t taken);
  /// It claims no more.
  void forget(const WorkerId&);

 private:
  /// What a look that found nothing said.
  struct Memory {
    StoreTime at{};
    std::optional<StoreTime> due_at;
    Duration lasts{};
  };
  /// A thread that claims for a worker.
  struct Claimer {
    WorkerId worker;
    Service service;
    int room = 1;             ///< how many it can take, at least
    bool is_waiting = false;  ///< and has not been called
    bool has_waited = false;  ///< since it looked
    bool must_look = false;   ///< what it remembers no longer holds
    std::optional<Memory> memory;

    std::optional<Message::Told> called_for;  ///< these are there
    int known = 0;                            ///< so many were, when it claimed last
    bool is_full = false;                     ///< its last claim took as many as it wanted
    bool has_more = false;                    ///< than that
  };
  struct Talk;

  Claimer& self() { return claimers_[std::this_thread::get_id()]; }
  int call(const Kind&, int runs, bool is_sure);
  void offer(const Service&);
  void withdraw_full();
  bool has_notifications() const { return target_.notifies && target_.has_sessions(); }
  void note_services();
  void start();
  void ring() const;
  void look_all();

  // The thread's.
  void serve();
  void serve_session(const std::stop_token& stop);
  void greet(Talk&);
  void tell(Talk&);
  void gather(Talk&);
  void hear(Talk&);
  bool take_turns(StoreTime now);
  Duration pause(const Talk&);
  bool is_here_due(const Talk&, StoreTime now) const;

  const Target target_;
  Env& env_;
  const std::string name_;
  WorkSignal signal_;
  const int bell_;
  std::mutex mutex_;
  Turns turns_;
  std::map<std::thread::id, Claimer> claimers_;
  Queued untold_;
  std::stop_source stopping_;
  std::vector<std::string> unsent_;  ///< the thread's, and the next two
  std::int64_t number_ = 0;
  bool is_missed_ = false;  ///< it was said that there are no notifications
  std::unique_ptr<Thread> thread_;
};

}  // namespace holdfast::postgres
