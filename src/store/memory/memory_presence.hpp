#pragma once

#include <map>
#include <mutex>
#include <set>

#include "env/env.hpp"
#include "store/store.hpp"

namespace holdfast {

/// Presence within one process: a worker is there for as long as it keeps its hold. Any thread.
class MemoryPresence : public PresenceBoard {
 public:
  explicit MemoryPresence(Env& env) : ended_(env.make_event_count()) {}

  std::unique_ptr<PresenceHold> hold(const Identity&) override;
  std::vector<WorkerId> watch(Duration timeout, const std::stop_token& stop) override;
  std::unique_ptr<PresenceProof> prove_gone(const WorkerId&) override;

  bool is_gone(const WorkerId&) override;

 private:
  class Hold;
  class Proof;
  void release(const WorkerId&);
  std::vector<WorkerId> suspects();

  std::unique_ptr<EventCount> ended_;
  std::mutex mutex_;
  std::set<WorkerId> held_;
  std::set<WorkerId> suspects_;  ///< let go, and nobody has looked after their runs yet
  std::set<WorkerId> proven_;
};

}  // namespace holdfast
