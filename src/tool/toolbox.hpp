#pragma once

#include <memory>
#include <vector>

#include "core/model.hpp"
#include "env/env.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// Commands, HTTP calls and functions. `hosts`: those that HTTP may go to; none listed, all.
/// Arguments are checked by the caller. Throws RefusedError for specs that cannot work (both a
/// command and a function, a schema that is none).
std::unique_ptr<Toolbox> make_toolbox(std::vector<ToolSpec>, Env&, const Limits&,
                                      std::vector<std::string> hosts = {});

/// Is its program there and executable, or its host in reach?
Finding check_tool(const ToolSpec&, const std::vector<std::string>& hosts = {});

}  // namespace holdfast
