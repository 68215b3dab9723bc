#include "tool/guardian.hpp"

#include <sys/wait.h>

#include <csignal>

#include "tool/tool_test_support.hpp"

namespace holdfast {
namespace {

/// A process that makes one call, as a worker does; killed and waited for by its destructor.
class WorkerProcess {
 public:
  explicit WorkerProcess(const ToolCommand& command) : pid_(fork()) {
    if (pid_ != 0) return;
    run_command(command, real_env());
    _exit(0);
  }
  ~WorkerProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  void send(int signal) const { kill(pid_, signal); }

 private:
  pid_t pid_;
};

/// The tool, a child, a child in a session of its own, and a daemon made by a double fork, which
/// ignores all that can be ignored. Each holds the life line and says so.
std::string family_script(const LifeLine& life) {
  return "exec 9>" + life.path() +
         "\n(echo ready >&9; exec sleep 1000) &\n"
         "setsid sh -c 'echo ready >&9; exec sleep 1000' &\n"
         "( (setsid sh -c 'trap \"\" TERM HUP INT; echo ready >&9; sleep 1000; sleep 1000' &) & )\n"
         "echo ready >&9\nexec sleep 1000\n";
}

TEST(Guardian, EndsTheToolAndAllItsDescendantsWhenTheWorkerIsKilled) {
  const TestFolder folder;
  LifeLine life(folder);
  folder.script("tool.sh", family_script(life));
  const WorkerProcess worker(command_in(folder, "./tool.sh"));
  ASSERT_NE(life.wait_for_lines(4), "");
  worker.send(SIGKILL);
  EXPECT_TRUE(life.wait_for_end());
}

TEST(Guardian, EndsTheToolWhenTheWorkerDiesOfAnySignal) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    const TestFolder folder;
    LifeLine life(folder);
    folder.script("tool.sh", family_script(life));
    const WorkerProcess worker(command_in(folder, "./tool.sh"));
    ASSERT_NE(life.wait_for_lines(4), "");
    worker.send(signal);
    EXPECT_TRUE(life.wait_for_end()) << signal;
  }
}

TEST(Guardian, KeepsTheDeadlineOfAWorkerThatStandsStill) {
  const TestFolder folder;
  LifeLine life(folder);
  folder.script("tool.sh", family_script(life));
  ToolCommand command = command_in(folder, "./tool.sh");
  command.timeout = std::chrono::seconds(1);
  const WorkerProcess worker(command);
  worker.send(SIGSTOP);
  // Where the worker was stopped before it started the tool, nothing ever held the line.
  worker.send(SIGCONT);
  ASSERT_NE(life.wait_for_lines(4), "");
  worker.send(SIGSTOP);
  EXPECT_TRUE(life.wait_for_end());
}

TEST(Guardian, TakesTheToolWithItWhenItIsKilledItself) {
  const TestFolder folder;
  LifeLine life(folder);
  folder.script("tool.sh", "exec 9>" + life.path() + "\necho $PPID >&9\nexec sleep 1000\n");
  ToolCommandEnd end;
  const auto thread = real_env().spawn(
      {"call"}, [&] { end = run_command(command_in(folder, "./tool.sh"), real_env()); });
  const int guardian = std::atoi(life.wait_for_lines(1).c_str());
  ASSERT_GT(guardian, 1);
  EXPECT_NE(guardian, getpid());
  EXPECT_EQ(kill(guardian, SIGKILL), 0);
  EXPECT_TRUE(life.wait_for_end());
  thread->join();
  EXPECT_EQ(end.kind, ToolCommandEnd::Kind::signalled);
  EXPECT_EQ(end.number, SIGKILL);
}

TEST(Guardian, ShowsItselfUnderItsOwnName) {
  const TestFolder folder;
  folder.script("tool.sh", "tr '\\0' ' ' < /proc/$PPID/cmdline; cat /proc/$PPID/comm\n");
  const ToolCommandEnd end = run_command(command_in(folder, "./tool.sh"), real_env());
  // As much of the name as the program's own command line has room for.
  EXPECT_EQ(end.output.rfind("holdfast-g", 0), 0u) << end.output;
  EXPECT_NE(end.output.find("holdfast-guard\n"), std::string::npos) << end.output;
}

}  // namespace
}  // namespace holdfast
