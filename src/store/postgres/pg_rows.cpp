// What the verbs load and save: from and to the unit of work.

#include "store/postgres/pg_rows.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "core/run_codec.hpp"
#include "store/postgres/pg_statements.hpp"

namespace holdfast::postgres {
namespace {

/// What falls due later is known by then to every worker: each looks that often.
constexpr Duration kLearntByLooking = std::chrono::seconds(2);

Json parse_kept(std::string_view text) { return Json::parse(text, nullptr, false); }

/// What neither a step nor a claim nor a run's ordinary end changes is as it was.
bool is_only_turn(const Run& old, const Run& row) {
  return row.origin == old.origin && row.lease_lost_by_presence == old.lease_lost_by_presence &&
         row.failing_since == old.failing_since && row.requeue_count == old.requeue_count &&
         row.max_requeues == old.max_requeues && row.reclaim_count == old.reclaim_count &&
         row.redrive_count == old.redrive_count && row.error == old.error &&
         row.waiting_for == old.waiting_for;
}

/// Only what a step changes differs: the lease (not brought forward), what it used, its fence.
bool is_only_step(const StoredRun& before, const Run& row) {
  const Run& old = before.run;
  const bool keeps_key =
      row.lease_until
          ? before.lease_key && row.lease_until->time_since_epoch().count() >= *before.lease_key
          : !before.lease_key;
  return keeps_key && row.status == old.status && row.claim == old.claim &&
         row.claimed_by == old.claimed_by && row.reason == old.reason &&
         row.available_at == old.available_at && row.started_at == old.started_at &&
         row.finished_at == old.finished_at && row.has_policy == old.has_policy &&
         row.policy == old.policy && is_only_turn(old, row);
}

}  // namespace

void PgRows::reset() {
  entries_.clear();
  keys_.clear();
  events_.clear();
  event_number_ = 0;
  erased_.clear();
  circuits_.clear();
  changed_circuits_.clear();
  last_.clear();
  pools_.clear();
  leased_.clear();
  queued_.clear();
  new_policies_.clear();
}

void PgRows::begin_dry(Connection& db, const Now& now) {
  reset();
  db_ = &db;
  is_dry_ = true;
  now_ = now;
}

void PgRows::committed() {
  for (const auto& [id, json] : new_policies_) stored_policies_.insert(id);
}

void PgRows::rolled_back() { reset(); }

PgRows::Entry& PgRows::entry_of(const RunId& id) {
  const auto [it, is_new] = entries_.try_emplace(id);
  if (!is_new && !is_dry_) return it->second;
  Entry& entry = it->second;
  entry = {};
  if (!uuid_bytes(id)) return entry;
  Array ids(Array::Of::ids);
  ids.add_id(id);
  auto found = read_runs(db().ask(is_dry_ ? kSeeRuns : kLockRuns, Params(ids)));
  if (!found.empty()) entry.stored = std::move(found.front());
  return entry;
}

std::optional<StoredRun> PgRows::load(const RunId& id, Parts parts) {
  Entry& entry = entry_of(id);
  if (entry.stored && parts == Parts::all && !entry.has_cold) load_cold(entry);
  return entry.stored;
}

void PgRows::load_cold(Entry& entry) {
  write_out();
  Params params;
  params.add_raw(entry.stored->run.id);
  const Result result = db().ask(kLoadCold, params);
  entry.has_cold = true;
  if (result.rows() == 0) return;
  RowReader at(result, 0);
  read_cold(*entry.stored, at);
  if (const auto text = at.maybe_view()) entry.stored->run.definition = parse_kept(*text);
}

void PgRows::read_cold(StoredRun& stored, RowReader& at) {
  stored.run.input = parse_kept(at.view());
  if (const auto text = at.maybe_view()) stored.run.answer = parse_kept(*text);
  stored.run.idempotency_key = at.maybe_text();
  if (const auto text = at.maybe_view()) {
    const Json labels = parse_kept(*text);
    for (const auto& [key, value] : labels.items()) {
      stored.run.labels.emplace(unescape_text(key), unescape_text(value.get<std::string>()));
    }
  }
}

std::vector<StoredRun> PgRows::read_runs(const Result& result) {
  std::vector<StoredRun> found;
  std::vector<std::optional<std::int64_t>> policies;
  std::set<std::int64_t> unknown;
  for (int row = 0; row < result.rows(); ++row) {
    RowReader at(result, row);
    std::optional<std::int64_t> policy;
    found.push_back(read_run(at, policy));
    policies.push_back(policy);
    if (policy && !policies_.contains(*policy)) unknown.insert(*policy);
  }
  if (!unknown.empty()) learn_policies(unknown);
  for (std::size_t i = 0; i < found.size(); ++i) {
    Run& run = found[i].run;
    run.has_policy = policies[i].has_value();
    if (!run.has_policy) continue;
    if (const auto it = policies_.find(*policies[i]); it != policies_.end())
      run.policy = it->second;
  }
  return found;
}

StoredRun PgRows::read_run(RowReader& at, std::optional<std::int64_t>& policy) const {
  StoredRun stored;
  Run& run = stored.run;
  stored.row = at.number();
  run.id = at.text();
  run.agent = at.text();
  run.queue = at.text();
  run.status = Word<Status>(at.text());
  if (!at.skip_null()) run.reason = Word<Reason>(at.text());
  run.origin = Word<Origin>(at.text());
  run.priority = static_cast<int>(-at.number());
  run.created_at = at.wall();
  run.available_at = at.maybe_wall();
  run.started_at = at.maybe_wall();
  run.finished_at = at.maybe_wall();
  run.claimed_by = at.maybe_text();
  run.claim = at.number();
  if (!at.skip_null()) {
    run.lease_until = StoreTime(Duration(at.number()));
    run.lease_expires_at = now_.wall + (*run.lease_until - now_.store);
  }
  if (!at.skip_null()) stored.lease_key = at.number();
  run.lease_lost_by_presence = at.small() != 0;
  run.failing_since = at.maybe_wall();
  run.requeue_count = at.small();
  run.max_requeues = at.small();
  run.reclaim_count = at.small();
  run.redrive_count = at.small();
  run.iterations = at.small();
  run.usage.prompt_tokens = at.number();
  run.usage.completion_tokens = at.number();
  run.usage.total_tokens = at.number();
  run.usage.cost_usd = at.real();
  if (!at.skip_null()) policy = at.number();
  if (const auto text = at.maybe_view()) run.error = decode_failure(parse_kept(*text));
  if (const auto text = at.maybe_view()) run.pending = decode_fence(parse_kept(*text));
  if (const auto text = at.maybe_view()) run.waiting_for = decode_wait(parse_kept(*text));
  run.last_sequence = at.number();
  return stored;
}

void PgRows::learn_policies(const std::set<std::int64_t>& ids) {
  Array wanted(Array::Of::numbers);
  for (const std::int64_t id : ids) wanted.add(id);
  const Result result = db().ask(kLoadPolicies, Params(wanted));
  for (int row = 0; row < result.rows(); ++row) {
    const std::int64_t id = result.number(row, 0);
    policies_[id] = decode_policy(parse_kept(result.view(row, 1)));
    stored_policies_.insert(id);
  }
}

/// Policies are named by their content: nobody has to look one up before it is used.
std::int64_t PgRows::policy_id(const Run& run) {
  for (const auto& [id, policy] : policies_) {
    if (policy == run.policy && (stored_policies_.contains(id) || new_policies_.contains(id))) {
      return id;
    }
  }
  std::string json = dump_json(encode(run.policy));
  const auto id =
      static_cast<std::int64_t>(std::stoull(sha256_hex(json).substr(0, 15), nullptr, 16));
  policies_[id] = run.policy;
  if (!stored_policies_.contains(id)) new_policies_.emplace(id, std::move(json));
  return id;
}

std::optional<KeyOwner> PgRows::find_key(const std::string& idempotency_key) {
  const auto it = keys_.find(idempotency_key);
  if (it != keys_.end()) return it->second;
  write_out();
  Array keys(Array::Of::texts);
  keys.add(idempotency_key);
  const Result result = db().ask(kFindKeys, Params(keys));
  if (result.rows() == 0) return std::nullopt;
  return KeyOwner{result.text(0, 1), result.text(0, 2)};
}

Circuit PgRows::find_circuit(const std::string& target) {
  if (const auto it = circuits_.find(target); it != circuits_.end()) return it->second;
  if (is_dry_) {
    const Result found = db().ask(kFindCircuit, Params(target));
    if (found.rows() == 0) return decode_circuit(target, Json());
    return decode_circuit(target, parse_json(found.view(0, 0)).value_or(Json()));
  }
  db().send(kMakeCircuit, Params(target));
  db().send(kLockCircuit, Params(target));
  const Result locked = std::move(db().flush().back());
  const Json kept = locked.rows() == 0 ? Json() : parse_json(locked.view(0, 0)).value_or(Json());
  return circuits_.emplace(target, decode_circuit(target, kept)).first->second;
}

void PgRows::save_circuit(const Circuit& circuit) {
  if (is_dry_) return;
  circuits_[circuit.target] = circuit;
  changed_circuits_.insert(circuit.target);
}

std::string PgRows::content_digest(const StoredRun& stored) {
  if (const auto it = entries_.find(stored.run.id);
      it != entries_.end() && !it->second.content_digest.empty()) {
    return it->second.content_digest;
  }
  Params params;
  params.add_raw(stored.run.id);
  const Result result = db().ask(kContentDigest, params);
  return result.rows() == 0 ? "" : result.text(0, 0);
}

StoredRun PgRows::insert(const NewRun& wanted, Change& change) {
  StoredRun stored;
  stored.run = std::move(change.row);
  Run& run = stored.run;
  if (!uuid_bytes(run.id)) {
    throw RefusedError(Refusal::usage,
                       "`" + cut(clean_utf8(run.id), 64) + "` is not a UUID in lower case");
  }
  run.last_sequence = 0;
  if (run.lease_until) stored.lease_key = run.lease_until->time_since_epoch().count();
  append(stored, change.events);
  note_queued(run);
  if (run.idempotency_key) {
    keys_[*run.idempotency_key] = KeyOwner{run.id, wanted.content_digest};
  }
  Entry& entry = entries_[run.id];
  entry = {};
  entry.stored = stored;
  entry.has_cold = true;
  entry.dirt = Dirt::inserted;
  entry.content_digest = wanted.content_digest;
  return stored;
}

void PgRows::save(StoredRun& stored, Change& change) {
  Run row = std::move(change.row);
  row.input = std::move(stored.run.input);
  if (!change.answer_changed) row.answer = std::move(stored.run.answer);
  if (!change.definition_changed) row.definition = std::move(stored.run.definition);
  row.labels = std::move(stored.run.labels);
  row.idempotency_key = std::move(stored.run.idempotency_key);
  row.last_sequence = stored.run.last_sequence;
  if (is_dry_) {
    stored.run = std::move(row);
    return;
  }
  Entry& entry = entry_of(row.id);
  const bool is_step = is_only_step(stored, row);
  const bool is_turn = is_only_turn(stored.run, row);
  stored.run = std::move(row);
  append(stored, change.events);
  if (!is_step) {
    stored.lease_key.reset();
    if (stored.run.lease_until) {
      stored.lease_key = stored.run.lease_until->time_since_epoch().count();
    }
  }
  note_queued(stored.run);
  entry.dirt = std::max(entry.dirt, is_step ? Dirt::step : is_turn ? Dirt::turn : Dirt::all);
  entry.answer_changed = entry.answer_changed || change.answer_changed;
  entry.definition_changed = entry.definition_changed || change.definition_changed;
  // A caller that asked for the hot parts alone leaves the cold ones that are here.
  if (entry.has_cold && entry.stored) {
    Run& kept = entry.stored->run;
    StoredRun whole = stored;
    whole.run.input = std::move(kept.input);
    whole.run.labels = std::move(kept.labels);
    whole.run.idempotency_key = std::move(kept.idempotency_key);
    if (!change.answer_changed) whole.run.answer = std::move(kept.answer);
    if (!change.definition_changed) whole.run.definition = std::move(kept.definition);
    entry.stored = std::move(whole);
  } else {
    entry.stored = stored;
  }
}

void PgRows::append(StoredRun& stored, std::vector<NewEvent>& events) {
  for (NewEvent& event : events) {
    events_.push_back({stored.run.id, ++stored.run.last_sequence, std::move(event)});
  }
}

void PgRows::note_queued(const Run& run) {
  if (!run.status.is(Status::queued)) return;
  if (run.available_at.value_or(now_.wall) - now_.wall > kLearntByLooking) return;
  ++queued_[{run.agent, run.queue}];
}

void PgRows::erase(const StoredRun& stored) {
  write_out();
  erased_.push_back(stored.run.id);
  entries_[stored.run.id] = {};
  keys_.clear();
}

}  // namespace holdfast::postgres
