#include "store/sqlite/sqlite_rows.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "core/run_codec.hpp"
#include "store/sqlite/event_chain.hpp"
#include "store/sqlite/statements.hpp"

namespace holdfast::sqlite {
namespace {

constexpr char kPurgedUpTo[] = "last_position";
constexpr std::size_t kKeptRows = 1024;

template <class T>
std::optional<std::string> as_text(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return dump_json(encode(*value));
}

std::optional<std::string> as_text(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return dump_json(value);
}

/// An answer of null is an answer.
std::optional<std::string> answer_text(const std::optional<Json>& answer) {
  if (!answer) return std::nullopt;
  return dump_json(*answer);
}

template <class E>
std::optional<std::string> word_text(const std::optional<Word<E>>& word) {
  if (!word) return std::nullopt;
  return word->text();
}

Json parse_stored(std::string_view text) { return Json::parse(text, nullptr, false); }

std::optional<WallTime> wait_deadline(const Run& run) {
  return run.waiting_for ? run.waiting_for->deadline : std::nullopt;
}

/// What stands in `run_data` and `labels`; may be long.
struct ColdParts {
  Json input;
  std::optional<Json> answer;
  Json definition;
  Labels labels;
  std::optional<std::string> idempotency_key;
};

ColdParts take_cold(Run& run) {
  return {std::exchange(run.input, Json()), std::exchange(run.answer, std::nullopt),
          std::exchange(run.definition, Json()), std::exchange(run.labels, {}),
          std::exchange(run.idempotency_key, std::nullopt)};
}

void give_cold(Run& run, ColdParts cold) {
  run.input = std::move(cold.input);
  run.answer = std::move(cold.answer);
  run.definition = std::move(cold.definition);
  run.labels = std::move(cold.labels);
  run.idempotency_key = std::move(cold.idempotency_key);
}

/// Only what a step changes differs: the lease (not brought forward), what it used, its fence.
bool is_step_only(const StoredRun& before, const Run& row) {
  const Run& old = before.run;
  const bool keeps_key =
      row.lease_until
          ? before.lease_key && row.lease_until->time_since_epoch().count() >= *before.lease_key
          : !before.lease_key;
  return keeps_key && row.status == old.status && row.claim == old.claim &&
         row.claimed_by == old.claimed_by && row.reason == old.reason && row.origin == old.origin &&
         row.available_at == old.available_at && row.started_at == old.started_at &&
         row.finished_at == old.finished_at &&
         row.lease_lost_by_presence == old.lease_lost_by_presence &&
         row.failing_since == old.failing_since && row.requeue_count == old.requeue_count &&
         row.max_requeues == old.max_requeues && row.reclaim_count == old.reclaim_count &&
         row.redrive_count == old.redrive_count && row.has_policy == old.has_policy &&
         row.policy == old.policy && row.error == old.error && row.waiting_for == old.waiting_for;
}

}  // namespace

void SqliteRows::begin(const Now& now, bool is_dry) {
  now_ = now;
  is_dry_ = is_dry;
  has_queued_ = false;
  last_position_ = 0;
  newest_id_.reset();
  counts_.clear();
}

void SqliteRows::flush() {
  for (const auto& [key, number] : counts_) {
    if (number != 0) db_.run(kAddCount, key.first, key.second, number);
  }
  counts_.clear();
}

void SqliteRows::forget() {
  policies_.clear();
  kept_.clear();
}

void SqliteRows::keep_rows(std::int64_t data_version) {
  if (data_version != data_version_) kept_.clear();
  data_version_ = data_version;
}

/// Running rows are the ones that are asked for again and again.
void SqliteRows::keep(StoredRun stored) {
  if (data_version_ == 0 || !stored.run.status.is(Status::running)) return;
  if (kept_.size() >= kKeptRows) kept_.clear();
  take_cold(stored.run);
  RunId id = stored.run.id;
  kept_.insert_or_assign(std::move(id), std::move(stored));
}

std::optional<StoredRun> SqliteRows::load(const RunId& id, Parts parts) {
  std::optional<StoredRun> stored;
  if (auto kept = kept_.extract(id)) {
    stored = std::move(kept.mapped());
    Run& run = stored->run;
    if (run.lease_until) run.lease_expires_at = now_.wall + (*run.lease_until - now_.store);
  } else {
    if (is_newest(id)) return std::nullopt;
    auto cursor = db_.query(kLoad, id);
    if (!cursor.next()) return std::nullopt;
    stored = read_run(cursor);
  }
  if (parts == Parts::all) read_cold(*stored, true);
  return stored;
}

/// Ids grow with time: a new run's stands behind all others, and need not be looked for.
bool SqliteRows::is_newest(const RunId& id) {
  if (!newest_id_) {
    auto cursor = db_.query(kNewestId);
    newest_id_ = cursor.next() ? cursor.text(0) : "";
  }
  return id > *newest_id_;
}

StoredRun SqliteRows::read_run(const Cursor& at) {
  StoredRun stored;
  Run& run = stored.run;
  int i = 0;
  const auto maybe_word = [&]<class E>(std::optional<Word<E>>& word) {
    if (!at.is_null(i)) word = Word<E>(at.text(i));
    ++i;
  };
  stored.row = at.number(i++);
  run.id = at.text(i++);
  run.agent = at.text(i++);
  run.queue = at.text(i++);
  run.status = Word<Status>(at.text(i++));
  maybe_word(run.reason);
  run.origin = Word<Origin>(at.text(i++));
  run.priority = at.small(i++);
  run.created_at = at.wall(i++);
  run.available_at = at.maybe_wall(i++);
  run.started_at = at.maybe_wall(i++);
  run.finished_at = at.maybe_wall(i++);
  if (!at.is_null(i)) run.claimed_by = at.text(i);
  ++i;
  run.claim = at.number(i++);
  if (!at.is_null(i)) {
    run.lease_until = StoreTime(Duration(at.number(i)));
    run.lease_expires_at = now_.wall + (*run.lease_until - now_.store);
  }
  ++i;
  if (!at.is_null(i)) stored.lease_key = at.number(i);
  ++i;
  run.lease_lost_by_presence = at.small(i++) != 0;
  run.failing_since = at.maybe_wall(i++);
  run.requeue_count = at.small(i++);
  run.max_requeues = at.small(i++);
  run.reclaim_count = at.small(i++);
  run.redrive_count = at.small(i++);
  run.iterations = at.small(i++);
  run.usage.prompt_tokens = at.number(i++);
  run.usage.completion_tokens = at.number(i++);
  run.usage.total_tokens = at.number(i++);
  run.usage.cost_usd = at.real(i++);
  run.has_policy = !at.is_null(i);
  if (run.has_policy) run.policy = get_policy(at.number(i));
  ++i;
  if (!at.is_null(i)) run.error = decode_failure(parse_stored(at.view(i)));
  ++i;
  if (!at.is_null(i)) run.pending = decode_fence(parse_stored(at.view(i)));
  ++i;
  if (!at.is_null(i)) run.waiting_for = decode_wait(parse_stored(at.view(i)));
  ++i;
  run.last_sequence = at.number(i++);
  stored.last_position = at.number(i);
  return stored;
}

void SqliteRows::read_cold(StoredRun& stored, bool with_definition) {
  {
    auto cursor = db_.query(kLoadData, stored.row);
    if (cursor.next()) {
      stored.run.input = parse_stored(cursor.view(0));
      if (!cursor.is_null(1)) stored.run.answer = parse_stored(cursor.view(1));
      if (with_definition && !cursor.is_null(2)) {
        stored.run.definition = parse_stored(cursor.view(2));
      }
      if (!cursor.is_null(3)) stored.run.idempotency_key = cursor.text(3);
    }
  }
  auto labels = db_.query(kLoadLabels, stored.row);
  while (labels.next()) stored.run.labels.emplace(labels.text(0), labels.text(1));
}

std::optional<KeyOwner> SqliteRows::find_key(const std::string& idempotency_key) {
  auto cursor = db_.query(kFindKey, idempotency_key);
  if (!cursor.next()) return std::nullopt;
  return KeyOwner{cursor.text(0), cursor.text(1)};
}

std::string SqliteRows::content_digest(const StoredRun& stored) {
  auto cursor = db_.query(kContentDigest, stored.row);
  return cursor.next() ? cursor.text(0) : "";
}

StoredRun SqliteRows::insert(const NewRun& wanted, Change& change) {
  StoredRun stored;
  stored.run = std::move(change.row);
  const Run& run = stored.run;
  const auto events = static_cast<std::int64_t>(change.events.size());
  stored.run.last_sequence = events;
  if (run.lease_until) stored.lease_key = run.lease_until->time_since_epoch().count();
  db_.run(kInsert, run.id, run.agent, run.queue, run.status.text(), word_text(run.reason),
          run.origin.text(), run.priority, run.created_at, run.available_at, run.started_at,
          run.finished_at, run.claimed_by, run.claim, run.lease_until,
          run.lease_lost_by_presence ? 1 : 0, run.failing_since, run.requeue_count,
          run.max_requeues, run.reclaim_count, run.redrive_count, run.iterations,
          run.usage.prompt_tokens, run.usage.completion_tokens, run.usage.total_tokens,
          run.usage.cost_usd, policy_id(run), as_text(run.error), as_text(run.pending),
          as_text(run.waiting_for), wait_deadline(run), run.last_sequence,
          newest_position() + events);
  stored.row = db_.last_row();
  if (newest_id_ && run.id > *newest_id_) newest_id_ = run.id;
  db_.run(kInsertData, stored.row, dump_json(run.input), as_text(run.definition),
          run.idempotency_key, wanted.content_digest);
  for (const auto& [key, value] : run.labels) db_.run(kInsertLabel, stored.row, key, value);
  stored.run.last_sequence = 0;
  append(stored, change.events);
  count(stored.run, 1);
  if (run.status.is(Status::queued)) has_queued_ = true;
  return stored;
}

void SqliteRows::save(StoredRun& stored, Change& change) {
  StoredRun after{std::move(change.row), stored.row, stored.last_position, stored.lease_key};
  after.run.last_sequence = stored.run.last_sequence;
  ColdParts cold = take_cold(stored.run);
  ColdParts wanted = take_cold(after.run);
  if (change.answer_changed) cold.answer = std::move(wanted.answer);
  if (change.definition_changed) cold.definition = std::move(wanted.definition);
  if (!is_dry_) {
    append(after, change.events);
    update(stored, after);
    if (change.answer_changed) db_.run(kUpdateAnswer, stored.row, answer_text(cold.answer));
    if (change.definition_changed) db_.run(kUpdateDefinition, stored.row, as_text(cold.definition));
    if (stored.run.status != after.run.status || stored.run.reason != after.run.reason) {
      count(stored.run, -1);
      count(after.run, 1);
    }
    if (after.run.status.is(Status::queued)) has_queued_ = true;
  }
  give_cold(after.run, std::move(cold));
  stored = std::move(after);
}

void SqliteRows::update(const StoredRun& before, StoredRun& stored) {
  const Run& row = stored.run;
  if (is_step_only(before, row)) {
    db_.run(kUpdateStep, stored.row, row.lease_until, row.iterations, row.usage.prompt_tokens,
            row.usage.completion_tokens, row.usage.total_tokens, row.usage.cost_usd,
            as_text(row.pending), row.last_sequence, stored.last_position);
    return;
  }
  stored.lease_key.reset();
  if (row.lease_until) stored.lease_key = row.lease_until->time_since_epoch().count();
  db_.run(kUpdate, stored.row, row.status.text(), word_text(row.reason), row.origin.text(),
          row.available_at, row.started_at, row.finished_at, row.claimed_by, row.claim,
          row.lease_until, stored.lease_key, row.lease_lost_by_presence ? 1 : 0, row.failing_since,
          row.requeue_count, row.max_requeues, row.reclaim_count, row.redrive_count, row.iterations,
          row.usage.prompt_tokens, row.usage.completion_tokens, row.usage.total_tokens,
          row.usage.cost_usd, policy_id(row), as_text(row.error), as_text(row.pending),
          as_text(row.waiting_for), wait_deadline(row), row.last_sequence, stored.last_position);
}

void SqliteRows::append(StoredRun& stored, std::vector<NewEvent>& events) {
  for (const NewEvent& event : events) {
    const std::int64_t position = newest_position() + 1;
    db_.run(kInsertEvent, position, stored.row, ++stored.run.last_sequence, to_word(event.kind),
            now_.wall, event.claim, stored.last_position, dump_json(event.payload));
    stored.last_position = last_position_ = position;
  }
}

/// Positions never go back, also where the newest events were purged: a cursor of `all_events`
/// stands behind what it has seen.
std::int64_t SqliteRows::newest_position() {
  if (last_position_ != 0) return last_position_;
  if (auto cursor = db_.query(kLastPosition); cursor.next()) last_position_ = cursor.number(0);
  if (auto cursor = db_.query(kGetMeta, kPurgedUpTo); cursor.next()) {
    last_position_ = std::max<std::int64_t>(last_position_, std::stoll(cursor.text(0)));
  }
  return last_position_;
}

void SqliteRows::count(const Run& run, std::int64_t by) {
  counts_[{run.status.text(), run.reason ? run.reason->text() : ""}] += by;
}

void SqliteRows::erase(const StoredRun& stored) {
  kept_.erase(stored.run.id);
  db_.run(kSetMeta, kPurgedUpTo, std::to_string(newest_position()));
  std::vector<std::int64_t> positions;
  walk_back(db_, stored.last_position, [&](const ChainedEvent& event) {
    positions.push_back(event.position);
    return true;
  });
  for (const std::int64_t position : positions) db_.run(kEraseEvent, position);
  db_.run(kEraseLabels, stored.row);
  db_.run(kEraseData, stored.row);
  db_.run(kEraseRun, stored.row);
  count(stored.run, -1);
}

std::vector<Event> SqliteRows::journal(const StoredRun& stored, std::int64_t from_claim) {
  std::vector<Event> events;
  walk_back(db_, stored.last_position, [&](const ChainedEvent& event) {
    if (event.at.number(3) < from_claim) return false;
    events.push_back(read_event(event.at, stored.run.id));
    return true;
  });
  std::ranges::reverse(events);
  return events;
}

Event SqliteRows::read_event(const Cursor& at, RunId run) {
  return {std::move(run), at.number(0), Word<EventKind>(at.text(1)),
          at.wall(2),     at.number(3), parse_stored(at.view(4))};
}

bool SqliteRows::has_operation(const StoredRun& stored, const std::string& operation) {
  bool is_there = false;
  walk_back(db_, stored.last_position, [&](const ChainedEvent& event) {
    const std::string_view kind = event.at.view(1);
    const bool is_step = kind == to_word(EventKind::model) || kind == to_word(EventKind::tool) ||
                         kind == to_word(EventKind::step);
    // Most payloads need not be parsed to know that it is not in them.
    if (!is_step && event.at.view(4).find(operation) != std::string_view::npos) {
      const Json payload = parse_stored(event.at.view(4));
      is_there = payload.is_object() && payload.value("operation", Json()) == operation;
    }
    return !is_there;
  });
  return is_there;
}

WallTime SqliteRows::last_event_at(const StoredRun& stored) {
  auto cursor = db_.query(kLastEventAt, stored.row);
  return cursor.next() ? cursor.wall(0) : stored.run.created_at;
}

Circuit SqliteRows::find_circuit(const std::string& target) {
  auto cursor = db_.query(kFindCircuit, target);
  return decode_circuit(target, cursor.next() ? parse_stored(cursor.view(0)) : Json());
}

void SqliteRows::save_circuit(const Circuit& circuit) {
  if (!is_dry_) db_.run(kSaveCircuit, circuit.target, dump_json(encode(circuit)));
}

std::optional<std::int64_t> SqliteRows::policy_id(const Run& run) {
  if (!run.has_policy) return std::nullopt;
  for (const auto& [id, policy] : policies_) {
    if (policy == run.policy) return id;
  }
  const std::string json = dump_json(encode(run.policy));
  std::int64_t id = 0;
  if (auto cursor = db_.query(kFindPolicy, json); cursor.next()) id = cursor.number(0);
  if (id == 0) {
    db_.run(kInsertPolicy, json);
    id = db_.last_row();
  }
  policies_.emplace(id, run.policy);
  return id;
}

const Policy& SqliteRows::get_policy(std::int64_t id) {
  if (const auto it = policies_.find(id); it != policies_.end()) return it->second;
  Policy policy;
  if (auto cursor = db_.query(kLoadPolicy, id); cursor.next()) {
    policy = decode_policy(parse_stored(cursor.view(0)));
  }
  return policies_.emplace(id, policy).first->second;
}

}  // namespace holdfast::sqlite
