#pragma once

// How much of a conversation a model can be sent, and what is left out of it where that is too
// much: whole turns (an answer of the model with the results of its calls), the oldest first. The
// system text, the task and the last turn stay (docs/decisions, 0025). Pure.

#include <cstdint>
#include <optional>

#include "core/model.hpp"

namespace holdfast {

/// About what a model will count, rather too much than too little: four bytes of ASCII are a token,
/// and so is every other character.
std::int64_t estimated_tokens(const ModelRequest&);

/// How many turns could be left out.
int spare_turns(const ModelRequest&);

/// The request without its `count` oldest turns. Every call in it has its result.
ModelRequest without_turns(const ModelRequest&, int count);

/// How many turns must be left out, at least `count`, so that the request takes at most `room`
/// tokens. None: it takes more even without all of them.
std::optional<int> turns_to_leave_out(const ModelRequest&, int count, std::int64_t room);

}  // namespace holdfast
