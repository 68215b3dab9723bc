// What people do with one run, and how they find it.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "runtime/checked_value.hpp"
#include "runtime/front.hpp"

namespace holdfast {
namespace {

RefusedError no_such_run(const RunId& id) {
  return {Refusal::not_found,
          fmt::format("there is no run {}; `holdfast list` shows those there are", clean_utf8(id))};
}

constexpr std::array kStatuses = {Status::queued,
                                  Status::running,
                                  Status::waiting_for_approval,
                                  Status::waiting_for_input,
                                  Status::completed,
                                  Status::failed,
                                  Status::cancelled};
constexpr std::array kReasons = {Reason::completed,         Reason::budget_exhausted,
                                 Reason::max_iterations,    Reason::policy_denied,
                                 Reason::approval_denied,   Reason::provider_failed,
                                 Reason::context_truncated, Reason::retries_exhausted,
                                 Reason::not_retryable,     Reason::cancelled};

// A word that nothing can match is a slip of the hand, and an empty list would hide it.
template <class E, std::size_t N>
void need_word(const char* what, const std::optional<std::string>& word,
               const std::array<E, N>& all) {
  if (!word || parse_word<E>(*word)) return;
  std::vector<std::string> words;
  for (const auto one : all) words.emplace_back(to_word(one));
  auto text = fmt::format("there is no {} \"{}\"", what, clean_utf8(*word));
  if (const auto meant = did_you_mean(*word, words)) {
    text += fmt::format("; did you mean \"{}\"?", *meant);
  } else {
    text += fmt::format("; it is one of: {}", fmt::join(words, ", "));
  }
  throw RefusedError(Refusal::usage, text);
}

bool has_come_to_rest(const Run& run) {
  const auto status = run.status.known();
  return status && (is_terminal(*status) || is_waiting(*status));
}

bool holds_no_lease(const Run& run) {
  return run.status.is(Status::running) && run.claimed_by && !run.lease_until;
}

}  // namespace

std::string help_for(const Run& run, WallTime now) {
  const auto status = run.status.known();
  if (!status) return "a newer holdfast wrote this status: use that one";
  if (run.waiting_for && run.waiting_for->deadline && *run.waiting_for->deadline <= now) {
    return fmt::format("`holdfast why {0}` says what happens next, `holdfast show {0}` what it was",
                       run.id);
  }
  switch (*status) {
    case Status::queued:
      return fmt::format("`holdfast why {}` says what it waits for", run.id);
    case Status::running:
      return fmt::format("`holdfast wait {}` follows it, `holdfast cancel {}` stops it", run.id,
                         run.id);
    case Status::waiting_for_approval:
      return fmt::format("`holdfast approve {}` or `holdfast deny {}` decides", run.id, run.id);
    case Status::waiting_for_input:
      return fmt::format("`holdfast input {} --values JSON` answers", run.id);
    case Status::failed:
      if (!run.is_safe()) {
        return fmt::format(
            "look whether its write landed, then `holdfast resolve {} --landed` or "
            "`--not-landed`",
            run.id);
      }
      return fmt::format("`holdfast redrive {}` puts it back on the queue", run.id);
    case Status::completed:
    case Status::cancelled:
      return fmt::format("`holdfast show {}` shows how it ended", run.id);
  }
  return {};
}

Run Front::applied_run(const RunId& id, const ChangeResult& change, std::string_view verb) {
  switch (change.answer) {
    case ChangeResult::Answer::applied:
    case ChangeResult::Answer::unchanged:
      if (change.run) return *change.run;
      break;
    case ChangeResult::Answer::not_found:
      throw no_such_run(id);
    case ChangeResult::Answer::refused:
      break;
  }
  if (!change.run) {
    throw RefusedError(Refusal::conflict,
                       fmt::format("cannot {} run {}: {}", verb, id, change.why));
  }
  throw RefusedError(Refusal::conflict, fmt::format("cannot {} run {}, which is {}: {}; {}", verb,
                                                    id, change.run->status.text(), change.why,
                                                    help_for(*change.run, store_->wall_now())));
}

/// Each request has its operation, so that repeating it after a lost reply is harmless.
Operator Front::minted(Operator by) {
  if (by.operation.empty()) by.operation = env_.new_id();
  return by;
}

bool Front::is_holder_gone(const WorkerId& worker) {
  auto* const board = store_->presence();
  return board != nullptr && board->is_gone(worker);
}

void Front::fill_in(Run& run, std::map<WorkerId, bool>& known) {
  if (!holds_no_lease(run)) return;
  const auto& holder = *run.claimed_by;
  if (!known.contains(holder)) known[holder] = is_holder_gone(holder);
  run.abandoned = known[holder];
}

void Front::fill_in_finish(Run& run) {
  if (!run.status.is(Status::completed)) return;
  for (const auto& event : store_->events(run.id, run.last_sequence - 1, 1)) {
    const auto& payload = event.payload;
    if (!event.kind.is(EventKind::completed) || !payload.is_object()) continue;
    const auto finish = payload.find("finish");
    if (finish != payload.end() && finish->is_string()) run.finish = finish->get<std::string>();
  }
}

Run Front::get(const RunId& id) {
  auto found = store_->find(id);
  if (!found) throw no_such_run(id);
  std::map<WorkerId, bool> known;
  fill_in(*found, known);
  fill_in_finish(*found);
  return std::move(*found);
}

RunPage Front::list(const ListFilter& filter) {
  if (filter.limit < 1) {
    throw RefusedError(Refusal::usage,
                       fmt::format("limit must be at least 1, got {}", filter.limit));
  }
  need_word("status", filter.status, kStatuses);
  need_word("reason", filter.reason, kReasons);
  auto page = store_->list(filter);
  std::map<WorkerId, bool> known;
  for (auto& run : page.runs) fill_in(run, known);
  return page;
}

std::vector<Event> Front::events(const RunId& id, std::int64_t after, int limit) {
  auto events = store_->events(id, after, limit);
  if (events.empty()) get(id);
  return events;
}

std::vector<Event> Front::all_events(std::int64_t& cursor, int limit) {
  return store_->all_events(cursor, limit);
}

Run Front::wait(const RunId& id, std::optional<Duration> timeout, std::stop_token stop) {
  constexpr Duration kLongestLook = std::chrono::milliseconds(250);
  const auto begun = env_.store_now();
  Duration look = std::chrono::milliseconds(50);
  while (true) {
    auto run = get(id);
    if (has_come_to_rest(run) || stop.stop_requested()) return run;
    if (timeout) {
      const auto left = *timeout - (env_.store_now() - begun);
      if (left <= Duration::zero()) return run;
      look = std::min(look, left);
    }
    env_.sleep_for(look, stop);
    look = std::min(look * 2, kLongestLook);
  }
}

Run Front::cancel(const RunId& id, const Operator& by) {
  const auto operation = minted(by);
  return applied_run(id, until_answered(env_, [&](bool) { return store_->cancel(id, operation); }),
                     "cancel");
}

Run Front::redrive(const RunId& id, const Operator& by) {
  const auto operation = minted(by);
  const auto changes =
      until_answered(env_, [&](bool) { return store_->redrive(std::span(&id, 1), operation); });
  return applied_run(id, changes.at(0), "redrive");
}

Run Front::resolve(const ResolveRequest& request) {
  if (!request.landed && !request.result.is_null()) {
    throw RefusedError(Refusal::usage, "a result is given for a write that landed only");
  }
  check_value("result", request.result, options_.limits.result_bytes, options_.limits.depth);
  auto guarded = request;
  guarded.by = minted(request.by);
  if (!guarded.step) {
    // What is pending now is what the caller means; the write is refused if it has moved on.
    const auto run = get(request.run);
    if (run.pending) guarded.step = run.pending->step_key;
  }
  return applied_run(
      request.run, until_answered(env_, [&](bool) { return store_->resolve(guarded); }), "resolve");
}

Run Front::hand_over(const RunId& id, bool force, const Operator& by) {
  const auto operation = minted(by);
  return applied_run(
      id, until_answered(env_, [&](bool) { return store_->hand_over(id, force, operation); }),
      "hand over");
}

Run Front::wake(const RunId& id, const Operator& by) {
  const auto operation = minted(by);
  return applied_run(id, until_answered(env_, [&](bool) { return store_->wake(id, operation); }),
                     "wake");
}

}  // namespace holdfast
