// Any number of reapers, any number of stale runs: each is decided on once, and a run that kills
// its workers comes to rest.

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <optional>

#include "crash/harness.hpp"

namespace holdfast::crash {
namespace {

TEST(Reapers, SeveralAtOnceHandleEachStaleRunOnce) {
  Settings settings;
  settings.lease = "1500ms";
  settings.heartbeat = "500ms";
  settings.reaper = "0s";
  Site site(settings);
  site.policy.lease = Duration(1500);
  const int count = scaled(60, 500);
  const auto runs = site.enqueue_many("burn", count, {{"ms", 60000}});
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

/// Stale runs whose owners stand still inside their steps, which are over when they go on. Nothing
/// where one came to nothing for so long that it lost a run before.
std::optional<std::vector<std::string>> frozen_with(Site& site, std::vector<Process>& owners,
                                                    int wanted, int each) {
  const int count = wanted * each;
  site.hold("burn");
  const auto runs = site.enqueue_many("burn", count, {{"ms", 0}});
  for (int i = 0; i < wanted; ++i) {
    owners.push_back(site.app(
        {"worker", "--lease", "2000", "--heartbeat", "400", "--slots", std::to_string(each)}));
  }
  EXPECT_TRUE(eventually(seconds(60), [&] { return site.times("burn") >= count; }));
  for (const Process& owner : owners) site.freeze(owner);
  const bool are_stale = eventually(
      seconds(15), [&] { return site.runtime().stats().at("leases").at("stale") == count; });
  site.let_go("burn");
  if (!are_stale || site.times("burn") != count) return std::nullopt;
  return runs;
}

/// The owners of many stale runs wake up and finish them while several sweep over the same rows.
/// False where the owners could not be caught with them.
bool end_one_way_each(int owner_count, int each) {
  Settings settings;
  settings.lease = "2s";
  settings.heartbeat = "400ms";
  settings.reaper = "0s";
  Site site(settings);
  site.policy.lease = Duration(2000);
  std::vector<Process> owners;
  const auto runs = frozen_with(site, owners, owner_count, each);
  if (!runs) return false;

  std::vector<Command> commands;
  std::vector<Process> reapers;
  for (int i = 0; i < 2; ++i) commands.push_back(site.command({"--json", "reap", "--all"}));
  for (const Command& command : commands) reapers.emplace_back(command);
  let_pass(milliseconds(100));
  for (const Process& owner : owners) owner.signal(SIGCONT);
  for (std::size_t i = 0; i < reapers.size(); ++i) {
    EXPECT_EQ(reapers[i].wait(seconds(60)), 0) << read_file(commands[i].errors);
    EXPECT_EQ(read_file(commands[i].errors).find("40P01"), std::string::npos);
  }
  int reaped = 0;
  for (const std::string& run : *runs) {
    EXPECT_TRUE(site.reaches(run, "completed", seconds(60)));
    const int times = site.count_events(run, EventKind::reaped);
    reaped += times;
    EXPECT_EQ(site.count_events(run, EventKind::claimed), 1 + times) << run;
    EXPECT_EQ(site.count_events(run, EventKind::completed), 1) << run;
    for (const Event& event : site.events(run)) {
      const bool is_by_owner =
          event.kind.is(EventKind::step) || event.kind.is(EventKind::completed);
      EXPECT_TRUE(!is_by_owner || event.claim == 1 + times)
          << "of a claim that was reaped: " << run;
    }
  }
  EXPECT_EQ(site.times("burn"), static_cast<int>(runs->size()) + reaped);
  for (Process& owner : owners) {
    EXPECT_FALSE(owner.status()) << site.log_of(owner);
    EXPECT_EQ(site.log_of(owner).find("40P01"), std::string::npos) << site.log_of(owner);
    owner.kill();
  }
  site.expect_sound();
  return true;
}

TEST(Reapers, SettlingOwnersBesideThemEndEachRunOneWay) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (end_one_way_each(scaled(4, 20), scaled(15, 50)) || HasFailure()) return;
  }
  FAIL() << "no owner was caught with all of its runs";
}

/// Whoever only looks leaves what shows the worker's death to the reaper.
TEST(Reapers, OneThatComesBehindPeopleWhoLookedTakesTheRunBackAtOnce) {
  Site site;  // its lease is a minute
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process worker = site.worker();
  ASSERT_TRUE(site.has_started("lookup"));
  worker.kill();
  for (const std::vector<std::string>& look :
       {std::vector<std::string>{"why", run}, {"show", run}, {"list"}, {"workers"}, {"stats"}}) {
    EXPECT_EQ(site.cli(look).code, 0);
  }
  EXPECT_TRUE(eventually(seconds(10), [&] {
    EXPECT_EQ(site.cli({"reap"}).code, 0);
    return site.status(run) == "queued";
  })) << site.show(run).dump(1);
  site.let_go("lookup");
  site.expect_sound();
}

TEST(Reapers, ARunThatKillsItsProcessIsExecutedFourTimesAndItsNeighboursFinish) {
  Site site;
  const std::string poison = site.enqueue_many("abort", 1).front();
  // One that shares the process each time is charged once per crash: four times.
  const auto healthy = site.enqueue_many("count", 20, {{"steps", 2}}, 4);
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
    const std::string run = site.enqueue_many("faults", 1, {{"faults", faults}}).front();
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

TEST(Reapers, OneThatIsKilledMidwayLeavesEachRunHandledOrUntouched) {
  Site site;
  const int count = 40;
  const auto runs = site.enqueue_many("burn", count, {{"ms", 60000}});
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
