#include "agent/budget_watch.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/guard.hpp"

namespace holdfast {

BudgetWatch::BudgetWatch(RunContext& context, const AgentTerms& terms)
    : context_(context),
      budget_(merged(context.run().policy.budget, terms.budget)),
      on_budget_(terms.on_budget),
      timeout_(terms.approval_timeout),
      unpriced_(terms.unpriced) {}

void BudgetWatch::check(Spender spender, const std::string& partial) {
  // A write that is in flight is settled by its probe first: until then a run cannot end well.
  if (budget_.is_empty() || context_.run().is_fenced_unsafe()) return;
  if (budget_.cost_usd && !unpriced_.empty()) {
    fail_configuration("no_price",
                       fmt::format("the run has a budget of money, and {} has no price: {}; then "
                                   "redrive",
                                   unpriced_.front(), price_remedy(unpriced_.front())));
  }
  const Spent spent = context_.spent();
  for (bool was_raised = false;; was_raised = true) {
    const std::vector<SpentLimit> limits = spent_limits(budget_, spent, spender);
    if (HOLDFAST_GUARD("agent_budget", limits.empty())) return;
    std::string why;
    for (const SpentLimit& limit : limits) why += (why.empty() ? "" : "; ") + limit.text;
    if (on_budget_ == OnBudget::stop) end(why, partial);
    Question question;
    // Raised limits are those of one drive: a redrive begins with the configured ones.
    question.key = fmt::format("budget#{}.{}", context_.run().redrive_count + 1, ++asked_);
    question.schema = budget_schema(budget_, spent, limits);
    question.schema_counts = false;
    question.prompt = fmt::format(
        "{}: {}. Give the drive a higher limit than what is used, or end it with "
        "{{\"end\": true}}.",
        was_raised ? "The limits that were given do not suffice" : "The run waits", why);
    question.timeout = timeout_;
    const Reply reply = context_.ask(question);
    if (reply.expired || ends(reply.values)) end(why, partial);
    raise(budget_, reply.values);
  }
}

int BudgetWatch::tool_calls_left() const {
  if (!budget_.tool_calls) return std::numeric_limits<int>::max();
  return *budget_.tool_calls - context_.spent().tool_calls;
}

void BudgetWatch::end(const std::string& why, const std::string& partial) {
  throw EndRun{Reason::budget_exhausted, why, Json(partial)};
}

}  // namespace holdfast
