#pragma once

// One turn of the conversation: the model's reply as it is recorded, and what is to be done about
// each of its calls. That plan is made once, when the reply arrives, and recorded with it: a later
// segment follows it even where the agent's definition was taken anew by a redrive meanwhile.

#include <optional>
#include <string>
#include <vector>

#include "agent/definition.hpp"
#include "core/model.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// A call with what is to be done about it.
struct PlannedCall {
  ToolCall call;                       ///< as the model wrote it; id `1.2`: turn, place in it
  Json arguments;                      ///< final: defaults filled in, later a person's input too
  std::optional<std::string> problem;  ///< why it is not executed, for the model
  bool asks_approval = false;
  bool asks_input = false;
};

/// A recorded turn.
struct Turn {
  int number = 0;  ///< 1, 2, …
  std::string provider;
  std::string model;
  std::string text;
  std::string finish;
  ModelUsage usage;
  Json opaque;
  int left_out = 0;    ///< turns that the request was sent without, since it was too long
  int leaves_out = 0;  ///< as many as that, the model has refused fewer
  std::vector<PlannedCall> calls;

  Message message() const;
};

/// Mints the calls' ids, checks their arguments and plans what each needs. An answer that is too
/// large to be recorded is paid for all the same: its text is cut with a note, and calls with
/// arguments that are too large are not executed.
Turn plan_turn(int number, const ModelReply&, const AgentTerms&, const Limits&);

/// The `model` step's result: {provider, model, usage, text, calls, finish, opaque}. A call is {id,
/// name, arguments | bad_arguments} and, where they apply, {final, problem, approval, input}.
Json to_json(const Turn&);
Turn parse_turn(int number, const Json&);

/// What the model is told is wrong with arguments for a tool; empty: nothing.
std::optional<std::string> argument_problem(const ToolTerms&, const Json& arguments, const Limits&);

/// The values that a person submitted, merged into the arguments: declared keys only.
Json merged_input(const ToolTerms&, Json arguments, const Json& values);

/// As argument_problem, of arguments that a person's input was merged into: keys that only the
/// input's schema declares are its affair.
std::optional<std::string> merged_problem(const ToolTerms&, const Json& arguments, const Limits&);

}  // namespace holdfast
