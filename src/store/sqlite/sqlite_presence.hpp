#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "env/env.hpp"
#include "store/sqlite/write_lock.hpp"
#include "store/store.hpp"

namespace holdfast::sqlite {

/// Presence as locked files `PATH-workers/WORKER`: the system drops the lock when the process dies.
/// A file is removed only by who holds its lock. Any thread.
class SqlitePresence : public PresenceBoard {
 public:
  /// `lease_holders`: who holds leases according to the store; one without a file is a suspect too.
  SqlitePresence(const std::string& database, Env&,
                 std::function<std::vector<WorkerId>()> lease_holders);

  std::unique_ptr<PresenceHold> hold(const Identity&) override;
  std::vector<WorkerId> watch(Duration timeout, const std::stop_token& stop) override;
  std::unique_ptr<PresenceProof> prove_gone(const WorkerId&) override;

  /// Is its lock free, or is there no file?
  bool is_gone(const WorkerId&) override;

 private:
  std::string path_of(const WorkerId& id) const { return folder_ + "/" + id; }
  std::vector<WorkerId> suspects(bool asks_store);
  void follow(const WorkerId&, int fd);
  std::vector<WorkerId> missing(const std::vector<WorkerId>& holders,
                                const std::set<WorkerId>& present, StoreTime now);

  const std::string folder_;
  Env& env_;
  std::function<std::vector<WorkerId>()> lease_holders_;
  std::mutex mutex_;
  std::map<WorkerId, Descriptor> processes_;  ///< of living workers here: readable at their death
  std::map<WorkerId, StoreTime> missing_since_;
};

}  // namespace holdfast::sqlite
