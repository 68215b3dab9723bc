#pragma once

// Looks at the store after every write and compares: what was, what may have become of it, and what
// is. The invariants of spec, section 10, that rows and events show are those that `verify` uses
// (runtime/verify.hpp); the others need to know who wrote, and are here.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/ledger.hpp"
#include "support/passing_store.hpp"

namespace holdfast::sim {

/// By whoever holds the baton.
class Witness {
 public:
  /// `renews`: leases are kept alive between step boundaries too.
  Witness(SimEnv& env, Store& rows, Ledger& ledger, Violations& violations, bool renews)
      : env_(env), rows_(rows), ledger_(ledger), violations_(violations), renews_(renews) {}

  /// Around each write, with nothing in between.
  void before(const StoreCall&);
  void after(const StoreCall&);

  /// An exception that no verb may throw.
  void escaped(const std::string& where, const std::string& what) {
    violations_.add(kNoBug, "{}: {}", where, what);
  }

  /// The caller was told that the run is stored.
  void acknowledged(const Run&, const std::string& request);
  /// Of what was acknowledged nothing may be missing.
  void check_nothing_lost();
  void check_everything();

  const Tally& tally() const { return tally_; }
  std::int64_t events() const { return events_; }

 private:
  struct Known {
    Run row;
    std::vector<Event> journal;
    std::int64_t claim_at_cancel = 0;
    int steps_since_end = 0;
  };
  void look(const RunId&, const StoreCall&, std::size_t new_events);
  void check_claim(const Known&, const Run& now, const StoreCall&);
  void check_writer(const Known&, const Run& now, const StoreCall&, bool changed);
  void check_terminal(Known&, const Run& now, const StoreCall&, std::size_t new_events);
  void take(const Known& before, const Event&, const StoreCall&);
  void check_reaped(const Known& before, const Event&);
  void take_decision(const Known& before, const Event&, bool approved);
  void take_purge();

  SimEnv& env_;
  Store& rows_;
  Ledger& ledger_;
  Violations& violations_;
  const bool renews_;
  std::map<RunId, Known> known_;
  std::map<RunId, Run> leased_;  ///< as they were before a sweep
  std::set<RunId> purged_;
  std::map<std::string, std::pair<RunId, std::string>> keys_;
  std::set<RunId> acknowledged_;
  std::int64_t cursor_ = 0;
  std::int64_t events_ = 0;
  Tally tally_;
};

}  // namespace holdfast::sim
