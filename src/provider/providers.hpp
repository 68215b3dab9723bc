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

class Dialect;

/// A model API over HTTP. Throws RefusedError for a spec that cannot work. `key_names`: the
/// environment variables that hold other providers' keys; none of these keys, nor its own, is in
/// what it gives back.
std::unique_ptr<Provider> make_http_provider(const ProviderSpec&, std::unique_ptr<const Dialect>,
                                             Env&, const Limits&,
                                             std::vector<std::string> key_names);

/// The address of a provider: the one that it is given, else that of its kind; empty: none.
std::string base_url_of(const ProviderSpec&);

/// Any server that speaks Chat Completions or, by `api`, Responses. This and the others below: as
/// make_http_provider.
std::unique_ptr<Provider> make_openai(const ProviderSpec&, Env&, const Limits&,
                                      std::vector<std::string> key_names = {});

std::unique_ptr<Provider> make_responses(const ProviderSpec&, Env&, const Limits&,
                                         std::vector<std::string> key_names = {});
std::unique_ptr<Provider> make_anthropic(const ProviderSpec&, Env&, const Limits&,
                                         std::vector<std::string> key_names = {});

std::unique_ptr<Provider> make_gemini(const ProviderSpec&, Env&, const Limits&,
                                      std::vector<std::string> key_names = {});
std::unique_ptr<Provider> make_ollama(const ProviderSpec&, Env&, const Limits&,
                                      std::vector<std::string> key_names = {});

/// Answers from a JSON file (spec, section 11). Throws RefusedError naming file and entry.
std::unique_ptr<Provider> make_scripted(const ProviderSpec&, Env&);

using ProviderMap = std::map<std::string, std::unique_ptr<Provider>>;
std::unique_ptr<ModelChain> make_chain_of(ProviderMap, Env&,
                                          std::unique_ptr<CircuitBoard> circuits = nullptr);

/// About how many tokens a request to that model may take: of the window that is configured, or
/// that is known. None: nobody knows.
std::optional<std::int64_t> request_room(const ProviderSpec&, const std::string& model);

/// Money for tokens, by the model's price; zero where none is configured.
double cost_of(const ProviderSpec&, const std::string& model, const ModelUsage&);

}  // namespace holdfast
