#include "tool/outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/text.hpp"

namespace holdfast {
namespace {

/// What callers and the journal put around a result takes some bytes and levels of its limits.
constexpr std::size_t kReservedBytes = 64;
constexpr int kReservedDepth = 3;

std::size_t room_of(const Limits& limits) {
  return limits.result_bytes > kReservedBytes ? limits.result_bytes - kReservedBytes : 0;
}

/// The beginning of a text, cut at a character, with a note of how much there was. What counts is
/// the size as JSON, where a character can take six bytes.
std::string beginning(std::string_view text, std::size_t total_bytes, const Limits& limits) {
  const std::string note =
      total_bytes == 0
          ? "\n[cut: only the beginning of the result is shown]"
          : fmt::format("\n[cut: the result has {} bytes, only its beginning is shown]",
                        total_bytes);
  const std::size_t room = room_of(limits);
  std::size_t end = std::min(room > note.size() ? room - note.size() : 0, text.size());
  for (;;) {
    while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
      --end;
    }
    std::string shown = clean_utf8(text.substr(0, end)) + note;
    const std::size_t size = dump_json(shown).size();
    if (size <= room || end == 0) return shown;
    end -= std::min(end, std::max<std::size_t>(end - end * room / size, 1));
  }
}

/// JSON where it is JSON, else text without its last line break.
Json parsed_output(const ToolCommandEnd& end, const Limits& limits) {
  if (end.output_bytes > end.output.size()) {
    return beginning(end.output, end.output_bytes, limits);
  }
  // Numbers that would be rounded stay readable as text.
  std::optional<Json> value = parse_exact_json(end.output, limits.depth - kReservedDepth);
  if (value) return limited_result(*std::move(value), limits);
  std::string text = clean_utf8(end.output);
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return limited_result(std::move(text), limits);
}

std::string parsed_errors(const ToolCommandEnd& end) {
  std::string_view text = end.errors;
  const bool is_cut = end.error_bytes > text.size();
  while (is_cut && !text.empty() && (static_cast<unsigned char>(text[0]) & 0xC0) == 0x80) {
    text.remove_prefix(1);
  }
  std::string clean = clean_utf8(text);
  while (clean.ends_with('\n')) clean.pop_back();
  return is_cut ? "[…] " + clean : clean;
}

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  return name ? fmt::format("signal {} (SIG{})", number, name) : fmt::format("signal {}", number);
}

/// What a model is shown of a call that failed.
ToolOutcome error_result(const ToolCommandEnd& end, std::string what, const Limits& limits) {
  Json result = {{"error", std::move(what)}};
  if (end.kind == ToolCommandEnd::Kind::exited) result["exit_status"] = end.number;
  if (end.error_bytes > 0) result["stderr"] = parsed_errors(end);
  if (end.output_bytes > 0) {
    // Room for the rest of the object: the whole stays within the limit where that is possible.
    const std::size_t used = dump_json(result).size() + 32;
    Limits left = limits;
    left.result_bytes = limits.result_bytes > used ? limits.result_bytes - used : 0;
    result["output"] = parsed_output(end, left);
  }
  return {std::move(result), true};
}

std::string remedy(const ToolCommandEnd& end) {
  switch (end.number) {
    case ENOENT:
      return "check its path and, for a script, the interpreter named in its first line";
    case EACCES:
      return "make it executable (chmod +x) and check the permissions of its folders";
    case ENOEXEC:
      return "it is neither a program of this machine nor a script that begins with #!";
    case ENOTDIR:
      return "a part of its path is not a folder";
    case E2BIG:
      return "its arguments and environment are too long";
    default:
      return "check the tool's command";
  }
}

Failure failure_of(const ToolSpec& spec, const std::string& what) {
  Failure failure;
  failure.message = fmt::format("tool '{}' {}", spec.name, what);
  return failure;
}

[[noreturn]] void throw_not_started(const ToolSpec& spec, const ToolCommandEnd& end) {
  Failure failure = failure_of(spec, fmt::format("cannot be started: {}: {}; {}", end.what,
                                                 std::strerror(end.number), remedy(end)));
  failure.cls = FailureClass::configuration;
  failure.code = "tool_not_started";
  failure.not_started = true;
  throw FailureError(std::move(failure));
}

/// The machine is full: the same call may work later.
[[noreturn]] void throw_no_resources(const ToolSpec& spec, const ToolCommandEnd& end) {
  Failure failure = failure_of(
      spec,
      fmt::format("was not started, this machine has no resources left for it: {}", end.what));
  failure.cls = FailureClass::overloaded;
  failure.code = "no_resources";
  failure.not_started = true;
  throw FailureError(std::move(failure));
}

/// The fence rule decides about a write that was cut short (spec, section 5).
[[noreturn]] void throw_unknown_outcome(const ToolSpec& spec, const ToolCommandEnd& end,
                                        std::string code, const std::string& what) {
  const std::string errors = parsed_errors(end);
  Failure failure =
      failure_of(spec, fmt::format("{}; whether its effect happened is not known{}", what,
                                   errors.empty() ? "" : "; end of its standard error: " + errors));
  failure.cls = FailureClass::timeout;
  failure.code = std::move(code);
  failure.not_started = !end.was_started;
  failure.outcome_unknown = end.was_started;
  throw FailureError(std::move(failure));
}

ToolCommandEnd::Kind kind_of(const ToolCommandEnd& end, const StepContext& context) {
  const bool is_deadline = end.kind == ToolCommandEnd::Kind::interrupted && end.was_started &&
                           is_at_deadline(end.took, context);
  return is_deadline ? ToolCommandEnd::Kind::timed_out : end.kind;
}

}  // namespace

Json cut_result(std::string_view text, std::size_t total_bytes, const Limits& limits) {
  return beginning(text, total_bytes, limits);
}

/// A stop that came when the step's time was over is its deadline, by whoever it was asked. The
/// engine counts that time from a little earlier than this module does.
bool is_at_deadline(Duration took, const StepContext& context) {
  const Duration slack = std::clamp<Duration>(context.timeout / 20, std::chrono::milliseconds(100),
                                              std::chrono::seconds(2));
  return took + slack >= context.timeout;
}

Failure interrupted_failure(const ToolSpec& spec, bool was_started) {
  const bool is_write = spec.effect == Effect::non_idempotent_write;
  Failure failure =
      failure_of(spec, !was_started ? "was not started: the run was to stop"
                       : is_write   ? "was interrupted; whether its effect happened is not known"
                                    : "was interrupted");
  failure.cls = FailureClass::timeout;
  failure.code = "interrupted";
  failure.not_started = !was_started;
  failure.outcome_unknown = was_started && is_write;
  return failure;
}

Json limited_result(Json value, const Limits& limits) {
  const std::string json = dump_json(value);
  if (json.size() > room_of(limits)) {
    const std::string text = value.is_string() ? value.get<std::string>() : json;
    return beginning(text, text.size(), limits);
  }
  if (value.is_structured() && !parse_json(json, limits.depth - kReservedDepth)) {
    return limited_result(json, limits);
  }
  return value;
}

ToolOutcome judge_call(const ToolSpec& spec, const ToolCommandEnd& end, const StepContext& context,
                       const Limits& limits) {
  const bool is_write = spec.effect == Effect::non_idempotent_write;
  switch (kind_of(end, context)) {
    case ToolCommandEnd::Kind::exited:
      if (end.number == 0) return {parsed_output(end, limits), false};
      return error_result(end, fmt::format("exit status {}", end.number), limits);
    case ToolCommandEnd::Kind::signalled: {
      const std::string what = "was ended by " + signal_text(end.number);
      if (is_write) {
        throw_unknown_outcome(spec, end, fmt::format("signal_{}", end.number), what);
      }
      return error_result(end, what, limits);
    }
    case ToolCommandEnd::Kind::timed_out: {
      const std::string what =
          fmt::format("did not finish within {} and was ended", format_duration(spec.timeout));
      if (is_write) throw_unknown_outcome(spec, end, "timeout", what);
      return error_result(end, what, limits);
    }
    case ToolCommandEnd::Kind::interrupted:
      throw FailureError(interrupted_failure(spec, end.was_started));
    case ToolCommandEnd::Kind::not_started:
      throw_not_started(spec, end);
    case ToolCommandEnd::Kind::no_resources:
      throw_no_resources(spec, end);
  }
  throw std::logic_error("judge_call: unknown kind of end");
}

ProbeAnswer judge_probe(const ToolSpec& spec, const ToolCommandEnd& end, const StepContext& context,
                        const Limits& limits, int not_landed_status) {
  switch (kind_of(end, context)) {
    case ToolCommandEnd::Kind::exited: {
      if (end.number == 0) return Landed{parsed_output(end, limits)};
      if (end.number == not_landed_status) return NotLanded{};
      const std::string errors = parsed_errors(end);
      return Unknown{fmt::format("the probe ended with exit status {}{}", end.number,
                                 errors.empty() ? "" : ": " + errors)};
    }
    case ToolCommandEnd::Kind::signalled:
      return Unknown{"the probe was ended by " + signal_text(end.number)};
    case ToolCommandEnd::Kind::timed_out:
      return Unknown{"the probe did not answer in time and was ended"};
    case ToolCommandEnd::Kind::interrupted:
      throw FailureError(interrupted_failure(spec, end.was_started));
    case ToolCommandEnd::Kind::not_started:
      return Unknown{fmt::format("the probe cannot be started: {}: {}; {}", end.what,
                                 std::strerror(end.number), remedy(end))};
    case ToolCommandEnd::Kind::no_resources:
      throw_no_resources(spec, end);
  }
  throw std::logic_error("judge_probe: unknown kind of end");
}

}  // namespace holdfast
