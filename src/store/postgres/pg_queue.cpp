// Which runs: the questions of PgRows that pick runs.

#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "store/postgres/pg_rows.hpp"
#include "store/postgres/pg_statements.hpp"

namespace holdfast::postgres {
namespace {

Array text_array(std::span<const std::string> texts) {
  Array array(Array::Of::texts);
  for (const std::string& text : texts) array.add(text);
  return array;
}

}  // namespace

void PgRows::send_pool(const std::vector<std::string>& agents, std::span<const std::string> queues,
                       int limit) {
  Params params(text_array(agents));
  if (queues.empty()) {
    params.add_null();
  } else {
    params.add(text_array(queues));
  }
  params.add(clock_now());
  Params with_limit = params;
  with_limit.add(std::max(limit, 0));
  db().send(kClaimable, with_limit);
  db().send(kNextDue, params);
}

PgRows::Pool PgRows::read_pool(const Result& runs, const Result& next_due) {
  Pool pool;
  auto found = read_runs(runs);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const RunId id = found[i].run.id;
    pool.runs.push_back(id);
    Entry& entry = entries_[id];
    // What this unit holds already is newer than what it reads.
    if (entry.stored && (entry.dirt != Dirt::clean || entry.has_cold)) continue;
    RowReader at(runs, static_cast<int>(i));
    for (int column = 0; column < 32; ++column) at.skip();
    read_cold(found[i], at);
    if (const auto text = at.maybe_view()) {
      found[i].run.definition = Json::parse(*text, nullptr, false);
    }
    entry.stored = std::move(found[i]);
    entry.has_cold = true;
  }
  if (!next_due.is_null(0, 0)) pool.next_due = next_due.wall(0, 0);
  return pool;
}

std::vector<Candidate> PgRows::due(const std::string& agent, std::span<const std::string> queues,
                                   int limit) {
  const auto serves = [&](const Pool& pool) {
    return std::ranges::find(pool.agents, agent) != pool.agents.end() &&
           std::ranges::equal(pool.queues, queues);
  };
  std::vector<Candidate> found;
  int of_all_agents = 0;
  const auto take_from = [&](const Pool& pool) {
    for (const RunId& id : pool.runs) {
      const Entry& entry = entries_[id];
      if (!entry.stored) continue;
      const Run& run = entry.stored->run;
      if (!run.status.is(Status::queued) || !run.available_at || *run.available_at > now_.wall) {
        continue;
      }
      ++of_all_agents;
      if (run.agent == agent && found.size() < static_cast<std::size_t>(limit)) {
        found.push_back({id, run.priority, *run.available_at});
      }
    }
  };
  const auto pool = std::ranges::find_if(pools_, serves);
  if (pool != pools_.end()) {
    take_from(*pool);
    // What it does not hold comes behind all that it holds.
    if (pool->is_whole || of_all_agents >= limit) return found;
    found.clear();
  }
  write_out();
  send_pool({agent}, queues, limit);
  const auto results = db().flush();
  take_from(read_pool(results[0], results[1]));
  return found;
}

std::optional<WallTime> PgRows::next_due(const std::string& agent,
                                         std::span<const std::string> queues) {
  for (const Pool& pool : pools_) {
    if (std::ranges::find(pool.agents, agent) != pool.agents.end() &&
        std::ranges::equal(pool.queues, queues)) {
      return pool.next_due;
    }
  }
  write_out();
  Params params(text_array(std::span(&agent, 1)));
  if (queues.empty()) {
    params.add_null();
  } else {
    params.add(text_array(queues));
  }
  params.add(clock_now());
  const Result result = db().ask(kNextDue, params);
  if (result.is_null(0, 0)) return std::nullopt;
  return result.wall(0, 0);
}

/// Those of the database, as this unit has changed them.
std::vector<RunId> PgRows::leased_by(const WorkerId& worker) {
  const auto is_held = [&](const Entry& entry) {
    return entry.stored && entry.stored->run.status.is(Status::running) &&
           entry.stored->run.claimed_by == worker && entry.stored->run.lease_until;
  };
  auto foreseen = leased_.find(worker);
  if (foreseen == leased_.end()) {
    write_out();
    const Result result = db().ask(kLeasedBy, Params(worker));
    std::vector<RunId> held;
    for (int row = 0; row < result.rows(); ++row) held.push_back(result.text(row, 0));
    if (is_dry_) return held;
    // Locked together and in order, before they are asked for one by one.
    Array ids(Array::Of::ids);
    for (const RunId& id : held) {
      if (!entries_.contains(id)) ids.add_id(id);
    }
    if (ids.size() > 0) {
      for (const RunId& id : held) entries_.try_emplace(id);
      remember(read_runs(db().ask(kLockRuns, Params(ids))));
    }
    foreseen = leased_.emplace(worker, std::move(held)).first;
  }
  std::vector<RunId> held;
  for (const RunId& id : foreseen->second) {
    const auto entry = entries_.find(id);
    if (entry == entries_.end() || is_held(entry->second)) held.push_back(id);
  }
  for (const auto& [id, entry] : entries_) {
    if (entry.dirt != Dirt::clean && is_held(entry) && std::ranges::find(held, id) == held.end()) {
      held.push_back(id);
    }
  }
  return held;
}

std::vector<RunId> PgRows::remember(std::vector<StoredRun> found) {
  std::vector<RunId> ids;
  for (StoredRun& stored : found) {
    ids.push_back(stored.run.id);
    if (is_dry_) continue;
    Entry& entry = entries_[stored.run.id];
    if (!entry.stored) entry.stored = std::move(stored);
  }
  return ids;
}

std::vector<RunId> PgRows::stale(int limit) {
  write_out();
  return remember(read_runs(db().ask(is_dry_ ? kStale : kLockStale, Params(now_.store, limit))));
}

std::vector<RunId> PgRows::overdue_waits(int limit) {
  write_out();
  return remember(
      read_runs(db().ask(is_dry_ ? kOverdueWaits : kLockOverdueWaits, Params(now_.wall, limit))));
}

/// Nothing terminal changes but by people: seen here, locked when it is loaded.
std::vector<RunId> PgRows::ended(WallTime ended_before, int limit) {
  write_out();
  std::vector<RunId> ids;
  for (const StoredRun& stored : read_runs(db().ask(kEnded, Params(ended_before, limit)))) {
    ids.push_back(stored.run.id);
  }
  return ids;
}

std::vector<RunId> PgRows::unfinished() {
  write_out();
  const Result result = db().ask(kUnfinished);
  std::vector<RunId> ids;
  for (int row = 0; row < result.rows(); ++row) ids.push_back(result.text(row, 0));
  return ids;
}

std::vector<Event> PgRows::journal(const StoredRun& stored, std::int64_t from_claim) {
  write_out();
  Params params;
  params.add_raw(stored.run.id);
  params.add(from_claim);
  const Result result = db().ask(kJournal, params);
  std::vector<Event> events;
  for (int row = 0; row < result.rows(); ++row) {
    RowReader at(result, row);
    events.push_back(read_event(at, stored.run.id));
  }
  return events;
}

Event PgRows::read_event(RowReader& at, RunId run) {
  Event event;
  event.run = std::move(run);
  event.sequence = at.number();
  event.kind = Word<EventKind>(at.text());
  event.at = at.wall();
  event.claim = at.number();
  event.payload = Json::parse(at.view(), nullptr, false);
  return event;
}

bool PgRows::has_operation(const StoredRun& stored, const std::string& operation) {
  write_out();
  Params params;
  params.add_raw(stored.run.id);
  params.add(operation);
  return db().ask(kHasOperation, params).rows() > 0;
}

WallTime PgRows::last_event_at(const StoredRun& stored) {
  write_out();
  Params params;
  params.add_raw(stored.run.id);
  const Result result = db().ask(kLastEventAt, params);
  return result.rows() == 0 ? stored.run.created_at : result.wall(0, 0);
}

}  // namespace holdfast::postgres
