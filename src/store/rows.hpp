#pragma once

// What the verbs (verbs.hpp) need of a kind of store inside one transaction: loading and saving
// rows, and the few questions that pick them. Nothing in here decides.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace holdfast {

/// A run as the store keeps it. `run` has its cold parts (input, answer, definition, labels,
/// idempotency key) only where they were asked for.
struct StoredRun {
  Run run;
  std::int64_t row = 0;            ///< in the order of insertion
  std::int64_t last_position = 0;  ///< of its newest event, in stores that chain a run's events
  /// Not above the lease's end: what the index of leases is ordered by.
  std::optional<std::int64_t> lease_key;
};

enum class Parts { hot, all };

/// A run that could be claimed, by the order of claims: higher priority, earlier, smaller id.
struct Candidate {
  RunId id;
  int priority = 0;
  WallTime available_at{};

  friend bool operator<(const Candidate& a, const Candidate& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.available_at != b.available_at) return a.available_at < b.available_at;
    return a.id < b.id;
  }
};

/// Whose idempotency key it is, and of what content.
struct KeyOwner {
  RunId id;
  std::string content_digest;
};

class Rows {
 public:
  virtual ~Rows() = default;

  virtual const Now& now() const = 0;

  virtual std::optional<StoredRun> load(const RunId&, Parts) = 0;
  virtual std::optional<KeyOwner> find_key(const std::string& idempotency_key) = 0;
  virtual std::string content_digest(const StoredRun&) = 0;
  /// Stores a new run with its events; `change.row` is left as stored.
  virtual StoredRun insert(const NewRun&, Change&) = 0;
  /// Writes what changed and appends the events. `stored.run` keeps its cold parts and becomes the
  /// row as it is now.
  virtual void save(StoredRun& stored, Change&) = 0;
  /// A hint: this saved row will soon be loaded again.
  virtual void keep(StoredRun) {}
  virtual void erase(const StoredRun&) = 0;

  /// The journal of a run, from the first event whose claim is at least `from_claim`.
  virtual std::vector<Event> journal(const StoredRun&, std::int64_t from_claim) = 0;
  /// Has an operator's change with this operation id been made to the run?
  virtual bool has_operation(const StoredRun&, const std::string& operation) = 0;
  virtual WallTime last_event_at(const StoredRun&) = 0;

  /// Due runs of one agent in the order of claims, at most `limit`; empty `queues`: all.
  virtual std::vector<Candidate> due(const std::string& agent, std::span<const std::string> queues,
                                     int limit) = 0;
  /// When the next run of one agent falls due that is not due now.
  virtual std::optional<WallTime> next_due(const std::string& agent,
                                           std::span<const std::string> queues) = 0;
  /// Running runs under a lease of this holder.
  virtual std::vector<RunId> leased_by(const WorkerId&) = 0;
  /// Leases that are over, longest expired first.
  virtual std::vector<RunId> stale(int limit) = 0;
  /// Waits whose deadline is over, earliest first.
  virtual std::vector<RunId> overdue_waits(int limit) = 0;
  /// Terminal runs that ended at or before `ended_before`, oldest first. Those with a status of a
  /// newer build are passed over: they would fill the batch.
  virtual std::vector<RunId> ended(WallTime ended_before, int limit) = 0;
  /// Waiting runs, and running ones without a lease, in the order of insertion.
  virtual std::vector<RunId> unfinished() = 0;

  /// Of a model; closed where nothing is known of it. Locked to the end of a writing transaction.
  virtual Circuit find_circuit(const std::string& target) = 0;
  virtual void save_circuit(const Circuit&) = 0;

  /// Proven by its presence: the holder's process is gone.
  virtual bool is_gone(const WorkerId&) = 0;
};

}  // namespace holdfast
