#pragma once

#include <optional>
#include <string>
#include <variant>

#include "agent/definition.hpp"
#include "agent/turn.hpp"
#include "holdfast/context.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// Reads the answer of an agent that has an `answer_schema`. A model is told once in a drive what
/// is wrong with its answer; the second one that does not meet the schema ends the run. Everything
/// that it looks at is recorded, so every segment decides alike; a redrive gives the model both
/// chances anew (docs/decisions, 0026).
class AnswerCheck {
 public:
  AnswerCheck(RunContext& context, const AgentTerms& terms, const Limits& limits)
      : context_(context), schema_(terms.answer_schema), limits_(limits) {}

  /// Must the answer meet a schema? Else it is the text as it stands.
  bool is_needed() const { return !schema_.is_null(); }

  /// What the system text says of it. Also models whose API takes no schema are told.
  std::string instruction() const;

  struct Mend {
    std::string text;  ///< what the model is told, so that it answers again
  };
  /// The value of a turn's text. Throws FailureError (configuration, `answer_schema`).
  std::variant<Json, Mend> read(const Turn&);

 private:
  RunContext& context_;
  const Json& schema_;
  const Limits& limits_;
  int failed_ = 0;  ///< answers of this drive
};

/// The one JSON value of a text, also where it stands in a fenced block of its own; else nothing,
/// and `problem` says why.
std::optional<Json> value_of_answer(const std::string& text, int max_depth, std::string* problem);

}  // namespace holdfast
