#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "env/env.hpp"
#include "store/postgres/pg_rows.hpp"

namespace holdfast::postgres {

/// Sessions for reading, lent for as long as one question takes, and kept for the next ones: all
/// while they are in use, two in the long run. A question is asked anew over a
/// new session where the one that it got had been ended meanwhile. Any thread.
class PgReaderPool {
 public:
  PgReaderPool(const Target& target, Env& env, PgRows::IsGone is_gone, PgRows::Clock clock);
  PgReaderPool(const PgReaderPool&) = delete;

  /// `question(PgRows&, Connection&)`; without a transaction, each statement sees a state of its
  /// own.
  template <class Question>
  auto ask(const Question& question) {
    for (bool is_second = false;; is_second = true) {
      auto reader = take();
      try {
        reader->rows.begin_dry(*reader->db, {});
        auto answer = question(reader->rows, *reader->db);
        give_back(std::move(reader));
        return answer;
      } catch (const PgError&) {
        const bool was_lost = reader->db->is_broken();
        give_back(std::move(reader));
        if (!was_lost || is_second) throw;
      } catch (...) {
        give_back(std::move(reader));
        throw;
      }
    }
  }

  /// The same, with the clock read first.
  template <class Question>
  auto ask_now(const Question& question) {
    return ask([&](PgRows& rows, Connection& db) {
      rows.begin_dry(db, read_clock(db));
      return question(rows, db);
    });
  }

 private:
  struct Reader {
    Reader(const PgRows::IsGone& is_gone, const PgRows::Clock& clock) : rows(is_gone, clock) {}
    std::unique_ptr<Connection> db;
    PgRows rows;
    StoreTime used_at{};
  };

  std::unique_ptr<Reader> take();
  void give_back(std::unique_ptr<Reader>);
  Now read_clock(Connection&);

  const Target target_;
  Env& env_;
  const PgRows::IsGone is_gone_;
  const PgRows::Clock clock_;
  std::mutex mutex_;
  std::unique_ptr<EventCount> returned_;
  std::deque<std::unique_ptr<Reader>> idle_;  ///< the one used last at the back
  int lent_ = 0;
};

// The questions that only read.
RunPage list_pg_runs(PgRows&, Connection&, const ListFilter&);
std::vector<Event> read_pg_events(Connection&, const RunId&, std::int64_t after, int limit);
std::vector<Event> read_all_pg_events(Connection&, std::int64_t& cursor, int limit);
StoreStats read_pg_stats(Connection&, const Now&, bool has_own_clock);

}  // namespace holdfast::postgres
