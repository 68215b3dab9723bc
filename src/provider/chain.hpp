#pragma once

#include <memory>
#include <vector>

#include "core/model.hpp"
#include "env/env.hpp"
#include "holdfast/runtime.hpp"
#include "provider/circuit_board.hpp"

namespace holdfast {

/// The fallback chain over the configured providers. Throws RefusedError for a provider it cannot
/// set up (unknown kind); `prepare` for a script that is missing or malformed. `circuits`: whose
/// calls count; null: none.
std::unique_ptr<ModelChain> make_chain(const std::vector<ProviderSpec>&, Env&, const Limits&,
                                       std::unique_ptr<CircuitBoard> circuits = nullptr);

/// Checks one provider without spending anything: key present, script readable, address usable.
Finding check_provider(const ProviderSpec&, Env&);

}  // namespace holdfast
