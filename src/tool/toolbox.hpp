#pragma once

#include <memory>
#include <vector>

#include "core/model.hpp"
#include "env/env.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// ToolCommand tools and functions. Arguments are checked by the caller. Throws RefusedError for
/// specs that cannot work (both a command and a function, a schema that is none).
std::unique_ptr<Toolbox> make_toolbox(std::vector<ToolSpec>, Env&, const Limits&);

/// Is its program there and executable?
Finding check_tool(const ToolSpec&);

}  // namespace holdfast
