#pragma once

// The process between a worker and a tool. It is forked for each call, starts the tool in a session
// of its own, and ends the tool with everything it started when the deadline passes, when it is
// told to, or when the worker dies in any way: its socket to the worker then reports the end.

#include <sys/types.h>

#include <cstdint>

namespace holdfast::guardian {

/// How long after SIGTERM what is left is killed.
inline constexpr std::int64_t kGraceMilliseconds = 2000;

/// Everything that the forked process needs, made ready before the fork: behind it only
/// async-signal-safe calls are allowed.
struct Plan {
  const char* program = nullptr;     ///< found already, or relative to `folder`
  char* const* arguments = nullptr;  ///< ends with null
  char* const* environment = nullptr;
  const char* folder = nullptr;  ///< null: the worker's own
  int input = -1;                ///< becomes the tool's descriptors 0, 1 and 2
  int output = -1;
  int errors = -1;
  int control = -1;  ///< the guardian's end of a sequenced-packet socket pair
  std::int64_t timeout_milliseconds = 0;
  pid_t worker = 0;
  bool watches_worker = true;
  char* command_line = nullptr;  ///< where the process shows its command line; null: leave it
  std::size_t command_line_bytes = 0;
};

/// What the worker sends: end the tool, SIGTERM first.
inline constexpr char kStop = 'T';

/// What the worker receives: at most one `not_started`, then `ended` as the last message.
struct Report {
  enum class Kind : std::int32_t { not_started, ended } kind = Kind::ended;
  enum class Place : std::int32_t {
    fork,
    folder,
    program
  } place = Place::program;  ///< not_started
  std::int32_t error = 0;    ///< not_started: errno
  std::int32_t status = 0;   ///< ended: as waitpid gives it
  enum class Cause : std::int32_t { itself, deadline, asked } cause = Cause::itself;  ///< ended
};

/// The guardian's whole life, in the child of a fork with all signals blocked.
[[noreturn]] void guard(const Plan&);

}  // namespace holdfast::guardian
