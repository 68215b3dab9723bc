#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model.hpp"

namespace holdfast {

/// What is wrong with a conversation that is to be sent: a call without its one result, a result
/// without its call, a result twice, late or under another tool's name. Empty: nothing. Every model
/// API refuses such a history, or, worse, takes it.
std::optional<std::string> history_problem(const std::vector<Message>&);

}  // namespace holdfast
