#include "store/memory/memory_store.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "store/memory/memory_rows.hpp"
#include "store/verb_store.hpp"
#include "store/work_signal.hpp"

namespace holdfast {
namespace {

/// One mutex makes every verb a transaction; it is never held while waiting. Any thread.
class MemoryStore : public VerbStore {
 public:
  explicit MemoryStore(Env& env) : env_(env), presence_(env), rows_(presence_), work_(env) {}

 private:
  template <class Question>
  auto read(const Question& question) {
    const std::lock_guard lock(mutex_);
    rows_.begin({env_.wall_now(), env_.store_now()}, true);
    return question(rows_);
  }

 protected:
  void transact(const Work& work, const Foresight&) override {
    std::unique_lock lock(mutex_);
    // Under the lock: a later transaction never sees an earlier time.
    rows_.begin({env_.wall_now(), env_.store_now()});
    work(rows_);
    const bool is_claimable = rows_.is_claimable_since_begin();
    lock.unlock();
    if (is_claimable) work_.announce();
  }

  void consult(const Work& work) override {
    read([&](MemoryRows& rows) {
      work(rows);
      return true;
    });
  }

  void about_to_look() override { work_.about_to_look(); }

 public:
  std::optional<Run> find(const RunId& id) override {
    return read([&](MemoryRows& rows) -> std::optional<Run> {
      auto stored = rows.load(id, Parts::all);
      if (!stored) return std::nullopt;
      rows.show_abandoned(stored->run);
      return std::move(stored->run);
    });
  }

  RunPage list(const ListFilter& filter) override {
    return read([&](MemoryRows& rows) { return rows.list(filter); });
  }

  std::vector<Event> events(const RunId& id, std::int64_t after, int limit) override {
    return read([&](MemoryRows& rows) { return rows.events(id, after, limit); });
  }

  std::vector<Event> all_events(std::int64_t& cursor, int limit) override {
    return read([&](MemoryRows& rows) { return rows.all_events(cursor, limit); });
  }

  StoreStats stats() override {
    return read([](MemoryRows& rows) { return rows.stats(); });
  }

  std::vector<Circuit> circuits() override {
    return read([](MemoryRows& rows) { return rows.circuits(); });
  }

  void report_worker(const WorkerRow& row) override {
    const StoreTime seen_at = env_.store_now();
    const std::lock_guard lock(mutex_);
    workers_[row.id] = row;
    workers_[row.id].seen_at = seen_at;
  }

  void forget_worker(const WorkerId& id) override {
    const std::lock_guard lock(mutex_);
    workers_.erase(id);
  }

  std::vector<WorkerRow> workers() override {
    const std::lock_guard lock(mutex_);
    std::vector<WorkerRow> rows;
    for (const auto& [id, row] : workers_) {
      rows.push_back(row);
      rows.back().is_gone = presence_.is_gone(id);
    }
    return rows;
  }

  PresenceBoard* presence() override { return &presence_; }

  void wait_for_work(Duration max, const std::stop_token& stop) override { work_.wait(max, stop); }

  StoreTime now() override { return env_.store_now(); }
  WallTime wall_now() override { return env_.wall_now(); }

  void backup(const std::string&) override {
    throw RefusedError(Refusal::usage,
                       "a memory: store cannot be backed up; use a sqlite: store for runs to keep");
  }

  std::vector<Finding> check() override {
    return {{Finding::Grade::warning, "store",
             "memory: keeps nothing when the process ends; use sqlite:PATH for runs to keep"}};
  }

  std::vector<Finding> audit() override {
    return read([](MemoryRows& rows) { return rows.audit(); });
  }

 private:
  Env& env_;
  MemoryPresence presence_;
  std::mutex mutex_;
  MemoryRows rows_;
  std::map<WorkerId, WorkerRow> workers_;
  WorkSignal work_;
};

}  // namespace

std::unique_ptr<Store> open_memory_store(Env& env) { return std::make_unique<MemoryStore>(env); }

}  // namespace holdfast
