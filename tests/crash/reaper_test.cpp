// Any number of reapers, any number of stale runs: each is decided on once, and a run that kills
// its workers comes to rest.

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <set>

#include "crash/harness.hpp"

namespace holdfast::crash {
namespace {

std::vector<std::string> enqueue_many(Site& site, const std::string& task, int count,
                                      const Json& input = Json::object(),
                                      std::optional<int> max_requeues = {}) {
  std::vector<RunRequest> requests(static_cast<std::size_t>(count));
  for (RunRequest& request : requests) {
    request.agent = task;
    request.input = input;
    request.max_requeues = max_requeues;
  }
  std::vector<std::string> ids;
  for (const Run& run : site.runtime().enqueue(requests)) ids.push_back(run.id);
  return ids;
}

TEST(Reapers, SeveralAtOnceHandleEachStaleRunOnce) {
  Settings settings;
  settings.lease = "1500ms";
  settings.heartbeat = "500ms";
  settings.reaper = "0s";
  Site site(settings);
  site.policy.lease = Duration(1500);
  const int count = scaled(60, 500);
  const auto runs = enqueue_many(site, "burn", count, {{"ms", 60000}});
  Process frozen = site.app(
      {"worker", "--lease", "1500", "--heartbeat", "500", "--slots", std::to_string(count)});
  ASSERT_TRUE(eventually(seconds(60), [&] { return site.times("burn") == count; }));
  site.freeze(frozen);
  ASSERT_TRUE(eventually(seconds(30), [&] {
    return site.runtime().stats().at("leases").at("stale") == count;
  })) << site.runtime().stats().dump(1);

  std::vector<Command> commands;
  std::vector<Process> reapers;
  for (int i = 0; i < 4; ++i) commands.push_back(site.command({"--json", "reap", "--all"}));
  for (const Command& command : commands) reapers.emplace_back(command);
  int handled = 0;
  for (std::size_t i = 0; i < reapers.size(); ++i) {
    ASSERT_EQ(reapers[i].wait(seconds(60)), 0) << read_file(commands[i].errors);
    const Json report = Json::parse(read_file(commands[i].output));
    handled += report.at("requeued").get<int>() + report.at("dead_lettered").get<int>();
  }
  EXPECT_EQ(handled, count);
  for (const std::string& run : runs) {
    EXPECT_EQ(site.count_events(run, EventKind::reaped), 1);
    EXPECT_EQ(site.show(run).at("requeue_count"), 1);
  }
  frozen.kill();
  site.expect_sound();
}

TEST(Reapers, ARunThatKillsItsProcessIsExecutedFourTimesAndItsNeighboursFinish) {
  Site site;
  const std::string poison = enqueue_many(site, "abort", 1).front();
  // One that shares the process each time is charged once per crash: four times.
  const auto healthy = enqueue_many(site, "count", 20, {{"steps", 2}}, 4);
  // A supervisor starts the worker again whenever it has died.
  Process worker = site.app({"worker"});
  ASSERT_TRUE(eventually(seconds(60), [&] {
    if (worker.status()) worker = site.app({"worker"});
    return site.status(poison) == "failed";
  })) << site.show(poison).dump(1);
  EXPECT_EQ(site.times("abort"), 4);
  const Json shown = site.show(poison);
  EXPECT_EQ(shown.at("reason"), "retries_exhausted");
  EXPECT_EQ(shown.at("reclaim_count"), 3);
  EXPECT_NE(shown.at("error").at("message").get<std::string>().find("worker"), std::string::npos);
  const auto settled = [&](const std::string& run) {
    const Json now = site.show(run);
    // A neighbour killed inside its write rests with a person; all others finish.
    return now.at("status") == "completed" || now.at("reason") == "not_retryable";
  };
  for (const std::string& run : healthy) {
    ASSERT_TRUE(eventually(seconds(30), [&] {
      if (worker.status()) worker = site.app({"worker"});
      return settled(run);
    })) << site.show(run).dump(1);
    EXPECT_LE(site.show(run).at("requeue_count").get<int>(), 4);
  }
  worker.kill();
  site.expect_sound();
}

/// Executes a run through its faults, starting and thawing workers as a supervisor would. False
/// where another thread of a frozen worker was inside a write: then it holds up everybody (spec,
/// section 9), whether its own run is still its own is open, and the case must be tried again.
bool drive(Site& site, const std::string& run) {
  const std::vector<std::string> options = {"worker", "--lease", "600", "--heartbeat",
                                            "200",    "--slots", "1"};
  Process worker = site.app(options);
  std::optional<Process> frozen;
  std::int64_t frozen_claim = 0;
  std::chrono::steady_clock::time_point frozen_since;
  bool is_stalled = false;
  EXPECT_TRUE(eventually(seconds(60), [&] {
    if (worker.status()) worker = site.app(options);
    if (worker.is_frozen()) {
      frozen = std::move(worker);
      frozen_claim = site.show(run).at("claim");
      frozen_since = std::chrono::steady_clock::now();
      worker = site.app(options);
    }
    // Thawed once somebody else has the run.
    if (frozen) {
      if (site.show(run).at("claim") > frozen_claim) {
        frozen->signal(SIGCONT);
        frozen_since = std::chrono::steady_clock::time_point::max();
      } else {
        is_stalled = frozen_since < std::chrono::steady_clock::now() - seconds(8);
      }
    }
    const std::string now = site.status(run);
    return is_stalled || now == "completed" || now == "failed";
  })) << site.show(run).dump(1);
  return !is_stalled;
}

/// A run through these faults, and what must be true of it then.
void expect_after(const Json& faults, const std::function<void(Site&, const std::string&)>& check) {
  SCOPED_TRACE(faults.dump());
  for (int attempt = 0; attempt < 10; ++attempt) {
    Site site;
    site.policy.lease = Duration(600);
    const std::string run = enqueue_many(site, "faults", 1, {{"faults", faults}}).front();
    if (!drive(site, run)) continue;
    check(site, run);
    site.expect_sound();
    return;
  }
  FAIL() << "frozen inside a write each time";
}

TEST(Reapers, FailuresKillsAndFreezesShareOneBudget) {
  const std::vector<std::string> alphabet = {"503", "kill", "freeze"};
  std::vector<Json> sequences;
  for (const auto& first : alphabet) {
    for (const auto& second : alphabet) {
      for (const auto& third : alphabet) sequences.push_back({first, second, third, "503"});
    }
  }
  const std::size_t stride = is_long() ? 1 : 6;
  for (std::size_t i = 1; i < sequences.size(); i += stride) {
    expect_after(sequences[i], [](Site& site, const std::string& run) {
      EXPECT_EQ(site.status(run), "failed");
      EXPECT_EQ(site.show(run).at("reason"), "retries_exhausted");
      EXPECT_EQ(site.times("faults"), 4);
      EXPECT_EQ(site.show(run).at("requeue_count"), 3);
    });
  }
  for (const Json& survived : {Json({"503", "kill"}), Json({"freeze", "503"})}) {
    expect_after(survived, [](Site& site, const std::string& run) {
      EXPECT_EQ(site.status(run), "completed");
      EXPECT_EQ(site.times("faults"), 3);
    });
  }
}

TEST(Reapers, TheDeadLetterListForgetsNothingAndPagesOnceOverEachRow) {
  Site site;
  site.policy.max_requeues = 0;
  const int count = scaled(300, 20000);
  Json always = Json::array();
  for (int i = 0; i < 4; ++i) always.push_back("503");
  std::set<std::string> expected;
  for (const std::string& id : enqueue_many(site, "faults", count, {{"faults", always}})) {
    expected.insert(id);
  }
  Process worker = site.app({"worker", "--slots", "16", "--budget", "0"});
  ASSERT_TRUE(eventually(seconds(scaled(60, 1200)), [&] {
    return site.runtime().stats().at("by_status").value("failed", 0) == count;
  })) << site.runtime().stats().dump(1);

  std::set<std::string> seen;
  std::string after;
  int pages = 0;
  for (;;) {
    std::vector<std::string> args = {"--json", "list", "--status", "failed", "--limit", "70"};
    if (!after.empty()) args.insert(args.end(), {"--after", after});
    const Result page = site.cli(args);
    ASSERT_EQ(page.code, 0) << page.err;
    const Json parsed = Json::parse(page.out);
    for (const Json& run : parsed.at("runs")) {
      EXPECT_TRUE(seen.insert(run.at("id")).second) << "shown twice";
    }
    enqueue_many(site, "faults", 1, {{"faults", always}});  // the list grows meanwhile
    ++pages;
    if (parsed.at("next").is_null()) break;
    after = parsed.at("next");
  }
  for (const std::string& id : expected) EXPECT_EQ(seen.count(id), 1u) << id;
  EXPECT_GT(pages, 3);
  worker.kill();
  site.expect_sound();
}

TEST(Reapers, OneThatIsKilledMidwayLeavesEachRunHandledOrUntouched) {
  Site site;
  const int count = 40;
  const auto runs = enqueue_many(site, "burn", count, {{"ms", 60000}});
  Process lost = site.app({"worker", "--slots", std::to_string(count)});
  ASSERT_TRUE(eventually(seconds(60), [&] { return site.times("burn") == count; }));
  lost.kill();
  const Result killed =
      site.cli({"reap", "--all"}, {{"HOLDFAST_FAILPOINTS", "store.reap.after=kill@1"}});
  EXPECT_EQ(killed.code, 128 + SIGKILL) << killed.err;
  for (const std::string& run : runs) {
    const Json now = site.show(run);
    if (now.at("status") == "queued") {
      EXPECT_EQ(site.count_events(run, EventKind::reaped), 1);
    } else {
      EXPECT_EQ(now.at("status"), "running");
      EXPECT_EQ(site.count_events(run, EventKind::reaped), 0);
    }
  }
  site.expect_sound();
}

}  // namespace
}  // namespace holdfast::crash
