#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/memory/memory_presence.hpp"
#include "store/rows.hpp"

namespace holdfast {

/// All rows of a `memory:` store, as plain containers. Its owner guards it.
class MemoryRows : public Rows {
 public:
  explicit MemoryRows(MemoryPresence& presence) : presence_(presence) {}

  /// Begins the next transaction; `is_dry`: what is saved is forgotten.
  void begin(const Now& now, bool is_dry = false);
  bool is_claimable_since_begin() const { return has_queued_; }

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
  bool is_gone(const WorkerId& id) override { return presence_.is_gone(id); }

  // Reading
  RunPage list(const ListFilter&) const;
  std::vector<Event> events(const RunId&, std::int64_t after, int limit) const;
  std::vector<Event> all_events(std::int64_t& cursor, int limit) const;
  StoreStats stats() const;
  std::vector<Circuit> circuits() const;
  /// Events and idempotency keys whose run is missing.
  std::vector<Finding> audit() const;
  /// Is its process proven gone?
  void show_abandoned(Run&) const;

 private:
  struct Row {
    StoredRun stored;
    std::string content_digest;
    std::vector<Event> journal;
  };
  Row& row_of(const StoredRun& stored) { return runs_.at(stored.run.id); }
  /// With the lease's end in wall time.
  Run shown(const Run&) const;
  void append(Row&, Change&);
  template <class Condition, class Key>
  std::vector<RunId> pick(int limit, const Condition&, const Key&) const;

  MemoryPresence& presence_;
  std::map<RunId, Row> runs_;
  std::map<std::string, RunId> keys_;
  std::map<std::string, Circuit> circuits_;
  std::map<std::int64_t, Event> log_;  ///< every event by the order of commits
  std::int64_t last_row_ = 0;
  std::int64_t last_position_ = 0;
  Now now_{};
  bool is_dry_ = false;
  bool has_queued_ = false;
};

}  // namespace holdfast
