#pragma once

#include "holdfast/agent.hpp"

namespace holdfast {

/// Throws RefusedError (usage) naming the tool, what cannot work, and the remedy.
void check_tool_spec(const ToolSpec&);

}  // namespace holdfast
