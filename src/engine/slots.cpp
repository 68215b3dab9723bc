#include "engine/slots.hpp"

#include <algorithm>

namespace holdfast {
namespace {

/// Room for handlers; only what they touch costs memory.
constexpr std::size_t kSlotStackBytes = 512u << 10;

}  // namespace

Slots::Slots(Env& env, int concurrency, std::function<void(const Assignment&)> execute)
    : env_(env),
      concurrency_(concurrency),
      execute_(std::move(execute)),
      changed_(env.make_event_count()) {}

Slots::~Slots() { stop(); }

int Slots::free() const {
  const std::lock_guard lock(mutex_);
  return concurrency_ - (busy_ - std::min(stuck_, concurrency_));
}

int Slots::busy() const {
  const std::lock_guard lock(mutex_);
  return busy_;
}

void Slots::set_stuck(int stuck) {
  {
    const std::lock_guard lock(mutex_);
    stuck_ = stuck;
  }
  changed_->notify_all();
}

Slots::Slot& Slots::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      // The one that was busy last: its stack is warm, and the others stay untouched.
      Slot& slot = *idle_.back();
      idle_.pop_back();
      ++busy_;
      return slot;
    }
  }
  auto made = std::make_unique<Slot>();
  Slot& slot = *made;
  slot.signal = env_.make_event_count();
  slot.thread = env_.spawn({"hf-slot", kSlotStackBytes}, [this, &slot] { run(slot); });
  const std::lock_guard lock(mutex_);
  all_.push_back(std::move(made));
  ++busy_;
  return slot;
}

void Slots::start(Slot& slot, Assignment assignment) {
  {
    const std::lock_guard lock(mutex_);
    slot.next = std::move(assignment);
  }
  slot.signal->notify_all();
}

void Slots::give_back(Slot& slot) {
  {
    const std::lock_guard lock(mutex_);
    --busy_;
    idle_.push_back(&slot);
  }
  changed_->notify_all();
}

void Slots::run(Slot& slot) {
  for (;;) {
    const auto seen = slot.signal->current();
    std::optional<Assignment> assignment;
    {
      const std::lock_guard lock(mutex_);
      assignment.swap(slot.next);
      if (!assignment && stopping_) return;
    }
    if (!assignment) {
      slot.signal->wait_past(seen, std::chrono::hours(24), {});
      continue;
    }
    execute_(*assignment);
    assignment.reset();
    give_back(slot);
  }
}

void Slots::stop() {
  std::vector<Slot*> all;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& slot : all_) all.push_back(slot.get());
  }
  for (Slot* slot : all) slot->signal->notify_all();
  for (Slot* slot : all) slot->thread->join();
}

}  // namespace holdfast
