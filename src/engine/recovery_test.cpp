// What happens to a run when its worker, its store or its lease fails.

#include <fmt/format.h>

#include "engine/engine_test_support.hpp"

namespace holdfast::engine_test {
namespace {

class RecoveryTest : public EngineTest {
 protected:
  /// A worker and a store that fail it, beside the healthy ones.
  std::unique_ptr<WorkerHandle> work_on(Store& store, int concurrency = 4) {
    WorkerSettings settings;
    settings.concurrency = concurrency;
    return start_worker(env_, store, handlers_, options_, settings);
  }
  /// The worker is proven gone, and its runs are reaped.
  void lose(const WorkerId& worker) {
    ASSERT_EQ(memory_->expire_leases_of(worker, memory_->now()), 1);
    ASSERT_TRUE(eventually([&] { return sweep() == 1; }));
  }
  int sweep() {
    const ReapReport report = reap_once(env_, *memory_, 50, false);
    return report.requeued + report.dead_lettered;
  }
};

TEST_F(RecoveryTest, AStepMuchLongerThanItsLeaseRunsOnce) {
  options_.heartbeat = milliseconds(50);
  options_.reaper_interval = milliseconds(20);
  std::atomic<int> calls = 0;
  handle("task", [&](RunContext& run) {
    return run.step("long", [&] {
      ++calls;
      const int renewals = store_.calls("renew");
      eventually([&] { return store_.calls("renew") >= renewals + 20; });
      return Json("done");
    });
  });
  const RunId id = enqueue("task", hasty_policy(milliseconds(400)));
  const auto first = work();
  const auto second = work();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(count(id, EventKind::claimed), 1);
  EXPECT_EQ(count(id, EventKind::reaped), 0);
}

TEST_F(RecoveryTest, WithoutHeartbeatAReapedStepsWorkerWritesNothing) {
  options_.heartbeat = Duration(0);
  Gate gate;
  handle("task", [&](RunContext& run) {
    return run.step("long", [&] {
      gate.pass();
      return Json("done");
    });
  });
  const RunId id = enqueue("task", hasty_policy(milliseconds(100)));
  auto first = work();
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  ASSERT_TRUE(eventually([&] { return sweep() == 1; }));
  ASSERT_TRUE(eventually([&] { return gate.reached() == 2; }));
  gate.open();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(count(id, EventKind::completed), 1);
  EXPECT_EQ(count(id, EventKind::step), 1);
  EXPECT_EQ(get(id).reclaim_count, 1);
}

TEST_F(RecoveryTest, AZombieWritesNothingAfterItsRunWasFinishedByAnother) {
  Gate frozen;
  std::atomic<int> steps = 0;
  handle("task", [&](RunContext& run) {
    run.step("one", [&] { return Json(++steps); });
    run.step("two", [&] {
      if (run.run().claim == 1) frozen.pass();
      return Json("two");
    });
    return run.step("three", [&] { return Json(run.run().claim); });
  });
  options_.heartbeat = seconds(20);
  FaultyStore cut_off(*memory_);
  const RunId id = enqueue("task", hasty_policy(milliseconds(200)));
  auto zombie = work_on(cut_off);
  ASSERT_TRUE(eventually([&] { return frozen.is_reached(); }));
  cut_off.hold("renew");
  ASSERT_TRUE(eventually([&] { return sweep() == 1; }));
  // The zombie claims nothing more.
  cut_off.fail("claim", Fault::before, 1 << 30);
  auto other = work();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  const auto before = events(id);
  frozen.open();
  cut_off.let_go("renew");
  zombie->stop();
  zombie->join();
  const auto after = events(id);
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(get(id).answer, Json(2));
  EXPECT_EQ(steps, 1);
}

TEST_F(RecoveryTest, AWorkerCutOffFromItsStoreInterruptsReadsAndRepeatsThemWhereTheRunIsStillIts) {
  options_.heartbeat = milliseconds(40);
  std::atomic<int> starts = 0;
  std::atomic<int> interrupted = 0;
  Gate gate;
  handle("task", [&](RunContext& run) {
    return run.step("read", {}, [&](const StepContext& context) -> StepResult {
      if (++starts == 1) {
        gate.pass(context.stop);
        ++interrupted;
        throw std::runtime_error("interrupted");
      }
      return {Json("read"), std::nullopt};
    });
  });
  const RunId id = enqueue("task", hasty_policy(milliseconds(300)));
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  store_.set_down(true);
  ASSERT_TRUE(eventually([&] { return interrupted == 1; }));
  EXPECT_EQ(starts, 1);
  store_.set_down(false);
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(starts, 2);
  EXPECT_EQ(count(id, EventKind::claimed), 1);
  EXPECT_EQ(get(id).requeue_count, 0);
}

TEST_F(RecoveryTest, AWriteInFlightOutlivesTheLeaseAndItsResultIsRecorded) {
  options_.heartbeat = milliseconds(40);
  Gate gate;
  std::atomic<bool> was_stopped = false;
  handle("task", [&](RunContext& run) {
    return run.step("pay", payment(), [&](const StepContext& context) {
      gate.pass();
      was_stopped = context.stop.stop_requested();
      return StepResult{Json("paid"), std::nullopt};
    });
  });
  const RunId id = enqueue("task", hasty_policy(milliseconds(150)));
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  store_.set_down(true);
  const StoreTime lease_end = *get(id).lease_until;
  ASSERT_TRUE(eventually([&] { return env_.store_now() > lease_end + milliseconds(200); }));
  gate.open();
  store_.set_down(false);
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_FALSE(was_stopped);
  EXPECT_EQ(get(id).answer, Json("paid"));
}

TEST_F(RecoveryTest, LostRepliesAreFoundOut) {
  options_.heartbeat = milliseconds(30);
  std::atomic<int> payments = 0;
  handle("task", [&](RunContext& run) {
    run.step("read", [] { return Json(1); });
    run.step("pay", payment(), [&](const StepContext&) {
      return StepResult{Json(++payments), std::nullopt};
    });
    return Json("done");
  });
  int done = 0;
  for (const std::string verb : {"claim", "renew", "fence", "record", "settle"}) {
    for (const Fault fault : {Fault::before, Fault::after}) {
      store_.fail(verb, fault, 2);
      const RunId id = enqueue("task", hasty_policy(seconds(30)));
      const auto worker = work();
      ASSERT_TRUE(eventually([&] { return is(id, Status::completed); })) << verb;
      ++done;
      EXPECT_EQ(payments, done) << verb;
      EXPECT_EQ(count(id, EventKind::tool) + count(id, EventKind::step), 2) << verb;
      EXPECT_EQ(count(id, EventKind::completed), 1) << verb;
      EXPECT_EQ(get(id).requeue_count, 0) << verb;
    }
  }
}

TEST_F(RecoveryTest, ARunWhoseClaimWasNeverAnsweredIsAdoptedOnce) {
  options_.heartbeat = seconds(20);
  std::atomic<int> executions = 0;
  handle("task",
         [&](RunContext& run) { return run.step("s", [&] { return Json(++executions); }); });
  store_.fail("claim", Fault::after, 1);
  const RunId id = enqueue("task");
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(executions, 1);
  EXPECT_EQ(count(id, EventKind::claimed), 1);
}

TEST_F(RecoveryTest, AQuestionThatIsNotAnsweredIsAskedAgain) {
  handle("task", [](RunContext& run) {
    run.sleep("nap", milliseconds(5));  // its second claim reads the journal
    return run.step("s", [] { return Json("done"); });
  });
  for (const std::string verb : {"wall_now", "events"}) {
    const RunId id = enqueue("task");
    store_.fail(verb, Fault::before, 3);
    const auto worker = work();
    ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }, seconds(20))) << verb;
    EXPECT_EQ(get(id).requeue_count, 0) << verb;
    EXPECT_EQ(count(id, EventKind::failed), 0) << verb;
  }
}

/// Its sender gave it up and has looked for what it may have claimed; then it reaches the store.
TEST_F(RecoveryTest, AClaimThatLandsLateIsFoundByALaterRound) {
  options_.heartbeat = milliseconds(30);
  handle("task", [](RunContext&) { return Json(); });
  store_.fail("claim", Fault::before, 1);
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return store_.faults() == 1 && store_.calls("renew") >= 1; }));
  const RunId id = enqueue("other");  // which it claims by no other way
  ClaimRequest late;
  late.worker = worker->id();
  late.agents = {{"other", patient_policy(), nullptr}};
  late.only = id;
  ASSERT_EQ(memory_->claim(late).runs.size(), 1u);
  EXPECT_TRUE(eventually([&] { return count(id, EventKind::released) == 1; }, seconds(20)));
}

TEST_F(RecoveryTest, ACancelInterruptsTheStepAndNothingFollows) {
  options_.heartbeat = milliseconds(30);
  for (const bool fails : {true, false}) {
    const std::string name = fails ? "fails" : "succeeds";
    auto gate = std::make_shared<Gate>();
    auto after = std::make_shared<std::atomic<bool>>(false);
    handle(name, [=](RunContext& run) {
      run.step("held", {}, [=](const StepContext& context) -> StepResult {
        gate->pass(context.stop);
        Failure failure;
        failure.cls = FailureClass::overloaded;
        if (fails) throw FailureError(failure);
        return {Json("just done"), std::nullopt};
      });
      return run.step("after", [=] {
        *after = true;
        return Json();
      });
    });
    const RunId id = enqueue(name);
    const auto worker = work();
    ASSERT_TRUE(eventually([&] { return gate->is_reached(); }));
    memory_->cancel(id, {"me", "", "op-" + name});
    ASSERT_TRUE(eventually([&] { return !get(id).claimed_by.has_value(); }));
    EXPECT_TRUE(is(id, Status::cancelled));
    EXPECT_FALSE(*after);
    EXPECT_EQ(count(id, EventKind::cancelled), 1);
    EXPECT_EQ(count(id, EventKind::requeued) + count(id, EventKind::failed), 0);
    EXPECT_EQ(count(id, EventKind::step), fails ? 0 : 1);
  }
}

TEST_F(RecoveryTest, AWorkerWhosePresenceIsGoneLosesItsRunsAtOnce) {
  options_.reaper_interval = seconds(5);
  options_.presence_interval = milliseconds(10);
  handle("task", [](RunContext&) { return Json("taken over"); });
  const RunId id = enqueue("task");
  const Identity dead = env_.make_identity();
  auto hold = memory_->presence()->hold(dead);
  claim_as(dead.id, id);
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return store_.calls("claim") > 0; }));
  EXPECT_TRUE(is(id, Status::running));
  hold.reset();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(get(id).requeue_count, 1);
  EXPECT_EQ(get(id).reclaim_count, 1);
  for (const Event& event : events(id)) {
    if (!event.kind.is(EventKind::reaped)) continue;
    EXPECT_EQ(event.payload.at("cause"), "presence");
  }
}

TEST_F(RecoveryTest, ADryRunForeseesTheRunsOfTheDeadAndChangesNothing) {
  handle("task", [](RunContext&) { return Json(); });
  const Identity alive = env_.make_identity();
  const Identity dead = env_.make_identity();
  const auto held = memory_->presence()->hold(alive);
  auto lost = memory_->presence()->hold(dead);
  for (const Identity& worker : {alive, dead}) {
    WorkerRow row;
    row.id = worker.id;
    memory_->report_worker(row);
  }
  const RunId kept = enqueue("task");
  const RunId left = enqueue("task");
  claim_as(alive.id, kept);
  const Claimed fenced = claim_as(dead.id, enqueue("task"));
  Fence fence;
  fence.step_key = "pay";
  fence.effect = Effect::non_idempotent_write;
  ASSERT_EQ(memory_->fence(fenced.lease, fence), Write::applied);
  claim_as(dead.id, left);
  EXPECT_EQ(reap_once(env_, *memory_, 50, true).requeued, 0);
  lost.reset();
  const ReapReport foreseen = reap_once(env_, *memory_, 50, true);
  EXPECT_EQ(foreseen.requeued, 1);
  EXPECT_EQ(foreseen.dead_lettered, 1);
  EXPECT_TRUE(is(left, Status::running));
  const ReapReport done = reap_once(env_, *memory_, 50, false);
  EXPECT_EQ(done.requeued, 1);
  EXPECT_EQ(done.dead_lettered, 1);
  EXPECT_TRUE(is(kept, Status::running));
}

TEST_F(RecoveryTest, ManyReapersHandleEachRunOnce) {
  handle("task", [](RunContext&) { return Json(); });
  constexpr int kRuns = 500;
  std::vector<RunId> ids;
  for (int i = 0; i < kRuns; ++i) {
    ids.push_back(enqueue("task", hasty_policy(milliseconds(1))));
    claim_as("dead", ids.back());
  }
  ASSERT_TRUE(eventually([&] { return memory_->stats().leases_stale == kRuns; }));
  std::atomic<int> handled = 0;
  std::vector<std::unique_ptr<Thread>> reapers;
  for (int i = 0; i < 4; ++i) {
    reapers.push_back(env_.spawn({"reaper", 1u << 20}, [&] {
      ReapReport report;
      do {
        report = reap_once(env_, *memory_, 20, false);
        handled += report.requeued + report.dead_lettered;
      } while (report.full);
    }));
  }
  reapers.clear();
  EXPECT_EQ(handled, kRuns);
  for (const RunId& id : ids) {
    EXPECT_EQ(count(id, EventKind::reaped), 1);
    EXPECT_EQ(get(id).requeue_count, 1);
  }
}

TEST_F(RecoveryTest, ARunThatKillsItsWorkersIsGivenUpAtItsBudget) {
  handle("poison", [](RunContext&) { return Json("never executed here"); });
  const RunId id = enqueue("poison", hasty_policy(milliseconds(1)));
  int executions = 0;
  while (is(id, Status::queued)) {
    claim_as("worker " + std::to_string(++executions), id);
    ASSERT_TRUE(eventually([&] { return sweep() == 1; }));
  }
  EXPECT_EQ(executions, 4);
  EXPECT_TRUE(get(id).reason->is(Reason::retries_exhausted));
  EXPECT_NE(error_of(id).find("lost"), std::string::npos);
}

TEST_F(RecoveryTest, CrashesAndFailuresShareOneBudget) {
  handle("task", [](RunContext&) -> Json {
    Failure failure;
    failure.cls = FailureClass::overloaded;
    throw FailureError(failure);
  });
  Policy policy = hasty_policy(milliseconds(1));
  policy.backoff_base = policy.backoff_cap = hours(1);
  for (int sequence = 0; sequence < 16; ++sequence) {
    const RunId id = enqueue("task", policy);
    int executions = 0;
    for (; is(id, Status::queued); ++executions) {
      EXPECT_EQ(get(id).requeue_count, executions);
      memory_->wake(id, {"me", "", fmt::format("wake {}", executions)});
      if (((sequence >> executions) & 1) != 0) {
        claim_as("dead", id);
        ASSERT_TRUE(eventually([&] { return sweep() == 1; }));
      } else {
        work_off();
      }
    }
    EXPECT_EQ(executions, 4) << sequence;
    EXPECT_TRUE(get(id).reason->is(Reason::retries_exhausted));
  }
}

TEST_F(RecoveryTest, AWriteWithoutAProbeIsLeftToAPersonWhenItsWorkerDies) {
  handle("task", [](RunContext&) { return Json(); });
  const RunId id = enqueue("task", hasty_policy(milliseconds(1)));
  const Claimed claimed = claim_as("dead", id);
  Fence fence;
  fence.step_key = "pay#1";
  fence.name = "pay";
  ASSERT_EQ(memory_->fence(claimed.lease, fence), Write::applied);
  ASSERT_TRUE(eventually([&] { return sweep() == 1; }));
  EXPECT_TRUE(get(id).reason->is(Reason::not_retryable));
  EXPECT_TRUE(get(id).is_fenced_unsafe());
}

TEST_F(RecoveryTest, ASuspensionThatCannotBeStoredIsPromisedToNobody) {
  options_.heartbeat = milliseconds(30);
  handle("task", [](RunContext& run) { return run.ask_input("who", {}, "who?"); });
  store_.fail("settle", Fault::before, 1 << 30);
  store_.fail("renew", Fault::before, 1 << 30);
  const RunId id = enqueue("task", hasty_policy(milliseconds(150)));
  auto worker = work();
  ASSERT_TRUE(eventually([&] { return store_.calls("settle") > 1; }));
  ASSERT_TRUE(eventually([&] { return sweep() == 1; }));
  EXPECT_EQ(count(id, EventKind::input_requested), 0);
  EXPECT_GE(get(id).requeue_count, 1);
  // The store is mended: the question is asked after all.
  store_.fail("settle", Fault::before, 0);
  store_.fail("renew", Fault::before, 0);
  EXPECT_TRUE(eventually([&] { return is(id, Status::waiting_for_input); }));
}

}  // namespace
}  // namespace holdfast::engine_test
