#pragma once

// A world of one seed: every task is a thread, and exactly one of them holds the baton. Each wait
// is a point where the scheduler picks who goes on; when nobody can, virtual time jumps to the next
// moment at which somebody can. No thread ever waits for the real clock, so a history takes as long
// as its work.
//
// A process is a group of tasks that live, freeze and die together. A killed one stops where it
// stands: none of its tasks is picked again. Its stacks are unwound when the world ends; by then
// whoever stands between it and the world (a store, a tool) refuses its calls. What goes on all the
// same is reported (`on_endless`) and torn out of its waits.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/env.hpp"
#include "support/sim_threads.hpp"

namespace holdfast::sim {

struct SimProcess {
  int id = 0;
  std::string name;
  bool is_dead = false;
  bool is_over = false;      ///< dead, and being unwound
  StoreTime frozen_until{};  ///< as by SIGSTOP
  Duration boot_skew{};      ///< what its machine's clocks show beyond the store's
  Duration wall_skew{};
  Duration spun{};             ///< how far its clock has run while it was unwound
  int freezes = 0;             ///< so far
  bool has_ended = false;      ///< by itself
  bool lost_presence = false;  ///< others hold it for dead
  StoreTime impaired_until{};  ///< by a fault: until then its leases may run out
};

struct SimTask {
  int id = 0;
  std::string name;
  SimProcess* process = nullptr;
  int priority = 0;  ///< for schedulers

 private:
  friend class SimEnv;
  struct Wait {
    const std::uint64_t* count = nullptr;  ///< of an event count; null: a sleep
    std::uint64_t seen = 0;
    StoreTime deadline{};
    const std::stop_token* stop = nullptr;
    const SimTask* joined = nullptr;
  };
  std::optional<Wait> wait;
  bool is_done = false;
  bool is_endless = false;
  int turns = 0;  ///< since its process is unwound
  SimThreads::Carrier* carrier = nullptr;
};

/// Who goes on.
class SimScheduler {
 public:
  virtual ~SimScheduler() = default;
  /// An index into `ready`, which is ordered by the tasks' ids and never empty. `current` is the
  /// index of the task at whose point this is; none where it waits.
  virtual std::size_t pick(std::span<SimTask* const> ready, std::optional<std::size_t> current) = 0;
};

class SimEnv final : public Env {
 public:
  struct Bounds {
    std::uint64_t points = 2'000'000;
    Duration time = std::chrono::hours(24 * 30);
  };
  /// The thread that makes it is the first task, and holds the baton.
  SimEnv(SimThreads&, SimScheduler&, std::uint64_t seed, Bounds);
  SimEnv(SimThreads& threads, SimScheduler& scheduler, std::uint64_t seed)
      : SimEnv(threads, scheduler, seed, Bounds()) {}
  ~SimEnv() override;

  // Env: of the task that asks.
  WallTime wall_now() override;
  StoreTime store_now() override;
  std::string boot_id() override { return "simulated-boot"; }
  std::uint64_t random() override;
  std::unique_ptr<EventCount> make_event_count() override;
  std::unique_ptr<Thread> spawn(const ThreadOptions&, std::function<void()>) override;
  void sleep_for(Duration, const std::stop_token&) override;
  Identity make_identity() override;

  // The world. By whoever holds the baton.
  SimProcess& make_process(std::string name);
  std::unique_ptr<Thread> spawn_in(SimProcess&, const std::string& name, std::function<void()>);
  /// Whose identity it is; null: nobody's.
  SimProcess* find_process(const WorkerId&);
  SimTask& current() { return *current_; }
  SimProcess& here() { return *current_->process; }
  /// Others may go on. Never under a lock.
  void point();
  StoreTime now() const { return now_; }
  Duration elapsed() const { return now_ - kBegun; }  ///< since the world began

  /// Its tasks stop where they stand; a task that kills its own process never returns from its next
  /// point, until the world ends.
  void kill(SimProcess&);
  void freeze(SimProcess&, Duration);
  void thaw_all();
  void jump_wall(Duration by) { wall_jump_ += by; }
  /// The machine sleeps: no task runs, and every clock has gone on.
  void suspend(Duration);
  /// From here on only the first task is picked, whatever it waits for.
  void halt() { is_halted_ = true; }
  bool is_halted() const { return is_halted_; }
  /// It halted by itself: nobody could ever go on, or its bounds were reached.
  bool is_stuck() const { return is_stuck_; }
  bool is_spent() const { return is_spent_; }
  /// All processes die, and their stacks are unwound one after another. The tasks' handles can be
  /// dropped afterwards.
  void unwind();
  /// The world refused a call of the current task, whose process is dead. A task that calls again
  /// and again without ever waiting does not come back from here.
  void refused();

  /// While it lives, this task sees the store's clocks instead of its process's.
  class AtStore {
   public:
    explicit AtStore(SimEnv& env) : env_(env) { ++env_.at_store_; }
    AtStore(const AtStore&) = delete;
    ~AtStore() { --env_.at_store_; }

   private:
    SimEnv& env_;
  };

  /// What a task's body threw: in a real process that would have ended it.
  std::function<void(const SimTask&, const std::string& what)> on_escape;
  /// A task of a dead process that goes on for ever, though everything it asks for is refused.
  std::function<void(const SimTask&)> on_endless;

  /// A running digest of everything that happened.
  void trace(std::uint64_t value) { digest_ = (digest_ ^ value) * 0x100000001b3u; }
  void trace(std::string_view text);
  /// For people, who may look on; made only where somebody does.
  template <class Text>
  void tell(const Text& text) {
    if (on_tell) on_tell(text());
  }
  std::function<void(const std::string&)> on_tell;
  std::uint64_t digest() const { return digest_; }
  std::uint64_t points() const { return points_; }
  std::uint64_t switches() const { return switches_; }

 private:
  static constexpr StoreTime kBegun = StoreTime(std::chrono::hours(1));
  class Count;
  class Joined;
  bool is_ready(const SimTask&) const;
  bool has_come(const SimTask::Wait&) const;
  std::optional<StoreTime> ready_at(const SimTask&) const;
  SimTask* pick(bool current_goes_on);
  SimTask* pick_unwound();
  void jump();
  void switch_to(SimTask*);
  void wait(SimTask::Wait);
  void turn(SimTask&, bool may_tear_out);
  SimTask& add_task(SimProcess&, const std::string& name);
  void finish(SimTask&);

  SimThreads& threads_;
  SimScheduler& scheduler_;
  const Bounds bounds_;
  std::deque<SimProcess> processes_;
  std::deque<SimTask> tasks_;
  std::vector<SimTask*> alive_;
  std::vector<SimTask*> ready_;  ///< kept for its memory
  SimTask* current_ = nullptr;
  StoreTime now_ = kBegun;
  Duration wall_jump_{};
  std::uint64_t random_;
  std::uint64_t digest_ = 0xcbf29ce484222325u;
  std::uint64_t points_ = 0;
  std::uint64_t switches_ = 0;
  std::map<WorkerId, SimProcess*> identities_;
  int at_store_ = 0;
  bool is_halted_ = false;
  bool is_stuck_ = false;
  bool is_spent_ = false;
  bool is_unwinding_ = false;
};

}  // namespace holdfast::sim
