#include "sim/witness.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/replay.hpp"
#include "runtime/fold.hpp"
#include "runtime/verify.hpp"

namespace holdfast::sim {
namespace {

bool is_step(const Event& event) {
  return event.kind.is(EventKind::model) || event.kind.is(EventKind::tool) ||
         event.kind.is(EventKind::step);
}

bool is_ended(const Run& run) {
  const auto status = run.status.known();
  return status && is_terminal(*status);
}

/// All that a late write could spoil; the fence and the holder are looked at by who may change
/// them.
bool is_same_end(const Run& a, const Run& b) {
  return a.status == b.status && a.reason == b.reason && a.answer == b.answer &&
         a.error == b.error && a.finished_at == b.finished_at && a.claim == b.claim &&
         a.requeue_count == b.requeue_count && a.reclaim_count == b.reclaim_count &&
         a.redrive_count == b.redrive_count && a.available_at == b.available_at &&
         a.lease_until == b.lease_until;
}

}  // namespace

void Witness::before(const StoreCall& call) {
  leased_.clear();
  if (call.verb != "reap" && call.verb != "expire_leases_of") return;
  ListFilter running;
  running.status = to_word(Status::running);
  running.limit = 1000;
  for (Run& run : rows_.list(running).runs) leased_.emplace(run.id, std::move(run));
}

void Witness::after(const StoreCall& call) {
  std::map<RunId, std::size_t> touched;
  if (call.lease != nullptr) touched[call.lease->run] = 0;
  for (Event& event : rows_.all_events(cursor_, 0)) {
    ++events_;
    ++tally_["event: " + event.kind.text()];
    env_.tell([&] {
      return fmt::format("  EVENT {} {} {} claim {} {}", event.run.substr(24), event.sequence,
                         event.kind.text(), event.claim, dump_json(event.payload).substr(0, 160));
    });
    ++touched[event.run];
    known_[event.run].journal.push_back(std::move(event));
  }
  for (const auto& [run, new_events] : touched) look(run, call, new_events);
  if (call.verb == "purge") take_purge();
  if (call.verb == "fence" && call.answer == Write::applied)
    ledger_.fenced(*call.lease, *call.fence);
}

void Witness::look(const RunId& id, const StoreCall& call, std::size_t new_events) {
  const auto found = rows_.find(id);
  if (!found) return;
  Known& known = known_[id];
  const bool is_new = known.row.id.empty();
  const auto first = known.journal.end() - static_cast<std::ptrdiff_t>(new_events);
  if (!is_new) {
    check_claim(known, *found, call);
    check_writer(known, *found, call, new_events > 0);
    check_terminal(known, *found, call, new_events);
    for (auto event = first; event != known.journal.end(); ++event) take(known, *event, call);
  }
  known.row = *found;
  if (new_events == 0 && call.verb != "unfence" && call.verb != "fence") return;
  for (const Finding& finding : check_run(known.row, known.journal)) {
    violations_.add(finding.subject.c_str(), "after {}: {}", call.verb, finding.text);
  }
}

void Witness::check_claim(const Known& before, const Run& now, const StoreCall& call) {
  const bool begins = now.claim == before.row.claim + 1;
  if (now.claim != before.row.claim && !begins) {
    violations_.add(kOneWriter, "run {}: {} takes its claim from {} to {}", now.id, call.verb,
                    before.row.claim, now.claim);
  }
  const bool may_begin = before.row.status.is(Status::queued) ||
                         (before.row.status.known() && is_waiting(*before.row.status.known()) &&
                          call.verb == "answer");
  if (begins && !may_begin) {
    violations_.add(kOneWriter, "run {}: {} claims it, and it is {}", now.id, call.verb,
                    before.row.status.text());
  }
}

/// Whoever wrote in the name of a claim held it, and the run was its own.
void Witness::check_writer(const Known& before, const Run& now, const StoreCall& call,
                           bool changed) {
  if (call.lease == nullptr) return;
  const bool fence_changed = before.row.pending != now.pending;
  // To repeat a settlement or an acknowledgement that is there already is no write.
  const bool is_repeatable = call.verb == "settle" || call.verb == "acknowledge_cancel";
  const bool is_answered = call.answer == Write::applied && !is_repeatable;
  if (!changed && !fence_changed && !is_answered) return;
  const bool is_mine = before.row.claim == call.lease->claim &&
                       before.row.claimed_by == call.lease->holder &&
                       (before.row.status.is(Status::running) ||
                        (before.row.status.is(Status::cancelled) && call.verb == "record"));
  if (!is_mine) {
    violations_.add(kOneWriter, "run {}, {} at claim {} of {}: a {} of claim {} by {} is accepted",
                    now.id, before.row.status.text(), before.row.claim,
                    before.row.claimed_by.value_or("nobody"), call.verb, call.lease->claim,
                    call.lease->holder);
  }
}

void Witness::check_terminal(Known& before, const Run& now, const StoreCall& call,
                             std::size_t new_events) {
  if (!is_ended(before.row)) {
    before.steps_since_end = 0;
    return;
  }
  const bool is_operators = call.verb == "redrive" || call.verb == "resolve";
  if (is_operators && before.row.status.is(Status::failed)) return;
  const bool may_record = call.verb == "record" && before.row.status.is(Status::cancelled);
  const bool may_release = call.verb == "acknowledge_cancel";
  if (new_events > 0 && may_record) before.steps_since_end += 1;
  const bool is_changed = !is_same_end(before.row, now) || (new_events > 0 && !may_record) ||
                          (before.row.pending != now.pending && !may_record) ||
                          (before.row.claimed_by != now.claimed_by && !may_release) ||
                          before.steps_since_end > 1;
  if (is_changed) {
    violations_.add(kTerminalInvariant, "run {}: {} changes it ({} new events), and it is {}",
                    now.id, call.verb, new_events, before.row.status.text());
  }
}

void Witness::take(const Known& before, const Event& event, const StoreCall& call) {
  const RunId& run = event.run;
  const std::string key = step_key_of(event);
  if (is_step(event)) ledger_.recorded(run, key, result_of(*event.kind.known(), event.payload));
  if (event.kind.is(EventKind::probed) && event.payload.value("answer", "") == "not_landed") {
    ledger_.not_landed(run, event.payload.value("key", ""), false);
  }
  if (event.kind.is(EventKind::resolved) && !event.payload.value("landed", true)) {
    ledger_.not_landed(run, event.payload.value("step", ""), false);
  }
  if (event.kind.is(EventKind::approved)) take_decision(before, event, true);
  if (event.kind.is(EventKind::denied)) take_decision(before, event, false);
  if (event.kind.is(EventKind::approval_requested)) ledger_.forget(run);
  if (event.kind.is(EventKind::reaped)) check_reaped(before, event);
  static_cast<void>(call);
}

void Witness::take_decision(const Known& before, const Event& event, bool approved) {
  if (!before.row.waiting_for) {
    violations_.add(kDecidedOnce, "run {}: {} is accepted, and nothing is asked", event.run,
                    event.kind.text());
    return;
  }
  if (event.payload.value("turn", "") != before.row.waiting_for->turn) {
    violations_.add(kApproved, "run {}: a decision on turn {} is accepted, and {} is asked",
                    event.run, event.payload.value("turn", ""), before.row.waiting_for->turn);
  }
  for (const Json& decided : event.payload.value("calls", Json::array())) {
    const std::string id = decided.value("id", "");
    for (const GatedCall& asked : before.row.waiting_for->calls) {
      if (asked.id != id) continue;
      if (asked.decision != Verdict::undecided) {
        violations_.add(kDecidedOnce, "run {}: call {} is decided again", event.run, id);
      }
      if (approved) ledger_.approved(event.run, id, asked.arguments);
      if (!approved) ledger_.refused(event.run, id);
    }
  }
}

void Witness::check_reaped(const Known& before, const Event& event) {
  const auto found = leased_.find(event.run);
  const Run& row = found == leased_.end() ? before.row : found->second;
  if (!row.lease_until) {
    violations_.add(kNotReaped, "run {} is reaped and had no lease", event.run);
    return;
  }
  if (*row.lease_until > rows_.now()) {
    violations_.add(kLivingKeep, "run {} is reaped {} ms before its lease is over", event.run,
                    (*row.lease_until - rows_.now()).count());
  }
  const SimProcess* holder = row.claimed_by ? env_.find_process(*row.claimed_by) : nullptr;
  if (holder == nullptr || holder->is_dead || holder->lost_presence || holder->has_ended) return;
  // Whoever asks for a sweep by hand wants it now, and cannot know that the machine has slept.
  if (holder->freezes > 0 && env_.here().name.starts_with("client")) return;
  if (renews_ && env_.now() > holder->impaired_until) {
    violations_.add(kLivingKeep, "run {} is reaped ({}), and {} lives and is not hindered",
                    event.run, event.payload.value("cause", ""), *row.claimed_by);
  }
}

void Witness::take_purge() {
  std::erase_if(known_, [&](const auto& entry) {
    if (rows_.find(entry.first)) return false;
    const Run& run = entry.second.row;
    if (run.status.is(Status::queued) || (run.status.is(Status::running) && run.lease_until)) {
      violations_.add(kFoundInvariant, "run {} is purged, and it was {}", run.id,
                      run.status.text());
    }
    purged_.insert(run.id);
    if (run.idempotency_key) keys_.erase(*run.idempotency_key);
    return true;
  });
}

void Witness::acknowledged(const Run& run, const std::string& request) {
  acknowledged_.insert(run.id);
  ++tally_["queue: " + run.queue];
  if (!run.idempotency_key || purged_.contains(run.id)) return;
  ++tally_["enqueued with a key"];
  const auto [known, is_first] = keys_.try_emplace(*run.idempotency_key, run.id, request);
  if (!is_first) ++tally_["enqueued with a key that is known"];
  if (!is_first && known->second.first != run.id && !purged_.contains(known->second.first)) {
    violations_.add(kFoundInvariant, "key {} is of run {} and of run {}", *run.idempotency_key,
                    known->second.first, run.id);
  }
  if (known->second.first == run.id && known->second.second != request) {
    violations_.add(kFoundInvariant, "key {}: run {} is given for {}, and was stored for {}",
                    *run.idempotency_key, run.id, request, known->second.second);
  }
}

void Witness::check_nothing_lost() {
  for (const RunId& id : acknowledged_) {
    if (purged_.contains(id) || rows_.find(id)) continue;
    violations_.add(kFoundInvariant, "run {} was acknowledged, and is not found", id);
  }
}

void Witness::check_everything() {
  const SimEnv::AtStore at_store(env_);
  check_nothing_lost();
  for (const auto& [id, known] : known_) {
    const auto run = rows_.find(id);
    if (!run) {
      violations_.add(kFoundInvariant, "run {} is gone", id);
      continue;
    }
    for (const Finding& finding : check_run(*run, rows_.events(id, 0, 0))) {
      violations_.add(finding.subject.c_str(), "at the end: {}", finding.text);
    }
  }
  for (const Finding& finding : rows_.audit()) {
    violations_.add(finding.subject.c_str(), "at the end: {}", finding.text);
  }
}

}  // namespace holdfast::sim
