#include "runtime/verify.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "core/invariants.hpp"
#include "runtime/fold.hpp"

namespace holdfast {
namespace {

using Grade = Finding::Grade;

/// Of a text in a finding.
constexpr std::size_t kShownBytes = 200;

/// Sums of prices, added up in another order.
bool is_about(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max({1.0, std::abs(a), std::abs(b)});
}

/// Findings about one run.
class Check {
 public:
  Check(const Run& run, const std::vector<Event>& journal) : run_(run), journal_(journal) {}

  std::vector<Finding> all() {
    check_sequences();
    check_texts();
    const auto status = run_.status.known();
    const bool knows_all = std::all_of(journal_.begin(), journal_.end(),
                                       [](const auto& e) { return e.kind.known().has_value(); });
    // Words of a newer build: what they mean for the rest cannot be judged here.
    if (!knows_all) return std::move(findings_);
    check_fold();
    if (!status) return std::move(findings_);
    check_steps_recorded_once();
    check_budget();
    check_place(*status);
    check_lease(*status);
    check_fence(*status);
    return std::move(findings_);
  }

 private:
  template <class... Args>
  void broken(const char* invariant, fmt::format_string<Args...> format, Args&&... args) {
    findings_.push_back(
        {Grade::bad, invariant,
         fmt::format("run {}: {}", run_.id, fmt::format(format, std::forward<Args>(args)...))});
  }

  void check_sequences() {
    std::int64_t expected = 0;
    for (const auto& event : journal_) {
      if (event.sequence == ++expected) continue;
      broken(kJournalInvariant, "event {} ({}) stands where number {} belongs", event.sequence,
             event.kind.text(), expected);
      expected = event.sequence;
    }
    if (run_.last_sequence != expected) {
      broken(kJournalInvariant,
             "the row says that its newest event is {}, the journal ends with {}",
             run_.last_sequence, expected);
    }
  }

  /// What a store keeps as JSON.
  void check_texts() {
    for (const auto& event : journal_) {
      if (!event.payload.is_discarded()) continue;
      broken(kJournalInvariant, "the payload of event {} ({}) is not JSON", event.sequence,
             event.kind.text());
    }
    const auto need_json = [&](const char* what, const Json& value) {
      if (value.is_discarded()) broken(kJournalInvariant, "its {} is not JSON", what);
    };
    need_json("input", run_.input);
    if (run_.answer) need_json("answer", *run_.answer);
    need_json("definition", run_.definition);
  }

  template <class T>
  void same(const char* field, const T& row, const T& folded) {
    if (row == folded) return;
    broken(kJournalInvariant, "its {} is {}, its events say {}", field, row, folded);
  }

  void same_time(const char* field, std::optional<WallTime> row, std::optional<WallTime> folded) {
    const auto text = [](std::optional<WallTime> time) {
      return time ? format_time(*time) : std::string("none");
    };
    same(field, text(row), text(folded));
  }

  void check_fold() {
    Fold fold;
    for (const auto& event : journal_) {
      for (const auto& problem : fold.add(event)) {
        broken(problem.breaks_terminal ? kTerminalInvariant : kJournalInvariant, "event {} ({}) {}",
               event.sequence, event.kind.text(), problem.text);
      }
    }
    claims_ = fold.claims();
    restarts_ = fold.restarts();
    if (journal_.empty()) return;
    check_request(fold);
    const auto folded = fold.status();
    if (!run_.status.is(folded)) {
      const auto status = run_.status.known();
      const bool is_end = is_terminal(folded) || (status && is_terminal(*status));
      broken(is_end ? kTerminalInvariant : kJournalInvariant,
             "its status is {}, its events say {}{}", run_.status.text(), to_word(folded),
             or_newer(status.has_value()));
      return;
    }
    same("claim", run_.claim, fold.claim());
    same("requeue_count", run_.requeue_count, fold.requeues());
    same("reclaim_count", run_.reclaim_count, fold.reclaims());
    same("redrive_count", run_.redrive_count, fold.redrives());
    same("iterations", run_.iterations, fold.iterations());
    same("prompt_tokens", run_.usage.prompt_tokens, fold.usage().prompt_tokens);
    same("completion_tokens", run_.usage.completion_tokens, fold.usage().completion_tokens);
    same("total_tokens", run_.usage.total_tokens, fold.usage().total_tokens);
    if (!is_about(run_.usage.cost_usd, fold.usage().cost_usd)) {
      same("cost_usd", run_.usage.cost_usd, fold.usage().cost_usd);
    }
    check_times(fold);
    check_error(fold);
    check_answer(fold);
    if (is_terminal(folded)) {
      const auto reason = run_.reason ? run_.reason->text() : std::string("none");
      if (!fold.reason().empty()) same("reason", reason, fold.reason());
    }
    if (folded == Status::running) {
      same("claimed_by", run_.claimed_by.value_or("nobody"), fold.holder());
    }
    if (is_waiting(folded) && run_.waiting_for) {
      same("pending turn", run_.waiting_for->turn, fold.turn());
    }
    if (fold.claim() > 0 && !run_.has_policy) {
      broken(kJournalInvariant, "it was claimed and has no policy");
    }
  }

  static const char* or_newer(bool is_known) {
    return is_known ? "" : " (or a newer holdfast wrote it)";
  }

  /// What the run is for never changes; who executes it does.
  void check_request(const Fold& fold) {
    const auto& request = fold.request();
    const auto compare = [&](const char* field, const Json& row) {
      if (!request.is_object() || !request.contains(field)) return;
      same(field, dump_json(row), dump_json(request[field]));
    };
    compare("agent", run_.agent);
    compare("queue", run_.queue);
    compare("priority", run_.priority);
    if (const auto origin = fold.origin(); origin && !run_.origin.is(*origin)) {
      broken(kJournalInvariant, "its origin is {}, its events say {}{}", run_.origin.text(),
             to_word(*origin), or_newer(run_.origin.known().has_value()));
    }
  }

  void check_times(const Fold& fold) {
    same_time("created_at", run_.created_at, fold.created_at());
    same_time("started_at", run_.started_at, fold.started_at());
    same_time("available_at", run_.available_at, fold.available_at());
    same_time("finished_at", run_.finished_at, fold.finished_at());
  }

  void check_error(const Fold& fold) {
    if (!fold.tells_error()) return;
    const auto text = [](const std::string& error) {
      return error.empty() ? std::string("none") : cut(error, kShownBytes);
    };
    const auto row = run_.error ? error_text(*run_.error) : std::string();
    if (row != fold.error()) same("error", text(row), text(fold.error()));
  }

  void check_answer(const Fold& fold) {
    if (fold.status() != Status::completed) {
      if (run_.answer) broken(kJournalInvariant, "it has an answer, and its events have none");
      return;
    }
    if (!fold.answer() || run_.answer == fold.answer()) return;
    const auto row = run_.answer ? cut(dump_json(*run_.answer), kShownBytes) : "none";
    broken(kJournalInvariant, "its answer is {}, its completed event says {}", row,
           cut(dump_json(*fold.answer()), kShownBytes));
  }

  void check_steps_recorded_once() {
    std::set<std::string> keys;
    for (const auto& event : journal_) {
      const bool is_step = event.kind.is(EventKind::model) || event.kind.is(EventKind::tool) ||
                           event.kind.is(EventKind::step);
      if (!is_step) continue;
      const auto key = step_key_of(event);
      if (key.empty()) broken(kOnceInvariant, "event {} is a step without a key", event.sequence);
      if (!key.empty() && !keys.insert(key).second) {
        broken(kOnceInvariant, "step {} is recorded again by event {}", key, event.sequence);
      }
    }
    // A fence stands from before the step until its record.
    if (run_.pending && keys.contains(run_.pending->step_key)) {
      broken(kLeaseAndFenceShape, "its fence is of step {}, which is recorded",
             run_.pending->step_key);
    }
  }

  void check_budget() {
    if (run_.max_requeues >= 0 && run_.requeue_count > run_.max_requeues) {
      broken(kBudgetInvariant, "{} requeues of {} are used", run_.requeue_count, run_.max_requeues);
    }
    if (run_.reclaim_count > run_.requeue_count) {
      broken(kBudgetInvariant, "{} reclaims among {} requeues", run_.reclaim_count,
             run_.requeue_count);
    }
    const int allowed = 1 + run_.requeue_count + restarts_;
    const bool is_running = run_.status.is(Status::running);
    if (is_running ? claims_ != allowed : claims_ > allowed) {
      broken(kBudgetInvariant,
             "{} claims in this drive; {} requeues and {} uncharged restarts explain {}{}", claims_,
             run_.requeue_count, restarts_, is_running ? "exactly " : "at most ", allowed);
    }
  }

  /// What each status needs, so that somebody finds the run again.
  void check_place(Status status) {
    if ((status == Status::queued) != run_.available_at.has_value()) {
      broken(kOrphanInvariant, "it is {} and {} due time", run_.status.text(),
             run_.available_at ? "has a" : "has no");
    }
    if (is_waiting(status) != run_.waiting_for.has_value()) {
      broken(kOrphanInvariant, "it is {} and waits for {}", run_.status.text(),
             run_.waiting_for ? "something" : "nothing");
    }
    if (is_terminal(status) != run_.finished_at.has_value() ||
        is_terminal(status) != run_.reason.has_value()) {
      broken(kOrphanInvariant, "it is {} and has {} time of its end and {} reason",
             run_.status.text(), run_.finished_at ? "a" : "no", run_.reason ? "a" : "no");
    }
  }

  void check_lease(Status status) {
    const bool is_running = status == Status::running;
    if (is_running && !run_.claimed_by)
      broken(kOrphanInvariant, "it is running and nobody holds it");
    // A cancelled run keeps its holder until that has seen the cancel.
    if (!is_running && status != Status::cancelled && run_.claimed_by) {
      broken(kLeaseAndFenceShape, "it is {} and held by {}", run_.status.text(), *run_.claimed_by);
    }
    if (!is_running && run_.lease_until) {
      broken(kLeaseAndFenceShape, "it is {} and has a lease", run_.status.text());
    }
    if (is_running && run_.origin.is(Origin::queued) && !run_.lease_until) {
      broken(kOrphanInvariant, "a worker segment is running without a lease");
    }
    if (is_running && run_.origin.is(Origin::interactive) && run_.lease_until) {
      broken(kLeaseAndFenceShape, "an interactive segment has a lease");
    }
  }

  void check_fence(Status status) {
    if (!run_.pending) return;
    const auto& fence = *run_.pending;
    if (fence.step_key.empty()) broken(kLeaseAndFenceShape, "its fence names no step");
    if (fence.claim < 1 || fence.claim > run_.claim) {
      broken(kLeaseAndFenceShape, "its fence is of claim {}, the run is at {}", fence.claim,
             run_.claim);
    }
    if (status == Status::completed) broken(kLeaseAndFenceShape, "it completed under a fence");
    if (is_waiting(status) && !run_.is_clean())
      broken(kLeaseAndFenceShape, "it waits under an unsafe fence");
    if (status == Status::queued && !run_.is_safe()) {
      broken(kLeaseAndFenceShape, "it is queued under an unsafe fence without a probe");
    }
  }

  const Run& run_;
  const std::vector<Event>& journal_;
  std::vector<Finding> findings_;
  int claims_ = 0;
  int restarts_ = 0;
};

}  // namespace

std::vector<Finding> check_run(const Run& run, const std::vector<Event>& journal) {
  return Check(run, journal).all();
}

Finding verified(std::int64_t runs, std::int64_t events) {
  return {Grade::ok, "verify",
          fmt::format("looked at {} runs with {} events: invariants 2, 5, 6, 7, 9, orphans of 3, "
                      "shape of leases and fences",
                      runs, events)};
}

std::vector<Finding> invariants_not_shown() {
  const auto hidden = [](const char* invariant, const char* why) {
    return Finding{Grade::ok, invariant, why};
  };
  return {
      hidden("invariant 1", "not shown by rows: a refused write leaves no trace"),
      hidden("invariant 3", "shown in part: that runs go on takes time, not a look"),
      hidden("invariant 4", "not shown by rows: only the world knows how often a write started"),
      hidden("invariant 8", "not shown by rows: renewals leave no events"),
      hidden("invariant 9", "shown in part: an enqueue that was acknowledged and lost has no row"),
      hidden("invariant 10", "not shown by rows: it is checked where runs are reaped"),
  };
}

}  // namespace holdfast
