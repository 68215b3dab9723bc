#include "store/sqlite/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "store/listing.hpp"
#include "store/sqlite/event_chain.hpp"
#include "store/sqlite/statements.hpp"

namespace holdfast::sqlite {
namespace {

constexpr std::size_t kIdleReaders = 4;

std::int64_t as_limit(int limit) {
  return limit <= 0 ? std::numeric_limits<std::int64_t>::max() : std::int64_t{limit};
}

/// Statuses whose runs an index finds among millions of others; the clause that makes SQLite use
/// it.
std::string_view narrow_index(const ListFilter& filter) {
  if (filter.oldest_first || !filter.status) return "";
  const auto status = parse_word<Status>(*filter.status);
  if (!status) return "";
  switch (*status) {
    case Status::queued:
      return " INDEXED BY runs_queued WHERE r.status = 'queued'";
    case Status::running:
      return " INDEXED BY runs_held WHERE r.claimed_by IS NOT NULL AND r.status = 'running'";
    case Status::waiting_for_approval:
    case Status::waiting_for_input:
      return " INDEXED BY runs_waiting WHERE r.waiting IS NOT NULL";
    case Status::failed:
      return " INDEXED BY runs_failed WHERE r.status = 'failed'";
    case Status::completed:
    case Status::cancelled:
      return "";
  }
  return "";
}

/// The text of a listing and its values: `texts` are bound in order behind the numbers.
struct ListQuery {
  std::string sql;
  std::vector<std::string> texts;

  std::string bound(const std::string& text) {
    texts.push_back(text);
    return fmt::format("?{}", texts.size());
  }
};

ListQuery make_query(const ListFilter& filter) {
  ListQuery query;
  const auto index = narrow_index(filter);
  query.sql = "SELECT " HOLDFAST_RUN_COLUMNS " FROM runs r";
  query.sql += index.empty() ? " WHERE 1" : std::string(index);
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
        " AND EXISTS (SELECT 1 FROM labels l WHERE l.run = r.row AND l.key = {} AND l.value = {})",
        key_at, query.bound(value));
  }
  const auto after = parse_cursor(filter);
  if (filter.oldest_first) {
    if (after) {
      query.sql += fmt::format(" AND (coalesce(r.finished_at, 0), r.id) > ({}, {})",
                               after->finished_at, query.bound(after->id));
    }
    query.sql += " ORDER BY coalesce(r.finished_at, 0), r.id";
  } else {
    if (after) query.sql += fmt::format(" AND r.row < {}", after->row);
    query.sql += " ORDER BY r.row DESC";
  }
  const std::int64_t limit = as_limit(filter.limit);
  query.sql += fmt::format(" LIMIT {}",
                           limit == std::numeric_limits<std::int64_t>::max() ? limit : limit + 1);
  return query;
}

}  // namespace

std::unique_ptr<ReaderPool::Reader> ReaderPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto reader = std::move(idle_.back());
      idle_.pop_back();
      return reader;
    }
  }
  return std::make_unique<Reader>(path_, is_gone_);
}

void ReaderPool::give_back(std::unique_ptr<Reader> reader) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleReaders) idle_.push_back(std::move(reader));
}

RunPage list_runs(SqliteRows& rows, Connection& db, const ListFilter& filter) {
  const ListQuery query = make_query(filter);
  std::vector<StoredRun> found;
  db.query_once(query.sql, query.texts,
                [&](const Cursor& at) { found.push_back(rows.read_run(at)); });
  RunPage page;
  const auto limit = static_cast<std::uint64_t>(as_limit(filter.limit));
  if (found.size() > limit) {
    found.resize(static_cast<std::size_t>(limit));
    const StoredRun& last = found.back();
    const auto finished_at = last.run.finished_at.value_or(WallTime{}).time_since_epoch().count();
    page.next = format_cursor(filter, {last.row, finished_at, last.run.id});
  }
  for (StoredRun& stored : found) {
    rows.read_cold(stored, false);
    page.runs.push_back(std::move(stored.run));
  }
  return page;
}

std::vector<Event> read_events(Connection& db, const RunId& id, std::int64_t after, int limit) {
  std::vector<Event> events;
  std::int64_t position = 0;
  std::int64_t newest = 0;
  std::int64_t row = 0;
  {
    auto chain = db.query(kFindChain, id);
    if (!chain.next()) return events;
    row = chain.number(0);
    position = chain.number(1);
    newest = chain.number(2);
  }
  after = std::max<std::int64_t>(after, 0);
  const std::int64_t left = newest - after;
  const std::int64_t last = left > as_limit(limit) ? after + as_limit(limit) : newest;
  if (last < newest) {
    auto anchor = db.query(kChainFrom, row, last);
    if (anchor.next()) position = anchor.number(0);
  }
  walk_back(db, position, [&](const ChainedEvent& event) {
    const std::int64_t sequence = event.at.number(0);
    if (sequence <= after) return false;
    if (sequence <= last) events.push_back(SqliteRows::read_event(event.at, id));
    return true;
  });
  std::ranges::reverse(events);
  return events;
}

std::vector<Event> read_all_events(Connection& db, std::int64_t& position, int limit) {
  std::vector<Event> events;
  auto cursor = db.query(kAllEvents, position, as_limit(limit));
  while (cursor.next()) {
    events.push_back(SqliteRows::read_event(cursor, cursor.text(6)));
    position = cursor.number(5);
  }
  return events;
}

StoreStats read_stats(Connection& db, const Now& now) {
  StoreStats stats;
  {
    auto cursor = db.query(kCounts);
    while (cursor.next()) {
      stats.by_status[cursor.text(0)] += cursor.number(2);
      if (!cursor.view(1).empty()) stats.by_reason[cursor.text(1)] += cursor.number(2);
    }
  }
  {
    auto cursor = db.query(kQueuedGroups, now.wall);
    while (cursor.next()) {
      const std::int64_t due = cursor.number(2);
      stats.due += due;
      stats.delayed += cursor.number(3);
      if (due == 0) continue;
      stats.due_by_agent[cursor.text(0)] += due;
      const Duration age = now.wall - cursor.wall(4);
      stats.oldest_due = std::max(stats.oldest_due.value_or(age), age);
      auto& oldest = stats.oldest_due_by_priority.try_emplace(cursor.small(1), age).first->second;
      oldest = std::max(oldest, age);
    }
  }
  auto cursor = db.query(kLeaseCounts, now.store);
  if (cursor.next()) {
    stats.leases_stale = cursor.number(1);
    stats.leases_held = cursor.number(0) - stats.leases_stale;
  }
  return stats;
}

}  // namespace holdfast::sqlite
