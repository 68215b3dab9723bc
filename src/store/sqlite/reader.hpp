#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "env/env.hpp"
#include "store/sqlite/sqlite_rows.hpp"

namespace holdfast::sqlite {

/// Connections for reading, lent for as long as one question takes: nobody waits with one in hand.
/// Any thread.
class ReaderPool {
 public:
  ReaderPool(std::string path, Env& env, SqliteRows::IsGone is_gone)
      : path_(std::move(path)), env_(env), is_gone_(std::move(is_gone)) {}

  /// `question(SqliteRows&, Connection&)` sees one state of the store.
  template <class Question>
  auto ask(const Question& question) {
    Loan loan(*this);
    Reader& reader = *loan.reader;
    const ReadTransaction transaction(reader.db);
    reader.rows.begin({env_.wall_now(), env_.store_now()}, true);
    return question(reader.rows, reader.db);
  }

 private:
  struct Reader {
    Reader(const std::string& path, const SqliteRows::IsGone& is_gone)
        : db(path, false), rows(db, is_gone) {
      db.execute("PRAGMA query_only = ON; PRAGMA temp_store = MEMORY");
    }
    Connection db;
    SqliteRows rows;
  };
  struct Loan {
    explicit Loan(ReaderPool& from) : pool(from), reader(from.take()) {}
    Loan(const Loan&) = delete;
    ~Loan() { pool.give_back(std::move(reader)); }
    ReaderPool& pool;
    std::unique_ptr<Reader> reader;
  };

  std::unique_ptr<Reader> take();
  void give_back(std::unique_ptr<Reader>);

  const std::string path_;
  Env& env_;
  const SqliteRows::IsGone is_gone_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Reader>> idle_;
};

// The questions that only read.
RunPage list_runs(SqliteRows&, Connection&, const ListFilter&);
std::vector<Event> read_events(Connection&, const RunId&, std::int64_t after, int limit);
std::vector<Event> read_all_events(Connection&, std::int64_t& cursor, int limit);
StoreStats read_stats(Connection&, const Now&);

}  // namespace holdfast::sqlite
