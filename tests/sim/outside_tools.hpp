#pragma once

#include "sim/outside.hpp"

namespace holdfast::sim {

struct ToolCallOf {
  std::string name;
  Effect effect = Effect::read;
  bool is_gated = false;
};

/// One call of a tool or a step's work, from its entry in the ledger to its receipt; or it fails,
/// before or after it took effect.
Json perform(Outside&, Hindrance&, const ToolCallOf&, const RunId&, const Json& arguments,
             const StepContext&);
/// Asks the ledger.
ProbeAnswer probe(Outside&, Hindrance&, const RunId&, const StepContext&);

}  // namespace holdfast::sim
