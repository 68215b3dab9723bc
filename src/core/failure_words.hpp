#pragma once

// What the words and sentences of error bodies mean. A new vendor's word for a known thing belongs
// into the tables of failure_words.cpp and nowhere else.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/words.hpp"

namespace holdfast {

/// `DeploymentNotFound`, `deployment_not_found` and `deployment-not-found` are one word: letters
/// and digits in lower case, bounded.
std::string squeeze(std::string_view word);

/// What a code or type says for certain. `invalid_api_key` names its subject; a bare
/// `invalid_value` or `invalid_request_error` does not.
std::optional<FailureClass> class_of_word(std::string_view word);

/// What a word says that vendors use for many things: it counts only where text and status say
/// nothing.
std::optional<FailureClass> class_of_vague_word(std::string_view word);

/// What a sentence says, where no code speaks. Phrases, never lone numbers or words: a message may
/// echo the prompt. `status` is 0 where none is known.
std::optional<FailureClass> class_of_text(const std::string& message, int status);

bool has_any(std::string_view text, std::initializer_list<std::string_view> phrases);

}  // namespace holdfast
