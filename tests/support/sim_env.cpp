#include "support/sim_env.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace holdfast::sim {
namespace {

constexpr Duration kLongestWait = std::chrono::hours(24 * 365);
constexpr WallTime kBegin{Duration(1'700'000'000'000)};
/// What a process that is unwound believes to have waited: its loops come to their ends.
constexpr Duration kSpin = std::chrono::seconds(1);

/// Of a task while it is unwound, waits and refused calls together: many more than any needs.
constexpr int kMostTurns = 10'000;

/// Ends a task that would go on for ever. No std::exception, as nothing may take it for an error.
struct TornOut {};

std::uint64_t next_random(std::uint64_t& state) {
  // splitmix64
  std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

class SimEnv::Count final : public EventCount {
 public:
  explicit Count(SimEnv& env) : env_(env) {}
  std::uint64_t current() const override { return count_; }
  void notify_all() override { ++count_; }
  bool wait_past(std::uint64_t seen, Duration timeout, const std::stop_token& stop) override {
    SimTask::Wait wait;
    wait.count = &count_;
    wait.seen = seen;
    wait.deadline = env_.now_ + std::clamp(timeout, Duration::zero(), kLongestWait);
    wait.stop = &stop;
    env_.wait(wait);
    return count_ != seen;
  }

 private:
  SimEnv& env_;
  std::uint64_t count_ = 0;
};

class SimEnv::Joined final : public Thread {
 public:
  Joined(SimEnv& env, SimTask& task) : env_(env), task_(task) {}
  Joined(const Joined&) = delete;
  ~Joined() override { join(); }
  void join() override {
    if (task_.is_done) return;
    SimTask::Wait wait;
    wait.joined = &task_;
    env_.wait(wait);
  }

 private:
  SimEnv& env_;
  SimTask& task_;
};

SimEnv::SimEnv(SimThreads& threads, SimScheduler& scheduler, std::uint64_t seed, Bounds bounds)
    : threads_(threads), scheduler_(scheduler), bounds_(bounds), random_(seed) {
  current_ = &add_task(make_process("world"), "world");
  current_->carrier = &threads_.owner();
}

SimEnv::~SimEnv() { unwind(); }

WallTime SimEnv::wall_now() {
  const SimProcess& process = here();
  const Duration skew = at_store_ > 0 ? Duration::zero() : process.wall_skew;
  return kBegin + now_.time_since_epoch() + wall_jump_ + skew + process.spun;
}

StoreTime SimEnv::store_now() {
  const SimProcess& process = here();
  return now_ + (at_store_ > 0 ? Duration::zero() : process.boot_skew) + process.spun;
}

std::uint64_t SimEnv::random() { return next_random(random_); }

std::unique_ptr<EventCount> SimEnv::make_event_count() { return std::make_unique<Count>(*this); }

SimProcess& SimEnv::make_process(std::string name) {
  SimProcess& process = processes_.emplace_back();
  process.id = static_cast<int>(processes_.size());
  process.name = std::move(name);
  return process;
}

SimTask& SimEnv::add_task(SimProcess& process, const std::string& name) {
  SimTask& task = tasks_.emplace_back();
  task.id = static_cast<int>(tasks_.size());
  task.name = name;
  task.process = &process;
  alive_.push_back(&task);
  return task;
}

std::unique_ptr<Thread> SimEnv::spawn(const ThreadOptions& options, std::function<void()> body) {
  return spawn_in(here(), options.name, std::move(body));
}

std::unique_ptr<Thread> SimEnv::spawn_in(SimProcess& process, const std::string& name,
                                         std::function<void()> body) {
  SimTask& task = add_task(process, name);
  task.carrier = &threads_.hire([this, &task, body = std::move(body)]() mutable {
    try {
      body();
    } catch (const std::exception& error) {
      if (on_escape) on_escape(task, error.what());
    } catch (...) {
      if (on_escape) on_escape(task, "something that is no std::exception");
    }
    body = nullptr;
    finish(task);
  });
  return std::make_unique<Joined>(*this, task);
}

void SimEnv::finish(SimTask& task) {
  task.is_done = true;
  std::erase(alive_, &task);
  threads_.give_back(*task.carrier);
  // The thread goes back to its pool: it passes the baton and takes none.
  SimTask* const next = is_unwinding_ ? pick_unwound() : pick(false);
  current_ = next;
  next->carrier->give();
}

void SimEnv::sleep_for(Duration duration, const std::stop_token& stop) {
  SimTask::Wait wait;
  wait.deadline = now_ + std::clamp(duration, Duration::zero(), kLongestWait);
  wait.stop = &stop;
  this->wait(wait);
}

Identity SimEnv::make_identity() {
  Identity identity;
  identity.host = "sim";
  identity.pid = here().id;
  identity.process_started = static_cast<std::uint64_t>(here().id);
  identity.id = fmt::format("{}-{}", here().name, identities_.size() + 1);
  identities_[identity.id] = &here();
  return identity;
}

SimProcess* SimEnv::find_process(const WorkerId& id) {
  const auto found = identities_.find(id);
  return found == identities_.end() ? nullptr : found->second;
}

void SimEnv::kill(SimProcess& process) { process.is_dead = true; }

void SimEnv::freeze(SimProcess& process, Duration duration) {
  process.frozen_until = std::max(process.frozen_until, now_ + duration);
  ++process.freezes;
}

void SimEnv::thaw_all() {
  for (SimProcess& process : processes_) process.frozen_until = StoreTime{};
}

void SimEnv::suspend(Duration duration) {
  for (SimProcess& process : processes_) {
    ++process.freezes;
    // Nobody recovers while it sleeps.
    if (process.impaired_until > now_) process.impaired_until += duration;
  }
  now_ += duration;
}

void SimEnv::trace(std::string_view text) {
  for (const char c : text) trace(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
}

bool SimEnv::has_come(const SimTask::Wait& wait) const {
  if (wait.joined != nullptr) return wait.joined->is_done;
  return (wait.count != nullptr && *wait.count != wait.seen) || now_ >= wait.deadline ||
         (wait.stop != nullptr && wait.stop->stop_requested());
}

bool SimEnv::is_ready(const SimTask& task) const {
  if (task.process->is_dead || task.process->frozen_until > now_) return false;
  return !task.wait || has_come(*task.wait);
}

std::optional<StoreTime> SimEnv::ready_at(const SimTask& task) const {
  if (task.process->is_dead) return std::nullopt;
  if (!task.wait || has_come(*task.wait)) return task.process->frozen_until;
  if (task.wait->joined != nullptr) return std::nullopt;
  return std::max(task.wait->deadline, task.process->frozen_until);
}

void SimEnv::jump() {
  std::optional<StoreTime> next;
  for (const SimTask* task : alive_) {
    const auto when = ready_at(*task);
    if (when && (!next || *when < *next)) next = when;
  }
  if (!next) {
    is_stuck_ = is_halted_ = true;
    return;
  }
  now_ = std::max(now_, *next);
}

SimTask* SimEnv::pick(bool current_goes_on) {
  ++points_;
  if (points_ > bounds_.points || now_.time_since_epoch() > bounds_.time) {
    is_spent_ = is_halted_ = true;
  }
  for (;;) {
    if (is_halted_) return &tasks_.front();
    ready_.clear();
    std::optional<std::size_t> current;
    for (SimTask* task : alive_) {
      if (!is_ready(*task)) continue;
      if (task == current_ && current_goes_on) current = ready_.size();
      ready_.push_back(task);
    }
    if (!ready_.empty()) {
      SimTask* const next =
          ready_.size() == 1 ? ready_.front() : ready_[scheduler_.pick(ready_, current)];
      trace(static_cast<std::uint64_t>(next->id) << 32 ^
            static_cast<std::uint64_t>(now_.time_since_epoch().count()));
      return next;
    }
    jump();
  }
}

/// In turn, without the scheduler: nothing of this belongs to the history.
SimTask* SimEnv::pick_unwound() {
  const auto is_next = [&](const SimTask* task) {
    return task->wait && task->wait->joined != nullptr ? task->wait->joined->is_done : true;
  };
  const auto after =
      std::upper_bound(alive_.begin(), alive_.end(), current_,
                       [](const SimTask* a, const SimTask* b) { return a->id < b->id; });
  auto found = std::find_if(after, alive_.end(), is_next);
  if (found == alive_.end()) found = std::find_if(alive_.begin(), after, is_next);
  return found == alive_.end() ? &tasks_.front() : *found;
}

void SimEnv::switch_to(SimTask* next) {
  if (next == current_) return;
  ++switches_;
  SimTask* const self = current_;
  current_ = next;
  next->carrier->give();
  self->carrier->take();
}

void SimEnv::wait(SimTask::Wait how) {
  SimTask& self = *current_;
  self.wait = how;
  if (is_unwinding_) {
    self.process->spun += kSpin;
    switch_to(pick_unwound());
    // Who waits for a thread to end is left to wait: a handle does so when it is dropped.
    turn(self, how.joined == nullptr);
  } else {
    switch_to(pick(false));
  }
  self.wait.reset();
}

void SimEnv::turn(SimTask& task, bool may_tear_out) {
  if (task.process == &processes_.front() || ++task.turns < kMostTurns) return;
  if (!task.is_endless) {
    task.is_endless = true;
    if (on_endless) on_endless(task);
  }
  if (task.turns > 2 * kMostTurns) {
    // With its threads alive the world cannot be left.
    fmt::print(stderr, "{} of {} cannot be ended\n", task.name, task.process->name);
    std::abort();
  }
  if (may_tear_out) throw TornOut();
}

void SimEnv::refused() { turn(*current_, true); }

void SimEnv::point() {
  if (is_unwinding_) return;
  switch_to(pick(true));
}

void SimEnv::unwind() {
  if (is_unwinding_) return;
  is_unwinding_ = true;
  for (SimProcess& process : processes_) {
    if (&process == &processes_.front()) continue;
    process.is_dead = true;
    process.is_over = true;
  }
  // The world's own tasks wait for nothing any more either.
  SimTask& self = *current_;
  while (alive_.size() > 1) {
    self.wait.reset();
    switch_to(pick_unwound());
  }
}

}  // namespace holdfast::sim
