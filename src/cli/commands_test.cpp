#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/cli_test_support.hpp"
#include "cli/command.hpp"

namespace holdfast {
namespace {

using testing::completed_run;
using testing::ended;
using testing::failed_run;
using testing::make_agent;
using testing::make_event;
using testing::make_run;
using testing::Shell;

TEST(Help, EveryCommandHasADescriptionAndAnExample) {
  for (const auto& command : all_commands()) {
    Shell shell;
    ASSERT_EQ(shell.run({command.name, "--help"}), 0) << command.name;
    EXPECT_NE(shell.out.find("Usage: holdfast " + command.name), std::string::npos);
    EXPECT_NE(shell.out.find("Examples\n  # "), std::string::npos) << command.name;
    EXPECT_GT(command.description.size(), 10u) << command.name;
    ASSERT_FALSE(command.examples.empty()) << command.name;
    EXPECT_EQ(command.examples[0].command.find("holdfast " + command.name), 0u) << command.name;
    EXPECT_EQ(shell.err, "");
  }
}

TEST(Help, TheOverviewNamesEveryCommandButHiddenOnes) {
  Shell shell;
  ASSERT_EQ(shell.run({"--help"}), 0);
  for (const auto& command : all_commands()) {
    const bool shown = shell.out.find("\n  " + command.name + " ") != std::string::npos;
    EXPECT_EQ(shown, command.group != Group::hidden) << command.name;
  }
}

TEST(Help, WithoutACommandItIsAnError) {
  Shell shell;
  EXPECT_EQ(shell.run({}), 2);
  EXPECT_EQ(shell.out, "");
  EXPECT_NE(shell.err.find("Usage: holdfast"), std::string::npos);
}

TEST(Help, ManualAndCompletionsKnowEveryCommandAndOption) {
  Shell shell;
  std::string texts;
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"man"}, {"man", "--markdown"}, {"completion", "bash"}, {"completion", "zsh"}}) {
    ASSERT_EQ(shell.run(words), 0);
    for (const auto& command : all_commands()) {
      if (command.group == Group::hidden) continue;
      EXPECT_NE(shell.out.find(command.name), std::string::npos) << words.back() << command.name;
      for (const auto& option : command.options) {
        auto name = option.name;
        if (words.size() == 1) {
          for (std::size_t at = 0; (at = name.find('-', at)) != name.npos; at += 2) {
            name.insert(at, "\\");
          }
        }
        EXPECT_NE(shell.out.find(name), std::string::npos) << words.back() << " " << name;
      }
    }
  }
  EXPECT_EQ(shell.run({"completion", "fish"}), 2);
}

TEST(Help, TheDocumentIsMadeFromTheSameTable) {
  std::ifstream file(HOLDFAST_SOURCE_DIR "/docs/command-line.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(document, render_markdown())
      << "write it anew: holdfast man --markdown > docs/command-line.md";
}

TEST(Version, IsForPeopleAndPrograms) {
  Shell shell;
  EXPECT_EQ(shell.run({"--version"}), 0);
  EXPECT_NE(shell.out.find("(sqlite 3.40.1)"), std::string::npos);
  EXPECT_EQ(shell.run({"--version", "--json"}), 0);
  EXPECT_EQ(shell.json()["sqlite"], "3.40.1");
}

TEST(Run, PrintsTheAnswerOnStandardOutputAndTheStepsOnStandardError) {
  Shell shell;
  shell.runtime.observed = {make_event("r1", 1, EventKind::started),
                            make_event("r1", 2, EventKind::tool, {{"key", "tool:look"}})};
  shell.runtime.segment = ended(Outcome::completed, completed_run("r1", "done"));
  EXPECT_EQ(shell.run({"run", "triage", "--input", "hi", "--label", "a=b"}), 0);
  EXPECT_EQ(shell.out, "done\n");
  EXPECT_NE(shell.err.find("run r1"), std::string::npos);
  EXPECT_NE(shell.err.find("tool:look"), std::string::npos);
  ASSERT_EQ(shell.runtime.requests.size(), 1u);
  EXPECT_EQ(shell.runtime.requests[0].agent, "triage");
  EXPECT_EQ(shell.runtime.requests[0].input, "hi");
  EXPECT_EQ(shell.runtime.requests[0].labels, (Labels{{"a", "b"}}));
}

TEST(Run, AnAnswerIsRawInAPipeAndSafeOnATerminal) {
  Shell shell;
  shell.runtime.segment = ended(Outcome::completed, completed_run("r1", "a\x1b[31m\nb"));
  EXPECT_EQ(shell.run({"run", "triage", "--input", "hi"}), 0);
  EXPECT_EQ(shell.out, "a\x1b[31m\nb\n");
  shell.terminal = true;
  EXPECT_EQ(shell.run({"run", "triage", "--input", "hi"}), 0);
  EXPECT_EQ(shell.out, "a\\x1b[31m\nb\n");
}

TEST(Run, ExitCodeSaysHowItEnded) {
  Shell shell;
  const auto code = [&](Outcome outcome, holdfast::Run run) {
    shell.runtime.segment = ended(outcome, std::move(run));
    return shell.run({"run", "triage", "--input", "hi"});
  };
  EXPECT_EQ(code(Outcome::failed, failed_run("r")), 1);
  EXPECT_NE(shell.err.find("busy"), std::string::npos);
  EXPECT_EQ(code(Outcome::cancelled, make_run("r", Status::cancelled)), 1);
  EXPECT_EQ(code(Outcome::awaiting_approval, make_run("r", Status::waiting_for_approval)), 5);
  EXPECT_EQ(code(Outcome::awaiting_input, make_run("r", Status::waiting_for_input)), 5);
  auto partial = completed_run("r", "half");
  partial.reason = Reason::budget_exhausted;
  EXPECT_EQ(code(Outcome::completed, partial), 0);
  EXPECT_EQ(shell.out, "half\n");
}

TEST(Run, NeedsAConfiguration) {
  Shell shell;
  shell.config.reset();
  EXPECT_EQ(shell.run({"run", "triage", "--input", "hi"}), 3);
  EXPECT_EQ(shell.run({"enqueue", "triage", "--input", "hi"}), 3);
  EXPECT_EQ(shell.run({"worker"}), 3);
  EXPECT_NE(shell.err.find("holdfast init"), std::string::npos);
}

TEST(Run, NeedsExactlyOneInput) {
  Shell shell;
  EXPECT_EQ(shell.run({"run", "triage"}), 2);
  EXPECT_EQ(shell.run({"run", "triage", "--input", "a", "--input-json", "1"}), 2);
  EXPECT_EQ(shell.run({"run", "triage", "--input-file", "/no/such/file"}), 2);
  EXPECT_EQ(shell.run({"run", "triage", "--input-json", "{"}), 2);
  EXPECT_TRUE(shell.runtime.requests.empty());
}

TEST(Enqueue, PassesEverythingOn) {
  Shell shell;
  ASSERT_EQ(shell.run({"enqueue", "triage", "--input-json", "{\"a\":1}", "--priority", "-2",
                       "--delay", "10m", "--idempotency-key", "k", "--max-requeues", "0", "--queue",
                       "q", "--label", "x=y=z"}),
            0)
      << shell.err;
  EXPECT_EQ(shell.out, "new-run\n");
  const auto& request = shell.runtime.requests.at(0);
  EXPECT_EQ(request.input, Json({{"a", 1}}));
  EXPECT_EQ(request.priority, -2);
  EXPECT_EQ(request.delay, std::chrono::minutes(10));
  EXPECT_EQ(request.idempotency_key, "k");
  EXPECT_EQ(request.max_requeues, 0);
  EXPECT_EQ(request.queue, "q");
  EXPECT_EQ(request.labels, (Labels{{"x", "y=z"}}));
}

TEST(Enqueue, TakesABudgetForThisRun) {
  Shell shell;
  ASSERT_EQ(shell.run({"enqueue", "triage", "--input", "x", "--budget", "tokens=200000", "--budget",
                       "cost_usd=0.5", "--budget", "time=10m", "--budget", "model_calls=3",
                       "--budget", "tool_calls=4"}),
            0)
      << shell.err;
  const Budget& budget = shell.runtime.requests.at(0).budget;
  EXPECT_EQ(budget.tokens, 200000);
  EXPECT_EQ(budget.cost_usd, 0.5);
  EXPECT_EQ(budget.time, std::chrono::minutes(10));
  EXPECT_EQ(budget.model_calls, 3);
  EXPECT_EQ(budget.tool_calls, 4);
  for (const char* wrong : {"tokens", "tokens=", "tokens=0", "tokens=-1", "tokens=1.5", "money=1",
                            "time=5", "cost_usd=nan", "=1"}) {
    EXPECT_EQ(shell.run({"enqueue", "triage", "--input", "x", "--budget", wrong}), 2) << wrong;
  }
  EXPECT_EQ(
      shell.run({"run", "triage", "--input", "x", "--budget", "tokens=1", "--budget", "tokens=2"}),
      2);
  EXPECT_EQ(shell.runtime.requests.size(), 1u);
}

TEST(Enqueue, TextStaysText) {
  Shell shell;
  ASSERT_EQ(shell.run({"enqueue", "triage", "--input", "{\"a\":1}", "--json"}), 0);
  EXPECT_EQ(shell.runtime.requests.at(0).input, "{\"a\":1}");
  EXPECT_EQ(shell.json()["id"], "new-run");
  ASSERT_EQ(shell.run({"enqueue", "triage", "--input", "\xff"}), 0);
  EXPECT_EQ(shell.runtime.requests.at(1).input, "\xef\xbf\xbd");
}

TEST(Enqueue, TakesATimeWithItsOffset) {
  Shell shell;
  ASSERT_EQ(shell.run({"enqueue", "t", "--input", "x", "--at", "2026-11-02T09:30:00+01:00"}), 0);
  EXPECT_EQ(shell.runtime.requests.at(0).at, WallTime(std::chrono::milliseconds(1793608200000)));
  EXPECT_EQ(shell.run({"enqueue", "t", "--input", "x", "--at", "2026-11-02T09:30:00"}), 2);
  EXPECT_EQ(
      shell.run({"enqueue", "t", "--input", "x", "--delay", "1s", "--at", "2026-11-02T09:30:00Z"}),
      2);
}

TEST(Enqueue, InlineExecutesHere) {
  Shell shell;
  shell.runtime.segment = ended(Outcome::completed, completed_run("r1", Json{{"n", 1}}));
  EXPECT_EQ(shell.run({"enqueue", "t", "--input", "x", "--inline"}), 0);
  EXPECT_EQ(shell.runtime.calls, std::vector<std::string>{"run_inline"});
  EXPECT_EQ(shell.out, "{\"n\":1}\n");
}

TEST(Worker, PassesItsSettingsAndSaysThatItIsReady) {
  Shell shell;
  shell.runtime.given.agents = {make_agent("triage")};
  ASSERT_EQ(shell.run({"worker", "--concurrency", "3", "--queue", "a", "--queue", "b", "--name",
                       "n", "--drain", "--grace", "5s"}),
            0);
  const auto& settings = shell.runtime.workers_started.at(0);
  EXPECT_EQ(settings.concurrency, 3);
  EXPECT_EQ(settings.queues, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(settings.name, "n");
  EXPECT_TRUE(settings.drain);
  EXPECT_EQ(settings.grace, std::chrono::seconds(5));
  EXPECT_NE(shell.err.find("worker host-1-w ready: 3 slots, agents triage, queues a b"),
            std::string::npos)
      << shell.err;
  EXPECT_EQ(shell.out, "");
}

TEST(Run, AnInterruptSaysWhatIsFinishedFirstAndWhenThatWasTheLastStep) {
  Shell shell;
  shell.runtime.on_run = [&] { shell.signal(1); };
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"run", "triage", "--input", "x"}, {"enqueue", "triage", "--input", "x", "--inline"}}) {
    shell.runtime.segment = ended(Outcome::completed, completed_run("r", "done"));
    EXPECT_EQ(shell.run(words), 0);
    EXPECT_EQ(shell.out, "done\n");
    EXPECT_NE(shell.err.find("stopping at the next boundary; what is under way is finished first"),
              std::string::npos)
        << shell.err;
    EXPECT_NE(shell.err.find("it completed all the same"), std::string::npos) << shell.err;
    shell.runtime.segment = ended(Outcome::cancelled, make_run("r", Status::cancelled));
    EXPECT_EQ(shell.run(words), 1);
    EXPECT_EQ(shell.err.find("all the same"), std::string::npos) << shell.err;
  }
}

TEST(Worker, FirstSignalStopsGracefullyAndTheSecondAtOnce) {
  Shell shell;
  shell.runtime.given.agents = {make_agent("triage")};
  shell.runtime.on_worker = [&](testing::FakeWorker& worker) {
    worker.on_join = [&] {
      shell.signal(1);
      shell.signal(2);
    };
  };
  EXPECT_EQ(shell.run({"worker"}), 0);
  EXPECT_EQ(shell.runtime.calls, (std::vector<std::string>{"stop", "stop_now", "join"}));
}

TEST(Worker, ASignalDuringItsStartIsNotLost) {
  Shell shell;
  shell.runtime.given.agents = {make_agent("triage")};
  shell.runtime.on_worker = [&](testing::FakeWorker&) { shell.signal(1); };
  EXPECT_EQ(shell.run({"worker"}), 0);
  EXPECT_EQ(shell.runtime.calls, (std::vector<std::string>{"stop", "join"}));
}

TEST(Worker, RefusesNumbersOutOfRange) {
  Shell shell;
  shell.runtime.given.agents = {make_agent("triage")};
  EXPECT_EQ(shell.run({"worker", "--concurrency", "0"}), 2);
  EXPECT_EQ(shell.run({"worker", "--concurrency", "1000000"}), 2);
  EXPECT_EQ(shell.run({"worker", "--grace", "-1s"}), 2);
}

TEST(List, PassesItsFiltersAndPrintsAPage) {
  Shell shell;
  shell.runtime.page.runs = {failed_run("r1"), make_run("r2", Status::queued)};
  shell.runtime.page.next = "cursor";
  ASSERT_EQ(shell.run({"list", "--status", "failed", "--reason", "retries_exhausted", "--agent",
                       "a", "--queue", "q", "--label", "k=v", "--limit", "7", "--after", "c"}),
            0);
  const auto& filter = shell.runtime.filters.at(0);
  EXPECT_EQ(filter.status, "failed");
  EXPECT_EQ(filter.reason, "retries_exhausted");
  EXPECT_EQ(filter.agent, "a");
  EXPECT_EQ(filter.queue, "q");
  EXPECT_EQ(filter.labels, (Labels{{"k", "v"}}));
  EXPECT_EQ(filter.limit, 7);
  EXPECT_EQ(filter.after, "c");
  EXPECT_NE(shell.out.find("r1"), std::string::npos);
  EXPECT_NE(shell.out.find("no worker"), std::string::npos) << "nobody serves the queued one";
  EXPECT_NE(shell.err.find("--after cursor"), std::string::npos);

  shell.runtime.workers_answer = Json::parse(R"([{"agents": ["triage"], "queues": []}])");
  ASSERT_EQ(shell.run({"list"}), 0);
  EXPECT_EQ(shell.out.find("no worker"), std::string::npos);

  ASSERT_EQ(shell.run({"list", "--json"}), 0);
  EXPECT_EQ(shell.json()["runs"].size(), 2u);
  EXPECT_EQ(shell.json()["next"], "cursor");
  shell.runtime.page = {};
  ASSERT_EQ(shell.run({"list", "--json"}), 0);
  EXPECT_EQ(shell.json(), Json({{"runs", Json::array()}, {"next", nullptr}}));
}

TEST(List, NothingFromARunReachesTheTerminalUnescaped) {
  Shell shell;
  auto run = failed_run("r\x1b]0;x\x07");
  run.agent = run.queue = "\x1b[2J";
  run.input = "\x1b[31m";
  run.labels = {{"\x1b", "\x1b"}};
  run.error->message = "\x1b[5m\r";
  run.answer = "\x1b";
  shell.runtime.page.runs = {run};
  shell.runtime.runs["r"] = run;
  shell.runtime.journal["r"] = {make_event("r", 1, EventKind::tool, {{"key", "\x1b[31m"}})};
  shell.runtime.why_answer = {{"text", "\x1b"}, {"commands", {"\x1b"}}};
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"list"}, {"show", "r"}, {"events", "r"}, {"why", "r"}, {"wait", "r"}}) {
    shell.run(words);
    EXPECT_EQ((shell.out + shell.err).find('\x1b'), std::string::npos) << words[0] << shell.out;
    EXPECT_EQ((shell.out + shell.err).find('\r'), std::string::npos) << words[0];
  }
}

TEST(Show, AnUnknownIdIsThree) {
  Shell shell;
  for (const auto* command : {"show", "events", "why", "wait", "cancel", "wake", "handover"}) {
    EXPECT_EQ(shell.run({command, "nope"}), 3) << command;
    EXPECT_NE(shell.err.find("nope"), std::string::npos);
    EXPECT_EQ(shell.out, "");
  }
}

TEST(SeveralIds, AllAreTriedAndTheFirstFailureCounts) {
  Shell shell;
  shell.runtime.runs["a"] = make_run("a", Status::cancelled);
  shell.runtime.runs["c"] = make_run("c", Status::cancelled);
  EXPECT_EQ(shell.run({"cancel", "a", "b", "c"}), 3);
  EXPECT_EQ(shell.out, "a cancelled\nc cancelled\n");
  EXPECT_EQ(shell.runtime.calls, (std::vector<std::string>{"cancel a", "cancel b", "cancel c"}));
  EXPECT_EQ(shell.run({"cancel", "a", "c", "--json"}), 0);
  EXPECT_EQ(std::count(shell.out.begin(), shell.out.end(), '\n'), 2);
}

TEST(Wait, SaysHowEachEndedWithinOneTime) {
  Shell shell;
  shell.runtime.runs["a"] = completed_run("a", 1);
  shell.runtime.runs["b"] = make_run("b", Status::waiting_for_input);
  shell.runtime.runs["c"] = failed_run("c");
  shell.runtime.runs["d"] = make_run("d", Status::running);
  EXPECT_EQ(shell.run({"wait", "a", "--timeout", "2s"}), 0);
  EXPECT_EQ(shell.runtime.calls.back(), "wait 2000");
  EXPECT_EQ(shell.run({"wait", "b"}), 5);
  EXPECT_EQ(shell.runtime.calls.back(), "wait -");
  EXPECT_EQ(shell.run({"wait", "a", "c", "b"}), 1);
  EXPECT_EQ(shell.run({"wait", "d", "--timeout", "0s"}), 1);
  EXPECT_NE(shell.err.find("still running"), std::string::npos);
}

TEST(Findings, BadOnesAreExitCodeOne) {
  Shell shell;
  shell.runtime.findings = {{Finding::Grade::ok, "rows", "fine"},
                            {Finding::Grade::warning, "presence", "off"}};
  EXPECT_EQ(shell.run({"verify"}), 0);
  EXPECT_EQ(shell.run({"doctor"}), 0);
  shell.runtime.findings.push_back({Finding::Grade::bad, "2", "run r has two ends"});
  EXPECT_EQ(shell.run({"verify"}), 1);
  EXPECT_NE(shell.out.find("bad     2: run r has two ends"), std::string::npos) << shell.out;
  EXPECT_EQ(shell.run({"verify", "--json"}), 1);
  EXPECT_EQ(shell.json()[2],
            Json({{"grade", "bad"}, {"subject", "2"}, {"text", "run r has two ends"}}));
}

TEST(Doctor, TellsWhyNothingStarts) {
  Shell shell;
  shell.opening = [] { throw StoreError("a folder, not a database", true); };
  EXPECT_EQ(shell.run({"doctor"}), 1);
  EXPECT_NE(shell.out.find("bad     store: a folder"), std::string::npos) << shell.out;
  shell.opening = [] { throw RefusedError(Refusal::usage, "no script"); };
  EXPECT_EQ(shell.run({"doctor"}), 2);
}

TEST(Failures, HaveTheirExitCodes) {
  Shell shell;
  shell.opening = [] { throw StoreError("unreachable", false); };
  EXPECT_EQ(shell.run({"stats"}), 1);
  EXPECT_EQ(shell.err, "holdfast: unreachable\n");
  shell.opening = [] { throw std::logic_error("odd"); };
  EXPECT_EQ(shell.run({"stats"}), 1);
  EXPECT_NE(shell.err.find("a bug in holdfast"), std::string::npos);
  shell.opening = nullptr;
  EXPECT_EQ(shell.run({"stats", "--log-level", "loud"}), 2);
}

TEST(Failures, AClosedOutputEndsQuietly) {
  Shell shell;
  shell.closed = true;
  EXPECT_EQ(shell.run({"stats"}), 141);
  EXPECT_EQ(shell.err, "");
}

TEST(Backup, NeverOverwrites) {
  Shell shell;
  const auto taken = std::filesystem::temp_directory_path().string();
  EXPECT_EQ(shell.run({"backup", taken}), 4);
  EXPECT_TRUE(shell.runtime.calls.empty());
  EXPECT_EQ(shell.run({"backup", "/no/such/folder/copy.db"}), 0);
  EXPECT_EQ(shell.runtime.calls, std::vector<std::string>{"backup /no/such/folder/copy.db"});
}

TEST(Migrate, PrintsBothVersions) {
  Shell shell;
  EXPECT_EQ(shell.run({"migrate"}), 0);
  EXPECT_EQ(shell.out, "schema version 1 → 3\n");
  EXPECT_EQ(shell.run({"migrate", "--json"}), 0);
  EXPECT_EQ(shell.json(), Json({{"before", 1}, {"after", 3}}));
}

TEST(Stats, AreForPeopleAndPrograms) {
  Shell shell;
  shell.runtime.stats_answer = Json::parse(
      R"({"by_status":{"queued":2},"by_reason":{},"due":2,"delayed":1,"oldest_due_seconds":65.5,
          "oldest_due_by_priority":{"0":65.5},"leases":{"held":1,"stale":0},"circuits":[],
          "workers":{"live":1,"slots":8,"busy":2,"stuck":0},"unserved":{"ghost":1}})");
  EXPECT_EQ(shell.run({"stats"}), 0);
  for (const auto* part : {"2 queued", "2 (oldest 1m 5s)", "1 ghost", "2 of 8 slots busy"}) {
    EXPECT_NE(shell.out.find(part), std::string::npos) << part << "\n" << shell.out;
  }
  EXPECT_EQ(shell.run({"stats", "--json"}), 0);
  EXPECT_EQ(shell.json(), shell.runtime.stats_answer);
}

TEST(Workers, ShowSlotsAndStuckOnes) {
  Shell shell;
  shell.runtime.workers_answer = Json::parse(
      R"([{"id":"w1","name":"n","host":"h","pid":12,"started_at":"t","seen_at":"t","agents":["a"],
           "queues":[],"slots":8,"busy":2,"stuck":1,"presence":"held"}])");
  EXPECT_EQ(shell.run({"workers"}), 0);
  EXPECT_NE(shell.out.find("2/8"), std::string::npos);
  EXPECT_NE(shell.out.find("held"), std::string::npos);
  EXPECT_EQ(shell.run({"workers", "--json"}), 0);
  EXPECT_EQ(shell.json(), shell.runtime.workers_answer);
}

}  // namespace
}  // namespace holdfast
