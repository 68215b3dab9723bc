// A worker that is killed before or after any write or external call strands nothing: another one
// takes the run over, and the write that must happen once happens once.

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>

#include "crash/harness.hpp"
#include "crash/places.hpp"
#include "support/stub_server.hpp"

namespace holdfast::crash {
namespace {

class KilledAt : public ::testing::TestWithParam<std::string> {};
class FrozenAt : public ::testing::TestWithParam<std::string> {};

constexpr const char* kWell =
    R"({"choices":[{"index":0,"message":{"role":"assistant","content":"well"},)"
    R"("finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}})";

/// What makes a worker pass a place.
struct Scene {
  std::string agent = "errand";
  std::string held = {};            ///< a tool that goes on when somebody was caught at the place
  bool has_standing_fence = false;  ///< a worker was killed inside a write that has a probe
  bool has_landed = false;          ///< what the probe says of it
  bool fills_log = false;           ///< the next writes make the log long enough to be copied back
  int refusals = 0;                 ///< calls that a model is too busy for, which open its circuit
  /// It is passed again and again while one run is executed.
  bool is_passed_often() const { return agent == "errand" && held.empty() && !fills_log; }
};

Scene scene_of(const std::string& place) {
  if (names_one_of(place, {"renew."})) return {.held = "lookup"};
  if (names_one_of(place, {"probe."})) {
    return {.agent = "asker", .has_standing_fence = true, .has_landed = true};
  }
  if (names_one_of(place, {"unfence."})) return {.agent = "asker", .has_standing_fence = true};
  if (names_one_of(place, {"model_call."})) return {.agent = "caller"};
  if (names_one_of(place, {"note_call.", "admit_call."})) {
    return {.agent = "caller", .refusals = 2};
  }
  if (names_one_of(place, {"checkpoint."})) return {.fills_log = true};
  return {};
}

/// A run that passes the place, with everything that it needs.
class Stage {
 public:
  Stage(const std::string& place, Settings settings) : scene_(scene_of(place)) {
    settings.more = "[providers.live]\nkind = \"openai\"\nbase_url = \"" + server_.url() +
                    "\"\nstream = false\n[agents.caller]\nmodels = [\"live/m\"]\n";
    if (scene_.refusals > 0) {
      settings.circuit_threshold = scene_.refusals;
      settings.circuit_open = "100ms";
    }
    for (int i = 0; i < scene_.refusals; ++i) {
      server_.play(testing::StubAnswer::json(503, R"({"error":{"message":"busy"}})"));
    }
    for (int i = 0; i < 3; ++i) server_.play(testing::StubAnswer::json(200, kWell));
    site.configure(settings);
    if (scene_.fills_log) fill_log();
  }

  /// Until the next process that works on it passes the place. The caller may die of `trap`, too:
  /// then it asks again with the same key, and there is one run.
  void begin(const std::map<std::string, std::string>& trap) {
    const Result asked =
        site.cli({"enqueue", scene_.agent, "--input", "go", "--idempotency-key", "k"}, trap);
    was_caller_killed = asked.code == 128 + SIGKILL;
    EXPECT_TRUE(was_caller_killed || asked.code == 0) << asked.err;
    run = site.enqueue(scene_.agent, {"--idempotency-key", "k"});
    ListFilter same;
    same.agent = scene_.agent;
    EXPECT_EQ(site.runtime().list(same).runs.size(), 1u);
    if (!scene_.held.empty()) site.hold(scene_.held);
    if (!scene_.has_standing_fence) return;
    const char* const landed = "#!/bin/sh\necho '{\"charged\":true}'\n";
    site.write("probe.sh", scene_.has_landed ? landed : "#!/bin/sh\nexit 3\n", true);
    site.hold("charge");
    Process interrupted = site.worker();
    EXPECT_TRUE(site.has_started("charge"));
    interrupted.kill();
    site.let_go("charge");
    EXPECT_TRUE(eventually(seconds(20), [&] {
      EXPECT_EQ(site.cli({"reap"}).code, 0);
      return site.status(run) == "queued";
    })) << site.show(run).dump(1);
  }

  void go_on() {
    if (!scene_.held.empty()) site.let_go(scene_.held);
  }

  bool is_over(milliseconds limit = seconds(20)) {
    return eventually(limit, [&] {
      const std::string now = site.status(run);
      return now == "completed" || now == "failed";
    });
  }

  /// A draining worker ends by itself, but does not wait for a run that comes to wait in between.
  std::vector<std::string> worker_args() const {
    return has_pauses() ? std::vector<std::string>{} : std::vector<std::string>{"--drain"};
  }
  bool has_ended(Process& worker) {
    return worker.status() || (has_pauses() && is_over(milliseconds(0)));
  }
  std::optional<int> end_of(Process& worker) {
    eventually(seconds(30), [&] { return has_ended(worker); });
    if (has_pauses() && !worker.status()) {
      let_pass(milliseconds(300));  // for what it does when it has been thawed
      worker.signal(SIGTERM);
    }
    return worker.wait(seconds(30));
  }
  int reaped() { return site.count_events(run, EventKind::reaped); }

  void expect_finished_once() {
    ASSERT_TRUE(site.reaches(run, "completed"));
    const Json shown = site.show(run);
    if (scene_.agent == "caller") {
      EXPECT_EQ(shown.at("answer"), "well");
      EXPECT_EQ(site.count_events(run, EventKind::model), 1);
      EXPECT_LE(server_.requests().size(), static_cast<std::size_t>(scene_.refusals) + 2);
      return;
    }
    if (scene_.agent == "asker") {
      EXPECT_EQ(shown.at("answer"), "charged");
      EXPECT_EQ(site.times("charge"), scene_.has_landed ? 1 : 2);
      EXPECT_EQ(site.count_events(run, EventKind::probed), 1);
      EXPECT_EQ(site.count_events(run, EventKind::tool), 1);
      return;
    }
    EXPECT_EQ(shown.at("answer"), "paid");
    EXPECT_EQ(site.times("pay"), 1);
    EXPECT_GE(site.times("lookup"), 1);
    EXPECT_LE(site.times("lookup"), 2);
    EXPECT_LE(site.times("label"), 2);
    EXPECT_EQ(site.count_events(run, EventKind::model), 4);
    EXPECT_EQ(site.count_events(run, EventKind::tool), 3);
  }

  std::string run;
  bool was_caller_killed = false;
  Site site;

 private:
  /// Until a busy model may be asked again, or until what nobody can be at any more is believed.
  bool has_pauses() const { return scene_.refusals > 0 || scene_.has_standing_fence; }

  /// Just below the length at which it is copied back, which is 8 MiB.
  void fill_log() {
    const fs::path log = site.database().string() + "-wal";
    RunRequest ballast;
    ballast.agent = "count";  // for which no worker is here
    const auto write_until = [&](std::uintmax_t bytes, std::size_t size) {
      ballast.input = std::string(size, 'x');
      do site.runtime().enqueue(ballast);
      while (fs::file_size(log) < bytes);
    };
    write_until(6500u << 10, 1000u << 10);
    write_until(8100u << 10, 20u << 10);
  }

  const Scene scene_;
  testing::StubServer server_;
};

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

/// Kills the caller or a worker at a passing of the place, and lets another worker finish the run.
/// False where nobody passed it that often.
bool outlives_a_kill(const std::string& place, int passing) {
  SCOPED_TRACE("killed at passing " + std::to_string(passing) + " of " + place);
  const std::map<std::string, std::string> trap = {
      {"HOLDFAST_FAILPOINTS", place + "=kill@" + std::to_string(passing)}};
  Settings settings;
  settings.heartbeat = names_one_of(place, {"renew."}) ? "100ms" : settings.heartbeat;
  Stage stage(place, settings);
  Site& site = stage.site;
  stage.begin(trap);
  std::optional<int> ended;
  {
    Process first = site.worker(stage.worker_args(), trap);
    ended = stage.end_of(first);
    EXPECT_TRUE(ended) << site.log_of(first);
  }
  stage.go_on();
  const bool was_worker_killed = ended == 128 + SIGKILL;
  EXPECT_TRUE(was_worker_killed || ended == 0);
  Process second = site.worker();
  EXPECT_TRUE(stage.is_over()) << site.show(stage.run).dump(1);
  if (site.status(stage.run) == "failed") resolve_by_the_ledger(site, stage.run, false);
  stage.expect_finished_once();
  site.expect_sound();
  return stage.was_caller_killed || was_worker_killed;
}

TEST_P(KilledAt, AnotherWorkerFinishesTheRun) {
  const std::string place = GetParam();
  // Usually another passing at each place, or the first where it is not passed that often; in the
  // long run all of them.
  int kills = 0;
  if (is_long()) {
    while (kills < 12 && outlives_a_kill(place, kills + 1)) ++kills;
  } else {
    const int some = scene_of(place).is_passed_often() ? 1 + static_cast<int>(place.size() % 3) : 1;
    for (int passing = some; passing >= 1 && kills == 0; passing = passing > 1 ? 1 : 0) {
      kills += outlives_a_kill(place, passing) ? 1 : 0;
    }
  }
  EXPECT_GT(kills, 0) << "nobody passed " << place;
}

enum class Zombie { outlived, not_frozen, in_the_way, starved };

/// Freezes a worker at a passing of the place and lets another one finish its run. The case must be
/// tried again: `in_the_way` where another of its threads was inside a write, which holds up
/// everybody, as stated; `starved` where one that was not frozen lost its lease, too, because it
/// came to nothing for so long.
Zombie outlive_a_zombie(const std::string& place, int passing) {
  Settings settings;
  settings.lease = "1200ms";
  settings.heartbeat = "400ms";
  settings.reaper = "200ms";
  Stage stage(place, settings);
  Site& site = stage.site;
  stage.begin({});
  const int reaped_before = stage.reaped();
  Process zombie = site.worker(
      stage.worker_args(), {{"HOLDFAST_FAILPOINTS", place + "=stop@" + std::to_string(passing)}});
  bool frozen = false;
  EXPECT_TRUE(eventually(seconds(30), [&] {
    frozen = zombie.is_frozen();
    return frozen || stage.has_ended(zombie);
  }));
  stage.go_on();
  if (!frozen) {
    EXPECT_EQ(stage.end_of(zombie), 0) << site.log_of(zombie);
    stage.expect_finished_once();
    return Zombie::not_frozen;
  }
  Process second = site.worker();
  if (!stage.is_over()) {
    const Command writing = site.command({"enqueue", "errand", "--input", "x"});
    Process writer(writing);
    const bool is_stated = !writer.wait(seconds(5));
    EXPECT_TRUE(is_stated) << "nobody holds up the writers\n" << site.show(stage.run).dump(1);
    return is_stated ? Zombie::in_the_way : Zombie::outlived;
  }
  if (stage.reaped() > reaped_before + 1) return Zombie::starved;
  const std::string rows = site.rows_of(stage.run);
  zombie.signal(SIGCONT);
  EXPECT_EQ(stage.end_of(zombie), 0) << site.log_of(zombie);
  EXPECT_EQ(site.rows_of(stage.run), rows);
  if (site.status(stage.run) == "failed") resolve_by_the_ledger(site, stage.run, true);
  stage.expect_finished_once();
  site.expect_sound();
  return Zombie::outlived;
}

TEST_P(FrozenAt, AnotherWorkerFinishesTheRunAndTheZombieChangesNothing) {
  const std::string place = GetParam();
  const auto freezes = [&](int passing) {
    SCOPED_TRACE("frozen at passing " + std::to_string(passing) + " of " + place);
    for (int attempt = 0; attempt < 5; ++attempt) {
      const Zombie zombie = outlive_a_zombie(place, passing);
      if (zombie == Zombie::outlived || zombie == Zombie::not_frozen) {
        return zombie == Zombie::outlived;
      }
    }
    ADD_FAILURE() << "frozen inside a write, or more than one lease was lost, each time";
    return true;
  };
  int frozen = 0;
  if (is_long()) {
    while (frozen < 6 && freezes(frozen + 1)) ++frozen;
  } else {
    frozen = (scene_of(place).is_passed_often() && freezes(2)) || freezes(1) ? 1 : 0;
  }
  EXPECT_GT(frozen, 0) << "nobody passed " << place;
}

INSTANTIATE_TEST_SUITE_P(EveryBoundary, KilledAt, ::testing::ValuesIn(places(is_of_a_worker)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(EveryBoundary, FrozenAt, ::testing::ValuesIn(places(is_of_a_segment)),
                         test_name);

TEST(Boundary, TheSourcesNameTheirBoundaries) {
  const auto names = failpoints();
  EXPECT_GE(names.size(), 10u);
  for (const char* verb : {"claim", "record", "fence", "settle"}) {
    int found = 0;
    for (const std::string& name : names) found += name.find(verb) != std::string::npos ? 1 : 0;
    EXPECT_GE(found, 2) << "before and after " << verb;
  }
  for (const std::string& name : names) {
    const int lists = (is_of_a_worker(name) ? 1 : 0) + (is_of_an_operator(name) ? 1 : 0) +
                      (is_of_a_command(name) ? 1 : 0);
    EXPECT_EQ(lists, 1) << name << " must be in one list of places.cpp";
  }
}

TEST(Boundary, AKilledStepIsTakenOverLongBeforeItsLeaseBehindTheLastFinishedOne) {
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
  // By the presence that is gone; the lease is a minute.
  EXPECT_LT(took, seconds(is_long() ? 1 : 10));
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
  EXPECT_TRUE(site.is_quiet());
  site.expect_sound();
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
