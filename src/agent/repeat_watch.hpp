#pragma once

#include "agent/turn.hpp"
#include "core/model.hpp"
#include "holdfast/context.hpp"

namespace holdfast {

/// Stops a model that goes round in circles: turn after turn the same calls, which gave the same
/// results each time. Calls that look alike within one turn are no repetition, and neither are
/// those whose results change. Everything that it looks at is recorded, so every segment decides
/// alike; a redrive counts anew (docs/decisions, 0024).
class RepeatWatch {
 public:
  /// `limit`: this many turns in a row are too many; 0: none are.
  RepeatWatch(RunContext& context, int limit) : context_(context), limit_(limit) {}

  /// Before the calls of a turn are executed. Throws EndRun (`max_iterations`).
  void check(const Turn&);

  /// What a call of the newest turn gave, in the order of the calls.
  void add(const ToolOutcome&);

 private:
  RunContext& context_;
  int limit_;
  std::string calls_;    ///< of the newest turn
  std::string results_;  ///< its outcomes so far
  std::string earlier_results_;
  int times_ = 0;  ///< turns in a row with these calls, each but the newest with equal results
};

}  // namespace holdfast
