#pragma once

#include <unistd.h>

#include <string>
#include <utility>

namespace holdfast::descriptors {

/// A file descriptor, closed by its owner's end.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

/// Thrown by the makers below: a system call had no resources left.
struct NoResources {
  std::string call;
  int error;
};

/// The two ends of a channel to a tool's process.
struct Pair {
  Fd ours;
  Fd theirs;
};

// All are closed in programs that are executed, and numbered above the standard three, where the
// guardian puts the tool's.

/// A pipe from the tool; our end does not block.
Pair make_pipe();
/// A socket pair that keeps messages whole.
Pair make_control();
/// A file in memory: a tool that does not read its input can neither block nor break its writer.
Fd make_input(const std::string& text);

}  // namespace holdfast::descriptors
