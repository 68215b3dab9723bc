#pragma once

#include <memory>
#include <vector>

#include "core/model.hpp"
#include "env/env.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// The fallback chain over the configured providers. Throws RefusedError for a provider it cannot
/// set up (unknown kind, a script that is missing or malformed).
std::unique_ptr<ModelChain> make_chain(const std::vector<ProviderSpec>&, Env&, const Limits&);

/// Checks one provider without spending anything: key present, script readable, address usable.
Finding check_provider(const ProviderSpec&, Env&);

}  // namespace holdfast
