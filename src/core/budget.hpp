#pragma once

// What a drive of a run may use up: the limits, what is said of a spent one, and the question that
// a person is asked about it (docs/decisions, 0023).

#include <string>
#include <vector>

#include "holdfast/agent.hpp"
#include "holdfast/context.hpp"

namespace holdfast {

/// Which limits a call meets: that of model calls is no affair of a tool, and the other way round.
enum class Spender { model, tool };

/// A limit that stands in the way of the next call.
struct SpentLimit {
  std::string key;   ///< `tokens`
  std::string text;  ///< "the budget of 200000 tokens is used up (200312 tokens)"
};
std::vector<SpentLimit> spent_limits(const Budget&, const Spent&, Spender);

/// A run's own limits, and those of its agent where it has none.
Budget merged(const Budget& own, const Budget& of_agent);

/// What is wrong with limits that somebody wrote, beginning with the key. Empty: nothing.
std::string budget_problem(const Budget&);

/// The models of an agent whose calls cost nothing that could be counted: `provider/model`.
std::vector<std::string> unpriced_models(const std::vector<std::string>& models,
                                         const std::vector<ProviderSpec>&);
/// How a person would give that model a price.
std::string price_remedy(const std::string& target);

/// What a person answers the question about spent limits with: for each of them a new one, of the
/// whole drive and more than what is used, or `end`. The other limits of the budget may be raised
/// as well; none may be lowered, so that a segment which need not ask forgets nothing.
Json budget_schema(const Budget&, const Spent&, const std::vector<SpentLimit>&);
/// Takes over the limits of such an answer that are higher.
void raise(Budget&, const Json& answer);
bool ends(const Json& answer);

}  // namespace holdfast
