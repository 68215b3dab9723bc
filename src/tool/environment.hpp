#pragma once

#include <string>
#include <vector>

#include "holdfast/agent.hpp"

namespace holdfast {

/// The whole environment of a tool's process as `NAME=value`: PATH, HOME, LANG and TZ of this
/// process, what the specification adds and what it passes on by name, and HOLDFAST_RUN_ID,
/// HOLDFAST_STEP, HOLDFAST_TOOL and HOLDFAST_IDEMPOTENCY_KEY. Nothing else of this process's
/// environment, its own HOLDFAST_* included: a store's address can hold a password.
std::vector<std::string> tool_environment(const ToolSpec&, const StepContext&);

}  // namespace holdfast
