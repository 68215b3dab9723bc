#pragma once

#include <string>

#include "core/model.hpp"
#include "holdfast/context.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// What is copied into a run at its first claim: system text, models, limits, and each tool with
/// all that decides what its calls do: command, probe, names of `pass_env`, effect, schemas. Values
/// of `env` may be secrets: only their digest is in it.
/// Of the providers: which models have a price.
Json agent_definition(const AgentSpec&, const Toolbox&, const std::vector<ProviderSpec>& = {});

/// Why this process cannot execute a run of that definition: a tool that is a function is not
/// registered here, or one that needs an `env` is not configured here. Empty: it can.
std::string execution_problem(const Json& definition, const Toolbox&);
/// The same of its models: this process lacks the keys of all of them. Empty: it can call one.
std::string model_problem(const Json& definition, const ModelChain&);

/// The tool loop as a plain handler: one `model` step a turn, one `tool:NAME` step a call,
/// approvals and input by `RunContext::ask`. It works from `run().definition`. `chain` and `tools`
/// must outlive it.
Handler make_agent(const AgentSpec&, ModelChain& chain, Toolbox& tools, const Limits&,
                   const std::vector<ProviderSpec>& = {});

}  // namespace holdfast
