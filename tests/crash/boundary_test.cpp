// A worker that is killed before or after any write or external call strands nothing: another one
// takes the run over, and the write that must happen once happens once.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>

#include "crash/harness.hpp"

namespace holdfast::crash {
namespace {

bool names_one_of(const std::string& place, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (place.rfind(word, 0) == 0 || place.rfind("store." + word, 0) == 0) return true;
  }
  return false;
}

/// Places inside a transaction. On SQLite a process frozen there holds up every other writer, as
/// stated.
bool is_in_the_lock(const std::string& place) {
  return names_one_of(place, {"commit", "checkpoint", "migrate"});
}

/// Places that the execution of a run passes.
bool is_of_a_worker(const std::string& place) {
  return is_in_the_lock(place) ||
         names_one_of(place, {"claim", "enqueue", "fence", "unfence", "record", "renew", "settle",
                              "model", "tool", "work", "probe"});
}

/// Places that operators' commands and reapers pass.
bool is_of_an_operator(const std::string& place) {
  return names_one_of(
      place, {"answer", "cancel", "expire", "purge", "reap", "redrive", "resolve", "wake"});
}

/// The engine's own places stand around the store's: usually one of both is enough.
bool is_of_a_segment(const std::string& place) {
  if (place == "commit.before" && is_postgres()) return true;
  return is_of_a_worker(place) && !is_in_the_lock(place) &&
         (is_long() || place.rfind("store.", 0) != 0);
}

/// On a server each place costs more time: in the long run all of them, else one of each kind.
bool is_chosen(const std::string& place) {
  static const std::set<std::string> kOneOfEach = {
      "claim.after",        "commit.before",      "fence.after",         "migrate.before",
      "record.before",      "record.after",       "settle.before",       "store.reap.after",
      "store.wake.after",   "store.answer.after", "store.redrive.after", "store.resolve.after",
      "store.cancel.after", "store.purge.before"};
  return is_long() || !is_postgres() || kOneOfEach.contains(place);
}

std::vector<std::string> places(const std::function<bool(const std::string&)>& fits) {
  std::vector<std::string> found;
  for (const std::string& place : failpoints()) {
    if (fits(place) && is_chosen(place)) found.push_back(place);
  }
  return found;
}

class KilledAt : public ::testing::TestWithParam<std::string> {};
class FrozenAt : public ::testing::TestWithParam<std::string> {};
class OperatorKilledAt : public ::testing::TestWithParam<std::string> {};

/// Lets a person look at the ledger, as `why` asks, and resolve the write as it says. `knows`: the
/// person has seen the executor end, which nothing proves to the store before the step's deadline.
void resolve_by_the_ledger(Site& site, const std::string& run, bool knows) {
  const Json shown = site.show(run);
  ASSERT_EQ(shown.at("reason"), "not_retryable") << shown.dump(1);
  ASSERT_TRUE(shown.at("pending").is_object()) << shown.dump(1);
  EXPECT_EQ(shown.at("pending").at("name"), "tool:pay");
  const Result why = site.cli({"why", run});
  EXPECT_EQ(why.code, 0);
  EXPECT_NE(why.out.find("resolve"), std::string::npos) << why.out;
  const bool landed = site.times("pay") > 0;
  const auto resolve = [&] {
    std::vector<std::string> args = {"resolve", run, landed ? "--landed" : "--not-landed"};
    if (knows && !landed) args.push_back("--force");
    return site.cli(args).code;
  };
  EXPECT_TRUE(eventually(seconds(10), [&] { return resolve() == 0; })) << site.show(run).dump(1);
}

void expect_finished_once(Site& site, const std::string& run) {
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.times("pay"), 1);
  EXPECT_GE(site.times("lookup"), 1);
  EXPECT_LE(site.times("lookup"), 2);
  EXPECT_LE(site.times("label"), 2);
  EXPECT_EQ(site.show(run).at("answer"), "paid");
  EXPECT_EQ(site.count_events(run, EventKind::model), 4);
  EXPECT_EQ(site.count_events(run, EventKind::tool), 3);
}

TEST_P(KilledAt, AnotherWorkerFinishesTheRun) {
  const std::string place = GetParam();
  // Usually one passing of each place, another one at each; in the long run all of them.
  const int some = 1 + static_cast<int>(place.size() % 3);
  for (int passing = is_long() ? 1 : some; passing <= scaled(some, 12); ++passing) {
    SCOPED_TRACE("killed at passing " + std::to_string(passing) + " of " + place);
    Site site;
    const std::map<std::string, std::string> trap = {
        {"HOLDFAST_FAILPOINTS", place + "=kill@" + std::to_string(passing)}};

    // The caller may die too: it asks again with the same key, and there is one run.
    site.cli({"enqueue", "errand", "--input", "go", "--idempotency-key", "k"}, trap);
    const std::string run = site.enqueue("errand", {"--idempotency-key", "k"});
    ASSERT_EQ(site.runtime().list({}).runs.size(), 1u);

    std::optional<int> ended;
    {
      Process first = site.worker({"--drain"}, trap);
      ended = first.wait(seconds(30));
      ASSERT_TRUE(ended) << site.log_of(first);
    }
    if (*ended != 128 + SIGKILL) {
      EXPECT_EQ(*ended, 0);
      expect_finished_once(site, run);
      site.expect_sound();
      break;  // it passes there less often than that
    }
    Process second = site.worker();
    ASSERT_TRUE(eventually(seconds(20), [&] {
      const std::string now = site.status(run);
      return now == "completed" || now == "failed";
    })) << site.show(run).dump(1);
    if (site.status(run) == "failed") resolve_by_the_ledger(site, run, false);
    expect_finished_once(site, run);
    site.expect_sound();
  }
}

/// Freezes a worker at a place and lets another one finish its run. False where another of its
/// threads was inside a write: that holds up everybody, as stated, and the case must be tried
/// again.
bool outlives_a_zombie(const std::string& place, int passing) {
  Settings settings;
  settings.lease = "1200ms";
  settings.heartbeat = "400ms";
  settings.reaper = "200ms";
  Site site(settings);
  const std::string run = site.enqueue("errand");
  Process zombie = site.worker(
      {"--drain"}, {{"HOLDFAST_FAILPOINTS", place + "=stop@" + std::to_string(passing)}});
  bool frozen = false;
  EXPECT_TRUE(eventually(seconds(30), [&] {
    frozen = zombie.is_frozen();
    return frozen || zombie.status().has_value();
  }));
  if (!frozen) {
    expect_finished_once(site, run);
    return true;
  }
  Process second = site.worker();
  const bool is_over = eventually(seconds(20), [&] {
    const std::string now = site.status(run);
    return now == "completed" || now == "failed";
  });
  if (!is_over) {
    const Command writing = site.command({"enqueue", "errand", "--input", "x"});
    Process writer(writing);
    const bool is_stated = !writer.wait(seconds(5));
    EXPECT_TRUE(is_stated) << "nobody holds up the writers\n" << site.show(run).dump(1);
    return !is_stated;
  }
  const std::string rows = site.rows_of(run);
  zombie.signal(SIGCONT);
  EXPECT_EQ(zombie.wait(seconds(30)), 0) << site.log_of(zombie);
  EXPECT_EQ(site.rows_of(run), rows);
  if (site.status(run) == "failed") resolve_by_the_ledger(site, run, true);
  expect_finished_once(site, run);
  site.expect_sound();
  return true;
}

TEST_P(FrozenAt, AnotherWorkerFinishesTheRunAndTheZombieChangesNothing) {
  for (const int passing : is_long() ? std::vector<int>{1, 2, 3, 4, 5, 6} : std::vector<int>{2}) {
    SCOPED_TRACE("frozen at passing " + std::to_string(passing));
    bool is_done = false;
    for (int attempt = 0; attempt < 5 && !is_done; ++attempt) {
      is_done = outlives_a_zombie(GetParam(), passing);
    }
    EXPECT_TRUE(is_done) << "frozen inside a write each time";
  }
}

/// The command that passes an operator's place.
std::string command_of(std::string place) {
  if (place.rfind("store.", 0) == 0) place.erase(0, 6);
  place.erase(place.find('.'));
  if (place.rfind("expire", 0) == 0) return "reap";
  return place == "answer" ? "approve" : place;
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
    trapped.insert(command_of(name));
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
  std::vector<Set> sets;
  for (const std::string& place : places(is_of_an_operator)) {
    const std::string command = command_of(place);
    auto free =
        std::ranges::find_if(sets, [&](const Set& set) { return !set.commands.contains(command); });
    if (free == sets.end()) free = sets.insert(sets.end(), Set{});
    free->places += (free->places.empty() ? "" : " ") + place;
    free->commands.insert(command);
  }
  std::vector<std::string> texts;
  for (const Set& set : sets) texts.push_back(set.places);
  return texts;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.find(' '));
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(EveryBoundary, KilledAt, ::testing::ValuesIn(places(is_of_a_worker)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(EveryBoundary, FrozenAt, ::testing::ValuesIn(places(is_of_a_segment)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(EveryBoundary, OperatorKilledAt, ::testing::ValuesIn(operator_places()),
                         test_name);

TEST(Boundary, TheSourcesNameTheirBoundaries) {
  const auto names = failpoints();
  EXPECT_GE(names.size(), 10u);
  for (const char* verb : {"claim", "record", "fence", "settle"}) {
    int found = 0;
    for (const std::string& name : names) found += name.find(verb) != std::string::npos ? 1 : 0;
    EXPECT_GE(found, 2) << "before and after " << verb;
  }
}

TEST(Boundary, AKilledStepIsTakenOverWithinASecondBehindTheLastFinishedOne) {
  Site site;
  site.hold("label");
  const std::string run = site.enqueue("errand");
  Process first = site.worker();
  ASSERT_TRUE(site.has_started("label"));
  Process second = site.worker();
  let_pass(milliseconds(500));  // it is up and idle
  const auto killed = std::chrono::steady_clock::now();
  first.kill();
  ASSERT_TRUE(site.has_started("label", 2));
  const auto took = std::chrono::steady_clock::now() - killed;
  EXPECT_LT(took, seconds(is_long() ? 1 : 2));
  site.let_go("label");
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.times("lookup"), 1);
  EXPECT_EQ(site.times("pay"), 1);
  // The repetition carries the key of the first try.
  std::vector<std::string> keys;
  for (const LedgerLine& line : site.ledger()) {
    if (line.tool == "label" && line.phase == "start") keys.push_back(line.key);
  }
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0], keys[1]);
  EXPECT_EQ(site.show(run).at("requeue_count"), 1);
  EXPECT_EQ(site.show(run).at("reclaim_count"), 1);
  site.expect_sound();
}

TEST(Boundary, AToolAndItsChildrenEndWithTheirWorker) {
  Site site;
  // A child in a session of its own group would outlive a careless kill of the tool alone.
  site.write("do.lookup",
             "(exec sh -c 'while :; do sleep 1; done' child \"$2\") & while :; do sleep 1; done\n");
  site.enqueue("reader", {"--max-requeues", "0"});
  Process worker = site.worker();
  ASSERT_TRUE(site.has_started("lookup"));
  let_pass(milliseconds(200));
  worker.kill();
  EXPECT_TRUE(site.is_quiet(seconds(5)));
}

TEST(Boundary, AWriteThatWasInterruptedWaitsForAPerson) {
  Site site;
  site.hold("pay");
  const std::string run = site.enqueue("errand");
  {
    Process first = site.worker();
    ASSERT_TRUE(site.has_started("pay"));
    first.kill();
  }
  Process second = site.worker();
  ASSERT_TRUE(site.reaches(run, "failed"));
  const Json shown = site.show(run);
  EXPECT_EQ(shown.at("reason"), "not_retryable");
  EXPECT_EQ(shown.at("pending").at("effect"), "non_idempotent_write");
  EXPECT_EQ(shown.at("pending").at("arguments").at("amount"), 12);
  EXPECT_EQ(site.cli({"redrive", run}).code, 4) << "an unsafe fence is not redriven over";
  site.let_go("pay");
  EXPECT_EQ(site.cli({"resolve", run, "--landed", "--result", R"({"receipt":"r-1"})"}).code, 0);
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.times("pay"), 1);
  EXPECT_EQ(site.times("lookup"), 1);
  EXPECT_EQ(site.cli({"resolve", run, "--landed"}).code, 4) << "there is nothing left to resolve";
  site.expect_sound();
}

TEST(Boundary, AProbeAnswersForAnInterruptedWrite) {
  for (const bool landed : {true, false}) {
    SCOPED_TRACE(landed ? "landed" : "not landed");
    Site site;
    site.write("probe.sh",
               landed ? "#!/bin/sh\necho '{\"charged\":true}'\n" : "#!/bin/sh\nexit 3\n", true);
    site.hold("charge");
    const std::string run = site.enqueue("asker");
    {
      Process first = site.worker();
      ASSERT_TRUE(site.has_started("charge"));
      first.kill();
    }
    site.let_go("charge");
    Process second = site.worker();
    ASSERT_TRUE(site.reaches(run, "completed"));
    EXPECT_EQ(site.times("charge"), landed ? 1 : 2);
    EXPECT_GE(site.count_events(run, EventKind::probed), 1);
    site.expect_sound();
  }
}

}  // namespace
}  // namespace holdfast::crash
