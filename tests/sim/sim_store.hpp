#pragma once

// One process's way to the store of all: each verb is a place where others may go on, where the
// process may die or the reply be lost, and after each write the witness looks.

#include <set>

#include "sim/faults.hpp"
#include "sim/witness.hpp"

namespace holdfast::sim {

/// Any task of its process.
class SimStore final : public PassingStore {
 public:
  SimStore(Store& rows, SimEnv&, Faults&, Hindrance&, Witness&, bool has_presence);
  ~SimStore() override;

  PresenceBoard* presence() override;
  void wait_for_work(Duration max, const std::stop_token& stop) override;
  StoreTime now() override;
  WallTime wall_now() override;

 protected:
  void around(StoreCall&, const std::function<void()>& call) override;

 private:
  class Board;
  class Hold;

  SimEnv& env_;
  Faults& faults_;
  Hindrance& hindrance_;
  Witness& witness_;
  const std::unique_ptr<Board> board_;
};

}  // namespace holdfast::sim
