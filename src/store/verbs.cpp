#include "store/verbs.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/guard.hpp"

namespace holdfast::verbs {
namespace {

Write to_write(const Declined& declined) {
  switch (declined.kind) {
    case Declined::Kind::cancelled:
      return Write::cancelled;
    case Declined::Kind::unchanged:
      return Write::applied;
    case Declined::Kind::not_mine:
    case Declined::Kind::terminal:
    case Declined::Kind::conflict:
    case Declined::Kind::fenced:
    case Declined::Kind::unknown_word:
      return Write::lost;
  }
  return Write::lost;
}

/// Saves what the transition says, or tells why it does not apply. `stored` is spent.
Write apply(Rows& rows, StoredRun& stored, Transition transition) {
  if (auto* declined = std::get_if<Declined>(&transition)) return to_write(*declined);
  rows.save(stored, std::get<Change>(transition));
  rows.keep(std::move(stored));
  return Write::applied;
}

/// Saves what the transition says; false where it says nothing.
bool did_change(Rows& rows, StoredRun& stored, Transition transition) {
  auto* change = std::get_if<Change>(&transition);
  if (change != nullptr) rows.save(stored, *change);
  return change != nullptr;
}

Claimed as_claimed(const StoredRun& stored) {
  const Run& run = stored.run;
  return {run, Lease{run.id, run.claim, run.claimed_by.value_or(""), !run.lease_until.has_value()}};
}

const AgentOffer* find_offer(const ClaimRequest& request, const std::string& agent) {
  const auto it = std::ranges::find(request.agents, agent, &AgentOffer::name);
  return it == request.agents.end() ? nullptr : &*it;
}

std::vector<Candidate> best_due(Rows& rows, const ClaimRequest& request, int limit) {
  std::vector<Candidate> all;
  for (const AgentOffer& offer : request.agents) {
    auto some = rows.due(offer.name, request.queues, limit);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::ranges::sort(all, std::less<>());
  if (all.size() > static_cast<std::size_t>(limit)) all.resize(static_cast<std::size_t>(limit));
  return all;
}

std::optional<Duration> until_next_due(Rows& rows, const ClaimRequest& request) {
  std::optional<WallTime> next;
  for (const AgentOffer& offer : request.agents) {
    const auto due = rows.next_due(offer.name, request.queues);
    if (due && (!next || *due < *next)) next = due;
  }
  if (!next) return std::nullopt;
  return std::max(Duration(0), *next - rows.now().wall);
}

/// Claims one run where the transition allows it.
bool try_claim(Rows& rows, const ClaimRequest& request, const RunId& id, ClaimResult& result) {
  auto stored = rows.load(id, Parts::all);
  if (!stored) return false;
  const AgentOffer* offer = find_offer(request, stored->run.agent);
  if (offer == nullptr) return false;
  auto transition = claimed(stored->run, request.worker, *offer, rows.now());
  if (!std::holds_alternative<Change>(transition)) return false;
  rows.save(*stored, std::get<Change>(transition));
  result.runs.push_back(as_claimed(*stored));
  rows.keep(std::move(*stored));
  return true;
}

ChangeResult not_found() { return {ChangeResult::Answer::not_found, std::nullopt, "", {}}; }

/// One operator's change: repeated by its operation id it is recognised, and applies once.
template <class Ask>
ChangeResult change(Rows& rows, const RunId& id, const Operator& by, const Ask& ask) {
  auto stored = rows.load(id, Parts::all);
  if (!stored) return not_found();
  ChangeResult result;
  if (!by.operation.empty() &&
      HOLDFAST_GUARD("operation_once", rows.has_operation(*stored, by.operation))) {
    result.run = stored->run;
    return result;
  }
  auto transition = ask(stored->run);
  if (auto* declined = std::get_if<Declined>(&transition)) {
    result.answer = declined->kind == Declined::Kind::unchanged ? ChangeResult::Answer::unchanged
                                                                : ChangeResult::Answer::refused;
    result.why = declined->why;
  } else {
    rows.save(*stored, std::get<Change>(transition));
  }
  result.run = stored->run;
  return result;
}

bool is_process_gone(Rows& rows, const Run& run) {
  return run.claimed_by && rows.is_gone(*run.claimed_by);
}

void purge_one(Rows& rows, const RunId& id, const PurgeRequest& request, PurgeReport& report) {
  auto stored = rows.load(id, Parts::hot);
  if (!stored) return;
  if (!may_purge(stored->run, rows.last_event_at(*stored), is_process_gone(rows, stored->run),
                 request, rows.now())) {
    return;
  }
  ++report.by_status[stored->run.status.text()];
  ++report.total;
  if (stored->run.is_fenced_unsafe()) ++report.unknown_writes;
  if (!request.dry_run) rows.erase(*stored);
}

WallTime before(WallTime now, Duration age) {
  return age > now.time_since_epoch() ? WallTime(Duration(0)) : now - age;
}

EnqueueResult existing_run(Rows& rows, const NewRun& run, EnqueueResult::Answer on_conflict,
                           const RunId& id, const std::string& digest) {
  auto stored = rows.load(id, Parts::all);
  if (!stored) return {on_conflict, run.row};
  const bool is_same = digest == run.content_digest;
  return {HOLDFAST_GUARD("same_content", is_same) ? EnqueueResult::Answer::existing : on_conflict,
          std::move(stored->run)};
}

/// The run that this request already made, or that stands in its way.
std::optional<EnqueueResult> find_existing(Rows& rows, const NewRun& run) {
  using Answer = EnqueueResult::Answer;
  if (run.row.idempotency_key) {
    if (const auto owner = rows.find_key(*run.row.idempotency_key);
        !HOLDFAST_GUARD("key_unused", !owner.has_value())) {
      return existing_run(rows, run, Answer::key_conflict, owner->id, owner->content_digest);
    }
  }
  if (const auto stored = rows.load(run.row.id, Parts::hot)) {
    return existing_run(rows, run, Answer::id_conflict, run.row.id, rows.content_digest(*stored));
  }
  return std::nullopt;
}

/// What stands in the way of each run of a batch, before anything is stored.
class BatchLook {
 public:
  BatchLook(Rows& rows, std::span<const NewRun> runs) : runs_(runs) {
    for (const NewRun& run : runs) found_.push_back(look(rows, run));
  }

  bool has_conflict() const { return has_conflict_; }
  /// The run is already there, or conflicts with one that is.
  std::optional<EnqueueResult>& existing(std::size_t i) { return found_[i].existing; }
  /// An earlier run of the batch has its id or its key: it is there once that one is stored.
  bool is_twin(std::size_t i) const { return found_[i].is_twin; }

  /// None is stored: the conflicts, and what the others would have been.
  std::vector<EnqueueResult> refusals() {
    std::vector<EnqueueResult> answers;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      auto& existing = found_[i].existing;
      answers.push_back(existing ? std::move(*existing)
                                 : EnqueueResult{EnqueueResult::Answer::stored, runs_[i].row});
    }
    return answers;
  }

 private:
  struct Found {
    std::optional<EnqueueResult> existing;
    bool is_twin = false;
  };

  Found look(Rows& rows, const NewRun& run) {
    using Answer = EnqueueResult::Answer;
    Found found{find_existing(rows, run), false};
    const auto compare = [&](auto& seen, const std::string& name, Answer on_conflict) {
      const NewRun* twin = seen.try_emplace(name, &run).first->second;
      found.is_twin = found.is_twin || twin != &run;
      if (!found.existing && twin->content_digest != run.content_digest) {
        found.existing = EnqueueResult{on_conflict, twin->row};
      }
    };
    if (runs_.size() > 1) {
      if (run.row.idempotency_key) compare(keys_, *run.row.idempotency_key, Answer::key_conflict);
      compare(ids_, run.row.id, Answer::id_conflict);
    }
    const auto answer = found.existing ? found.existing->answer : Answer::stored;
    has_conflict_ =
        has_conflict_ || answer == Answer::key_conflict || answer == Answer::id_conflict;
    return found;
  }

  std::span<const NewRun> runs_;
  std::vector<Found> found_;
  std::unordered_map<std::string, const NewRun*> keys_;
  std::unordered_map<std::string, const NewRun*> ids_;
  bool has_conflict_ = false;
};

}  // namespace

std::vector<EnqueueResult> enqueue(Rows& rows, std::span<const NewRun> runs) {
  BatchLook look(rows, runs);
  if (look.has_conflict()) return look.refusals();
  std::vector<EnqueueResult> results;
  results.reserve(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto existing = look.is_twin(i) ? find_existing(rows, runs[i]) : std::move(look.existing(i));
    if (existing) {
      results.push_back(std::move(*existing));
      continue;
    }
    Change change = enqueued(runs[i], rows.now());
    results.push_back({EnqueueResult::Answer::stored, rows.insert(runs[i], change).run});
  }
  return results;
}

Claimed start(Rows& rows, const NewRun& run, const WorkerId& holder) {
  if (auto existing = find_existing(rows, run)) {
    const Run& found = existing->run;
    const bool is_this_start = existing->answer == EnqueueResult::Answer::existing &&
                               found.id == run.row.id && found.status.is(Status::running) &&
                               found.claim == 1 && found.claimed_by == holder;
    if (is_this_start) return {found, Lease{found.id, found.claim, holder, true}};
    throw RefusedError(Refusal::conflict,
                       "run " + found.id + " already exists with this id or idempotency key (" +
                           found.status.text() + "); use another, or look at that run");
  }
  Change change = started(run, holder, rows.now());
  return as_claimed(rows.insert(run, change));
}

ClaimResult claim(Rows& rows, const ClaimRequest& request) {
  ClaimResult result;
  if (request.only) {
    try_claim(rows, request, *request.only, result);
    return result;
  }
  const auto limit = static_cast<std::size_t>(std::max(request.limit, 0));
  std::set<RunId> passed_over;
  for (bool is_progress = true; is_progress && result.runs.size() < limit;) {
    is_progress = false;
    const auto want = limit - result.runs.size() + passed_over.size();
    for (const Candidate& candidate : best_due(rows, request, static_cast<int>(want))) {
      if (result.runs.size() == limit || passed_over.contains(candidate.id)) continue;
      is_progress = true;
      if (!try_claim(rows, request, candidate.id, result)) passed_over.insert(candidate.id);
    }
  }
  if (result.runs.size() < limit) result.next_due = until_next_due(rows, request);
  return result;
}

Look look(Rows& rows, const ClaimRequest& request) {
  if (request.only) return {rows.load(*request.only, Parts::hot).has_value(), std::nullopt};
  for (const AgentOffer& offer : request.agents) {
    if (!rows.due(offer.name, request.queues, 1).empty()) return {true, std::nullopt};
  }
  return {false, until_next_due(rows, request)};
}

RenewReport renew(Rows& rows, const WorkerId& worker, std::span<const Lease> leases) {
  RenewReport report;
  std::set<RunId> named;
  for (const Lease& lease : leases) {
    named.insert(lease.run);
    auto stored = rows.load(lease.run, Parts::hot);
    report.answers.push_back(stored ? apply(rows, *stored, renewed(stored->run, lease, rows.now()))
                                    : Write::lost);
  }
  for (const RunId& id : rows.leased_by(worker)) {
    if (named.contains(id)) continue;
    if (auto stored = rows.load(id, Parts::all)) report.strays.push_back(as_claimed(*stored));
  }
  return report;
}

Write fence(Rows& rows, const Lease& lease, const Fence& fence) {
  auto stored = rows.load(lease.run, Parts::hot);
  if (!stored) return Write::lost;
  return apply(rows, *stored, fenced(stored->run, lease, fence, rows.now()));
}

Write unfence(Rows& rows, const Lease& lease, const Unfence& unfence) {
  auto stored = rows.load(lease.run, Parts::hot);
  if (!stored) return Write::lost;
  return apply(rows, *stored, unfenced(stored->run, lease, unfence, rows.now()));
}

Write record(Rows& rows, const Lease& lease, const StepRecord& step) {
  auto stored = rows.load(lease.run, Parts::hot);
  if (!stored) return Write::lost;
  const bool was_cancelled = stored->run.status.is(Status::cancelled);
  bool is_recorded = false;
  if (step.is_retry || was_cancelled) {
    is_recorded = std::ranges::any_of(rows.journal(*stored, lease.claim), [&](const Event& event) {
      return event.claim == lease.claim && event.kind.is(step.kind) && event.payload.is_object() &&
             event.payload.value("key", Json()) == Json(step.key);
    });
  }
  const Write answer =
      apply(rows, *stored, recorded(stored->run, lease, step, is_recorded, rows.now()));
  return answer == Write::applied && was_cancelled ? Write::cancelled : answer;
}

Write settle(Rows& rows, const Lease& lease, const Settlement& settlement) {
  auto stored = rows.load(lease.run, Parts::hot);
  if (!stored) return Write::lost;
  const Write answer = apply(rows, *stored, settled(stored->run, lease, settlement, rows.now()));
  if (answer == Write::lost &&
      segment_already_settled(rows.journal(*stored, lease.claim), lease.claim)) {
    return Write::applied;
  }
  return answer;
}

Write acknowledge_cancel(Rows& rows, const Lease& lease) {
  auto stored = rows.load(lease.run, Parts::hot);
  if (!stored) return Write::lost;
  return apply(rows, *stored, cancel_acknowledged(stored->run, lease, rows.now()));
}

ReapReport reap(Rows& rows, int limit, const Decider& decider) {
  ReapReport report;
  // Decided before anything is written: a judge that gives up its verdicts leaves nothing behind.
  std::vector<StoredRun> overdue;
  for (const RunId& id : rows.overdue_waits(limit)) {
    if (auto stored = rows.load(id, Parts::hot)) overdue.push_back(std::move(*stored));
  }
  const auto stale_runs = rows.stale(limit);
  std::vector<std::pair<StoredRun, Settlement>> judged;
  for (const RunId& id : stale_runs) {
    auto stored = rows.load(id, Parts::hot);
    if (!stored) {
      ++report.skipped;
      continue;
    }
    Settlement settlement = decider(stored->run);
    judged.emplace_back(std::move(*stored), std::move(settlement));
  }
  for (StoredRun& stored : overdue) {
    if (did_change(rows, stored, wait_expired(stored.run, rows.now()))) ++report.expired;
  }
  for (auto& [stored, settlement] : judged) {
    auto transition = reaped(stored.run, settlement, stored.run.lease_lost_by_presence, rows.now());
    if (!did_change(rows, stored, std::move(transition))) {
      ++report.skipped;
    } else if (stored.run.status.is(Status::queued)) {
      ++report.requeued;
    } else {
      ++report.dead_lettered;
    }
  }
  report.full = static_cast<int>(stale_runs.size()) >= limit || report.expired >= limit;
  return report;
}

bool has_any_to_reap(Rows& rows) {
  return !rows.overdue_waits(1).empty() || !rows.stale(1).empty();
}

int expire_leases_of(Rows& rows, const WorkerId& worker, StoreTime not_renewed_since) {
  int count = 0;
  for (const RunId& id : rows.leased_by(worker)) {
    auto stored = rows.load(id, Parts::hot);
    if (!stored) continue;
    auto transition = lease_expired_by_presence(stored->run, worker, not_renewed_since, rows.now());
    if (did_change(rows, *stored, std::move(transition))) ++count;
  }
  return count;
}

ChangeResult cancel(Rows& rows, const RunId& id, const Operator& by) {
  return change(rows, id, by, [&](const Run& run) { return cancelled(run, by, rows.now()); });
}

ChangeResult answer(Rows& rows, const Decision& decision, const Continuation& go_on) {
  auto result = change(rows, decision.run, decision.by,
                       [&](const Run& run) { return answered(run, decision, go_on, rows.now()); });
  if (result.answer == ChangeResult::Answer::applied && go_on.inline_segment && result.run &&
      result.run->status.is(Status::running) && result.run->claimed_by == go_on.worker) {
    const Run& run = *result.run;
    result.continued = Claimed{run, Lease{run.id, run.claim, go_on.worker, go_on.interactive}};
  }
  return result;
}

ChangeResult redrive(Rows& rows, const RunId& id, const Operator& by) {
  return change(rows, id, by, [&](const Run& run) { return redriven(run, by, rows.now()); });
}

ChangeResult resolve(Rows& rows, const ResolveRequest& request) {
  return change(rows, request.run, request.by,
                [&](const Run& run) { return resolved(run, request, rows.now()); });
}

ChangeResult hand_over(Rows& rows, const RunId& id, bool force, const Operator& by) {
  return change(rows, id, by, [&](const Run& run) {
    return handed_over(run, is_process_gone(rows, run), force, by, rows.now());
  });
}

ChangeResult wake(Rows& rows, const RunId& id, const Operator& by) {
  return change(rows, id, by, [&](const Run& run) { return woken(run, by, rows.now()); });
}

PurgeReport purge(Rows& rows, const PurgeRequest& request, int limit) {
  PurgeReport report;
  if (request.dry_run) limit = std::numeric_limits<int>::max();
  if (!request.ids.empty()) {
    for (const RunId& id : std::set(request.ids.begin(), request.ids.end())) {
      purge_one(rows, id, request, report);
    }
    return report;
  }
  if (request.older_than) {
    for (const RunId& id : rows.ended(before(rows.now().wall, *request.older_than), limit)) {
      purge_one(rows, id, request, report);
    }
  }
  if (request.unfinished_older_than && report.total < limit) {
    for (const RunId& id : rows.unfinished()) {
      if (report.total >= limit) break;
      purge_one(rows, id, request, report);
    }
  }
  return report;
}

}  // namespace holdfast::verbs
