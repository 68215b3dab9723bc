#include "store/postgres/pg_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "store/listing.hpp"
#include "store/postgres/pg_statements.hpp"

namespace holdfast::postgres {
namespace {

constexpr std::size_t kIdlePgReaders = 2;
constexpr Duration kKeptIdle = std::chrono::seconds(10);
constexpr int kMostReaders = 6;
constexpr Duration kWholeTablePatience = std::chrono::seconds(65);
constexpr Duration kReaderWait = std::chrono::seconds(10);

std::int64_t rows_limit(int limit) {
  return limit <= 0 ? std::numeric_limits<std::int64_t>::max() - 1 : std::int64_t{limit};
}

/// The text of a listing and its values.
struct PgListQuery {
  std::string sql;
  Params values;

  std::string bound(const std::string& text) {
    values.add(text);
    return fmt::format("${}::text", values.size());
  }
};

PgListQuery make_pg_query(const ListFilter& filter) {
  PgListQuery query;
  query.sql = "SELECT " HOLDFAST_PG_RUN("r.") HOLDFAST_PG_COLD
      ", " HOLDFAST_PG_CLOCK " FROM @.runs r JOIN @.run_data d ON d.run = r.id WHERE true";
  const auto demand = [&](std::string_view column, const std::optional<std::string>& value) {
    if (value) query.sql += fmt::format(" AND r.{} = {}", column, query.bound(*value));
  };
  demand("status", filter.status);
  demand("reason", filter.reason);
  demand("agent", filter.agent);
  demand("queue", filter.queue);
  if (filter.ended_before) {
    query.sql +=
        fmt::format(" AND r.finished_at <= {}", filter.ended_before->time_since_epoch().count());
  }
  for (const auto& [key, value] : filter.labels) {
    const auto key_at = query.bound(key);
    query.sql += fmt::format(
        " AND EXISTS (SELECT 1 FROM @.labels l WHERE l.run = r.id AND l.key = {} AND l.value = {})",
        key_at, query.bound(value));
  }
  const auto after = parse_cursor(filter);
  if (filter.oldest_first) {
    if (after) {
      query.values.add_raw(after->id);
      query.sql += fmt::format(" AND (coalesce(r.finished_at, 0), r.id) > ({}, ${}::uuid)",
                               after->finished_at, query.values.size());
    }
    query.sql += " ORDER BY coalesce(r.finished_at, 0), r.id";
  } else {
    if (after) query.sql += fmt::format(" AND r.row < {}", after->row);
    query.sql += " ORDER BY r.row DESC";
  }
  query.sql += fmt::format(" LIMIT {}", rows_limit(filter.limit) + 1);
  return query;
}

}  // namespace

PgReaderPool::PgReaderPool(const Target& target, Env& env, PgRows::IsGone is_gone,
                           PgRows::Clock clock)
    : target_(target),
      env_(env),
      is_gone_(std::move(is_gone)),
      clock_(std::move(clock)),
      returned_(env.make_event_count()) {}

std::unique_ptr<PgReaderPool::Reader> PgReaderPool::take() {
  std::unique_ptr<Reader> reader;
  for (bool has_waited = false; !reader;) {
    const auto seen = returned_->current();
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        reader = std::move(idle_.back());
        idle_.pop_back();
        ++lent_;
      } else if (lent_ < kMostReaders || has_waited) {
        reader = std::make_unique<Reader>(is_gone_, clock_);
        ++lent_;
      }
    }
    if (!reader) has_waited = !returned_->wait_past(seen, kReaderWait, {});
  }
  try {
    if (!reader->db || !reader->db->is_usable()) {
      reader->db.reset();
      reader->db = Connection::make_tuned(target_);
    }
  } catch (...) {
    give_back(nullptr);
    throw;
  }
  return reader;
}

void PgReaderPool::give_back(std::unique_ptr<Reader> reader) {
  if (reader) {
    if (!reader->db->is_broken()) reader->db->roll_back();
    if (reader->db->is_broken()) reader.reset();
  }
  const StoreTime now = env_.store_now();
  if (reader) reader->used_at = now;
  std::unique_ptr<Reader> spare;
  {
    const std::lock_guard lock(mutex_);
    --lent_;
    if (reader && static_cast<int>(idle_.size()) < kMostReaders) idle_.push_back(std::move(reader));
    if (idle_.size() > kIdlePgReaders && now - idle_.front()->used_at > kKeptIdle) {
      spare = std::move(idle_.front());
      idle_.pop_front();
    }
  }
  returned_->notify_all();
}

Now PgReaderPool::read_clock(Connection& db) {
  if (clock_) return clock_();
  const Duration now(db.ask(kClock).number(0, 0));
  return {WallTime(now), StoreTime(now)};
}

RunPage list_pg_runs(PgRows& rows, Connection& db, const ListFilter& filter) {
  const auto after = parse_cursor(filter);
  if (filter.oldest_first && after && !uuid_bytes(after->id)) {
    throw RefusedError(Refusal::usage, "'" + *filter.after + "' is not a cursor of this listing");
  }
  const PgListQuery query = make_pg_query(filter);
  db.send(kFreePlans);
  db.send_text(db.in_schema(query.sql), query.values);
  const auto results = db.flush(kWholeTablePatience);
  const Result& result = results.back();
  auto found = rows.read_runs(result);
  for (std::size_t i = 0; i < found.size(); ++i) {
    RowReader at(result, static_cast<int>(i));
    for (int column = 0; column < 32; ++column) at.skip();
    PgRows::read_cold(found[i], at);
  }
  RunPage page;
  const auto limit = static_cast<std::uint64_t>(rows_limit(filter.limit));
  if (found.size() > limit) {
    found.resize(static_cast<std::size_t>(limit));
    const StoredRun& last = found.back();
    const auto finished_at = last.run.finished_at.value_or(WallTime{}).time_since_epoch().count();
    page.next = format_cursor(filter, {last.row, finished_at, last.run.id});
  }
  for (StoredRun& stored : found) page.runs.push_back(std::move(stored.run));
  return page;
}

std::vector<Event> read_pg_events(Connection& db, const RunId& id, std::int64_t after, int limit) {
  std::vector<Event> events;
  if (!uuid_bytes(id)) return events;
  Params params;
  params.add_raw(id);
  params.add(after);
  params.add(rows_limit(limit));
  const Result result = db.ask(kEvents, params);
  for (int row = 0; row < result.rows(); ++row) {
    RowReader at(result, row);
    events.push_back(PgRows::read_event(at, id));
  }
  return events;
}

std::vector<Event> read_all_pg_events(Connection& db, std::int64_t& cursor, int limit) {
  const Result result = db.ask(kAllEvents, Params(cursor, rows_limit(limit)));
  std::vector<Event> events;
  for (int row = 0; row < result.rows(); ++row) {
    RowReader at(result, row);
    Event event = PgRows::read_event(at, "");
    cursor = at.number();
    event.run = at.text();
    events.push_back(std::move(event));
  }
  return events;
}

StoreStats read_pg_stats(Connection& db, const Now& now, bool has_own_clock) {
  const auto wall = has_own_clock ? std::optional(now.wall) : std::nullopt;
  const auto store = has_own_clock ? std::optional(now.store) : std::nullopt;
  db.send(kFreePlans);
  db.send(kCounts);
  db.send(kQueuedGroups, Params(wall));
  db.send(kLeaseCounts, Params(store));
  auto results = db.flush(kWholeTablePatience);
  results.erase(results.begin());
  StoreStats stats;
  for (int row = 0; row < results[0].rows(); ++row) {
    const std::int64_t number = results[0].number(row, 2);
    stats.by_status[results[0].text(row, 0)] += number;
    if (!results[0].is_null(row, 1)) stats.by_reason[results[0].text(row, 1)] += number;
  }
  for (int row = 0; row < results[1].rows(); ++row) {
    RowReader at(results[1], row);
    const std::string agent = at.text();
    const int priority = static_cast<int>(-at.number());
    const std::int64_t due = at.number();
    stats.due += due;
    stats.delayed += at.number();
    if (due == 0) continue;
    stats.due_by_agent[agent] += due;
    const Duration age = now.wall - at.wall();
    stats.oldest_due = std::max(stats.oldest_due.value_or(age), age);
    auto& oldest = stats.oldest_due_by_priority.try_emplace(priority, age).first->second;
    oldest = std::max(oldest, age);
  }
  stats.leases_stale = results[2].number(0, 1);
  stats.leases_held = results[2].number(0, 0) - stats.leases_stale;
  return stats;
}

}  // namespace holdfast::postgres
