#pragma once

// What goes wrong, and where: the faults of a plan that wait for their victim to come by, and those
// that last for a while.

#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan.hpp"
#include "sim/violations.hpp"
#include "support/sim_env.hpp"

namespace holdfast::sim {

/// Where a process is among the faults. Owned by the world, one for each process.
struct Hindrance {
  int subject = -1;  ///< the number of its worker or client; -1: nobody's
  StoreTime store_down_until{};
  StoreTime store_slow_until{};
  std::function<void()> drop_presence;
};

/// Says what strikes whoever comes to a place; nothing: nothing.
using FaultOracle = std::function<std::optional<Element>(const std::string& place, bool after,
                                                         bool is_store, const Hindrance&)>;

/// Consulted at every place. By whoever holds the baton.
class Faults {
 public:
  Faults(SimEnv& env, const Settings& settings, Chance& chance)
      : env_(env), settings_(settings), chance_(chance) {}

  /// It strikes when its victim comes to its place.
  void arm(const Element& fault) { armed_.push_back({fault, 0}); }
  /// It strikes now, wherever its victim is.
  void strike(const Element&, SimProcess&, Hindrance&);
  /// Faults that no plan foretells.
  void set_oracle(FaultOracle oracle) { oracle_ = std::move(oracle); }
  /// No more faults: everything that stands still or is slow goes on.
  void end();
  bool are_over() const { return are_over_; }

  /// The task comes to a place on its way into the world, or back. Throws StoreError where the way
  /// to the store is cut; never returns in a process that was killed there.
  void pass(const std::string& place, bool after, Hindrance&, bool is_store);

  /// It holds its presence.
  void present(const WorkerId& worker) { present_.push_back(worker); }
  /// A worker that somebody takes for gone, and who may well be there.
  std::optional<WorkerId> suspect();

  int struck() const { return struck_; }
  const Tally& tally() const { return tally_; }

 private:
  struct Armed {
    Element fault;
    int passed;
  };
  bool comes_by(Armed&, const std::string& place, bool after, const Hindrance&);
  void wait(Duration);
  void impair(SimProcess&, Duration);

  SimEnv& env_;
  const Settings& settings_;
  Chance& chance_;
  std::list<Armed> armed_;
  FaultOracle oracle_;
  Duration jumped_{};
  Duration furthest_{};
  std::vector<WorkerId> present_;
  bool are_over_ = false;
  int struck_ = 0;
  Tally tally_;
};

/// Refuses to go on in a process that is dead: nothing that its stacks do while they are unwound
/// has an effect.
void need_life(SimEnv&);

}  // namespace holdfast::sim
