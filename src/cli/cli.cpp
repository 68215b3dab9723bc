#include "cli/cli.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "cli/command.hpp"
#include "cli/commands.hpp"
#include "cli/support.hpp"

namespace holdfast {
namespace {

void set_up_log(const ParsedLine& line) {
  auto level = line.command != nullptr && line.command->function == run_worker ? LogLevel::info
                                                                               : LogLevel::warn;
  if (line.global.log_level && !parse_log_level(*line.global.log_level, &level)) {
    throw RefusedError(Refusal::usage,
                       fmt::format("--log-level: expected debug, info, warn, error or off, got "
                                   "\"{}\"",
                                   shorten(*line.global.log_level, 60)));
  }
  set_log_level(level);
}

int print_version(Host& host, Output& out) {
  if (out.json()) {
    out.value({{"version", version()}, {"sqlite", host.sqlite_version()}});
  } else {
    out.line(fmt::format("holdfast {} (sqlite {})", version(), host.sqlite_version()));
  }
  return kDone;
}

int execute(const std::vector<std::string>& words, const MakeHost& make_host, Output& out) {
  const auto line = parse_line(words);
  out.set_json(line.global.json);
  if (line.help) {
    out.raw(line.command == nullptr ? render_overview() : render_help(*line.command));
    return kDone;
  }
  set_up_log(line);
  const auto host = make_host(line.global);
  if (line.version) return print_version(*host, out);
  if (line.command == nullptr) {
    out.note(render_overview());
    return kUsage;
  }
  Invocation call{line.args, *host, out};
  return line.command->function(call);
}

}  // namespace

int run_command_line(const std::vector<std::string>& words, const MakeHost& make_host,
                     Output& out) {
  try {
    return execute(words, make_host, out);
  } catch (const OutputClosed&) {
    return kOutputClosed;
  } catch (const OutputFailed& failed) {
    out.error(fmt::format("standard output cannot be written: {}", failed.why));
    return kFailed;
  } catch (const RefusedError& error) {
    out.error(error.what());
    return static_cast<int>(error.refusal());
  } catch (const StoreError& error) {
    out.error(error.what());
    return kFailed;
  } catch (const FailureError& error) {
    out.error(error.what());
    return kFailed;
  } catch (const std::exception& error) {
    out.error(fmt::format("a bug in holdfast {}: {}; please report it with this line", version(),
                          error.what()));
    return kFailed;
  }
}

}  // namespace holdfast
