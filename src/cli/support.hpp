#pragma once

// What several commands share.

#include <functional>
#include <stop_token>
#include <string>

#include "cli/args.hpp"
#include "cli/command.hpp"
#include "cli/host.hpp"
#include "cli/output.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// The exit codes of section 12, and the two that a shell expects of a process that was cut off.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kConflict = 4;
inline constexpr int kSuspended = 5;
inline constexpr int kInterrupted = 130;
inline constexpr int kOutputClosed = 141;

/// What a run that is no longer executed means for whoever waited for it.
int exit_code_of(const Run&);

/// Tries all ids; a refusal is told and the others go on. The first code that is not 0 counts.
int for_each_id(Invocation&, const std::function<int(const std::string& id)>&);

/// Who does it: --as or the login name, with --note where the command has one.
Operator operator_of(Invocation&);

/// The input of a new run from --input, --input-file or --input-json; exactly one of them.
Json input_of(Invocation&);

/// Reads a file or, for `-`, standard input. Throws RefusedError (usage) above `limit` bytes.
std::string read_text(const std::string& path, std::size_t limit, const std::string& limit_name);

/// One run as a result: its JSON, or `text`.
void print_run(Invocation&, const Run&, const std::string& text);

/// While it lives, the first SIGINT or SIGTERM asks the run to stop at its next boundary, and the
/// second ends the process and leaves the run as it is.
class StopOnSignal {
 public:
  /// `second`: what a second signal does, for the remark that the first one gets.
  StopOnSignal(Invocation&, std::string_view second);
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  std::stop_token token() const { return source_.get_token(); }
  bool is_asked() const { return source_.stop_requested(); }

 private:
  Host* host_;
  std::stop_source source_;
};

/// Tells of a run that is executed in this process: its steps as they happen, how it ended, and
/// its answer.
class Progress {
 public:
  explicit Progress(Output& out) : out_(&out) {}
  Observer observer();
  /// Prints the answer and says how it ended, and where it completed although it was asked to stop;
  /// the exit code.
  int finish(const SegmentResult&, const StopOnSignal&);

 private:
  void see(const Event&);

  Output* out_;
  int steps_ = 0;
  std::int64_t tokens_ = 0;
  bool named_ = false;
};

}  // namespace holdfast
