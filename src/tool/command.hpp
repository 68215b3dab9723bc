#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "env/env.hpp"
#include "holdfast/time.hpp"

namespace holdfast {

/// One start of a program.
struct ToolCommand {
  std::vector<std::string> arguments;    ///< the program first
  std::vector<std::string> environment;  ///< `NAME=value`, complete
  std::string folder;                    ///< empty: this process's
  std::string input;
  std::size_t output_limit = 1u << 20;  ///< what is kept of standard output; the rest is read past
  std::size_t error_limit = 4096;       ///< what is kept of the end of standard error
  Duration timeout{};
  std::stop_token stop;
};

/// How a program ended.
struct ToolCommandEnd {
  enum class Kind {
    exited,       ///< `number` is its status
    signalled,    ///< `number` is the signal
    timed_out,    ///< the deadline passed while it ran; ended with all that it had started
    interrupted,  ///< the stop was asked for while it ran, or before it started (`was_started`)
    not_started,  ///< `number` is errno, `what` says of what
    no_resources  ///< this machine had no process, memory or descriptor for it; `what` says which
  } kind = Kind::exited;
  int number = 0;
  std::string what;
  bool was_started = true;
  std::string output;
  std::size_t output_bytes = 0;  ///< all that was written, kept or not
  std::string errors;
  std::size_t error_bytes = 0;
  Duration took{};  ///< from the call to the moment when the stop was asked for, else to the end
};

/// Runs a program to its end, in a session of its own, watched by a guardian process (see
/// guardian.hpp). Returns only when the program has ended. Any thread. Never throws for what the
/// program does.
///
/// At the deadline and on a stop the program's group gets SIGTERM; what is left of the group 2 s
/// later, and whatever left the group, gets SIGKILL. Children that a program leaves in its group
/// are ended with it.
ToolCommandEnd run_command(const ToolCommand&, Env&);

/// The file that `program` means: as it stands where it has a slash, else looked up in `path`
/// (folders with colons between), both seen from `folder`. Empty: there is none that can be
/// executed.
std::string find_program(const std::string& program, const std::string& folder,
                         const std::string& path);

}  // namespace holdfast
