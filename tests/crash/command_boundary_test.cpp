// A command that is killed before or after its write can be given again: it is done once.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "crash/harness.hpp"
#include "crash/places.hpp"

namespace holdfast::crash {
namespace {

class OperatorKilledAt : public ::testing::TestWithParam<std::string> {};
class CommandKilledAt : public ::testing::TestWithParam<std::string> {};

/// The commands that pass an operator's place.
std::set<std::string> commands_of(std::string place) {
  if (place.rfind("store.", 0) == 0) place.erase(0, 6);
  place.erase(place.find('.'));
  if (place == "commit") {
    return {"reap", "approve", "resolve", "redrive", "wake", "cancel", "purge"};
  }
  if (place.rfind("expire", 0) == 0) return {"reap"};
  return {place == "answer" ? "approve" : place};
}

TEST_P(OperatorKilledAt, TheCommandCanBeGivenAgain) {
  Site site;
  std::istringstream names(GetParam());
  std::map<std::string, std::string> trap;
  std::set<std::string> trapped;
  bool redrives_by_filter = false;  // that alone passes the places around the store's
  for (std::string name; names >> name;) {
    redrives_by_filter = redrives_by_filter || name.rfind("redrive.", 0) == 0;
    trap["HOLDFAST_FAILPOINTS"] += name + "=kill@1;";
    trapped.merge(commands_of(name));
  }
  const auto twice = [&](const std::vector<std::string>& args) {
    if (trapped.contains(args.front())) {
      EXPECT_EQ(site.cli(args, trap).code, 128 + SIGKILL) << args.front() << " was not killed";
      site.expect_sound();
    }
    return site.cli(args).code;
  };
  const std::string waiting = site.enqueue("gated");
  const std::string later = site.enqueue("plain", {"--delay", "1h"});
  const Json refusal = {{"errors", Json::array({Json{{"status", 401}}})}, {"reply", "hello"}};
  site.script("worded", Json::array({refusal}));
  const std::string refused = site.enqueue("worded");
  const std::string denied = site.enqueue("payer", {"--max-requeues", "0"});
  site.hold("pay");
  {
    Process worker = site.worker();
    ASSERT_TRUE(site.reaches(waiting, "waiting_for_approval"));
    ASSERT_TRUE(site.has_started("pay"));
    ASSERT_TRUE(site.reaches(refused, "failed"));
    worker.kill();
  }
  site.let_go("pay");
  EXPECT_EQ(twice({"reap"}), 0);
  ASSERT_TRUE(site.reaches(denied, "failed"));
  const auto done_or_given = [](int code) { return code == 0 || code == 4; };
  EXPECT_TRUE(done_or_given(twice({"approve", waiting})));
  EXPECT_EQ(site.count_events(waiting, EventKind::approved), 1);
  EXPECT_TRUE(done_or_given(twice({"resolve", denied, "--landed"})));
  EXPECT_EQ(site.count_events(denied, EventKind::resolved), 1);
  EXPECT_TRUE(done_or_given(redrives_by_filter ? twice({"redrive", "--agent", "worded"})
                                               : twice({"redrive", refused})));
  EXPECT_EQ(site.count_events(refused, EventKind::redriven), 1);
  EXPECT_TRUE(done_or_given(twice({"wake", later})));
  EXPECT_EQ(site.count_events(later, EventKind::woken), 1);
  EXPECT_EQ(twice({"cancel", later}), 0);
  EXPECT_EQ(site.count_events(later, EventKind::cancelled), 1);
  const int purged = twice({"purge", later, "--older-than", "0s"});
  EXPECT_TRUE(purged == 0 || purged == 3) << purged;
  site.script("worded", Json::array({Json{{"reply", "hello"}}}));
  Process worker = site.worker({"--drain"});
  EXPECT_EQ(worker.wait(seconds(30)), 0);
  EXPECT_EQ(site.status(waiting), "completed");
  EXPECT_EQ(site.status(denied), "completed");
  EXPECT_EQ(site.times("send"), 1);
  EXPECT_EQ(site.times("pay"), 1);
  site.expect_sound();
}

/// Sets of places of which no two are passed by one command, laid out together: each of them kills.
std::vector<std::string> operator_places() {
  struct Set {
    std::string places;
    std::set<std::string> commands;
  };
  const auto passes = [](const std::string& place) {
    return is_of_an_operator(place) || names_one_of(place, {"commit."});
  };
  std::vector<Set> sets;
  for (const std::string& place : places(passes)) {
    std::set<std::string> commands = commands_of(place);
    auto free = std::ranges::find_if(sets, [&](const Set& set) {
      return std::ranges::none_of(
          commands, [&](const std::string& command) { return set.commands.contains(command); });
    });
    if (free == sets.end()) free = sets.insert(sets.end(), Set{});
    free->places += (free->places.empty() ? "" : " ") + place;
    free->commands.merge(commands);
  }
  std::vector<std::string> texts;
  for (const Set& set : sets) texts.push_back(set.places);
  return texts;
}

/// Gives the command with a trap, of which it dies.
void expect_killed(const Site& site, const std::vector<std::string>& args,
                   const std::map<std::string, std::string>& trap) {
  EXPECT_EQ(site.cli(args, trap).code, 128 + SIGKILL) << args.front() << " was not killed";
}

void expect_paid_once(Site& site, const std::string& run) {
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.times("pay"), 1);
  EXPECT_EQ(site.count_events(run, EventKind::tool), 3);
}

/// An interactive run: of one that was stored somebody hears, and hands it over.
void kill_at_the_start(Site& site, const std::map<std::string, std::string>& trap, bool is_stored) {
  expect_killed(site, {"run", "errand", "--input", "go"}, trap);
  const auto runs = site.runtime().list({}).runs;
  ASSERT_EQ(runs.size(), is_stored ? 1u : 0u);
  site.expect_sound();
  if (!is_stored) {
    EXPECT_EQ(site.cli({"run", "errand", "--input", "go"}).code, 0);
    return expect_paid_once(site, site.runtime().list({}).runs.front().id);
  }
  const std::string run = runs.front().id;
  EXPECT_TRUE(eventually(seconds(5), [&] { return site.show(run).at("abandoned") == true; }));
  EXPECT_EQ(site.cli({"handover", run}).code, 0);
  Process worker = site.worker();
  expect_paid_once(site, run);
}

void kill_at_the_handover(Site& site, const std::map<std::string, std::string>& trap) {
  site.hold("label");
  std::string run;
  {
    Process interactive(site.command({"run", "errand", "--input", "go"}));
    ASSERT_TRUE(site.has_started("label"));
    run = site.runtime().list({}).runs.front().id;
    interactive.kill();
  }
  site.let_go("label");
  ASSERT_TRUE(eventually(seconds(5), [&] { return site.show(run).at("abandoned") == true; }));
  expect_killed(site, {"handover", run}, trap);
  site.expect_sound();
  const bool is_done = site.status(run) == "queued";
  EXPECT_EQ(site.cli({"handover", run}).code, is_done ? 4 : 0);
  EXPECT_EQ(site.status(run), "queued");
  Process worker = site.worker();
  expect_paid_once(site, run);
}

/// The worker that is told of a cancel dies with the run: nobody takes it up again.
void kill_at_the_acknowledgement(Site& site, const std::map<std::string, std::string>& trap) {
  Settings settings;
  settings.heartbeat = "100ms";
  site.configure(settings);
  site.hold("lookup");
  const std::string run = site.enqueue("errand");
  Process first = site.worker({}, trap);
  ASSERT_TRUE(site.has_started("lookup"));
  EXPECT_EQ(site.cli({"cancel", run}).code, 0);
  EXPECT_EQ(first.wait(seconds(20)), 128 + SIGKILL) << site.log_of(first);
  site.let_go("lookup");
  Process second = site.worker({"--drain"});
  EXPECT_EQ(second.wait(seconds(30)), 0);
  EXPECT_EQ(site.cli({"reap", "--all"}).code, 0);
  EXPECT_EQ(site.status(run), "cancelled");
  EXPECT_EQ(site.count_events(run, EventKind::cancelled), 1);
  EXPECT_EQ(site.count_events(run, EventKind::reaped), 0);
  EXPECT_EQ(site.times("lookup"), 1);
}

/// There is a whole backup or none.
void kill_at_the_backup(Site& site, const std::map<std::string, std::string>& trap, bool is_made) {
  const std::string run = site.enqueue("plain");
  const fs::path file = site.folder() / "backup.db";
  expect_killed(site, {"backup", file.string()}, trap);
  EXPECT_EQ(fs::exists(file), is_made);
  EXPECT_EQ(site.cli({"backup", file.string()}).code, is_made ? 4 : 0);
  Command command = site.command({});
  command.args = {binary(), "--store", "sqlite:" + file.string(), "show", run};
  EXPECT_EQ(site.run(command).code, 0);
  command.args.pop_back();
  command.args.back() = "verify";
  EXPECT_EQ(site.run(command).code, 0);
}

TEST_P(CommandKilledAt, NothingIsHalfDone) {
  const std::string place = GetParam();
  const std::map<std::string, std::string> trap = {{"HOLDFAST_FAILPOINTS", place + "=kill@1"}};
  const bool is_after = place.ends_with(".after");
  Site site;
  if (names_one_of(place, {"start."})) {
    kill_at_the_start(site, trap, is_after);
  } else if (names_one_of(place, {"hand_over."})) {
    kill_at_the_handover(site, trap);
  } else if (names_one_of(place, {"acknowledge"})) {
    kill_at_the_acknowledgement(site, trap);
  } else if (names_one_of(place, {"backup."})) {
    kill_at_the_backup(site, trap, is_after);
  } else {
    FAIL() << "no command passes " << place;
  }
  site.expect_sound();
}

INSTANTIATE_TEST_SUITE_P(EveryBoundary, OperatorKilledAt, ::testing::ValuesIn(operator_places()),
                         test_name);
INSTANTIATE_TEST_SUITE_P(EveryBoundary, CommandKilledAt,
                         ::testing::ValuesIn(places(is_of_a_command)), test_name);

}  // namespace
}  // namespace holdfast::crash
