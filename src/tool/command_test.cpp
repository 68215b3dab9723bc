#include "tool/command.hpp"

#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <vector>

#include "tool/tool_test_support.hpp"

namespace holdfast {
namespace {

using Kind = ToolCommandEnd::Kind;

TEST(Command, GivesInputAndTakesOutputAndStatus) {
  const TestFolder folder;
  folder.script("tool.sh", "cat; echo problem >&2; exit 3\n");
  ToolCommand command = command_in(folder, "./tool.sh");
  command.input = "question";

  const ToolCommandEnd end = run_command(command, real_env());

  EXPECT_EQ(end.kind, Kind::exited);
  EXPECT_EQ(end.number, 3);
  EXPECT_EQ(end.output, "question");
  EXPECT_EQ(end.errors, "problem\n");
}

TEST(Command, RunsInItsFolderAndSeesOnlyItsEnvironment) {
  const TestFolder folder;
  folder.script("tool.sh", "pwd\n");
  EXPECT_EQ(run_command(command_in(folder, "./tool.sh"), real_env()).output, folder.path() + "\n");

  ToolCommand env = command_in(folder, "env");
  env.environment = {"PATH=/usr/bin:/bin", "COLOUR=blue"};
  EXPECT_EQ(run_command(env, real_env()).output, "PATH=/usr/bin:/bin\nCOLOUR=blue\n");
}

TEST(Command, LeaksNoDescriptorIntoTheProgram) {
  const TestFolder folder;
  folder.write("held", "");
  const int held = open(folder.file("held").c_str(), O_RDONLY);  // inheritable on purpose
  folder.script("tool.sh", "ls /proc/self/fd | wc -l\n");

  const ToolCommandEnd end = run_command(command_in(folder, "./tool.sh"), real_env());
  close(held);

  EXPECT_EQ(end.output, "4\n");  // 0, 1, 2 and the folder that ls reads
}

TEST(Command, StartsWithSignalsAsNewProcessesHaveThem) {
  const TestFolder folder;
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  folder.script("tool.sh", "grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d 'A-Za-z:\\t0\\n'\n");
  const ToolCommandEnd end = run_command(command_in(folder, "./tool.sh"), real_env());
  std::signal(SIGPIPE, before);
  EXPECT_EQ(end.output, "");
}

TEST(Command, SurvivesAProgramThatDoesNotReadItsInput) {
  const TestFolder folder;
  folder.script("tool.sh", "exec <&-; echo done\n");
  ToolCommand command = command_in(folder, "./tool.sh");
  command.input = std::string(4u << 20, 'x');
  const ToolCommandEnd end = run_command(command, real_env());
  EXPECT_EQ(end.kind, Kind::exited);
  EXPECT_EQ(end.output, "done\n");
}

TEST(Command, ReadsPastAFloodWithoutKeepingIt) {
  const TestFolder folder;
  folder.script(
      "tool.sh",
      "head -c 50000000 /dev/zero >&2 & head -c 100000000 /dev/zero; wait; echo end >&2\n");
  ToolCommand command = command_in(folder, "./tool.sh");
  command.output_limit = 1000;
  command.error_limit = 100;

  const ToolCommandEnd end = run_command(command, real_env());

  EXPECT_EQ(end.kind, Kind::exited);
  EXPECT_EQ(end.output.size(), 1000u);
  EXPECT_EQ(end.output_bytes, 100'000'000u);
  EXPECT_EQ(end.error_bytes, 50'000'004u);
  EXPECT_EQ(end.errors.size(), 100u);
  EXPECT_TRUE(end.errors.ends_with("end\n"));
}

TEST(Command, SaysWhatEndedIt) {
  const TestFolder folder;
  folder.script("tool.sh", "kill -SEGV $$\n");
  const ToolCommandEnd end = run_command(command_in(folder, "./tool.sh"), real_env());
  EXPECT_EQ(end.kind, Kind::signalled);
  EXPECT_EQ(end.number, SIGSEGV);
}

TEST(Command, SaysWhyItWasNotStarted) {
  const TestFolder folder;
  folder.write("data.txt", "no program", 0644);
  folder.write("odd.sh", "#!/no/such/interpreter\n", 0755);
  folder.write("plain", "echo hi\n", 0755);
  const auto number = [&](const std::string& program) {
    const ToolCommandEnd end = run_command(command_in(folder, program), real_env());
    EXPECT_EQ(end.kind, Kind::not_started) << program;
    EXPECT_FALSE(end.was_started);
    EXPECT_EQ(end.what, "program '" + program + "'");
    return end.number;
  };
  EXPECT_EQ(number("./missing.sh"), ENOENT);
  EXPECT_EQ(number("holdfast-no-such-program"), ENOENT);
  EXPECT_EQ(number("./data.txt"), EACCES);
  EXPECT_EQ(number("./odd.sh"), ENOENT);
  EXPECT_EQ(number("./plain"), ENOEXEC);

  ToolCommand elsewhere = command_in(folder, "env");
  elsewhere.folder = folder.file("nowhere");
  const ToolCommandEnd end = run_command(elsewhere, real_env());
  EXPECT_EQ(end.kind, Kind::not_started);
  EXPECT_EQ(end.number, ENOENT);
  EXPECT_EQ(end.what, "working folder '" + elsewhere.folder + "'");
}

TEST(Command, NeverTakesABareNameFromItsFolder) {
  const TestFolder folder;
  folder.script("holdfast-local-tool", "echo wrong\n");
  const ToolCommandEnd end = run_command(command_in(folder, "holdfast-local-tool"), real_env());
  EXPECT_EQ(end.kind, Kind::not_started);
}

TEST(Command, EndsAtItsDeadlineWithAllItsChildren) {
  const TestFolder folder;
  LifeLine life(folder);
  folder.script("tool.sh", "exec 9>" + life.path() +
                               "\nsleep 1000 &\nsetsid sleep 1000 &\n(setsid sleep 1000 &)\n"
                               "echo ready >&9\nsleep 1000\n");
  ToolCommand command = command_in(folder, "./tool.sh");
  command.timeout = std::chrono::milliseconds(300);

  const ToolCommandEnd end = run_command(command, real_env());

  EXPECT_EQ(end.kind, Kind::timed_out);
  EXPECT_TRUE(life.wait_for_end());
}

TEST(Command, KillsWhatIgnoresTheDeadline) {
  const TestFolder folder;
  LifeLine life(folder);
  folder.script("tool.sh", "exec 9>" + life.path() +
                               "\ntrap 'echo asked' TERM\n(trap '' TERM; sleep 1000) &\n"
                               "while :; do sleep 0.01; done\n");
  ToolCommand command = command_in(folder, "./tool.sh");
  command.timeout = std::chrono::milliseconds(200);

  const StoreTime before = real_env().store_now();
  const ToolCommandEnd end = run_command(command, real_env());

  EXPECT_EQ(end.kind, Kind::timed_out);
  EXPECT_TRUE(life.wait_for_end());
  EXPECT_NE(end.output.find("asked"), std::string::npos);
  EXPECT_GE(real_env().store_now() - before, std::chrono::milliseconds(2100));
}

TEST(Command, LetsTheGroupFinishWhenItIsAsked) {
  const TestFolder folder;
  LifeLine life(folder);
  folder.script("child.sh",
                "trap 'sleep 0.2; echo tidied; exit' TERM\necho ready >&9\n"
                "while :; do sleep 0.01; done\n");
  // The shell in front dies at once, its child still cleans up.
  folder.script("tool.sh", "exec 9>" + life.path() + "\n./child.sh\n");
  ToolCommand command = command_in(folder, "./tool.sh");
  std::stop_source stop;
  command.stop = stop.get_token();
  ToolCommandEnd end;
  const auto thread = real_env().spawn({"call"}, [&] { end = run_command(command, real_env()); });
  ASSERT_NE(life.wait_for_lines(1), "");
  stop.request_stop();
  thread->join();
  EXPECT_EQ(end.kind, Kind::interrupted);
  EXPECT_EQ(end.output, "tidied\n");
}

TEST(Command, IsNotStartedOnceAStopIsAsked) {
  const TestFolder folder;
  folder.script("tool.sh", "echo ran > ran\n");
  ToolCommand command = command_in(folder, "./tool.sh");
  std::stop_source stop;
  stop.request_stop();
  command.stop = stop.get_token();
  const ToolCommandEnd end = run_command(command, real_env());
  EXPECT_EQ(end.kind, Kind::interrupted);
  EXPECT_FALSE(end.was_started);
  EXPECT_EQ(folder.read("ran"), "");
}

TEST(Command, EndsChildrenLeftInItsGroup) {
  const TestFolder folder;
  LifeLine life(folder);
  folder.script("tool.sh", "exec 9>" + life.path() +
                               "\n(trap '' TERM HUP; sleep 1000) &\n(sleep 1000 &)\necho done\n");
  const ToolCommandEnd end = run_command(command_in(folder, "./tool.sh"), real_env());
  EXPECT_EQ(end.kind, Kind::exited);
  EXPECT_EQ(end.output, "done\n");
  EXPECT_TRUE(life.wait_for_end());
}

TEST(Command, LeavesADaemonThatAnsweringToolsStart) {
  const TestFolder folder;
  LifeLine life(folder);
  folder.script("tool.sh", "setsid sh -c 'echo $$ >" + life.path() +
                               "; exec sleep 1000' &\nread line <" + life.path() +
                               ".go\necho done\n");
  mkfifo((life.path() + ".go").c_str(), 0600);
  ToolCommandEnd end;
  const auto thread = real_env().spawn(
      {"call"}, [&] { end = run_command(command_in(folder, "./tool.sh"), real_env()); });
  const int daemon = std::atoi(life.wait_for_lines(1).c_str());
  ASSERT_GT(daemon, 1);
  std::ofstream(life.path() + ".go") << "go\n";
  thread->join();
  // It holds the tool's output open, and the call has returned all the same.
  EXPECT_EQ(end.kind, Kind::exited);
  EXPECT_EQ(end.output, "done\n");
  EXPECT_EQ(kill(daemon, SIGKILL), 0);
}

TEST(Command, RunsAHundredAtOnceAndLeavesNothingBehind) {
  const TestFolder folder;
  folder.script("tool.sh", "read line; echo \"$line\"\n");
  run_command(command_in(folder, "./tool.sh"), real_env());
  const std::size_t descriptors = open_descriptors();
  std::atomic<int> right = 0;
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int i = 0; i < 100; ++i) {
      threads.push_back(real_env().spawn({"call"}, [&, i] {
        ToolCommand command = command_in(folder, "./tool.sh");
        command.input = std::to_string(i) + "\n";
        const ToolCommandEnd end = run_command(command, real_env());
        if (end.kind == Kind::exited && end.number == 0 && end.output == command.input) ++right;
      }));
    }
  }
  EXPECT_EQ(right, 100);
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace holdfast
