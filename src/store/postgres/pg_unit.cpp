// The two journeys of a unit of work: what is foreseen comes in one, what was changed goes in one.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "core/run_codec.hpp"
#include "store/postgres/pg_rows.hpp"
#include "store/postgres/pg_statements.hpp"

namespace holdfast::postgres {
namespace {

/// Behind them the positions of the next transaction begin (kInsertEvents).
constexpr std::int64_t kMostEvents = 1 << 20;

template <class T>
std::optional<std::string> kept_text(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return dump_json(encode(*value));
}

std::optional<std::string> kept_text(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return dump_json(value);
}

/// An answer of null is an answer.
std::optional<std::string> kept_answer(const std::optional<Json>& answer) {
  if (!answer) return std::nullopt;
  return dump_json(*answer);
}

template <class E>
std::optional<std::string> kept_word(const std::optional<Word<E>>& word) {
  if (!word) return std::nullopt;
  return word->text();
}

/// The operation of a change that a person made: recognised when it comes again.
std::optional<std::string> operation_of(const NewEvent& event) {
  if (event.kind == EventKind::model || event.kind == EventKind::tool ||
      event.kind == EventKind::step) {
    return std::nullopt;
  }
  const Json* found = find_member(event.payload, "operation");
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

/// Hot rows as columns, in the order of HOLDFAST_PG_WRITTEN.
class RunColumns {
 public:
  void add(const StoredRun& stored, std::optional<std::int64_t> policy) {
    const Run& run = stored.run;
    ids.add_id(run.id);
    next_ = 0;
    text(run.agent);
    text(run.queue);
    text(run.status.text());
    text(kept_word(run.reason));
    text(run.origin.text());
    number(-std::int64_t{run.priority});
    number(run.created_at);
    number(run.available_at);
    number(run.started_at);
    number(run.finished_at);
    text(run.claimed_by);
    number(run.claim);
    number(run.lease_until);
    number(stored.lease_key);
    number(run.lease_lost_by_presence);
    number(run.failing_since);
    number(run.requeue_count);
    number(run.max_requeues);
    number(run.reclaim_count);
    number(run.redrive_count);
    number(run.iterations);
    number(run.usage.prompt_tokens);
    number(run.usage.completion_tokens);
    number(run.usage.total_tokens);
    column(Array::Of::reals).add(run.usage.cost_usd);
    number(policy);
    json(kept_text(run.error));
    json(kept_text(run.pending));
    json(kept_text(run.waiting_for));
    number(run.waiting_for ? run.waiting_for->deadline : std::nullopt);
    number(run.last_sequence);
  }

  Params params() const {
    Params params(ids);
    for (const Array& array : columns_) params.add(array);
    return params;
  }
  bool is_empty() const { return ids.size() == 0; }

 private:
  Array& column(Array::Of of) {
    if (next_ == columns_.size()) columns_.emplace_back(of);
    return columns_[next_++];
  }
  template <class T>
  void number(const T& value) {
    column(Array::Of::numbers).add(value);
  }
  template <class T>
  void text(const T& value) {
    column(Array::Of::texts).add(value);
  }
  void json(const std::optional<std::string>& value) {
    column(Array::Of::texts).add_raw_or_null(value);
  }

  Array ids{Array::Of::ids};
  std::vector<Array> columns_;
  std::size_t next_ = 0;
};

/// As `enqueued` makes it, or the statement that says so would change it.
bool is_first_queued(const StoredRun& stored) {
  const Run& run = stored.run;
  const Usage& usage = run.usage;
  return run.status.is(Status::queued) && run.origin.is(Origin::queued) && !run.reason &&
         run.claim == 0 && !run.claimed_by && !run.lease_until && !stored.lease_key &&
         !run.lease_lost_by_presence && !run.started_at && !run.finished_at && !run.failing_since &&
         run.requeue_count == 0 && run.reclaim_count == 0 && run.redrive_count == 0 &&
         run.iterations == 0 && usage.prompt_tokens == 0 && usage.completion_tokens == 0 &&
         usage.total_tokens == 0 && usage.cost_usd == 0 && !run.error && !run.pending &&
         !run.waiting_for && run.last_sequence == 1;
}

/// The columns of kInsertQueued.
class QueuedColumns {
 public:
  void add(const Run& run, std::optional<std::int64_t> policy) {
    ids_.add_id(run.id);
    agents_.add(run.agent);
    queues_.add(run.queue);
    ranks_.add(-std::int64_t{run.priority});
    created_.add(run.created_at);
    available_.add(run.available_at);
    requeues_.add(run.max_requeues);
    policies_.add(policy);
  }
  Params params() const {
    return Params(ids_, agents_, queues_, ranks_, created_, available_, requeues_, policies_);
  }

 private:
  Array ids_{Array::Of::ids};
  Array agents_{Array::Of::texts};
  Array queues_{Array::Of::texts};
  Array ranks_{Array::Of::numbers};
  Array created_{Array::Of::numbers};
  Array available_{Array::Of::numbers};
  Array requeues_{Array::Of::numbers};
  Array policies_{Array::Of::numbers};
};

}  // namespace

std::optional<std::int64_t> PgRows::clock_now() const {
  if (!clock_) return std::nullopt;
  return clock_().wall.time_since_epoch().count();
}

void PgRows::begin(Connection& db, const std::vector<const Foresight*>& foresights) {
  reset();
  db_ = &db;
  is_dry_ = false;
  db.send(kBegin);
  if (!db.target().has_sessions()) db.send(kLocalSettings);
  send_foreseen(foresights);
  // Behind the locks: the wait for them is not taken from anybody's lease.
  db.send(kClock);
  const auto results = db.flush();
  const Duration now(results.back().number(0, 0));
  now_ = clock_ ? clock_() : Now{WallTime(now), StoreTime(now)};
  read_foreseen(results, db.target().has_sessions() ? 1 : 2, foresights);
}

void PgRows::send_foreseen(const std::vector<const Foresight*>& foresights) {
  std::set<RunId> runs;
  std::set<std::string> keys;
  for (const Foresight* foresight : foresights) {
    runs.insert(foresight->runs.begin(), foresight->runs.end());
    keys.insert(foresight->keys.begin(), foresight->keys.end());
  }
  Array ids(Array::Of::ids);
  for (const RunId& id : runs) {
    entries_[id] = {};
    if (uuid_bytes(id)) ids.add_id(id);
  }
  Array texts(Array::Of::texts);
  for (const std::string& key : keys) {
    keys_[key] = std::nullopt;
    texts.add(key);
  }
  if (ids.size() > 0) db().send(kLockRuns, Params(ids));
  if (texts.size() > 0) db().send(kFindKeys, Params(texts));
  for (const Foresight* foresight : foresights) {
    if (foresight->holder) db().send(kLeasedBy, Params(*foresight->holder));
    if (foresight->claim == nullptr) continue;
    std::vector<std::string> agents;
    for (const AgentOffer& offer : foresight->claim->agents) agents.push_back(offer.name);
    send_pool(agents, foresight->claim->queues, foresight->claim->limit);
  }
}

void PgRows::read_foreseen(const std::vector<Result>& results, int skipped,
                           const std::vector<const Foresight*>& foresights) {
  auto next = results.begin() + skipped;
  if (std::ranges::any_of(entries_,
                          [](const auto& e) { return uuid_bytes(e.first).has_value(); })) {
    for (StoredRun& stored : read_runs(*next++)) {
      const RunId id = stored.run.id;
      entries_[id].stored = std::move(stored);
    }
  }
  if (!keys_.empty()) {
    const Result& found = *next++;
    for (int row = 0; row < found.rows(); ++row) {
      keys_[found.text(row, 0)] = KeyOwner{found.text(row, 1), found.text(row, 2)};
    }
  }
  for (const Foresight* foresight : foresights) {
    if (foresight->holder) {
      auto& held = leased_[*foresight->holder];
      held.clear();
      const Result& found = *next++;
      for (int row = 0; row < found.rows(); ++row) held.push_back(found.text(row, 0));
    }
    if (foresight->claim == nullptr) continue;
    Pool pool = read_pool(next[0], next[1]);
    next += 2;
    for (const AgentOffer& offer : foresight->claim->agents) pool.agents.push_back(offer.name);
    pool.queues = foresight->claim->queues;
    pool.is_whole = static_cast<int>(pool.runs.size()) < foresight->claim->limit;
    pools_.push_back(std::move(pool));
  }
}

bool PgRows::has_changes() const {
  return !events_.empty() || !erased_.empty() ||
         std::ranges::any_of(entries_,
                             [](const auto& entry) { return entry.second.dirt != Dirt::clean; });
}

void PgRows::write_out() {
  if (is_dry_ || !has_changes()) return;
  send_changes();
  db().flush();
}

void PgRows::send_changes() {
  if (!erased_.empty()) send_erased();
  send_new_runs();
  send_runs();
  send_cold();
  send_events();
  for (auto& [id, entry] : entries_) {
    entry.dirt = Dirt::clean;
    entry.answer_changed = entry.definition_changed = false;
  }
  for (const std::string& target : changed_circuits_) {
    Params params(target);
    params.add_raw(dump_json(encode(circuits_.at(target))));
    db().send(kSaveCircuit, params);
  }
  changed_circuits_.clear();
  for (const auto& [sql, params] : last_) db().send(sql, params);
  last_.clear();
}

void PgRows::send_new_runs() {
  RunColumns runs;
  QueuedColumns queued;
  Array ids(Array::Of::ids);
  Array inputs(Array::Of::texts);
  Array answers(Array::Of::texts);
  Array definitions(Array::Of::texts);
  Array keys(Array::Of::texts);
  Array digests(Array::Of::texts);
  Array labelled(Array::Of::ids);
  Array label_keys(Array::Of::texts);
  Array label_values(Array::Of::texts);
  std::vector<const Entry*> fresh;
  for (const auto& [id, entry] : entries_) {
    if (entry.dirt == Dirt::inserted) fresh.push_back(&entry);
  }
  // In the order in which they were made, which their first events tell: listings go by it.
  std::map<RunId, std::size_t> order;
  for (const NewEntry& event : events_) order.try_emplace(event.run, order.size());
  std::ranges::sort(fresh, {}, [&](const Entry* entry) { return order[entry->stored->run.id]; });
  if (fresh.empty()) return;
  // One statement for all of them, so that they stay in order.
  const bool are_queued = std::ranges::all_of(
      fresh, [](const Entry* entry) { return is_first_queued(*entry->stored); });
  for (const Entry* entry : fresh) {
    const Run& run = entry->stored->run;
    const auto policy = run.has_policy ? std::optional(policy_id(run)) : std::nullopt;
    are_queued ? queued.add(run, policy) : runs.add(*entry->stored, policy);
    ids.add_id(run.id);
    inputs.add_raw(dump_json(run.input));
    answers.add_raw_or_null(kept_answer(run.answer));
    definitions.add_raw_or_null(kept_text(run.definition));
    keys.add(run.idempotency_key);
    digests.add(entry->content_digest);
    for (const auto& [key, value] : run.labels) {
      labelled.add_id(run.id);
      label_keys.add(key);
      label_values.add(value);
    }
  }
  are_queued ? db().send(kInsertQueued, queued.params()) : db().send(kInsertRuns, runs.params());
  db().send(kInsertData, Params(ids, inputs, answers, definitions, keys, digests));
  if (labelled.size() > 0) db().send(kInsertLabels, Params(labelled, label_keys, label_values));
}

void PgRows::send_runs() {
  RunColumns runs;
  for (const auto& [id, entry] : entries_) {
    if (entry.dirt != Dirt::all) continue;
    const Run& run = entry.stored->run;
    runs.add(*entry.stored, run.has_policy ? std::optional(policy_id(run)) : std::nullopt);
  }
  if (!runs.is_empty()) db().send(kUpdateRuns, runs.params());
  send_turns();
  send_steps();
  if (new_policies_.empty()) return;
  Array policies(Array::Of::numbers);
  Array texts(Array::Of::texts);
  for (const auto& [id, json] : new_policies_) {
    policies.add(id);
    texts.add_raw(json);
  }
  db().send(kInsertPolicies, Params(policies, texts));
}

void PgRows::send_turns() {
  Array ids(Array::Of::ids);
  Array statuses(Array::Of::texts);
  Array reasons(Array::Of::texts);
  Array due(Array::Of::numbers);
  Array starts(Array::Of::numbers);
  Array ends(Array::Of::numbers);
  Array holders(Array::Of::texts);
  Array claims(Array::Of::numbers);
  Array leases(Array::Of::numbers);
  Array keys(Array::Of::numbers);
  Array iterations(Array::Of::numbers);
  Array prompts(Array::Of::numbers);
  Array completions(Array::Of::numbers);
  Array totals(Array::Of::numbers);
  Array costs(Array::Of::reals);
  Array policies(Array::Of::numbers);
  Array fences(Array::Of::texts);
  Array sequences(Array::Of::numbers);
  for (const auto& [id, entry] : entries_) {
    if (entry.dirt != Dirt::turn) continue;
    const Run& run = entry.stored->run;
    ids.add_id(run.id);
    statuses.add(run.status.text());
    reasons.add(kept_word(run.reason));
    due.add(run.available_at);
    starts.add(run.started_at);
    ends.add(run.finished_at);
    holders.add(run.claimed_by);
    claims.add(run.claim);
    leases.add(run.lease_until);
    keys.add(entry.stored->lease_key);
    iterations.add(run.iterations);
    prompts.add(run.usage.prompt_tokens);
    completions.add(run.usage.completion_tokens);
    totals.add(run.usage.total_tokens);
    costs.add(run.usage.cost_usd);
    policies.add(run.has_policy ? std::optional(policy_id(run)) : std::nullopt);
    fences.add_raw_or_null(kept_text(run.pending));
    sequences.add(run.last_sequence);
  }
  if (ids.size() == 0) return;
  db().send(kUpdateTurns,
            Params(ids, statuses, reasons, due, starts, ends, holders, claims, leases, keys,
                   iterations, prompts, completions, totals, costs, policies, fences, sequences));
}

void PgRows::send_steps() {
  Array ids(Array::Of::ids);
  Array leases(Array::Of::numbers);
  Array iterations(Array::Of::numbers);
  Array prompts(Array::Of::numbers);
  Array completions(Array::Of::numbers);
  Array totals(Array::Of::numbers);
  Array costs(Array::Of::reals);
  Array fences(Array::Of::texts);
  Array sequences(Array::Of::numbers);
  for (const auto& [id, entry] : entries_) {
    if (entry.dirt != Dirt::step) continue;
    const Run& run = entry.stored->run;
    ids.add_id(run.id);
    leases.add(run.lease_until);
    iterations.add(run.iterations);
    prompts.add(run.usage.prompt_tokens);
    completions.add(run.usage.completion_tokens);
    totals.add(run.usage.total_tokens);
    costs.add(run.usage.cost_usd);
    fences.add_raw_or_null(kept_text(run.pending));
    sequences.add(run.last_sequence);
  }
  if (ids.size() == 0) return;
  db().send(kUpdateSteps, Params(ids, leases, iterations, prompts, completions, totals, costs,
                                 fences, sequences));
}

void PgRows::send_cold() {
  Array answered(Array::Of::ids);
  Array answers(Array::Of::texts);
  Array defined(Array::Of::ids);
  Array definitions(Array::Of::texts);
  for (const auto& [id, entry] : entries_) {
    if (entry.dirt == Dirt::inserted) continue;
    if (entry.answer_changed) {
      answered.add_id(id);
      answers.add_raw_or_null(kept_answer(entry.stored->run.answer));
    }
    if (entry.definition_changed) {
      defined.add_id(id);
      definitions.add_raw_or_null(kept_text(entry.stored->run.definition));
    }
  }
  if (answered.size() > 0) db().send(kUpdateAnswers, Params(answered, answers));
  if (defined.size() > 0) db().send(kUpdateDefinitions, Params(defined, definitions));
}

void PgRows::send_events() {
  if (events_.empty()) return;
  Array numbers(Array::Of::numbers);
  Array runs(Array::Of::ids);
  Array sequences(Array::Of::numbers);
  Array kinds(Array::Of::texts);
  Array claims(Array::Of::numbers);
  Array operations(Array::Of::texts);
  Array payloads(Array::Of::texts);
  if (event_number_ + static_cast<std::int64_t>(events_.size()) >= kMostEvents) {
    throw RefusedError(
        Refusal::usage,
        fmt::format("a single write may have {} events at most: split it", kMostEvents - 1));
  }
  for (const NewEntry& entry : events_) {
    numbers.add(++event_number_);
    runs.add_id(entry.run);
    sequences.add(entry.sequence);
    kinds.add_raw(to_word(entry.event.kind));
    claims.add(entry.event.claim);
    operations.add(operation_of(entry.event));
    payloads.add_raw(dump_json(entry.event.payload));
  }
  events_.clear();
  db().send(kInsertEvents,
            Params(numbers, runs, sequences, kinds, claims, operations, payloads, now_.wall));
}

void PgRows::send_erased() {
  Array ids(Array::Of::ids);
  for (const RunId& id : erased_) ids.add_id(id);
  erased_.clear();
  for (const char* sql : {kEraseEvents, kEraseLabels, kEraseData, kEraseRuns}) {
    db().send(sql, Params(ids));
  }
}

}  // namespace holdfast::postgres
