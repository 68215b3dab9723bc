#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "store/postgres/pg_reader.hpp"

namespace holdfast::postgres {

/// Presence as an advisory lock of a session that does nothing else: the server drops it when the
/// process dies. `presences` says which server a lock was taken on, so that a restart or a failover
/// proves nothing of anybody. One process at a time watches; every lock is only tried. Any thread.
class PgPresence : public PresenceBoard {
 public:
  PgPresence(const Target&, Env&, PgReaderPool&);
  PgPresence(const PgPresence&) = delete;

  std::unique_ptr<PresenceHold> hold(const Identity&) override;
  std::vector<WorkerId> watch(Duration timeout, const std::stop_token& stop) override;
  std::unique_ptr<PresenceProof> prove_gone(const WorkerId&) override;

  /// Those whose lock nobody holds, and those that left no trace.
  std::set<WorkerId> gone_among(const std::vector<WorkerId>&);
  bool is_gone(const WorkerId& id) override { return !gone_among({id}).empty(); }

 private:
  enum class Watching { not_here, from_now, as_before };
  Watching try_to_watch();
  Duration pause_of_others(Duration pace);
  std::vector<WorkerId> look_out(Duration timeout, const std::stop_token& stop);
  void let_come_back(const std::stop_token& stop);
  void note_cut_off();
  bool may_judge() const;
  std::vector<WorkerId> lost();

  const Target target_;
  Env& env_;
  PgReaderPool& readers_;
  std::atomic<StoreTime> judges_from_{StoreTime()};
  std::mutex mutex_;
  std::unique_ptr<Connection> watching_;  ///< holds the watcher's lock
  std::int64_t executors_ = 0;            ///< processes, as far as it is known
};

}  // namespace holdfast::postgres
