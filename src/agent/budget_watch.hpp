#pragma once

#include <string>

#include "agent/definition.hpp"
#include "core/budget.hpp"
#include "holdfast/context.hpp"

namespace holdfast {

/// Keeps a run within its budget: looked at before each live call, so that what is recorded is
/// passed without a question. What is used up is counted from the journal, and what a person raised
/// stands in it, so every segment decides alike.
class BudgetWatch {
 public:
  BudgetWatch(RunContext&, const AgentTerms&);

  /// Returns where the next call may be made. Else throws EndRun (`budget_exhausted`, with
  /// `partial` as the answer), or leaves by the context's question to a person.
  void check(Spender, const std::string& partial);

  /// How many calls of tools the limit of these still has room for.
  int tool_calls_left() const;

 private:
  [[noreturn]] static void end(const std::string& why, const std::string& partial);

  RunContext& context_;
  Budget budget_;
  OnBudget on_budget_;
  std::optional<Duration> timeout_;
  std::vector<std::string> unpriced_;
  int asked_ = 0;
};

}  // namespace holdfast
