#include "agent/repeat_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/recorded_outcome.hpp"
#include "base/canonical.hpp"
#include "base/guard.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kShownBytes = 300;

/// The calls as the model wrote them; their ids are another turn's each time.
Json written_calls(const Turn& turn) {
  Json calls = Json::array();
  for (const PlannedCall& planned : turn.calls) {
    const auto& bad = planned.call.bad_arguments;
    calls.push_back(
        {planned.call.name, bad ? Json(*bad) : planned.call.arguments, bad.has_value()});
  }
  return calls;
}

std::string shown_calls(const Turn& turn) {
  std::string text;
  for (const PlannedCall& planned : turn.calls) {
    if (!text.empty()) text += ", ";
    text += planned.call.name + " " +
            planned.call.bad_arguments.value_or(dump_json(planned.call.arguments));
  }
  return cut(text, kShownBytes);
}

}  // namespace

void RepeatWatch::check(const Turn& turn) {
  if (limit_ == 0) return;
  const std::string calls = sha256_hex(canonical_text(written_calls(turn)));
  const bool is_repeated = !turn.calls.empty() && calls == calls_;
  if (!is_repeated) {
    times_ = 1;
  } else if (times_ == 1 || results_ == earlier_results_) {
    ++times_;
  } else {
    // The newest results differ from those before: the row begins with them.
    times_ = 2;
  }
  calls_ = calls;
  earlier_results_ = std::exchange(results_, {});
  if (times_ < limit_) return;
  // Turns of an earlier drive were judged by it.
  const int times = std::min(times_, turn.number - context_.spent().earlier_model_calls);
  if (HOLDFAST_GUARD("agent_repeats", times < limit_)) return;
  throw EndRun{Reason::max_iterations,
               fmt::format("the model goes round in circles: it made the same calls in {} turns in "
                           "a row, and each time they gave the same results (max_repeats = {}): {}",
                           times, limit_, shown_calls(turn)),
               std::nullopt};
}

void RepeatWatch::add(const ToolOutcome& outcome) {
  if (limit_ == 0) return;
  results_ = sha256_hex(results_ + canonical_text(to_recorded(outcome)));
}

}  // namespace holdfast
