#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "holdfast/failure.hpp"
#include "tool/command.hpp"

namespace holdfast {

/// A folder that is gone with its owner.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  std::string write(const std::string& name, const std::string& text, int mode = 0644) const {
    std::ofstream(file(name), std::ios::binary) << text;
    chmod(file(name).c_str(), static_cast<mode_t>(mode));
    return file(name);
  }
  /// A shell script that can be executed; its path.
  std::string script(const std::string& name, const std::string& body) const {
    return write(name, "#!/bin/sh\n" + body, 0755);
  }
  std::string read(const std::string& name) const {
    std::ifstream stream(file(name), std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

/// A named pipe that processes hold open to show that they live. The test waits for what happens,
/// never for time to pass; half a minute without it is a failure.
class LifeLine {
 public:
  explicit LifeLine(const TestFolder& folder) : path_(folder.file("life")) {
    mkfifo(path_.c_str(), 0600);
    fd_ = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ~LifeLine() { close(fd_); }
  LifeLine(const LifeLine&) = delete;
  LifeLine& operator=(const LifeLine&) = delete;

  const std::string& path() const { return path_; }

  /// Everything that was written until `lines` lines are there; empty: they did not come.
  std::string wait_for_lines(int lines) {
    std::string text;
    while (std::count(text.begin(), text.end(), '\n') < lines) {
      if (!wait(text)) return {};
    }
    return text;
  }
  /// True when no process holds it any more.
  bool wait_for_end() {
    std::string text;
    while (wait(text)) {
    }
    return ended_;
  }

 private:
  bool wait(std::string& text) {
    pollfd fd{fd_, POLLIN, 0};
    if (poll(&fd, 1, 30'000) <= 0) return false;
    char buffer[256];
    const ssize_t count = ::read(fd_, buffer, sizeof buffer);
    if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
    ended_ = count == 0;
    return count > 0;
  }

  std::string path_;
  int fd_ = -1;
  bool ended_ = false;
};

/// A script that is to be run in `folder`.
inline ToolCommand command_in(const TestFolder& folder, const std::string& program) {
  ToolCommand command;
  command.arguments = {program};
  command.environment = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  command.folder = folder.path();
  command.timeout = std::chrono::minutes(5);  // longer than a life line waits
  return command;
}

inline Failure failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const FailureError& error) {
    return error.failure();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

}  // namespace holdfast
