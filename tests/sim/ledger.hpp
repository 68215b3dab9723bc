#pragma once

// Every call of the simulated world outside: models, tools, steps, probes. Knows how often a write
// began and landed, and says so when that should not have been.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/run.hpp"
#include "sim/violations.hpp"
#include "store/store.hpp"
#include "support/sim_env.hpp"

namespace holdfast::sim {

/// By whoever holds the baton.
class Ledger {
 public:
  /// `renews`: leases are kept alive while steps last; else a step may be repeated beside one that
  /// outlasts its lease (spec, section 4 "Self-fencing").
  Ledger(SimEnv& env, Store& rows, Violations& violations, bool renews)
      : env_(env), rows_(rows), violations_(violations), renews_(renews) {}

  // What the engine was seen to write.

  void fenced(const Lease&, const Fence&);
  void unfenced(const RunId&, const std::string& key);
  void recorded(const RunId&, const std::string& key, const Json& result);
  /// A probe or a person says that the write has not landed; `forced`: before that may be believed.
  void not_landed(const RunId&, const std::string& key, bool forced);
  void approved(const RunId& run, const std::string& call, const Json& arguments) {
    approved_[{run, call}] = arguments;
  }
  void refused(const RunId& run, const std::string& call) { approved_.erase({run, call}); }
  /// The same calls are asked about again.
  void forget(const RunId&);

  // What happens outside.

  /// From its first instant to its end, one call of a tool or step.
  class Call {
   public:
    Call(Ledger&, const RunId&, const std::string& key, const std::string& name, Effect,
         const Json& arguments, bool is_gated);
    Call(const Call&) = delete;
    ~Call();
    /// It takes effect. The receipt.
    Json land();
    /// The caller is told that nothing was begun.
    void never_began();
    /// Its process lives, and has not stood still since it began. One that is held for dead is not
    /// told in time where it renews at step boundaries only, or hears nothing of its store
    /// (docs/reliability.md, "Limits").
    bool goes_on() const {
      const bool is_hindered = ledger_.env_.now() <= process_.impaired_until;
      const bool is_told = !process_.lost_presence || (ledger_.renews_ && !is_hindered);
      return !process_.is_dead && process_.freezes == freezes_ && is_told;
    }

   private:
    Ledger& ledger_;
    const std::pair<RunId, std::string> step_;
    const Effect effect_;
    const SimProcess& process_;
    const int freezes_;
  };
  /// Whether a write took effect, and what came of it.
  std::optional<Json> find_landed(const RunId& run, const std::string& key) const;
  /// A handler was given this for a step.
  void given(const RunId&, const std::string& key, const Json& result);

  void model_call(const RunId&, int turn, const std::string& request);

  int calls() const { return calls_; }
  int landed() const { return landed_; }
  const Tally& tally() const { return tally_; }

 private:
  using Step = std::pair<RunId, std::string>;
  struct Written {
    int begun = 0;  ///< since it was last said that it had not landed
    int executions = 0;
    std::vector<const Call*> under_way;
    std::optional<Json> landed;
    std::optional<WorkerId> fenced_by;  ///< and not begun under that fence yet
    std::int64_t fenced_claim = 0;
    bool fenced_interactive = false;
  };
  void begin_write(const Step&, Written&, Effect);
  void need_lease(const Step&, const Written&);

  friend class Call;
  SimEnv& env_;
  Store& rows_;
  Violations& violations_;
  const bool renews_;
  std::map<Step, Written> writes_;
  std::map<Step, Json> recorded_;
  std::map<RunId, int> turns_;
  std::map<std::pair<RunId, int>, std::string> requests_;
  std::map<Step, Json> approved_;  ///< by call
  int calls_ = 0;
  int landed_ = 0;
  Tally tally_;
  std::map<RunId, std::vector<const Call*>> under_way_;
};

}  // namespace holdfast::sim
