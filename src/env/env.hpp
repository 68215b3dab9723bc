#pragma once

// The only user of the operating system's clocks, chance and threads. Everything that waits, waits
// here, so that the simulator can put virtual time and a seeded scheduler in its place.

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "holdfast/run.hpp"
#include "holdfast/time.hpp"

namespace holdfast {

/// A counter that threads wait on. Read `current`, look at the guarded state, then `wait_past`:
/// nothing signalled in between is missed. Any thread.
class EventCount {
 public:
  virtual ~EventCount() = default;
  virtual std::uint64_t current() const = 0;
  virtual void notify_all() = 0;
  /// True when the count moved past `seen`; false when `timeout` passed or `stop` was requested
  /// first.
  virtual bool wait_past(std::uint64_t seen, Duration timeout, const std::stop_token& stop) = 0;
};

/// A thread that is joined by its destructor.
class Thread {
 public:
  virtual ~Thread() = default;
  virtual void join() = 0;
};

struct ThreadOptions {
  std::string name;
  std::size_t stack_bytes = 1u << 20;
};

/// Who this process is to others.
struct Identity {
  WorkerId id;
  std::string host;
  int pid = 0;
  std::uint64_t process_started = 0;  ///< clock ticks since boot, as the system counts them
};

class Env {
 public:
  virtual ~Env() = default;

  virtual WallTime wall_now() = 0;
  virtual StoreTime store_now() = 0;  ///< since boot, suspension included
  virtual std::string boot_id() = 0;
  virtual std::uint64_t random() = 0;  ///< 64 bits, unpredictable; safe after fork
  virtual std::unique_ptr<EventCount> make_event_count() = 0;
  virtual std::unique_ptr<Thread> spawn(const ThreadOptions&, std::function<void()>) = 0;
  virtual void sleep_for(Duration, const std::stop_token&) = 0;
  virtual Identity make_identity() = 0;  ///< a fresh one at each call: two workers never share one

  double unit_random();  ///< in [0, 1)
  RunId new_id();        ///< UUIDv7
};

/// The process's real environment; one instance.
Env& real_env();

}  // namespace holdfast
