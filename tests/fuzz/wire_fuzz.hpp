#pragma once

// A model call whose answer is the input: `STATUS CONTENT-TYPE`, lines of `name: value`, an empty
// line, the body. The transport is replaced (wire_fuzz.cpp); all that reads the answer is the real
// thing.

#include <string>
#include <string_view>

namespace holdfast::fuzz {

/// What the caller of the provider gets, as one comparable text. `piece_bytes`: the body comes in
/// pieces of that size; 0: at once. Checks what holds for every answer.
std::string call_model(std::string_view input, bool stream, std::size_t piece_bytes);

}  // namespace holdfast::fuzz
