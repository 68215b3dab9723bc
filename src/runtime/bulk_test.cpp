#include <algorithm>

#include "runtime/test_runtime.hpp"

namespace holdfast::testing {
namespace {

class Bulk : public RuntimeTest {
 protected:
  /// In the order in which they failed.
  std::vector<RunId> dead_letters(std::size_t count, const std::string& team) {
    auto wanted = request("fail", "client_error");
    wanted.labels = {{"team", team}};
    std::vector<RunId> ids;
    for (const auto& run : runtime_->enqueue(std::vector<RunRequest>(count, wanted))) {
      ids.push_back(run.id);
    }
    drain();
    std::vector<std::pair<WallTime, RunId>> ended;
    for (const auto& id : ids) ended.emplace_back(*runtime_->get(id).finished_at, id);
    std::sort(ended.begin(), ended.end());
    std::transform(ended.begin(), ended.end(), ids.begin(),
                   [](const auto& one) { return one.second; });
    return ids;
  }
  void drain() {
    WorkerSettings settings;
    settings.drain = true;
    runtime_->start_worker(settings)->join();
  }
  static ListFilter of_team(const std::string& team) {
    ListFilter filter;
    filter.labels = {{"team", team}};
    filter.limit = 0;
    return filter;
  }
};
HOLDFAST_FOR_EACH_STORE(Bulk);

TEST_P(Bulk, RedriveMovesWhatMatchesAndLeavesTheRest) {
  const auto ours = dead_letters(230, "ours");
  const auto theirs = dead_letters(20, "theirs");
  const auto would = runtime_->redrive_all(of_team("ours"), true, {});
  EXPECT_EQ(would.matched, 230);
  EXPECT_EQ(would.moved, 230);
  EXPECT_EQ(count(ours[0], "redriven"), 0);

  const auto report = runtime_->redrive_all(of_team("ours"), false, {"ada", "", ""});
  EXPECT_EQ(report.matched, 230);
  EXPECT_EQ(report.moved, 230);
  EXPECT_EQ(report.skipped, 0);
  EXPECT_EQ(report.ids, ours) << "oldest first";
  for (const auto& id : ours) EXPECT_EQ(count(id, "redriven"), 1);
  for (const auto& id : theirs) EXPECT_EQ(count(id, "redriven"), 0);
}

TEST_P(Bulk, InterruptedRedriveIsFinishedByRepeatingIt) {
  const auto ours = dead_letters(250, "ours");
  const auto theirs = dead_letters(10, "theirs");
  // Cut off between the second page's effect and its reply, for good.
  int pages = 0;
  store_->after_redrive = [&] {
    if (++pages == 2) throw StoreError("the disk is gone", true);
  };
  const Operator by{"ada", "", "operation-1"};
  EXPECT_THROW(runtime_->redrive_all(of_team("ours"), false, by), StoreError);
  // Some of what was moved runs and fails again meanwhile.
  store_->after_redrive = nullptr;
  drain();
  const auto report = runtime_->redrive_all(of_team("ours"), false, by);
  EXPECT_EQ(report.matched, report.moved + report.skipped);
  EXPECT_EQ(report.moved, 50);
  EXPECT_EQ(report.skipped, 200);
  for (const auto& id : ours) EXPECT_EQ(count(id, "redriven"), 1) << id;
  for (const auto& id : theirs) EXPECT_EQ(count(id, "redriven"), 0);
  expect_sound();
}

TEST_P(Bulk, RedriveLeavesWhatFailsWhileItRuns) {
  dead_letters(120, "ours");
  std::vector<RunId> late;
  int pages = 0;
  store_->before_redrive = [&] {
    if (++pages == 1) late = dead_letters(5, "ours");
  };
  const auto report = runtime_->redrive_all(of_team("ours"), false, {});
  EXPECT_EQ(report.moved, 120);
  for (const auto& id : late) EXPECT_TRUE(runtime_->get(id).status.is(Status::failed));
}

TEST_P(Bulk, RedriveSkipsUnknownWritesAndCountsThem) {
  const auto unknown = run_inline("write");
  const auto dead = dead_letter();
  ListFilter all;
  all.limit = 0;
  EXPECT_EQ(runtime_->redrive_all(all, true, {}).skipped, 1);
  const auto report = runtime_->redrive_all(all, false, {});
  EXPECT_EQ(report.matched, 2);
  EXPECT_EQ(report.moved, 1);
  EXPECT_EQ(report.skipped, 1);
  EXPECT_EQ(report.ids, std::vector<RunId>{dead.id});
  EXPECT_TRUE(runtime_->get(unknown.id).status.is(Status::failed));
}

TEST_P(Bulk, RedriveStopsAtItsLimit) {
  const auto ours = dead_letters(12, "ours");
  auto filter = of_team("ours");
  filter.limit = 5;
  EXPECT_EQ(runtime_->redrive_all(filter, false, {}).moved, 5);
  EXPECT_EQ(count(ours[4], "redriven"), 1);
  EXPECT_EQ(count(ours[5], "redriven"), 0);
}

TEST_P(Bulk, RedriveOfOtherStatusesIsRefused) {
  ListFilter filter;
  filter.status = "completed";
  expect_refused(Refusal::usage, "completed", [&] { runtime_->redrive_all(filter, false, {}); });
}

TEST_P(Bulk, PurgeByAgeTakesOneKindWhereOneIsNamed) {
  const auto done = run_inline("echo").id;
  const auto waiting = run_inline("approve").id;
  auto later = request("echo", 1);
  later.delay = std::chrono::hours(1);
  const auto queued = runtime_->enqueue(later).id;

  PurgeRequest terminal;
  terminal.older_than = Duration::zero();
  terminal.dry_run = true;
  EXPECT_EQ(runtime_->purge(terminal).total, 1);
  EXPECT_TRUE(runtime_->get(done).status.is(Status::completed));
  terminal.dry_run = false;
  const auto report = runtime_->purge(terminal);
  EXPECT_EQ(report.by_status, (std::map<std::string, int>{{"completed", 1}}));
  expect_refused(Refusal::not_found, done, [&] { runtime_->get(done); });
  EXPECT_TRUE(runtime_->get(waiting).status.is(Status::waiting_for_approval));

  PurgeRequest unfinished;
  unfinished.unfinished_older_than = Duration::zero();
  EXPECT_EQ(runtime_->purge(unfinished).by_status,
            (std::map<std::string, int>{{"waiting_for_approval", 1}}));
  EXPECT_TRUE(runtime_->get(queued).status.is(Status::queued)) << "never queued ones";
  unfinished.older_than = Duration(-1);
  expect_refused(Refusal::usage, "negative", [&] { runtime_->purge(unfinished); });
}

TEST_P(Bulk, PurgeWithoutAgesFollowsTheRetention) {
  run_inline("echo");
  EXPECT_EQ(runtime_->purge({}).total, 0);
  RuntimeOptions options;
  options.retention_terminal = Duration::zero();
  if (std::string(GetParam()) == "memory") return;  // a store reopened would be another one
  open(options);
  EXPECT_EQ(runtime_->purge({}).total, 1);
}

TEST_P(Bulk, PurgeTakesMoreThanOneBatch) {
  std::vector<RunRequest> requests(1100, request("echo", 1));
  for (auto& wanted : requests) wanted.delay = std::chrono::hours(1);
  for (const auto& run : runtime_->enqueue(requests)) runtime_->cancel(run.id, {});
  PurgeRequest purge;
  purge.older_than = Duration::zero();
  EXPECT_EQ(runtime_->purge(purge).total, 1100);
  EXPECT_TRUE(runtime_->list({}).runs.empty());
}

TEST_P(Bulk, PurgeOfNamedRunsSaysWhichMayNotGo) {
  const auto done = run_inline("echo").id;
  auto later = request("echo", 1);
  later.delay = std::chrono::hours(1);
  const auto queued = runtime_->enqueue(later).id;
  const auto held = running().id;
  PurgeRequest purge;
  purge.ids = {done, queued, held};
  purge.older_than = Duration::zero();
  expect_refused(Refusal::conflict, queued + " (queued)", [&] { runtime_->purge(purge); });
  expect_refused(Refusal::not_found, done, [&] { runtime_->get(done); });
  EXPECT_TRUE(runtime_->get(held).status.is(Status::running));
}

class NamedPurge : public Bulk {
 protected:
  void purge(const RunId& id, std::optional<Duration> older = {},
             std::optional<Duration> unfinished_older = {}) {
    PurgeRequest purge;
    purge.ids = {id};
    purge.older_than = older;
    purge.unfinished_older_than = unfinished_older;
    last_ = runtime_->purge(purge);
  }
  RunId abandoned() {
    NewRun wanted;
    wanted.row.id = real_env().new_id();
    wanted.row.agent = "echo";
    store_->start(wanted, "gone-worker");
    return wanted.row.id;
  }

  PurgeReport last_;
};
HOLDFAST_FOR_EACH_STORE(NamedPurge);

TEST_P(NamedPurge, KeepsToTheRetentionWithoutAnAge) {
  const auto done = run_inline("echo").id;
  const auto dead = dead_letter().id;
  const auto waiting = run_inline("approve").id;
  const auto left = abandoned();
  for (const auto& id : {done, dead}) {
    expect_refused(Refusal::conflict,
                   "ago, which is younger than the 30d of [retention] terminal; --older-than 0s",
                   [&] { purge(id); });
  }
  for (const auto& id : {waiting, left}) {
    expect_refused(Refusal::conflict,
                   "ago, which is younger than the 90d of [retention] unfinished; "
                   "--unfinished-older-than 0s",
                   [&] { purge(id); });
  }
  for (const auto& id : {done, dead, waiting, left}) runtime_->get(id);
  purge(done, Duration::zero());
  purge(dead, Duration::zero());
  purge(waiting, {}, Duration::zero());
  purge(left, {}, Duration::zero());
  EXPECT_TRUE(runtime_->list({}).runs.empty());
  expect_sound();
}

TEST_P(NamedPurge, NamesTheAgeThatIsWanting) {
  const auto done = run_inline("echo").id;
  const auto waiting = run_inline("approve").id;
  expect_refused(Refusal::conflict, "ago, which is younger than the 1h of --older-than",
                 [&] { purge(done, std::chrono::hours(1)); });
  expect_refused(Refusal::conflict, "it goes by --unfinished-older-than",
                 [&] { purge(waiting, Duration::zero()); });
  expect_refused(Refusal::conflict, "it goes by --older-than",
                 [&] { purge(done, {}, Duration::zero()); });
}

TEST_P(NamedPurge, AWriteThatMayHaveLandedGoesOnlyWithAnAge) {
  if (std::string(GetParam()) != "memory") {
    RuntimeOptions options;
    options.retention_terminal = Duration::zero();
    open(options);
    purge(run_inline("echo").id);
    EXPECT_EQ(last_.total, 1) << "the retention allows it";
  }
  const auto unknown = run_inline("write");
  ASSERT_TRUE(unknown.is_fenced_unsafe());
  expect_refused(Refusal::conflict, "its write pay (step pay#1) may have landed",
                 [&] { purge(unknown.id); });
  purge(unknown.id, Duration::zero());
  EXPECT_EQ(last_.total, 1);
  EXPECT_EQ(last_.unknown_writes, 1);
}

}  // namespace
}  // namespace holdfast::testing
