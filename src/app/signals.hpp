#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "env/env.hpp"

namespace holdfast {

/// Turns SIGINT and SIGTERM into calls on a thread of its own. The handler in the kernel's sense
/// only writes a byte into a pipe; programs that are started later get the default dispositions
/// back. One at a time in a process.
class SignalWatch {
 public:
  explicit SignalWatch(Env&);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// `handler` is told of the first, the second, … signal from now on. Null: a signal ends the
  /// process. Returns when no handler is being called. Any thread but the handler's own.
  void set_handler(std::function<void(int count)> handler);

 private:
  void listen();

  std::mutex mutex_;
  std::function<void(int)> handler_;
  int count_ = 0;
  int read_end_ = -1;
  int write_end_ = -1;
  std::unique_ptr<Thread> thread_;
};

}  // namespace holdfast
