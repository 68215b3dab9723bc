#pragma once

#include "core/model.hpp"
#include "holdfast/context.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// What is copied into a run at its first claim: system text, models, tools with effects and
/// schemas, limits.
Json agent_definition(const AgentSpec&, const Toolbox&);

/// The tool loop as a plain handler: one `model` step a turn, one `tool:NAME` step a call,
/// approvals and input by `RunContext::ask`. It works from `run().definition`. `chain` and `tools`
/// must outlive it.
Handler make_agent(const AgentSpec&, ModelChain& chain, Toolbox& tools, const Limits&);

}  // namespace holdfast
