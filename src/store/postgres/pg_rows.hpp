#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/postgres/connection.hpp"
#include "store/postgres/pg_message.hpp"
#include "store/rows.hpp"
#include "store/verb_store.hpp"

namespace holdfast::postgres {

/// Rows as one unit of work: what the works of a transaction are going to touch is locked and
/// loaded in one go, what they save is gathered and written in one go. Between transactions it
/// knows only policies, which never change. One thread at a time.
class PgRows : public Rows {
 public:
  using IsGone = std::function<bool(const WorkerId&)>;
  /// In place of the server's clock, in tests.
  using Clock = std::function<Now()>;

  PgRows(IsGone is_gone, Clock clock) : is_gone_(std::move(is_gone)), clock_(std::move(clock)) {}

  /// Begins a transaction: what is foreseen is locked in the order of ids, then the clock is read.
  void begin(Connection&, const std::vector<const Foresight*>&);
  /// For questions: no transaction, nothing is locked, and what is saved is forgotten.
  void begin_dry(Connection&, const Now&);
  /// Sends what was gathered, without asking for the answers.
  void send_changes();
  /// After the end of a transaction.
  void committed();
  void rolled_back();

  /// A statement for the end of the transaction.
  void then(const char* sql, Params params) { last_.emplace_back(sql, std::move(params)); }

  /// What was put on the queue since `begin` and falls due soon.
  const Queued& queued() const { return queued_; }

  const Now& now() const override { return now_; }
  std::optional<StoredRun> load(const RunId&, Parts) override;
  std::optional<KeyOwner> find_key(const std::string& idempotency_key) override;
  std::string content_digest(const StoredRun&) override;
  StoredRun insert(const NewRun&, Change&) override;
  void save(StoredRun&, Change&) override;
  void erase(const StoredRun&) override;
  std::vector<Event> journal(const StoredRun&, std::int64_t from_claim) override;
  bool has_operation(const StoredRun&, const std::string& operation) override;
  WallTime last_event_at(const StoredRun&) override;
  std::vector<Candidate> due(const std::string& agent, std::span<const std::string> queues,
                             int limit) override;
  std::optional<WallTime> next_due(const std::string& agent,
                                   std::span<const std::string> queues) override;
  std::vector<RunId> leased_by(const WorkerId&) override;
  std::vector<RunId> stale(int limit) override;
  std::vector<RunId> overdue_waits(int limit) override;
  std::vector<RunId> ended(WallTime ended_before, int limit) override;
  std::vector<RunId> unfinished() override;
  Circuit find_circuit(const std::string& target) override;
  void save_circuit(const Circuit&) override;
  bool is_gone(const WorkerId& id) override { return is_gone_(id); }

  /// Runs in the order of the columns; policies that are not known yet are asked for.
  std::vector<StoredRun> read_runs(const Result&);
  /// Input, answer, key and labels, as they follow a run's columns.
  static void read_cold(StoredRun&, RowReader&);
  static Event read_event(RowReader&, RunId run);

 private:
  enum class Dirt { clean, step, turn, all, inserted };
  struct Entry {
    std::optional<StoredRun> stored;  ///< none: there is no such run
    bool has_cold = false;
    Dirt dirt = Dirt::clean;
    bool answer_changed = false;
    bool definition_changed = false;
    std::string content_digest;  ///< of an inserted one
  };
  struct NewEntry {
    RunId run;
    std::int64_t sequence = 0;
    NewEvent event;
  };
  /// What a claim may take, locked.
  struct Pool {
    std::vector<std::string> agents;
    std::vector<std::string> queues;
    std::vector<RunId> runs;
    std::optional<WallTime> next_due;
    bool is_whole = false;  ///< there was no more
  };

  Connection& db() { return *db_; }
  void reset();
  void send_foreseen(const std::vector<const Foresight*>&);
  void read_foreseen(const std::vector<Result>&, int skipped, const std::vector<const Foresight*>&);
  void send_pool(const std::vector<std::string>& agents, std::span<const std::string> queues,
                 int limit);
  Pool read_pool(const Result& runs, const Result& next_due);
  StoredRun read_run(RowReader&, std::optional<std::int64_t>& policy) const;
  void learn_policies(const std::set<std::int64_t>& ids);
  std::vector<RunId> remember(std::vector<StoredRun> found);
  Entry& entry_of(const RunId&);
  void load_cold(Entry&);
  /// Before a question to the database: it is to see what was saved.
  void write_out();
  bool has_changes() const;
  void send_runs();
  void send_steps();
  void send_turns();
  void send_new_runs();
  void send_cold();
  void send_erased();
  void send_events();
  void append(StoredRun&, std::vector<NewEvent>&);
  void note_queued(const Run&);
  std::int64_t policy_id(const Run&);
  std::optional<std::int64_t> clock_now() const;

  const IsGone is_gone_;
  const Clock clock_;
  Connection* db_ = nullptr;
  Now now_{};
  bool is_dry_ = false;
  std::map<RunId, Entry> entries_;
  std::map<std::string, std::optional<KeyOwner>> keys_;
  std::vector<NewEntry> events_;
  std::int64_t event_number_ = 0;  ///< of the newest event of this transaction
  std::vector<RunId> erased_;
  std::map<std::string, Circuit> circuits_;  ///< locked, as they are to be
  std::set<std::string> changed_circuits_;
  std::vector<std::pair<const char*, Params>> last_;
  std::vector<Pool> pools_;
  std::map<WorkerId, std::vector<RunId>> leased_;
  Queued queued_;

  std::map<std::int64_t, Policy> policies_;
  std::set<std::int64_t> stored_policies_;            ///< known to be committed
  std::map<std::int64_t, std::string> new_policies_;  ///< of this transaction
};

}  // namespace holdfast::postgres
