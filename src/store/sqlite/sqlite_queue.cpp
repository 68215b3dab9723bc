// Which runs: the questions of SqliteRows that pick runs by index.

#include <algorithm>
#include <limits>

#include "store/sqlite/sqlite_rows.hpp"
#include "store/sqlite/statements.hpp"

namespace holdfast::sqlite {
namespace {

/// How many leases one sweep draws level with their index.
constexpr int kLevelledAtOnce = 5000;

template <class... Values>
std::vector<RunId> ids(Connection& db, const char* sql, const Values&... values) {
  std::vector<RunId> found;
  auto cursor = db.query(sql, values...);
  while (cursor.next()) found.push_back(cursor.text(0));
  return found;
}

}  // namespace

std::vector<std::string> SqliteRows::queues_of(const std::string& agent) {
  std::vector<std::string> queues;
  if (auto cursor = db_.query(kFirstQueue, agent); cursor.next()) queues.push_back(cursor.text(0));
  while (!queues.empty()) {
    auto cursor = db_.query(kNextQueue, agent, queues.back());
    if (!cursor.next()) break;
    queues.push_back(cursor.text(0));
  }
  return queues;
}

template <class Visit>
void SqliteRows::for_each_group(const std::string& agent, std::span<const std::string> queues,
                                const Visit& visit) {
  const auto all =
      queues.empty() ? queues_of(agent) : std::vector<std::string>(queues.begin(), queues.end());
  for (const std::string& queue : all) {
    std::int64_t priority = std::numeric_limits<std::int64_t>::max();
    while (true) {
      {
        auto cursor = db_.query(kNextPriority, agent, queue, priority);
        if (!cursor.next()) break;
        priority = cursor.number(0);
      }
      if (!visit(queue, priority)) break;
    }
  }
}

std::vector<Candidate> SqliteRows::due(const std::string& agent,
                                       std::span<const std::string> queues, int limit) {
  std::vector<Candidate> found;
  std::string current;
  int taken = 0;
  for_each_group(agent, queues, [&](const std::string& queue, std::int64_t priority) {
    if (queue != current) taken = 0;
    current = queue;
    auto cursor = db_.query(kDueInGroup, agent, queue, priority, now_.wall, limit - taken);
    while (cursor.next()) {
      found.push_back({cursor.text(0), static_cast<int>(priority), cursor.wall(1)});
      ++taken;
    }
    return taken < limit;
  });
  std::ranges::sort(found, std::less<>());
  if (found.size() > static_cast<std::size_t>(limit)) {
    found.resize(static_cast<std::size_t>(limit));
  }
  return found;
}

std::optional<WallTime> SqliteRows::next_due(const std::string& agent,
                                             std::span<const std::string> queues) {
  std::optional<WallTime> next;
  for_each_group(agent, queues, [&](const std::string& queue, std::int64_t priority) {
    auto cursor = db_.query(kNextDueInGroup, agent, queue, priority, now_.wall);
    if (cursor.next() && (!next || cursor.wall(0) < *next)) next = cursor.wall(0);
    return true;
  });
  return next;
}

std::vector<RunId> SqliteRows::leased_by(const WorkerId& worker) {
  return ids(db_, kLeasedBy, worker);
}

/// A row whose key is level with its lease stands behind no row that expired before it: all others
/// have keys at or above, and leases at or above their keys.
std::vector<RunId> SqliteRows::stale(int limit) {
  if (is_dry_) return ids(db_, kStale, now_.store, limit);
  std::vector<RunId> found;
  for (int levelled = 0;;) {
    found.clear();
    std::vector<std::pair<std::int64_t, std::int64_t>> behind;
    {
      auto cursor = db_.query(kLeasesByKey, now_.store, limit);
      while (cursor.next()) {
        if (cursor.number(2) != cursor.number(3)) {
          behind.emplace_back(cursor.number(0), cursor.number(2));
        } else if (behind.empty()) {
          found.push_back(cursor.text(1));
        }
      }
    }
    if (behind.empty() || levelled >= kLevelledAtOnce) return found;
    for (const auto& [row, lease_until] : behind) db_.run(kSetLeaseKey, row, lease_until);
    kept_.clear();
    levelled += static_cast<int>(behind.size());
  }
}

std::vector<RunId> SqliteRows::overdue_waits(int limit) {
  return ids(db_, kOverdueWaits, now_.wall, limit);
}

std::vector<RunId> SqliteRows::ended(WallTime ended_before, int limit) {
  return ids(db_, kEnded, ended_before, limit);
}

std::vector<RunId> SqliteRows::unfinished() {
  std::vector<std::pair<std::int64_t, RunId>> found;
  for (const char* sql : {kUnfinishedWaiting, kUnfinishedRunning}) {
    auto cursor = db_.query(sql);
    while (cursor.next()) found.emplace_back(cursor.number(0), cursor.text(1));
  }
  std::ranges::sort(found);
  std::vector<RunId> runs;
  for (auto& [row, id] : found) runs.push_back(std::move(id));
  return runs;
}

}  // namespace holdfast::sqlite
