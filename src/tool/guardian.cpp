// Runs in the child of a fork of a process with many threads: async-signal-safe calls only, no
// memory from the heap, no exceptions, no C++ objects with destructors.
//
// The tool leads a session and a group of its own. Descendants that leave the group by setsid or a
// double fork come back as children of this process, which is a subreaper, as soon as their
// parents are gone; so "kill the group, then kill own children until there are none" reaches
// everything. The group is signalled only while a process of it is known to exist (the tool itself,
// not yet waited for, or another child), so that no stranger who was given the same number is hit.

#include "tool/guardian.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace holdfast::guardian {
namespace {

constexpr int kControl = 3;
/// How long survivors that cannot be killed (another user's) are waited for behind the tool's end.
constexpr int kSurvivorRounds = 250;
constexpr int kRoundMilliseconds = 20;

void close_from(unsigned first) {
  if (syscall(SYS_close_range, first, ~0U, 0U) == 0) return;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto end = std::min<rlim_t>(limit.rlim_cur, 1U << 20);
  for (auto fd = static_cast<rlim_t>(first); fd < end; ++fd) close(static_cast<int>(fd));
}

void reset_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &action, nullptr);
}

void send_report(const Report& report) {
  while (send(kControl, &report, sizeof report, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void report_not_started(Report::Place place, int error) {
  Report report;
  report.kind = Report::Kind::not_started;
  report.place = place;
  report.error = error;
  send_report(report);
  _exit(127);
}

/// The tool's process up to its program.
[[noreturn]] void become_tool(const Plan& plan, pid_t guardian) {
  setsid();
  // Should somebody kill the guardian itself, the tool does not go on unwatched.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guardian) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (plan.folder != nullptr && chdir(plan.folder) != 0) {
    report_not_started(Report::Place::folder, errno);
  }
  // A program file that was just written can be held open for writing, for a moment, by another
  // thread's child between its fork and its exec.
  for (int attempt = 0; attempt < 50; ++attempt) {
    execve(plan.program, plan.arguments, plan.environment);
    if (errno != ETXTBSY) break;
    const timespec pause{0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  report_not_started(Report::Place::program, errno);
}

/// The parent of a process, read from /proc without the heap; 0 where it cannot be told.
pid_t parent_of(const char* pid_text) {
  char path[64] = "/proc/";
  const std::size_t length = std::strlen(pid_text);
  if (length > 16) return 0;
  std::memcpy(path + 6, pid_text, length);
  std::memcpy(path + 6 + length, "/stat", 6);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[512];
  const ssize_t count = read(fd, text, sizeof text - 1);
  close(fd);
  if (count <= 0) return 0;
  text[count] = '\0';
  const char* after_name = std::strrchr(text, ')');  // names may hold anything, brackets too
  if (after_name == nullptr || std::strlen(after_name) < 4) return 0;
  pid_t parent = 0;
  for (const char* digit = after_name + 4; *digit >= '0' && *digit <= '9'; ++digit) {
    parent = parent * 10 + (*digit - '0');
  }
  return parent;
}

/// SIGKILL to every child of this process.
void kill_children() {
  const int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  const pid_t self = getpid();
  alignas(dirent64) char buffer[8192];
  for (;;) {
    const long count = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (count <= 0) break;
    for (long at = 0; at < count;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      pid_t pid = 0;
      const char* digit = entry->d_name;
      for (; *digit >= '0' && *digit <= '9'; ++digit) pid = pid * 10 + (*digit - '0');
      if (*digit != '\0' || pid <= 1) continue;
      if (parent_of(entry->d_name) == self) kill(pid, SIGKILL);
    }
  }
  close(folder);
}

class Guardian {
 public:
  explicit Guardian(const Plan& plan) : plan_(plan) {}

  [[noreturn]] void run() {
    start();
    for (;;) {
      wait_for_something();
      if (worker_is_gone()) {
        kill_everything();
        _exit(0);
      }
      switch (phase_) {
        case Phase::running:
          if (tool_has_ended()) finish_ended();
          if (asked_ || timer_fired_) begin_ending();
          break;
        case Phase::ending:
          if (group_is_empty() || timer_fired_) finish_killed();
          break;
      }
    }
  }

 private:
  enum class Phase { running, ending };

  void start() {
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    timer_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    const pid_t self = getpid();
    tool_ = signals_ < 0 || timer_ < 0 ? -1 : fork();
    if (tool_ < 0) report_not_started(Report::Place::fork, errno);
    if (tool_ == 0) become_tool(plan_, self);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; ++fd) null < 0 ? close(fd) : dup2(null, fd);
    arm(plan_.timeout_milliseconds);
  }

  void arm(std::int64_t milliseconds) {
    itimerspec when{};
    when.it_value.tv_sec = milliseconds / 1000;
    when.it_value.tv_nsec = (milliseconds % 1000) * 1'000'000;
    if (milliseconds <= 0) when.it_value.tv_nsec = 1;
    timerfd_settime(timer_, 0, &when, nullptr);
    timer_fired_ = false;
  }

  void wait_for_something() {
    pollfd fds[] = {{signals_, POLLIN, 0}, {timer_, POLLIN, 0}, {kControl, POLLIN, 0}};
    // The watched worker's end wakes by its socket and by SIGCHLD (PR_SET_PDEATHSIG).
    if (poll(fds, has_control_ ? 3 : 2, -1) < 0) return;
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) > 0) {
    }
    std::uint64_t expirations = 0;
    if (read(timer_, &expirations, sizeof expirations) > 0) timer_fired_ = true;
    if (has_control_ && fds[2].revents != 0) read_control();
  }

  void read_control() {
    char word = 0;
    const ssize_t count = recv(kControl, &word, 1, MSG_DONTWAIT);
    if (count > 0) {
      asked_ = word == kStop;
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      has_control_ = false;
    }
  }

  bool worker_is_gone() const {
    return plan_.watches_worker && (!has_control_ || getppid() != plan_.worker);
  }

  /// Looks at the tool without waiting for it; adopted orphans that ended meanwhile are waited for.
  bool tool_has_ended() {
    for (;;) {
      siginfo_t info{};
      if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
      if (info.si_pid == tool_) break;
      waitpid(info.si_pid, nullptr, WNOHANG);
    }
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(tool_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == tool_;
  }

  void begin_ending() {
    cause_ = asked_ ? Report::Cause::asked : Report::Cause::deadline;
    phase_ = Phase::ending;
    kill(-tool_, SIGTERM);
    kill(-tool_, SIGCONT);  // a stopped process takes SIGTERM only once it goes on
    arm(kGraceMilliseconds);
  }

  void note_if_tool(pid_t pid, int status) {
    if (pid != tool_) return;
    status_ = status;
    tool_waited_ = true;
  }

  /// Waits for what has ended in the tool's group; true when no child of ours is left in it.
  bool group_is_empty() {
    if (group_empty_) return true;
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-tool_, &status, WNOHANG)) > 0) note_if_tool(pid, status);
    group_empty_ = pid < 0 && errno == ECHILD;
    return group_empty_;
  }

  /// The tool ended by itself. What it left behind in its group is ended. What left the group on
  /// purpose goes on after a regular exit (a started daemon), and is ended after a death by signal,
  /// when nobody can say what it is in the middle of.
  [[noreturn]] void finish_ended() {
    kill(-tool_, SIGKILL);
    pid_t pid = 0;
    int status = 0;
    while ((pid = waitpid(tool_, &status, 0)) < 0 && errno == EINTR) {
    }
    note_if_tool(pid, status);
    for (int round = 0; round < kSurvivorRounds && !group_is_empty(); ++round) pause_for_children();
    if (!WIFEXITED(status_)) kill_everything();
    report_ended();
  }

  [[noreturn]] void finish_killed() {
    kill_everything();
    report_ended();
  }

  void kill_everything() {
    if (!group_empty_) kill(-tool_, SIGKILL);
    for (int round = 0; round < kSurvivorRounds || !tool_waited_; ++round) {
      kill_children();
      int status = 0;
      pid_t pid = 0;
      while ((pid = waitpid(-1, &status, WNOHANG)) > 0) note_if_tool(pid, status);
      if (pid < 0 && errno == ECHILD) return;
      pause_for_children();
    }
  }

  void pause_for_children() {
    pollfd fd{signals_, POLLIN, 0};
    poll(&fd, 1, kRoundMilliseconds);
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) > 0) {
    }
  }

  [[noreturn]] void report_ended() {
    Report report;
    report.kind = Report::Kind::ended;
    report.status = status_;
    report.cause = cause_;
    send_report(report);
    _exit(0);
  }

  const Plan& plan_;
  Phase phase_ = Phase::running;
  Report::Cause cause_ = Report::Cause::itself;
  pid_t tool_ = -1;
  int signals_ = -1;
  int timer_ = -1;
  int status_ = 0;
  bool tool_waited_ = false;
  bool group_empty_ = false;
  bool has_control_ = true;
  bool asked_ = false;
  bool timer_fired_ = false;
};

}  // namespace

void guard(const Plan& plan) {
  reset_signal_handlers();
  setsid();
  // Not by prctl: the sanitizers' one takes a lock, which another thread may have held at the fork.
  syscall(SYS_prctl, PR_SET_NAME, "holdfast-guard", 0, 0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, SIGCHLD);
  if (plan.command_line != nullptr && plan.command_line_bytes > 0) {
    std::memset(plan.command_line, 0, plan.command_line_bytes);
    constexpr char kName[] = "holdfast-guardian";
    std::memcpy(plan.command_line, kName, std::min(sizeof kName, plan.command_line_bytes) - 1);
  }
  dup2(plan.input, 0);
  dup2(plan.output, 1);
  dup2(plan.errors, 2);
  if (plan.control != kControl) dup2(plan.control, kControl);
  fcntl(kControl, F_SETFD, FD_CLOEXEC);
  close_from(kControl + 1);
  Guardian(plan).run();
}

}  // namespace holdfast::guardian
