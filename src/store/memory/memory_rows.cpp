#include "store/memory/memory_rows.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/invariants.hpp"
#include "core/run_codec.hpp"
#include "store/listing.hpp"

namespace holdfast {
namespace {

/// A value as a store gives it back: through its text.
Json as_stored(const Json& value) { return Json::parse(dump_json(value)); }

void normalise(Run& run) {
  if (run.error) run.error = decode_failure(as_stored(encode(*run.error)));
  if (run.pending) run.pending = decode_fence(as_stored(encode(*run.pending)));
  if (run.waiting_for) run.waiting_for = decode_wait(as_stored(encode(*run.waiting_for)));
}

/// What most verbs have no use for, and is large: set aside while the rest of a row is copied.
class ColdParts {
 public:
  explicit ColdParts(Run& run)
      : run_(run),
        input_(std::move(run.input)),
        answer_(std::move(run.answer)),
        definition_(std::move(run.definition)) {}
  ColdParts(const ColdParts&) = delete;
  ~ColdParts() {
    run_.input = std::move(input_);
    run_.answer = std::move(answer_);
    run_.definition = std::move(definition_);
  }
  void set_answer(const std::optional<Json>& answer) {
    answer_.reset();
    if (answer) answer_ = as_stored(*answer);
  }
  void set_definition(const Json& definition) { definition_ = as_stored(definition); }

 private:
  Run& run_;
  Json input_;
  std::optional<Json> answer_;
  Json definition_;
};

/// What never changes again, as a store gives it back: without invalid bytes.
void clean_request(Run& run) {
  run.queue = clean_utf8(run.queue);
  if (run.idempotency_key) run.idempotency_key = clean_utf8(*run.idempotency_key);
  Labels labels;
  for (const auto& [key, value] : run.labels) labels[clean_utf8(key)] = clean_utf8(value);
  run.labels = std::move(labels);
}

bool has_queue(std::span<const std::string> queues, const std::string& queue) {
  return queues.empty() || std::ranges::find(queues, queue) != queues.end();
}

bool is_leased(const Run& run) { return run.status.is(Status::running) && run.lease_until; }

std::size_t as_size(int limit) {
  return limit <= 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(limit);
}

bool matches(const Run& run, const ListFilter& filter) {
  if (filter.status && run.status.text() != *filter.status) return false;
  if (filter.reason && (!run.reason || run.reason->text() != *filter.reason)) return false;
  if (filter.agent && run.agent != *filter.agent) return false;
  if (filter.queue && run.queue != *filter.queue) return false;
  if (filter.ended_before && (!run.finished_at || *run.finished_at > *filter.ended_before)) {
    return false;
  }
  return std::ranges::all_of(filter.labels, [&](const auto& label) {
    const auto it = run.labels.find(label.first);
    return it != run.labels.end() && it->second == label.second;
  });
}

std::int64_t ended_key(const Run& run) {
  return run.finished_at ? run.finished_at->time_since_epoch().count() : 0;
}

}  // namespace

void MemoryRows::begin(const Now& now, bool is_dry) {
  now_ = now;
  is_dry_ = is_dry;
  has_queued_ = false;
}

std::optional<StoredRun> MemoryRows::load(const RunId& id, Parts parts) {
  const auto it = runs_.find(id);
  if (it == runs_.end()) return std::nullopt;
  StoredRun& kept = it->second.stored;
  std::optional<ColdParts> aside;
  if (parts == Parts::hot) aside.emplace(kept.run);
  return StoredRun{shown(kept.run), kept.row, kept.last_position, kept.lease_key};
}

std::optional<KeyOwner> MemoryRows::find_key(const std::string& idempotency_key) {
  const auto it = keys_.find(clean_utf8(idempotency_key));
  if (it == keys_.end()) return std::nullopt;
  return KeyOwner{it->second, runs_.at(it->second).content_digest};
}

Circuit MemoryRows::find_circuit(const std::string& target) {
  const auto it = circuits_.find(target);
  return it != circuits_.end() ? it->second : decode_circuit(target, Json());
}

void MemoryRows::save_circuit(const Circuit& circuit) {
  if (!is_dry_) circuits_[circuit.target] = circuit;
}

std::vector<Circuit> MemoryRows::circuits() const {
  std::vector<Circuit> all;
  for (const auto& [target, circuit] : circuits_) all.push_back(circuit);
  return all;
}

std::string MemoryRows::content_digest(const StoredRun& stored) {
  return row_of(stored).content_digest;
}

StoredRun MemoryRows::insert(const NewRun& run, Change& change) {
  Row row;
  row.stored.row = ++last_row_;
  row.stored.run = change.row;
  row.stored.run.last_sequence = 0;
  row.content_digest = run.content_digest;
  Row& kept = runs_.emplace(change.row.id, std::move(row)).first->second;
  append(kept, change);
  Run& stored = kept.stored.run;
  clean_request(stored);
  if (stored.idempotency_key) keys_[*stored.idempotency_key] = stored.id;
  normalise(stored);
  stored.input = as_stored(stored.input);
  if (stored.answer) stored.answer = as_stored(*stored.answer);
  stored.definition = as_stored(stored.definition);
  return *load(change.row.id, Parts::all);
}

void MemoryRows::save(StoredRun& stored, Change& change) {
  Row& row = row_of(stored);
  Row dry = is_dry_ ? row : Row{};
  Row& target = is_dry_ ? dry : row;
  Run& run = target.stored.run;
  {
    ColdParts cold(run);
    const std::int64_t last_sequence = run.last_sequence;
    {
      const ColdParts aside(change.row);
      run = change.row;
    }
    run.last_sequence = last_sequence;
    if (change.answer_changed) cold.set_answer(change.row.answer);
    if (change.definition_changed) cold.set_definition(change.row.definition);
    if (!is_dry_) append(target, change);
    normalise(run);
    ColdParts own(stored.run);
    stored.run = shown(run);
    if (change.answer_changed) own.set_answer(change.row.answer);
    if (change.definition_changed) own.set_definition(change.row.definition);
  }
}

void MemoryRows::append(Row& row, Change& change) {
  for (NewEvent& event : change.events) {
    Event stored{row.stored.run.id, ++row.stored.run.last_sequence, event.kind, now_.wall,
                 event.claim,       as_stored(event.payload)};
    log_.emplace(++last_position_, stored);
    row.journal.push_back(std::move(stored));
  }
  if (row.stored.run.status.is(Status::queued)) has_queued_ = true;
}

void MemoryRows::erase(const StoredRun& stored) {
  const Run& run = row_of(stored).stored.run;
  if (run.idempotency_key) keys_.erase(*run.idempotency_key);
  std::erase_if(log_, [&](const auto& entry) { return entry.second.run == stored.run.id; });
  runs_.erase(stored.run.id);
}

std::vector<Event> MemoryRows::journal(const StoredRun& stored, std::int64_t from_claim) {
  std::vector<Event> found;
  for (const Event& event : row_of(stored).journal) {
    if (event.claim >= from_claim) found.push_back(event);
  }
  return found;
}

bool MemoryRows::has_operation(const StoredRun& stored, const std::string& operation) {
  return std::ranges::any_of(row_of(stored).journal, [&](const Event& event) {
    return event.payload.is_object() && event.payload.value("operation", Json()) == Json(operation);
  });
}

WallTime MemoryRows::last_event_at(const StoredRun& stored) {
  const auto& journal = row_of(stored).journal;
  return journal.empty() ? stored.run.created_at : journal.back().at;
}

std::vector<Candidate> MemoryRows::due(const std::string& agent,
                                       std::span<const std::string> queues, int limit) {
  std::vector<Candidate> found;
  for (const auto& [id, row] : runs_) {
    const Run& run = row.stored.run;
    if (run.status.is(Status::queued) && run.agent == agent && has_queue(queues, run.queue) &&
        run.available_at && *run.available_at <= now_.wall) {
      found.push_back({id, run.priority, *run.available_at});
    }
  }
  std::ranges::sort(found, std::less<>());
  if (found.size() > as_size(limit)) found.resize(as_size(limit));
  return found;
}

std::optional<WallTime> MemoryRows::next_due(const std::string& agent,
                                             std::span<const std::string> queues) {
  std::optional<WallTime> next;
  for (const auto& [id, row] : runs_) {
    const Run& run = row.stored.run;
    if (run.status.is(Status::queued) && run.agent == agent && has_queue(queues, run.queue) &&
        run.available_at && *run.available_at > now_.wall && (!next || *run.available_at < *next)) {
      next = run.available_at;
    }
  }
  return next;
}

template <class Condition, class Key>
std::vector<RunId> MemoryRows::pick(int limit, const Condition& is_wanted, const Key& key) const {
  std::vector<const StoredRun*> found;
  for (const auto& [id, row] : runs_) {
    if (is_wanted(row.stored.run)) found.push_back(&row.stored);
  }
  std::ranges::sort(found, [&](const StoredRun* a, const StoredRun* b) {
    return std::tuple(key(a->run), a->row) < std::tuple(key(b->run), b->row);
  });
  if (found.size() > as_size(limit)) found.resize(as_size(limit));
  std::vector<RunId> ids;
  for (const StoredRun* stored : found) ids.push_back(stored->run.id);
  return ids;
}

std::vector<RunId> MemoryRows::leased_by(const WorkerId& worker) {
  return pick(
      0, [&](const Run& run) { return is_leased(run) && run.claimed_by == worker; },
      [](const Run&) { return 0; });
}

std::vector<RunId> MemoryRows::stale(int limit) {
  return pick(
      limit, [&](const Run& run) { return is_leased(run) && *run.lease_until <= now_.store; },
      [](const Run& run) { return *run.lease_until; });
}

std::vector<RunId> MemoryRows::overdue_waits(int limit) {
  return pick(
      limit,
      [&](const Run& run) {
        return run.status.known() && is_waiting(*run.status.known()) && run.waiting_for &&
               run.waiting_for->deadline && *run.waiting_for->deadline <= now_.wall;
      },
      [](const Run& run) { return *run.waiting_for->deadline; });
}

std::vector<RunId> MemoryRows::ended(WallTime ended_before, int limit) {
  return pick(
      limit,
      [&](const Run& run) {
        return run.status.known() && is_terminal(*run.status.known()) && run.finished_at &&
               *run.finished_at <= ended_before;
      },
      [](const Run& run) { return std::tuple(*run.finished_at, run.id); });
}

std::vector<RunId> MemoryRows::unfinished() {
  return pick(
      0,
      [](const Run& run) {
        return run.status.known() && (is_waiting(*run.status.known()) ||
                                      (run.status.is(Status::running) && !run.lease_until));
      },
      [](const Run&) { return 0; });
}

Run MemoryRows::shown(const Run& run) const {
  Run copy = run;
  copy.lease_expires_at.reset();
  if (run.lease_until) copy.lease_expires_at = now_.wall + (*run.lease_until - now_.store);
  return copy;
}

void MemoryRows::show_abandoned(Run& run) const {
  run.abandoned = run.status.is(Status::running) && !run.lease_until && run.claimed_by &&
                  presence_.is_gone(*run.claimed_by);
}

RunPage MemoryRows::list(const ListFilter& filter) const {
  const auto after = parse_cursor(filter);
  std::vector<const StoredRun*> found;
  for (const auto& [id, row] : runs_) {
    const StoredRun& stored = row.stored;
    if (!matches(stored.run, filter)) continue;
    const bool is_behind =
        !after || (filter.oldest_first ? std::tuple(ended_key(stored.run), id) >
                                             std::tuple(after->finished_at, after->id)
                                       : stored.row < after->row);
    if (is_behind) found.push_back(&stored);
  }
  std::ranges::sort(found, [&](const StoredRun* a, const StoredRun* b) {
    if (!filter.oldest_first) return a->row > b->row;
    return std::tuple(ended_key(a->run), a->run.id) < std::tuple(ended_key(b->run), b->run.id);
  });
  RunPage page;
  for (std::size_t i = 0; i < found.size() && i < as_size(filter.limit); ++i) {
    page.runs.push_back(shown(found[i]->run));
    page.runs.back().definition = Json();
    show_abandoned(page.runs.back());
  }
  if (page.runs.size() < found.size() && !page.runs.empty()) {
    const StoredRun& last = *found[page.runs.size() - 1];
    page.next = format_cursor(filter, {last.row, ended_key(last.run), last.run.id});
  }
  return page;
}

std::vector<Event> MemoryRows::events(const RunId& id, std::int64_t after, int limit) const {
  std::vector<Event> found;
  const auto it = runs_.find(id);
  if (it == runs_.end()) return found;
  for (const Event& event : it->second.journal) {
    if (found.size() == as_size(limit)) break;
    if (event.sequence > after) found.push_back(event);
  }
  return found;
}

std::vector<Event> MemoryRows::all_events(std::int64_t& cursor, int limit) const {
  std::vector<Event> found;
  for (auto it = log_.upper_bound(cursor); it != log_.end() && found.size() < as_size(limit);
       ++it) {
    cursor = it->first;
    found.push_back(it->second);
  }
  return found;
}

StoreStats MemoryRows::stats() const {
  StoreStats stats;
  for (const auto& [id, row] : runs_) {
    const Run& run = row.stored.run;
    ++stats.by_status[run.status.text()];
    if (run.reason) ++stats.by_reason[run.reason->text()];
    if (is_leased(run)) {
      ++(*run.lease_until <= now_.store ? stats.leases_stale : stats.leases_held);
    }
    if (!run.status.is(Status::queued) || !run.available_at) continue;
    const Duration age = now_.wall - *run.available_at;
    if (age < Duration(0)) {
      ++stats.delayed;
      continue;
    }
    ++stats.due;
    ++stats.due_by_agent[run.agent];
    stats.oldest_due = std::max(stats.oldest_due.value_or(age), age);
    auto& oldest = stats.oldest_due_by_priority.try_emplace(run.priority, age).first->second;
    oldest = std::max(oldest, age);
  }
  return stats;
}

std::vector<Finding> MemoryRows::audit() const {
  std::vector<Finding> findings;
  const auto missing = [&](const RunId& id, const std::string& what) {
    if (runs_.contains(id)) return;
    findings.push_back({Finding::Grade::bad, kFoundInvariant,
                        "run " + id + " is missing: " + what + " is still there"});
  };
  for (const auto& [position, event] : log_) {
    missing(event.run, "its event " + std::to_string(event.sequence));
  }
  for (const auto& [key, id] : keys_) missing(id, "its idempotency key " + key);
  return findings;
}

}  // namespace holdfast
