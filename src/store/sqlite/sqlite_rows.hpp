#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/rows.hpp"
#include "store/sqlite/db.hpp"

namespace holdfast::sqlite {

/// Rows over one connection, within a transaction that its user has begun. One thread at a time.
class SqliteRows : public Rows {
 public:
  using IsGone = std::function<bool(const WorkerId&)>;

  SqliteRows(Connection& db, IsGone is_gone) : db_(db), is_gone_(std::move(is_gone)) {}

  /// Begins the next transaction. `is_dry`: what is saved is forgotten, nothing is written.
  void begin(const Now& now, bool is_dry);
  /// For the connection that writes: rows it has saved need not be read again, while `data_version`
  /// says that no other connection has written.
  void keep_rows(std::int64_t data_version);
  /// Before a commit: what was gathered over the transaction.
  void flush();
  /// After a rollback: forgets what may not be true any more.
  void forget();
  /// A run was put on the queue since `begin`.
  bool has_queued() const { return has_queued_; }
  void set_has_queued(bool has_queued) { has_queued_ = has_queued; }

  const Now& now() const override { return now_; }
  std::optional<StoredRun> load(const RunId&, Parts) override;
  std::optional<KeyOwner> find_key(const std::string& idempotency_key) override;
  std::string content_digest(const StoredRun&) override;
  StoredRun insert(const NewRun&, Change&) override;
  void save(StoredRun&, Change&) override;
  void keep(StoredRun) override;
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

  /// The run of a row in the order of HOLDFAST_RUN_COLUMNS, without its cold parts.
  StoredRun read_run(const Cursor&);
  /// Input, answer, definition, idempotency key and labels.
  void read_cold(StoredRun&, bool with_definition);
  static Event read_event(const Cursor&, RunId run);

 private:
  using CountKey = std::pair<std::string, std::string>;

  /// The last position that was given away.
  std::int64_t newest_position();
  /// No stored run has this id or one above it.
  bool is_newest(const RunId&);
  void append(StoredRun&, std::vector<NewEvent>&);
  void update(const StoredRun& before, StoredRun& stored);
  void count(const Run&, std::int64_t by);
  std::optional<std::int64_t> policy_id(const Run&);
  const Policy& get_policy(std::int64_t id);
  std::vector<std::string> queues_of(const std::string& agent);
  /// Calls `visit(queue, priority)` for every group of queued runs of the agent, priorities falling
  /// within a queue, until it says false: then the next queue.
  template <class Visit>
  void for_each_group(const std::string& agent, std::span<const std::string> queues,
                      const Visit& visit);

  Connection& db_;
  IsGone is_gone_;
  Now now_{};
  bool is_dry_ = false;
  bool has_queued_ = false;
  std::int64_t last_position_ = 0;  ///< 0: not asked yet in this transaction
  std::optional<RunId> newest_id_;  ///< the greatest there is; none: not asked yet, as above
  std::map<CountKey, std::int64_t> counts_;
  std::int64_t data_version_ = 0;              ///< 0: rows are not kept
  std::unordered_map<RunId, StoredRun> kept_;  ///< without their cold parts
  std::unordered_map<std::int64_t, Policy> policies_;
};

}  // namespace holdfast::sqlite
