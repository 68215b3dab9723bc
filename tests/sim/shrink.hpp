#pragma once

#include <functional>

#include "sim/history.hpp"

namespace holdfast::sim {

/// A smaller plan that breaks the same promise: fewer elements, fewer actors, a plainer world. At
/// most `tries` histories are run for it.
Plan shrink(const Plan&, const std::string& violation, SimThreads&, int tries);

}  // namespace holdfast::sim
