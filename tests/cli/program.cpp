#include "cli/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace holdfast::cli_tests {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (auto& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment(const std::map<std::string, std::string>& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto name = text.substr(0, text.find('='));
    if (name != "HOLDFAST_CONFIG" && name != "HOLDFAST_STORE" && !more.contains(name)) {
      all.push_back(text);
    }
  }
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

}  // namespace

std::vector<std::string> Result::lines() const {
  std::vector<std::string> all;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

Running::Running(const fs::path& folder, const Call& call) {
  std::vector<std::string> words = call.words;
  words.insert(words.begin(), HOLDFAST_BINARY);
  auto variables = environment(call.env);
  const auto argv = pointers(words);
  const auto envp = pointers(variables);
  std::ofstream(folder / ".input", std::ios::binary) << call.input;
  const auto input = (folder / ".input").string();
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  if (call.out_closed) close(out[0]);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    // A group of its own, as a shell gives it.
    setpgid(0, 0);
    const int from = open(input.c_str(), O_RDONLY | O_CLOEXEC);
    const int to = call.out_path.empty() ? out[1] : open(call.out_path.c_str(), O_WRONLY);
    const bool ready = from >= 0 && to >= 0 && dup2(from, 0) >= 0 && dup2(to, 1) >= 0 &&
                       dup2(err[1], 2) >= 0 && chdir(folder.c_str()) == 0;
    if (ready) execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  out_ = call.out_closed ? -1 : out[0];
  err_ = err[0];
}

Running::~Running() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

void Running::signal(int number) const { kill(pid_, number); }

std::string Running::command_line() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/cmdline", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// One piece from either stream; false when both have ended or the time is over.
bool Running::read_more(Clock::time_point deadline) {
  pollfd fds[] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  if ((out_ < 0 && err_ < 0) || left <= 0) return false;
  if (poll(fds, 2, static_cast<int>(left)) <= 0) return errno == EINTR;
  int* const ends[] = {&out_, &err_};
  std::string* const texts[] = {&result_.out, &result_.err};
  for (int i = 0; i < 2; ++i) {
    if (fds[i].revents == 0) continue;
    char buffer[65536];
    const auto got = read(*ends[i], buffer, sizeof buffer);
    if (got > 0) {
      texts[i]->append(buffer, static_cast<std::size_t>(got));
    } else {
      close(*ends[i]);
      *ends[i] = -1;
    }
  }
  return true;
}

bool Running::says(const std::string& text) {
  const auto deadline = Clock::now() + std::chrono::minutes(1);
  while (result_.err.find(text) == std::string::npos) {
    if (!read_more(deadline)) return false;
  }
  return true;
}

Result Running::finish() {
  const auto deadline = Clock::now() + std::chrono::minutes(2);
  while (read_more(deadline)) {
  }
  if (Clock::now() >= deadline) kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  result_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result_;
}

Folder::Folder() {
  auto pattern = (fs::temp_directory_path() / "holdfast-cli-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Folder::write(const std::string& name, const std::string& text, bool is_program) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
  if (is_program) fs::permissions(path_ / name, fs::perms::owner_all);
}

std::string Folder::read(const std::string& name) const {
  std::ifstream stream(path_ / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Signpost::Signpost(const Folder& folder, const std::string& name) {
  const auto path = (folder.path() / name).string();
  if (mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("mkfifo");
  // Open for both, so that neither side ever waits for the other to open it.
  fifo_ = open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

Signpost::~Signpost() { close(fifo_); }

bool Signpost::passed() {
  pollfd fd{fifo_, POLLIN, 0};
  char line[16];
  return poll(&fd, 1, 60'000) == 1 && read(fifo_, line, sizeof line) > 0;
}

void Folder::write_agent(bool approval, const std::string& more) const {
  write("turns.json", R"([
    {"tool_calls": [{"name": "look", "arguments": {"id": "7"}}]},
    {"tool_calls": [{"name": "pay", "arguments": {"amount": 12}}]},
    {"reply": "paid"}])");
  write("look.sh", "#!/bin/sh\ncat > /dev/null\necho '{\"name\": \"Ada\"}'\n", true);
  write("pay.sh", "#!/bin/sh\ncat >> payments\necho '{\"ok\": true}'\n", true);
  write("holdfast.toml", std::string(R"(
[lease]
duration = "5s"
[retry]
max_requeues = 0
[providers.demo]
kind = "scripted"
script = "turns.json"
[agents.pay]
models = ["demo/x"]
tools = ["look", "pay"]
[tools.look]
command = ["./look.sh"]
effect = "read"
parameters = { type = "object", properties = { id = { type = "string" } }, required = ["id"] }
[tools.pay]
command = ["./pay.sh"]
effect = "non_idempotent_write"
)") + (approval ? "approval = true\n" : "") +
                             more);
}

}  // namespace holdfast::cli_tests
