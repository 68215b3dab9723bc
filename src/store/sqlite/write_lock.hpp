#pragma once

#include <optional>
#include <string>

#include "env/env.hpp"

namespace holdfast::sqlite {

/// A file descriptor, closed when it goes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_ = -1;
};

/// Are the file at the path and the open one the same?
bool is_same_file(const std::string& path, int fd);

/// The lock that every write transaction and every checkpoint of any process takes: `PATH-lock`.
/// Waiters take turns, so that a busy process cannot keep the others out; a turn that is not taken
/// is passed by. One thread at a time (the
/// leading writer's). The holder's process id stands in the file.
class WriteLock {
 public:
  WriteLock(const std::string& database, Env&);
  WriteLock(const WriteLock&) = delete;

  /// Blocks for as long as it takes; a holder that keeps it for long is named in the log.
  void lock();
  /// At once; false while another has it, or is before us.
  bool try_lock();
  void unlock();

  /// For `check`: who holds it all through `patience`, from any thread. Nothing when it was free.
  static std::optional<std::string> find_frozen_holder(const std::string& database, Env&,
                                                       Duration patience);

 private:
  void open();
  bool try_once();
  void take();

  const std::string path_;
  Env& env_;
  Descriptor file_;
  bool passes_by_ = false;  ///< whoever is next has not moved for long
};

}  // namespace holdfast::sqlite
