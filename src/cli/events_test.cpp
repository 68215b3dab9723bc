#include <gtest/gtest.h>

#include "cli/cli_test_support.hpp"

namespace holdfast {
namespace {

using testing::make_event;
using testing::make_run;
using testing::Shell;

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

Shell shell_with_run(Status status) {
  Shell shell;
  shell.runtime.runs["r"] = make_run("r", status);
  shell.runtime.journal["r"] = {make_event("r", 1, EventKind::queued),
                                make_event("r", 2, EventKind::claimed, {{"worker", "w1"}}),
                                make_event("r", 3, EventKind::completed)};
  return shell;
}

TEST(Events, JsonIsOneArrayAndAfterSkips) {
  auto shell = shell_with_run(Status::completed);
  EXPECT_EQ(shell.run({"events", "r", "--json"}), 0);
  ASSERT_EQ(shell.json().size(), 3u);
  EXPECT_EQ(shell.json()[1]["kind"], "claimed");
  EXPECT_EQ(shell.run({"events", "r", "--after", "2", "--json"}), 0);
  ASSERT_EQ(shell.json().size(), 1u);
  EXPECT_EQ(shell.json()[0]["sequence"], 3);
  EXPECT_EQ(shell.run({"events", "r"}), 0);
  EXPECT_EQ(lines_of(shell.out), 3u);
}

TEST(Events, FollowingPrintsOneObjectALineUntilTheEnd) {
  auto shell = shell_with_run(Status::running);
  int looks = 0;
  shell.runtime.on_get = [&](const RunId&) {
    if (++looks < 3) return;
    shell.runtime.runs["r"].status = Status::completed;
    if (looks == 3) {
      shell.runtime.journal["r"].push_back(make_event("r", 4, EventKind::completed));
    }
  };
  EXPECT_EQ(shell.run({"events", "r", "--follow", "--json"}), 0);
  EXPECT_EQ(lines_of(shell.out), 4u);
  EXPECT_EQ(Json::parse(shell.out.substr(0, shell.out.find('\n')))["sequence"], 1);
  EXPECT_EQ(looks, 3);
}

TEST(Events, FollowingOutlivesAStoreThatIsAwayForAWhile) {
  auto shell = shell_with_run(Status::running);
  int looks = 0;
  shell.runtime.on_get = [&](const RunId&) {
    if (++looks == 2 || looks == 3) throw StoreError("the server restarts", false);
    if (looks == 4) shell.runtime.runs["r"].status = Status::completed;
  };
  EXPECT_EQ(shell.run({"events", "r", "--follow", "--json"}), 0);
  EXPECT_EQ(lines_of(shell.out), 3u);
  EXPECT_EQ(looks, 4);
  const auto said = shell.err.find("the server restarts");
  EXPECT_NE(said, std::string::npos) << shell.err;
  EXPECT_EQ(shell.err.find("the server restarts", said + 1), std::string::npos) << shell.err;
  EXPECT_NE(shell.err.find("can be read again"), std::string::npos) << shell.err;
  shell.runtime.on_get = [&](const RunId&) { throw StoreError("no rights", true); };
  EXPECT_EQ(shell.run({"events", "r", "--follow", "--json"}), 1);
}

TEST(Events, FollowingASilentRunEndsWhenItsReaderHasGone) {
  for (const auto& words : {std::vector<std::string>{"events", "r", "--follow", "--after", "3"},
                            std::vector<std::string>{"events", "--all", "--follow"}}) {
    auto shell = shell_with_run(Status::running);
    if (words[1] == "--all") shell.runtime.journal.clear();
    int looks = 0;
    shell.runtime.on_get = [&](const RunId&) {
      shell.closed = ++looks > 2;
      if (looks > 9) shell.runtime.runs["r"].status = Status::completed;
    };
    if (words[1] == "--all") shell.closed = true;
    EXPECT_EQ(shell.run(words), 141);
    EXPECT_EQ(shell.err, "");
  }
}

TEST(Events, FollowingACancelledRunWaitsForTheStepInFlight) {
  auto shell = shell_with_run(Status::cancelled);
  auto& run = shell.runtime.runs["r"];
  run.claimed_by = "w1";
  run.policy.lease = std::chrono::seconds(60);
  shell.runtime.workers_answer = Json::parse(R"([{"id": "w1"}])");
  int looks = 0;
  shell.runtime.on_get = [&](const RunId&) {
    if (++looks == 3) {
      run.claimed_by.reset();
      shell.runtime.journal["r"].push_back(make_event("r", 4, EventKind::tool));
    }
  };
  EXPECT_EQ(shell.run({"events", "r", "--follow"}), 0);
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(lines_of(shell.out), 4u) << shell.out;
}

TEST(Events, FollowingACancelledRunEndsOneLeaseLater) {
  auto shell = shell_with_run(Status::cancelled);
  auto& run = shell.runtime.runs["r"];
  run.claimed_by = "w1";
  run.policy.lease = std::chrono::seconds(60);
  EXPECT_EQ(shell.run({"events", "r", "--follow"}), 0);
  EXPECT_GE(shell.paused, std::chrono::seconds(60));
  EXPECT_LT(shell.paused, std::chrono::seconds(62));
}

TEST(Events, FollowingACancelledRunEndsWhenItsProcessIsGone) {
  auto shell = shell_with_run(Status::cancelled);
  shell.runtime.runs["r"].claimed_by = "w1";
  shell.runtime.workers_answer = Json::parse(R"([{"id": "w1"}])");
  int looks = 0;
  shell.runtime.on_get = [&](const RunId&) {
    if (++looks == 4) shell.runtime.workers_answer = Json::array();
  };
  EXPECT_EQ(shell.run({"events", "r", "--follow"}), 0);
  EXPECT_LT(shell.paused, std::chrono::seconds(5));
}

TEST(Events, OfAllRunsNeedNoId) {
  auto shell = shell_with_run(Status::completed);
  shell.runtime.journal["s"] = {make_event("s", 1, EventKind::queued)};
  EXPECT_EQ(shell.run({"events", "--all", "--json"}), 0);
  EXPECT_EQ(shell.json().size(), 4u);
  EXPECT_EQ(shell.run({"events", "--all"}), 0);
  EXPECT_EQ(lines_of(shell.out), 4u);
  EXPECT_EQ(shell.run({"events"}), 2);
  EXPECT_EQ(shell.run({"events", "r", "--all"}), 2);
  EXPECT_EQ(shell.run({"events", "--all", "--after", "3"}), 2);
  EXPECT_EQ(shell.run({"events", "r", "--after", "-1"}), 2);
}

}  // namespace
}  // namespace holdfast
