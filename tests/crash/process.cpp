#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "crash/harness.hpp"

extern char** environ;

namespace holdfast::crash {

bool is_long() {
  const char* value = std::getenv("HOLDFAST_LONG");
  return value != nullptr && std::string(value) == "1";
}

bool eventually(milliseconds limit, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    if (done()) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
}

void let_pass(milliseconds time) { std::this_thread::sleep_for(time); }

std::string read_file(const fs::path& file) {
  std::string text;
  const int opened = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return text;
  std::array<char, 8192> block{};
  // A process may end while its entry in /proc is read: what was read until then counts.
  for (ssize_t size = 0; (size = read(opened, block.data(), block.size())) > 0;) {
    text.append(block.data(), static_cast<std::size_t>(size));
  }
  close(opened);
  return text;
}

namespace {

std::vector<std::string> environment_with(const std::map<std::string, std::string>& added) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto sign = text.find('=');
    if (sign != std::string::npos) all[text.substr(0, sign)] = text.substr(sign + 1);
  }
  for (const auto& [name, value] : added) all[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : all) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// In the child: only what is safe after fork.
bool put_in_place(const char* path, int flags, int target) {
  const int opened = open(path, flags, 0644);
  return opened >= 0 && dup2(opened, target) >= 0;
}

}  // namespace

Process::Process(const Command& command) {
  std::vector<std::string> args = command.args;
  std::vector<std::string> entries = environment_with(command.env);
  const std::vector<char*> argv = pointers(args);
  const std::vector<char*> envp = pointers(entries);
  const std::string input = command.input.empty() ? "/dev/null" : command.input;
  const std::string output = command.output.empty() ? "/dev/null" : command.output;
  const std::string errors = command.errors.empty() ? "/dev/null" : command.errors;
  const pid_t parent = getpid();
  const int write_flags = O_WRONLY | O_CREAT | O_APPEND;

  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid_ > 0) return;

  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(126);
  if (command.cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(command.cpu), &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  if (!command.folder.empty() && chdir(command.folder.c_str()) != 0) _exit(126);
  if (!put_in_place(input.c_str(), O_RDONLY, 0) || !put_in_place(output.c_str(), write_flags, 1) ||
      !put_in_place(errors.c_str(), write_flags, 2)) {
    _exit(126);
  }
  if (command.uid >= 0) {
    const auto id = static_cast<uid_t>(command.uid);
    if (setgid(id) != 0 || setuid(id) != 0) _exit(126);
  }
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

Process::~Process() {
  if (pid_ > 0 && !status_) kill();
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    if (pid_ > 0 && !status_) kill();
    pid_ = std::exchange(other.pid_, -1);
    status_ = other.status_;
  }
  return *this;
}

void Process::signal(int number) const {
  if (pid_ > 0 && !status_) ::kill(pid_, number);
}

std::optional<int> Process::status() {
  if (status_ || pid_ <= 0) return status_;
  int raw = 0;
  if (waitpid(pid_, &raw, WNOHANG) == pid_) {
    status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  }
  return status_;
}

std::optional<int> Process::wait(milliseconds limit) {
  eventually(limit, [&] { return status().has_value(); });
  return status_;
}

bool is_standing_still(pid_t process) {
  return read_file("/proc/" + std::to_string(process) + "/stat").find(") T ") != std::string::npos;
}

void Process::kill() {
  signal(SIGKILL);
  int raw = 0;
  if (pid_ > 0 && !status_ && waitpid(pid_, &raw, 0) == pid_) {
    status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  }
}

}  // namespace holdfast::crash
