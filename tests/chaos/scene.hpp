#pragma once

// Several workers, their reapers and clients on one store, while processes are killed, frozen and
// stopped, and, where the store is a server, that server and the way to it fail.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "crash/harness.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::chaos {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyTime = std::chrono::steady_clock::time_point;

/// What was done to the processes, for those who judge afterwards.
struct Log {
  std::map<std::string, int> faults;      ///< how often, by name
  std::map<pid_t, WallTime> killed;       ///< by SIGKILL, and when
  std::set<pid_t> frozen;                 ///< at least once
  std::vector<std::string> acknowledged;  ///< runs whose enqueue was answered
  std::set<std::string> keys;             ///< idempotency keys of these
};

/// From one thread.
class Scene {
 public:
  explicit Scene(unsigned seed);
  ~Scene();
  Scene(const Scene&) = delete;

  /// Lets things happen for so long.
  void play(milliseconds length);
  /// Mends everything, starts what is missing, and answers what waits for a person, until every run
  /// has ended; false when that took too long.
  bool settle(milliseconds limit);

  crash::Site& site() { return site_; }
  const Log& log() const { return log_; }

 private:
  struct Worker {
    crash::Process process;
    bool is_app;
    SteadyTime thaw{};     ///< when it goes on; zero: it is not frozen
    SteadyTime leaving{};  ///< when it was asked to stop; zero: it was not
  };

  int dice(int sides) { return static_cast<int>(random_() % static_cast<unsigned>(sides)); }
  Worker start_worker(bool is_app);
  void kill(Worker& worker);
  void supervise();
  void freeze(Worker& worker);
  void disturb_workers();
  void disturb_server();
  void thaw(bool all);
  void mend();
  void enqueue_on_and_on();
  void decide_on_and_on();
  void answer_people(bool force);
  void resolve(const Run& run, bool force);

  std::mt19937 random_;
  crash::Site site_;
  std::unique_ptr<testing::TcpProxy> proxy_;
  SteadyTime mend_at_{};
  std::vector<Worker> workers_;
  Log log_;
  std::mutex mutex_;  ///< guards the acknowledged runs
  std::atomic<bool> is_over_{false};
  std::vector<std::thread> clients_;
};

}  // namespace holdfast::chaos
