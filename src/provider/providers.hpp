#pragma once

// The model APIs that this build speaks, and the chain over them.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/model.hpp"
#include "env/env.hpp"
#include "holdfast/runtime.hpp"
#include "provider/circuit_board.hpp"

namespace holdfast {

/// Any server that speaks Chat Completions. Throws RefusedError for a spec that cannot work.
/// `key_names`: the environment variables that hold other providers' keys; none of these keys, nor
/// its own, is in what it gives back.
std::unique_ptr<Provider> make_openai(const ProviderSpec&, Env&, const Limits&,
                                      std::vector<std::string> key_names = {});

/// Answers from a JSON file (spec, section 11). Throws RefusedError naming file and entry.
std::unique_ptr<Provider> make_scripted(const ProviderSpec&, Env&);

using ProviderMap = std::map<std::string, std::unique_ptr<Provider>>;
std::unique_ptr<ModelChain> make_chain_of(ProviderMap, Env&,
                                          std::unique_ptr<CircuitBoard> circuits = nullptr);

/// Money for tokens, by the model's price; zero where none is configured.
double cost_of(const ProviderSpec&, const std::string& model, const Usage&);

}  // namespace holdfast
