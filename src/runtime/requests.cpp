// From a request to a stored run.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/canonical.hpp"
#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/budget.hpp"
#include "core/run_codec.hpp"
#include "core/validate.hpp"
#include "runtime/front.hpp"

namespace holdfast {
namespace {

// What makes two requests under one idempotency key the same: everything that the caller said, as
// it was said, so that a relative delay stays equal when it is asked again. Enqueueing in SQL makes
// the same digest (store/postgres/pg_enqueue_sql.hpp).
std::string content_digest(const RunRequest& request) {
  const auto or_null = [](const auto& said) { return said ? Json(*said) : Json(); };
  const auto at = request.at ? Json(request.at->time_since_epoch().count()) : Json();
  const auto delay = request.delay ? Json(request.delay->count()) : Json();
  Json said = Json::array({request.agent, request.input, request.priority, request.labels,
                           or_null(request.queue), or_null(request.max_requeues), delay, at});
  if (!request.budget.is_empty()) said.push_back(encode(request.budget));
  return sha256_hex(canonical_text(said));
}

[[noreturn]] void refuse_conflict(const EnqueueResult& result, const NewRun& wanted) {
  switch (result.answer) {
    case EnqueueResult::Answer::key_conflict:
      throw RefusedError(
          Refusal::conflict,
          fmt::format("the idempotency key \"{}\" belongs to run {}, which was stored with other "
                      "content: use another key, or see `holdfast show {}`",
                      wanted.row.idempotency_key.value_or(""), result.run.id, result.run.id));
    case EnqueueResult::Answer::id_conflict:
    case EnqueueResult::Answer::stored:
    case EnqueueResult::Answer::existing:
      break;
  }
  throw RefusedError(Refusal::conflict,
                     fmt::format("the id {} is taken by another run: make a new id, or see "
                                 "`holdfast show {}`",
                                 wanted.row.id, wanted.row.id));
}

bool is_refused(const EnqueueResult& result) {
  return result.answer == EnqueueResult::Answer::key_conflict ||
         result.answer == EnqueueResult::Answer::id_conflict;
}

void refuse_doubled_ids(std::span<const RunRequest> requests) {
  std::set<RunId> seen;
  for (const auto& request : requests) {
    if (request.id && !seen.insert(*request.id).second) {
      throw RefusedError(Refusal::usage,
                         fmt::format("the id {} stands twice in one batch", *request.id));
    }
  }
}

}  // namespace

const HandlerEntry& Front::get_handler(const std::string& agent) const {
  if (const auto* entry = handlers_.find(agent)) return *entry;
  auto text = fmt::format("there is no agent \"{}\" here", clean_utf8(agent));
  if (const auto meant = did_you_mean(agent, names_)) {
    text += fmt::format("; did you mean \"{}\"?", *meant);
  } else if (names_.empty()) {
    text +=
        "; none is configured: add [agents.NAME] to holdfast.toml, or begin with "
        "`holdfast init`";
  } else {
    text += fmt::format("; known: {}", fmt::join(names_, ", "));
  }
  throw RefusedError(Refusal::not_found, text);
}

/// Who limits the money of a run must be able to count it.
void Front::check_budget(const RunRequest& request) const {
  if (request.budget.is_empty()) return;
  if (const auto problem = budget_problem(request.budget); !problem.empty()) {
    throw RefusedError(Refusal::usage, "budget: " + problem);
  }
  const auto agent = std::ranges::find(options_.agents, request.agent, &AgentSpec::name);
  if (agent == options_.agents.end()) {
    throw RefusedError(Refusal::usage,
                       fmt::format("budget: \"{}\" is a task of this program, which sets its own "
                                   "limits; only agents have a budget",
                                   request.agent));
  }
  const auto unpriced = unpriced_models(agent->models, options_.providers);
  if (request.budget.cost_usd && !unpriced.empty()) {
    throw RefusedError(Refusal::usage,
                       fmt::format("budget: cost_usd: {} has no price: {}", unpriced.front(),
                                   price_remedy(unpriced.front())));
  }
}

NewRun Front::make_new_run(const RunRequest& request) {
  check_request(request, options_.limits);
  const auto& offer = get_handler(request.agent).offer;
  NewRun wanted;
  auto& row = wanted.row;
  row.id = request.id.value_or(env_.new_id());
  row.agent = request.agent;
  row.queue = request.queue.value_or(queue_of_.at(request.agent));
  row.priority = request.priority;
  row.input = request.input;
  row.labels = request.labels;
  row.idempotency_key = request.idempotency_key;
  row.policy = offer.policy;
  row.policy.max_requeues = request.max_requeues.value_or(offer.policy.max_requeues);
  row.max_requeues = row.policy.max_requeues;
  check_budget(request);
  row.policy.budget = request.budget;
  wanted.delay = request.delay;
  wanted.at = request.at;
  wanted.content_digest = content_digest(request);
  return wanted;
}

/// Repeating it is harmless: the ids were made before the first try, and a store answers for one
/// that is there with the same content that it exists.
std::vector<EnqueueResult> Front::store_new(const std::vector<NewRun>& wanted) {
  HOLDFAST_FAILPOINT("enqueue.before");
  auto results = until_answered(env_, [&](bool) { return store_->enqueue(wanted); });
  HOLDFAST_FAILPOINT("enqueue.after");
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (is_refused(results[i])) refuse_conflict(results[i], wanted[i]);
  }
  return results;
}

Run Front::enqueue(const RunRequest& request) {
  return enqueue(std::span<const RunRequest>(&request, 1)).front();
}

std::vector<Run> Front::enqueue(std::span<const RunRequest> requests) {
  refuse_doubled_ids(requests);
  std::vector<NewRun> wanted;
  wanted.reserve(requests.size());
  for (const auto& request : requests) wanted.push_back(make_new_run(request));
  if (wanted.empty()) return {};
  std::vector<Run> runs;
  for (auto& result : store_new(wanted)) runs.push_back(std::move(result.run));
  return runs;
}

}  // namespace holdfast
