#include "tool/command.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <tuple>
#include <utility>

#include "base/guard.hpp"
#include "tool/descriptors.hpp"
#include "tool/guardian.hpp"

namespace holdfast {
namespace {

using descriptors::Fd;
using descriptors::make_control;
using descriptors::make_input;
using descriptors::make_pipe;
using descriptors::NoResources;
using descriptors::Pair;
using guardian::Report;

/// How long the guardian may be late before it is taken for stopped or killed.
constexpr Duration kGuardianPatience = std::chrono::seconds(10);

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

/// Where this process shows its command line: the guardian, a copy of this process, writes its own
/// name there, so that nobody who looks for workers takes it for one. Fields 48 and 49 of
/// /proc/self/stat.
std::pair<char*, std::size_t> command_line_area() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {nullptr, 0};
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;
  std::size_t at = name_end + 2;
  for (int field = 3; field <= 49 && at < text.size(); ++field) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    if (field >= 48) {
      std::uintptr_t value = 0;
      for (const char digit : std::string_view(text).substr(at, space - at)) {
        if (digit < '0' || digit > '9') return {nullptr, 0};
        value = value * 10 + static_cast<std::uintptr_t>(digit - '0');
      }
      (field == 48 ? start : end) = value;
    }
    at = space + 1;
  }
  if (start == 0 || end <= start) return {nullptr, 0};
  return {reinterpret_cast<char*>(start), end - start};  // NOLINT(performance-no-int-to-ptr)
}

/// One started program and its guardian.
class Call {
 public:
  Call(const ToolCommand& command, Env& env) : command_(command), env_(env) {}
  ~Call() {
    // Only where an exception cut the call short: closing the socket makes the guardian kill.
    control_.reset();
    wait_for_guardian();
  }

  ToolCommandEnd run() {
    if (!name_is_known()) return not_found();
    began_at_ = env_.store_now();
    start();
    {
      const std::stop_callback on_stop(command_.stop, [this] {
        stopped_at_ = env_.store_now();
        send(control_.get(), &guardian::kStop, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      });
      follow();
    }
    read_rest();
    wait_for_guardian();
    return end();
  }

 private:
  void start() {
    Fd input = make_input(command_.input);
    Pair output = make_pipe();
    Pair errors = make_pipe();
    Pair control = make_control();
    const std::vector<char*> arguments = pointers(command_.arguments);
    const std::vector<char*> environment = pointers(command_.environment);
    std::string program = command_.arguments.front();
    if (program.find('/') == std::string::npos) {
      program = find_program(program, command_.folder, path_of(command_.environment));
    }

    guardian::Plan plan;
    plan.program = program.c_str();
    plan.arguments = arguments.data();
    plan.environment = environment.data();
    plan.folder = command_.folder.empty() ? nullptr : command_.folder.c_str();
    plan.input = input.get();
    plan.output = output.theirs.get();
    plan.errors = errors.theirs.get();
    plan.control = control.theirs.get();
    plan.timeout_milliseconds = command_.timeout.count();
    plan.worker = getpid();
    plan.watches_worker = !HOLDFAST_GUARD("tool_ends_with_worker", false);
    std::tie(plan.command_line, plan.command_line_bytes) = command_line_area();

    // No handler of this process may run in the copy of it.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    guardian_ = fork();
    if (guardian_ == 0) guardian::guard(plan);
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (guardian_ < 0) throw NoResources{"fork", error};

    output_ = std::move(output.ours);
    errors_ = std::move(errors.ours);
    control_ = std::move(control.ours);
    give_up_at_ = env_.store_now() + command_.timeout + Duration(guardian::kGraceMilliseconds) +
                  kGuardianPatience;
  }

  /// A bare name is looked up in PATH only: never in the working folder.
  bool name_is_known() const {
    const std::string& name = command_.arguments.front();
    return name.find('/') != std::string::npos ||
           !find_program(name, command_.folder, path_of(command_.environment)).empty();
  }

  ToolCommandEnd not_found() const {
    ToolCommandEnd end;
    end.kind = ToolCommandEnd::Kind::not_started;
    end.was_started = false;
    end.number = ENOENT;
    end.what = fmt::format("program '{}'", command_.arguments.front());
    return end;
  }

  static std::string path_of(const std::vector<std::string>& environment) {
    for (const std::string& entry : environment) {
      if (entry.rfind("PATH=", 0) == 0) return entry.substr(5);
    }
    return "/usr/local/bin:/usr/bin:/bin";
  }

  /// Reads what the program writes until the guardian says that it has ended.
  void follow() {
    while (!ended_) {
      pollfd fds[] = {
          {control_.get(), POLLIN, 0}, {output_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}};
      const Duration left = give_up_at_ - env_.store_now();
      const auto wait = std::clamp<Duration::rep>(left.count() + 1, 0, 60'000);
      if (poll(fds, 3, static_cast<int>(wait)) < 0) continue;
      if (fds[0].revents != 0) read_reports();
      if (output_.is_open() && fds[1].revents != 0) read_output();
      if (errors_.is_open() && fds[2].revents != 0) read_errors();
      // A stopped guardian keeps no deadline. The tool dies with it.
      if (!ended_ && env_.store_now() >= give_up_at_) {
        kill(guardian_, SIGKILL);
        guardian_gave_up_ = true;
        ended_ = true;
      }
    }
  }

  void read_reports() {
    Report report;
    const ssize_t count = recv(control_.get(), &report, sizeof report, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count != static_cast<ssize_t>(sizeof report)) {
      ended_ = true;  // killed by somebody, or nothing was started
    } else if (report.kind == Report::Kind::not_started) {
      not_started_ = report;
    } else {
      report_ = report;
      ended_ = true;
    }
  }

  /// False when there is nothing more at the moment.
  bool read_output() {
    const ssize_t count = read(output_.get(), buffer_, sizeof buffer_);
    if (count == 0) output_.reset();
    if (count <= 0) return false;
    const auto size = static_cast<std::size_t>(count);
    const std::size_t room = command_.output_limit - std::min(command_.output_limit, out_.size());
    out_.append(buffer_, std::min(size, room));
    out_bytes_ += size;
    return true;
  }

  bool read_errors() {
    const ssize_t count = read(errors_.get(), buffer_, sizeof buffer_);
    if (count == 0) errors_.reset();
    if (count <= 0) return false;
    err_.append(buffer_, static_cast<std::size_t>(count));
    err_bytes_ += static_cast<std::size_t>(count);
    // Cut rarely, so that a flood costs no copying.
    if (err_.size() > 2 * command_.error_limit + sizeof buffer_) trim_errors();
    return true;
  }

  void trim_errors() {
    if (err_.size() > command_.error_limit) err_.erase(0, err_.size() - command_.error_limit);
  }

  /// What the program wrote is in the pipes by now. A daemon that it left behind may hold them open
  /// and go on writing: not more than a pipe's content is read.
  void read_rest() {
    constexpr std::size_t kPipeBytes = 1u << 20;
    for (std::size_t before = out_bytes_; output_.is_open() && out_bytes_ - before < kPipeBytes;) {
      if (!read_output()) break;
    }
    for (std::size_t before = err_bytes_; errors_.is_open() && err_bytes_ - before < kPipeBytes;) {
      if (!read_errors()) break;
    }
    trim_errors();
  }

  void wait_for_guardian() {
    if (guardian_ <= 0) return;
    while (waitpid(guardian_, nullptr, 0) < 0 && errno == EINTR) {
    }
    guardian_ = -1;
  }

  ToolCommandEnd end() {
    ToolCommandEnd end;
    end.output = std::move(out_);
    end.output_bytes = out_bytes_;
    end.errors = std::move(err_);
    end.error_bytes = err_bytes_;
    end.took = stopped_at_.value_or(env_.store_now()) - began_at_;
    if (not_started_) {
      return describe_not_started(std::move(end));
    }
    if (!report_) {
      end.kind =
          guardian_gave_up_ ? ToolCommandEnd::Kind::timed_out : ToolCommandEnd::Kind::signalled;
      end.number = SIGKILL;
      return end;
    }
    switch (report_->cause) {
      case Report::Cause::deadline:
        end.kind = ToolCommandEnd::Kind::timed_out;
        break;
      case Report::Cause::asked:
        end.kind = ToolCommandEnd::Kind::interrupted;
        break;
      case Report::Cause::itself:
        end.kind = WIFEXITED(report_->status) ? ToolCommandEnd::Kind::exited
                                              : ToolCommandEnd::Kind::signalled;
        end.number =
            WIFEXITED(report_->status) ? WEXITSTATUS(report_->status) : WTERMSIG(report_->status);
        break;
    }
    return end;
  }

  ToolCommandEnd describe_not_started(ToolCommandEnd end) const {
    end.was_started = false;
    end.kind = ToolCommandEnd::Kind::not_started;
    end.number = not_started_->error;
    switch (not_started_->place) {
      case Report::Place::fork:
        end.kind = ToolCommandEnd::Kind::no_resources;
        end.what = fmt::format("fork: {}", std::strerror(end.number));
        break;
      case Report::Place::folder:
        end.what = fmt::format("working folder '{}'", command_.folder);
        break;
      case Report::Place::program:
        end.what = fmt::format("program '{}'", command_.arguments.front());
        if (end.number == ENOMEM || end.number == EAGAIN || end.number == EMFILE ||
            end.number == ENFILE) {
          end.kind = ToolCommandEnd::Kind::no_resources;
          end.what += fmt::format(": {}", std::strerror(end.number));
        }
        break;
    }
    return end;
  }

  const ToolCommand& command_;
  Env& env_;
  pid_t guardian_ = -1;
  Fd control_;
  Fd output_;
  Fd errors_;
  StoreTime began_at_{};
  StoreTime give_up_at_{};
  std::optional<StoreTime> stopped_at_;  ///< written by the stop callback, read behind its end
  bool ended_ = false;
  bool guardian_gave_up_ = false;
  std::optional<Report> report_;
  std::optional<Report> not_started_;
  std::string out_;
  std::string err_;
  std::size_t out_bytes_ = 0;
  std::size_t err_bytes_ = 0;
  char buffer_[32768];
};

bool can_execute(const std::string& file) {
  struct stat info {};
  return stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(file.c_str(), X_OK) == 0;
}

}  // namespace

ToolCommandEnd run_command(const ToolCommand& command, Env& env) {
  ToolCommandEnd end;
  end.was_started = false;
  if (command.stop.stop_requested()) {
    end.kind = ToolCommandEnd::Kind::interrupted;
    return end;
  }
  if (command.timeout <= Duration::zero()) {
    end.kind = ToolCommandEnd::Kind::timed_out;
    return end;
  }
  try {
    return Call(command, env).run();
  } catch (const NoResources& missing) {
    end.kind = ToolCommandEnd::Kind::no_resources;
    end.number = missing.error;
    end.what = fmt::format("{}: {}", missing.call, std::strerror(missing.error));
    return end;
  }
}

std::string find_program(const std::string& program, const std::string& folder,
                         const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path base = folder.empty() ? fs::path() : fs::path(folder);
  if (program.find('/') != std::string::npos) {
    return can_execute((base / program).string()) ? program : std::string();
  }
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t colon = std::min(path.find(':', at), path.size());
    const fs::path entry = path.substr(at, colon - at);
    // Entries that are relative are meant from where the program will run.
    const fs::path file = (entry.empty() ? fs::path(".") : entry) / program;
    if (can_execute((base / file).string())) return file.string();
    at = colon + 1;
  }
  return {};
}

}  // namespace holdfast
