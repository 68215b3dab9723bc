#include <filesystem>
#include <map>

#include "engine/engine_test_support.hpp"

namespace holdfast::engine_test {
namespace {

class WorkerTest : public EngineTest {};

/// Entries of a folder of /proc/self: this process's threads or open files.
int entries(const char* folder) {
  int number = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++number;
  return number;
}

TEST_F(WorkerTest, CompletesARun) {
  handle("add", [](RunContext& run) { return Json(run.run().input.at("a").get<int>() + 1); });
  const RunId id = enqueue("add", patient_policy(), {{"a", 1}});
  work_off();
  const Row run = get(id);
  EXPECT_TRUE(run.status.is(Status::completed));
  EXPECT_EQ(run.answer, Json(2));
  EXPECT_FALSE(run.claimed_by.has_value());
}

TEST_F(WorkerTest, PicksUpWhatIsEnqueuedWhileItIsIdle) {
  handle("task", [](RunContext&) { return Json("done"); });
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return store_.calls("claim") > 0; }));
  const RunId id = enqueue("task");
  EXPECT_TRUE(eventually([&] { return is(id, Status::completed); }));
}

TEST_F(WorkerTest, DrainsManyRunsAndThenEnds) {
  handle("task", [](RunContext& run) { return run.step("s", [] { return Json(1); }); });
  std::vector<RunId> ids;
  for (int i = 0; i < 300; ++i) ids.push_back(enqueue("task"));
  work(16, true)->join();
  for (const RunId& id : ids) EXPECT_TRUE(is(id, Status::completed));
}

TEST_F(WorkerTest, DrainingTakesUpWhatADeadWorkerLeft) {
  options_.reaper_interval = hours(1);
  handle("task", [](RunContext&) { return Json("done"); });
  const RunId id = enqueue("task", hasty_policy(milliseconds(20)));
  claim_as("dead", id);
  ASSERT_TRUE(eventually([&] { return get(id).lease_until <= memory_->now(); }));
  work_off();
  EXPECT_TRUE(is(id, Status::completed));
  EXPECT_EQ(get(id).reclaim_count, 1);
}

TEST_F(WorkerTest, DrainingTakesUpWhatAnotherReaperPutBackMeanwhile) {
  options_.reaper_interval = hours(1);
  handle("task", [](RunContext&) { return Json("done"); });
  const RunId id = enqueue("task", hasty_policy(milliseconds(20)));
  claim_as("dead", id);
  ASSERT_TRUE(eventually([&] { return get(id).lease_until <= memory_->now(); }));
  store_.before("reap", [&] { reap_once(env_, *memory_, 10, false); });
  work_off();
  EXPECT_TRUE(is(id, Status::completed));
}

/// What can be read is no sign that the trouble is over.
TEST_F(WorkerTest, AStoreThatCannotBeWrittenIsNotSaidToBeUsableAgain) {
  handle("task", [](RunContext&) { return Json(); });
  ::testing::internal::CaptureStderr();
  {
    store_.fail("report_worker", Fault::before, 1'000'000);
    const auto worker = work();
    const int looks = store_.calls("claim");
    EXPECT_TRUE(eventually([&] { return store_.calls("claim") > looks + 3; }));
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cannot be used"), std::string::npos) << said;
  EXPECT_EQ(said.find("used again"), std::string::npos) << said;
}

/// Time between steps has used up the lease: it is renewed before anything is fenced or started.
TEST_F(WorkerTest, AStepBeginsOnlyUnderALeaseThatIsTrusted) {
  options_.heartbeat = Duration(0);
  std::atomic<int> paid = 0;
  handle("task", [&](RunContext& run) {
    store_.hold("renew");
    real_env().sleep_for(milliseconds(400), {});
    return run.step("pay", payment(), [&](const StepContext&) {
      ++paid;
      return StepResult{};
    });
  });
  const RunId id = enqueue("task", hasty_policy(milliseconds(300)));
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return store_.calls("renew") + store_.calls("fence") > 0; }));
  EXPECT_EQ(store_.calls("fence"), 0);
  EXPECT_EQ(paid, 0);
  store_.let_go("renew");
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(paid, 1);
}

TEST_F(WorkerTest, ExecutesNoMoreAtATimeThanItsConcurrency) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  handle("task", [&](RunContext&) {
    const int now = ++running;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    real_env().sleep_for(milliseconds(1), {});
    --running;
    return Json();
  });
  for (int i = 0; i < 60; ++i) enqueue("task");
  work(3, true)->join();
  EXPECT_LE(most, 3);
}

TEST_F(WorkerTest, LeavesADelayedRunAloneUntilItIsDue) {
  options_.reaper_interval = milliseconds(10);
  handle("task", [](RunContext&) { return Json(); });
  NewRun run = new_run("task", hasty_policy(milliseconds(100)));
  run.delay = milliseconds(400);
  const WallTime due = env_.wall_now() + *run.delay;
  const RunId id = enqueue(run);
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_GE(get(id).started_at.value(), due);
  EXPECT_EQ(count(id, EventKind::claimed), 1);
  EXPECT_EQ(count(id, EventKind::reaped), 0);
  EXPECT_EQ(get(id).requeue_count, 0);
}

TEST_F(WorkerTest, NeverClaimsACancelledRunInBackoff) {
  std::atomic<int> executions = 0;
  handle("task", [&](RunContext&) -> Json {
    ++executions;
    Failure failure;
    failure.cls = FailureClass::server_error;
    throw FailureError(failure);
  });
  Policy policy = patient_policy();
  policy.backoff_base = milliseconds(200);
  policy.backoff_cap = milliseconds(200);
  const RunId id = enqueue("task", policy);
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return count(id, EventKind::requeued) == 1; }));
  ASSERT_EQ(memory_->cancel(id, {"me", "", "op"}).answer, ChangeResult::Answer::applied);
  const RunId marker = enqueue([&] {
    NewRun run = new_run("task");
    run.delay = milliseconds(500);
    return run;
  }());
  ASSERT_TRUE(eventually([&] { return count(marker, EventKind::claimed) > 0; }));
  EXPECT_EQ(count(id, EventKind::claimed), 1);
  EXPECT_EQ(count(id, EventKind::cancelled), 1);
  EXPECT_FALSE(get(id).available_at.has_value());
}

TEST_F(WorkerTest, ReportsItselfAndIsForgottenAtItsEnd) {
  handle("task", [](RunContext&) { return Json(); });
  auto worker = work(5);
  ASSERT_TRUE(eventually([&] { return memory_->workers().size() == 1; }));
  const WorkerRow row = memory_->workers().front();
  EXPECT_EQ(row.id, worker->id());
  EXPECT_EQ(row.slots, 5);
  EXPECT_EQ(row.presence, "held");
  worker->stop();
  worker->join();
  EXPECT_TRUE(memory_->workers().empty());
}

TEST_F(WorkerTest, TwoWorkersOfOneNameHaveTheirOwnIdentities) {
  const auto first = work();
  const auto second = work();
  EXPECT_NE(first->id(), second->id());
}

TEST_F(WorkerTest, StopLetsTheStepFinishAndReleasesTheRun) {
  Gate gate;
  std::atomic<int> first = 0;
  handle("task", [&](RunContext& run) {
    run.step("first", [&] {
      ++first;
      gate.pass();
      return Json("one");
    });
    return run.step("second", [] { return Json("two"); });
  });
  const RunId id = enqueue("task");
  auto worker = work(1);  // a free slot could have a claim under way that meets the released run
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  worker->stop();
  gate.open();
  worker->join();
  const Row released = get(id);
  EXPECT_TRUE(released.status.is(Status::queued));
  EXPECT_FALSE(released.claimed_by.has_value());
  EXPECT_EQ(released.requeue_count, 0);
  EXPECT_EQ(count(id, EventKind::released), 1);
  work_off();
  EXPECT_TRUE(is(id, Status::completed));
  EXPECT_EQ(first, 1);
}

TEST_F(WorkerTest, AfterTheGraceWhatIsInFlightIsInterruptedAndReleased) {
  Gate gate;
  handle("task", [&](RunContext& run) {
    return run.step("long", {}, [&](const StepContext& context) -> StepResult {
      if (!gate.pass(context.stop)) throw std::runtime_error("interrupted");
      return {Json("done"), std::nullopt};
    });
  });
  const RunId id = enqueue("task");
  auto worker = work(1, false, milliseconds(50));
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  worker->stop();
  worker->join();
  EXPECT_TRUE(is(id, Status::queued));
  EXPECT_EQ(get(id).requeue_count, 0);
  gate.open();
  work_off();
  EXPECT_TRUE(is(id, Status::completed));
}

TEST_F(WorkerTest, AWriteInterruptedByTheStopIsNeverHandedOn) {
  Gate gate;
  handle("task", [&](RunContext& run) {
    return run.step("pay", payment(), [&](const StepContext& context) -> StepResult {
      gate.pass(context.stop);
      throw std::runtime_error("killed");
    });
  });
  const RunId id = enqueue("task");
  auto worker = work();
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  worker->stop_now();
  worker->join();
  const Row run = get(id);
  EXPECT_TRUE(run.status.is(Status::failed));
  EXPECT_TRUE(run.reason->is(Reason::not_retryable));
  EXPECT_TRUE(run.is_fenced_unsafe());
}

TEST_F(WorkerTest, AStopBetweenClaimAndFirstStepReleasesAtOnce) {
  std::atomic<int> steps = 0;
  handle("task", [&](RunContext& run) {
    return run.step("only", [&] {
      ++steps;
      return Json();
    });
  });
  for (int round = 0; round < 20; ++round) {
    const RunId id = enqueue("task");
    store_.hold("claim");
    auto worker = work();
    ASSERT_TRUE(eventually([&] { return store_.calls("claim") > round; }));
    worker->stop();
    store_.let_go("claim");
    worker->join();
    EXPECT_FALSE(is(id, Status::running));
    EXPECT_EQ(get(id).requeue_count, 0);
  }
  work_off();
  EXPECT_EQ(memory_->stats().by_status["completed"], 20);
}

TEST_F(WorkerTest, StartedAndStoppedAHundredTimesUnderLoadLosesAndLeaksNothing) {
  const int threads = entries("/proc/self/task");
  const int files = entries("/proc/self/fd");
  std::atomic<int> executed = 0;
  handle("task", [&](RunContext& run) {
    for (int i = 0; i < 3; ++i) {
      run.step("s", [&] {
        ++executed;
        return Json();
      });
    }
    return Json();
  });
  constexpr int kRuns = 400;
  std::vector<RunId> ids;
  for (int i = 0; i < kRuns; ++i) ids.push_back(enqueue("task"));
  for (int round = 0; round < 100; ++round) {
    auto worker = work(4);
    if (round % 3 == 0) {
      worker->stop_now();
    } else if (round % 3 == 1) {
      worker->stop();
    }
  }
  work_off();
  for (const RunId& id : ids) {
    EXPECT_TRUE(is(id, Status::completed));
    EXPECT_EQ(count(id, EventKind::step), 3);
    EXPECT_EQ(get(id).requeue_count, 0);
  }
  EXPECT_TRUE(memory_->workers().empty());
  EXPECT_EQ(entries("/proc/self/task"), threads);
  EXPECT_EQ(entries("/proc/self/fd"), files);
}

TEST_F(WorkerTest, AStuckSlotIsReplacedAndShown) {
  options_.heartbeat = milliseconds(50);
  Gate gate;
  handle("stuck", [&](RunContext& run) {
    StepOptions options;
    options.timeout = milliseconds(10);
    return run.step("s", options, [&](const StepContext&) {
      gate.pass();
      return StepResult{Json("late"), std::nullopt};
    });
  });
  handle("task", [](RunContext&) { return Json(); });
  const RunId stuck = enqueue("stuck", hasty_policy(seconds(60)));
  const auto worker = work(1);
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  const RunId id = enqueue("task");
  EXPECT_TRUE(eventually([&] {
    const auto rows = memory_->workers();
    return !rows.empty() && rows.front().stuck == 1;
  }));
  EXPECT_TRUE(eventually([&] { return is(id, Status::completed); }));
  gate.open();
  // Nobody reaped it: its late result is still the true owner's.
  EXPECT_TRUE(eventually([&] { return is(stuck, Status::completed); }));
  EXPECT_EQ(get(stuck).answer, Json("late"));
}

TEST_F(WorkerTest, RunsThatFailTogetherComeBackApart) {
  handle("task", [](RunContext&) -> Json {
    Failure failure;
    failure.cls = FailureClass::overloaded;
    throw FailureError(failure);
  });
  Policy policy = patient_policy();
  policy.backoff_base = policy.backoff_cap = seconds(30);
  constexpr int kRuns = 200;
  std::vector<RunId> ids;
  for (int i = 0; i < kRuns; ++i) ids.push_back(enqueue("task", policy));
  work(16, true)->join();
  std::map<Duration::rep, int> in_tenths;
  for (const RunId& id : ids) {
    ASSERT_EQ(count(id, EventKind::requeued), 1);
    const Duration wait = *get(id).available_at - events(id).back().at;
    EXPECT_GE(wait, seconds(30));
    EXPECT_LE(wait, seconds(33) + milliseconds(1));
    ++in_tenths[wait / milliseconds(100)];
  }
  // At random over three seconds: a tenth of one holds a thirtieth of them, give or take.
  for (const auto& [tenth, number] : in_tenths) EXPECT_LE(number, kRuns * 15 / 100) << tenth;
}

TEST_F(WorkerTest, AHugeErrorTextIsCutBeforeItIsStored) {
  handle("task",
         [](RunContext&) -> Json { throw std::runtime_error(std::string(2'000'000, 'e')); });
  Policy policy = patient_policy();
  policy.max_requeues = 1;
  std::vector<RunId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(enqueue("task", policy));
  const auto worker = work();
  for (const RunId& id : ids) {
    ASSERT_TRUE(eventually([&] { return is(id, Status::failed); }));
    EXPECT_GT(error_of(id).size(), 1000u);
    for (const Event& event : events(id)) EXPECT_LT(event.payload.dump().size(), 10'000u);
  }
  std::size_t size = 0;
  for (const Row& run : memory_->list({}).runs) size += to_json(run).dump().size();
  EXPECT_LT(size, ids.size() * 10'000);
}

TEST_F(WorkerTest, GoesOnWhenTheStoreIsBack) {
  handle("task", [](RunContext& run) { return run.step("s", [] { return Json(1); }); });
  store_.set_down(true);
  const auto worker = work();
  const RunId id = enqueue("task");
  ASSERT_TRUE(eventually([&] { return store_.faults() > 2; }));
  store_.set_down(false);
  EXPECT_TRUE(eventually([&] { return is(id, Status::completed); }));
}

TEST_F(WorkerTest, HandsARunBackThatItCannotExecuteAndGoesOnWithOthers) {
  std::atomic<bool> is_here = false;
  HandlerEntry entry{
      {"task", patient_policy(), nullptr}, [](RunContext& run) { return run.run().input; }, true};
  entry.problem = [&](const Row& run) {
    return run.input == "other" || is_here ? "" : std::string("tool 'pay' is not here");
  };
  handlers_.add(entry);
  const RunId id = enqueue("task");
  const RunId other = enqueue("task", patient_policy(), "other");
  work_off();
  EXPECT_TRUE(is(other, Status::completed));
  const Row back = get(id);
  EXPECT_TRUE(back.status.is(Status::queued));
  EXPECT_EQ(back.requeue_count, 0);
  EXPECT_GT(back.available_at.value(), env_.wall_now());
  const Event released = events(id).back();
  EXPECT_TRUE(released.kind.is(EventKind::released));
  EXPECT_EQ(released.payload["message"], "tool 'pay' is not here");

  // Each time for longer, so that it is no load while nobody can execute it.
  memory_->wake(id, {"ada", "", "w1"});
  const WallTime again = env_.wall_now();
  work_off();
  EXPECT_GE(get(id).available_at.value(), again + milliseconds(1900));
  is_here = true;
  memory_->wake(id, {"ada", "", "w2"});
  work_off();
  EXPECT_TRUE(is(id, Status::completed));
}

}  // namespace
}  // namespace holdfast::engine_test
