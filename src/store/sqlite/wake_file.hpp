#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "env/env.hpp"
#include "store/sqlite/write_lock.hpp"

namespace holdfast::sqlite {

/// Tells idle workers of all processes that a run was put on the queue: `PATH-wake` is touched, and
/// everybody watches it. A thread that looked for work and then waits misses nothing that was
/// announced since. Without the file (removed, or no room to watch it) waits are short and end by
/// themselves. Any thread.
class WakeFile {
 public:
  WakeFile(const std::string& database, Env&);
  WakeFile(const WakeFile&) = delete;

  /// Never throws.
  void announce() noexcept;
  void about_to_look();
  /// Until something was announced, `max` has passed or `stop` is requested.
  void wait(Duration max, const std::stop_token& stop);

 private:
  void reopen_if_removed();
  bool drain();
  void wake_all();
  Duration limit(Duration max);

  const std::string path_;
  Env& env_;
  Descriptor touched_;   ///< for announcing
  Descriptor watching_;  ///< inotify
  int watch_ = -1;
  std::atomic<std::uint64_t> announced_{0};
  std::mutex mutex_;
  std::map<std::thread::id, std::uint64_t> seen_;
  std::set<int> sleepers_;  ///< event descriptors of waiting threads
};

}  // namespace holdfast::sqlite
