#pragma once

#include <memory>

#include "provider/circuit_board.hpp"
#include "store/store.hpp"

namespace holdfast {

/// The circuits in a store, which must outlive them.
std::unique_ptr<CircuitBoard> make_circuits(Store&, const CircuitOptions&);

/// As `stats` and `why` show it; a closed one only with failures behind it.
Json show_circuit(const Circuit&, StoreTime now, WallTime wall_now);

}  // namespace holdfast
