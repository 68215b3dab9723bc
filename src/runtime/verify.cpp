#include "runtime/verify.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "runtime/fold.hpp"

namespace holdfast {
namespace {

using Grade = Finding::Grade;

constexpr const char* kTerminal = "invariant 2 (terminal is terminal)";
constexpr const char* kOrphans = "invariant 3 (no orphans)";
constexpr const char* kOnce = "invariant 5 (a step is recorded once)";
constexpr const char* kJournal = "invariant 6 (the journal gives the row)";
constexpr const char* kBudget = "invariant 7 (budget and claims)";
constexpr const char* kShape = "shape of lease and fence";

/// Findings about one run.
class Check {
 public:
  Check(const Run& run, const std::vector<Event>& journal) : run_(run), journal_(journal) {}

  std::vector<Finding> all() {
    check_sequences();
    const auto status = run_.status.known();
    const bool knows_all =
        status && std::all_of(journal_.begin(), journal_.end(),
                              [](const auto& e) { return e.kind.known().has_value(); });
    // Words of a newer build: what they mean for the rest cannot be judged here.
    if (!knows_all) return std::move(findings_);
    check_fold();
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
      broken(kJournal, "event {} ({}) stands where number {} belongs", event.sequence,
             event.kind.text(), expected);
      expected = event.sequence;
    }
    if (run_.last_sequence != expected) {
      broken(kJournal, "the row says that its newest event is {}, the journal ends with {}",
             run_.last_sequence, expected);
    }
  }

  template <class T>
  void same(const char* field, const T& row, const T& folded) {
    if (row == folded) return;
    broken(kJournal, "its {} is {}, its events say {}", field, row, folded);
  }

  void check_fold() {
    Fold fold;
    for (const auto& event : journal_) {
      for (const auto& problem : fold.add(event)) {
        broken(problem.breaks_terminal ? kTerminal : kJournal, "event {} ({}) {}", event.sequence,
               event.kind.text(), problem.text);
      }
    }
    claims_ = fold.claims();
    restarts_ = fold.restarts();
    if (journal_.empty()) return;
    const auto folded = fold.status();
    if (!run_.status.is(folded)) {
      const bool is_end = is_terminal(folded) || is_terminal(*run_.status.known());
      broken(is_end ? kTerminal : kJournal, "its status is {}, its events say {}",
             run_.status.text(), to_word(folded));
      return;
    }
    same("claim", run_.claim, fold.claim());
    same("requeue_count", run_.requeue_count, fold.requeues());
    same("reclaim_count", run_.reclaim_count, fold.reclaims());
    same("redrive_count", run_.redrive_count, fold.redrives());
    same("iterations", run_.iterations, fold.iterations());
    same("prompt_tokens", run_.usage.prompt_tokens, fold.usage().prompt_tokens);
    same("completion_tokens", run_.usage.completion_tokens, fold.usage().completion_tokens);
    if (is_terminal(folded)) {
      const auto reason = run_.reason ? run_.reason->text() : std::string("none");
      if (!fold.reason().empty()) same("reason", reason, fold.reason());
    }
    if (folded == Status::running) {
      same("claimed_by", run_.claimed_by.value_or("nobody"), fold.holder());
    }
  }

  void check_steps_recorded_once() {
    std::set<std::string> keys;
    for (const auto& event : journal_) {
      const bool is_step = event.kind.is(EventKind::model) || event.kind.is(EventKind::tool) ||
                           event.kind.is(EventKind::step);
      if (!is_step) continue;
      const auto key = step_key_of(event);
      if (key.empty()) broken(kOnce, "event {} is a step without a key", event.sequence);
      if (!key.empty() && !keys.insert(key).second) {
        broken(kOnce, "step {} is recorded again by event {}", key, event.sequence);
      }
    }
    // A fence stands from before the step until its record.
    if (run_.pending && keys.contains(run_.pending->step_key)) {
      broken(kShape, "its fence is of step {}, which is recorded", run_.pending->step_key);
    }
  }

  void check_budget() {
    if (run_.max_requeues >= 0 && run_.requeue_count > run_.max_requeues) {
      broken(kBudget, "{} requeues of {} are used", run_.requeue_count, run_.max_requeues);
    }
    if (run_.reclaim_count > run_.requeue_count) {
      broken(kBudget, "{} reclaims among {} requeues", run_.reclaim_count, run_.requeue_count);
    }
    const int allowed = 1 + run_.requeue_count + restarts_;
    const bool is_running = run_.status.is(Status::running);
    if (is_running ? claims_ != allowed : claims_ > allowed) {
      broken(kBudget, "{} claims in this drive; {} requeues and {} uncharged restarts explain {}{}",
             claims_, run_.requeue_count, restarts_, is_running ? "exactly " : "at most ", allowed);
    }
  }

  /// What each status needs, so that somebody finds the run again.
  void check_place(Status status) {
    if ((status == Status::queued) != run_.available_at.has_value()) {
      broken(kOrphans, "it is {} and {} due time", run_.status.text(),
             run_.available_at ? "has a" : "has no");
    }
    if (is_waiting(status) != run_.waiting_for.has_value()) {
      broken(kOrphans, "it is {} and waits for {}", run_.status.text(),
             run_.waiting_for ? "something" : "nothing");
    }
    if (is_terminal(status) != run_.finished_at.has_value() ||
        is_terminal(status) != run_.reason.has_value()) {
      broken(kOrphans, "it is {} and has {} time of its end and {} reason", run_.status.text(),
             run_.finished_at ? "a" : "no", run_.reason ? "a" : "no");
    }
  }

  void check_lease(Status status) {
    const bool is_running = status == Status::running;
    if (is_running && !run_.claimed_by) broken(kOrphans, "it is running and nobody holds it");
    // A cancelled run keeps its holder until that has seen the cancel.
    if (!is_running && status != Status::cancelled && run_.claimed_by) {
      broken(kShape, "it is {} and held by {}", run_.status.text(), *run_.claimed_by);
    }
    if (!is_running && run_.lease_until) {
      broken(kShape, "it is {} and has a lease", run_.status.text());
    }
    if (is_running && run_.origin.is(Origin::queued) && !run_.lease_until) {
      broken(kOrphans, "a worker segment is running without a lease");
    }
    if (is_running && run_.origin.is(Origin::interactive) && run_.lease_until) {
      broken(kShape, "an interactive segment has a lease");
    }
  }

  void check_fence(Status status) {
    if (!run_.pending) return;
    const auto& fence = *run_.pending;
    if (fence.step_key.empty()) broken(kShape, "its fence names no step");
    if (fence.claim < 1 || fence.claim > run_.claim) {
      broken(kShape, "its fence is of claim {}, the run is at {}", fence.claim, run_.claim);
    }
    if (status == Status::completed) broken(kShape, "it completed under a fence");
    if (is_waiting(status) && !run_.is_clean()) broken(kShape, "it waits under an unsafe fence");
    if (status == Status::queued && !run_.is_safe()) {
      broken(kShape, "it is queued under an unsafe fence without a probe");
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
