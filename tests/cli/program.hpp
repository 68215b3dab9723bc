#pragma once

// The real binary, seen from outside: what it prints, how it exits.

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/json.hpp"

namespace holdfast::cli_tests {

namespace fs = std::filesystem;

struct Result {
  int status = -1;  ///< exit status, or 128 + signal
  std::string out;
  std::string err;

  Json json() const { return Json::parse(out); }
  std::vector<std::string> lines() const;
};

struct Call {
  std::vector<std::string> words;
  std::map<std::string, std::string> env = {};
  std::string input = {};
  std::string out_path = {};  ///< standard output goes there; empty: it is returned
  bool out_closed = false;    ///< nobody reads standard output
};

/// A program that goes on while the test does. Killed by its destructor.
class Running {
 public:
  Running(const fs::path& folder, const Call&);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// Reads standard error until it holds `text`; false when it ends, or a minute passes, before.
  bool says(const std::string& text);
  void signal(int number) const;
  /// What others on the machine see of it.
  std::string command_line() const;
  /// Waits for the end, at most two minutes; what it printed.
  Result finish();

 private:
  bool read_more(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Result result_;
};

/// A folder of its own in which the program is called.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  Result operator()(const std::vector<std::string>& words) const { return run({words}); }
  Result run(const Call& call) const { return Running(path_, call).finish(); }
  void write(const std::string& name, const std::string& text, bool is_program = false) const;
  std::string read(const std::string& name) const;
  const fs::path& path() const { return path_; }

  /// Agent `pay`: looks, then pays (which needs approval where `approval`), then answers `paid`.
  void write_agent(bool approval, const std::string& more = "") const;

 private:
  fs::path path_;
};

/// A named pipe into which a tool writes a line when it gets there: `echo > NAME`.
class Signpost {
 public:
  Signpost(const Folder&, const std::string& name);
  ~Signpost();
  Signpost(const Signpost&) = delete;
  Signpost& operator=(const Signpost&) = delete;
  /// Waits until it does; false when a minute passes before.
  bool passed();

 private:
  int fifo_ = -1;
};

}  // namespace holdfast::cli_tests
