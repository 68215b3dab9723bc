#pragma once

#include <string>

#include "holdfast/agent.hpp"

namespace holdfast {

/// Throws RefusedError (usage) naming the tool, what cannot work, and the remedy.
void check_tool_spec(const ToolSpec&);

/// GET, HEAD, POST, PUT, PATCH, DELETE.
bool is_http_method(const std::string&);
bool is_header_name(const std::string&);

}  // namespace holdfast
