#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/live_segment.hpp"
#include "store/store.hpp"

namespace holdfast {

/// A claimed run on its way to the thread that executes it.
struct Assignment {
  Run run;
  std::shared_ptr<LiveSegment> segment;
};

/// The threads that execute segments: made on demand, reused, as many at a time as the concurrency
/// says. A stuck one does not count; there may be one replacement for each. Any thread.
class Slots {
 public:
  struct Slot {
    std::unique_ptr<EventCount> signal;  ///< an assignment came, or its segment changed
    std::optional<Assignment> next;
    std::unique_ptr<Thread> thread;
  };
  /// `execute` runs on the slot's thread and must not throw.
  Slots(Env&, int concurrency, std::function<void(const Assignment&)> execute);
  ~Slots();

  /// How many more segments may begin now.
  int free() const;
  int busy() const;
  void set_stuck(int);

  /// An idle slot, for the caller alone; made if there is none. Only where `free` said so.
  Slot& take();
  void start(Slot&, Assignment);
  /// A slot that was taken and not started.
  void give_back(Slot&);

  /// Signalled when a slot became free or the number of stuck ones changed.
  EventCount& changed() { return *changed_; }

  /// Ends the idle threads and waits for the others.
  void stop();

 private:
  void run(Slot&);

  Env& env_;
  const int concurrency_;
  const std::function<void(const Assignment&)> execute_;
  const std::unique_ptr<EventCount> changed_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Slot>> all_;
  std::vector<Slot*> idle_;
  int busy_ = 0;
  int stuck_ = 0;
  bool stopping_ = false;
};

}  // namespace holdfast
