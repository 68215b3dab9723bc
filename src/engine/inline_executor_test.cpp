#include "engine/engine_test_support.hpp"
#include "support/shifted_env.hpp"

namespace holdfast::engine_test {
namespace {

class InlineTest : public EngineTest {
 protected:
  std::unique_ptr<InlineExecutor> executor() {
    return make_inline_executor(env_, store_, handlers_, options_);
  }
  SegmentResult interactive(const std::string& agent, const Observer& observer = {},
                            const std::stop_token& stop = {}) {
    const auto executes = executor();
    return executes->execute(memory_->start(new_run(agent), executes->id()), observer, stop);
  }
};

TEST_F(InlineTest, ExecutesInteractivelyWithoutALease) {
  handle("task", [&](RunContext& run) {
    EXPECT_FALSE(memory_->find(run.run().id)->lease_until.has_value());
    return run.step("s", [] { return Json("done"); });
  });
  const SegmentResult result = interactive("task");
  EXPECT_EQ(result.outcome, Outcome::completed);
  EXPECT_EQ(result.run.answer, Json("done"));
  EXPECT_EQ(store_.calls("renew"), 0);
}

TEST_F(InlineTest, ShowsEachEventOnceAndInOrder) {
  handle("task", [](RunContext& run) {
    run.step("one", [] { return Json(1); });
    run.step("two", [] { return Json(2); });
    return Json();
  });
  std::vector<std::int64_t> seen;
  const SegmentResult result =
      interactive("task", [&](const Event& event) { seen.push_back(event.sequence); });
  EXPECT_EQ(seen, (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(result.run.last_sequence, 4);
}

TEST_F(InlineTest, AnInteractiveFailureIsSurfacedUnchanged) {
  handle("task", [](RunContext&) -> Json {
    Failure failure;
    failure.cls = FailureClass::overloaded;
    failure.message = "busy";
    throw FailureError(failure);
  });
  const SegmentResult result = interactive("task");
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_TRUE(result.run.reason->is(Reason::provider_failed));
  EXPECT_EQ(result.run.error->message, "busy");
}

TEST_F(InlineTest, WaitsForSleepsInProcess) {
  handle("task", [](RunContext& run) {
    run.sleep("nap", milliseconds(30));
    return Json("awake");
  });
  const SegmentResult result = interactive("task");
  EXPECT_EQ(result.outcome, Outcome::completed);
  EXPECT_EQ(count(result.run.id, EventKind::slept), 1);
}

TEST_F(InlineTest, AStopCancelsAtTheNextBoundary) {
  std::stop_source source;
  std::atomic<bool> after = false;
  handle("task", [&](RunContext& run) {
    run.step("first", [&] {
      source.request_stop();
      return Json(1);
    });
    return run.step("second", [&] {
      after = true;
      return Json();
    });
  });
  const SegmentResult result = interactive("task", {}, source.get_token());
  EXPECT_EQ(result.outcome, Outcome::cancelled);
  EXPECT_FALSE(after);
  EXPECT_EQ(count(result.run.id, EventKind::step), 1);
  EXPECT_FALSE(result.run.claimed_by.has_value());
}

TEST_F(InlineTest, AnInteractiveSuspensionThatCannotBeStoredNamesTheStore) {
  handle("task", [](RunContext& run) { return run.ask_input("who", {}, "who?"); });
  store_.fail("settle", Fault::refused);
  const SegmentResult result = interactive("task");
  EXPECT_EQ(result.outcome, Outcome::suspend_failed);
  EXPECT_TRUE(result.run.reason->is(Reason::provider_failed));
  EXPECT_NE(result.run.error->message.find("the store"), std::string::npos);
}

TEST_F(InlineTest, AChargedRequeueOfALeasedSegmentIsAvailableAtOnce) {
  Policy policy = patient_policy();
  policy.backoff_base = policy.backoff_cap = hours(1);
  std::atomic<int> calls = 0;
  handle("task", [&](RunContext&) -> Json {
    Failure failure;
    failure.cls = FailureClass::overloaded;
    if (++calls == 1) throw FailureError(failure);
    return Json("done");
  });
  const RunId id = enqueue("task", policy);
  const auto executes = executor();
  EXPECT_EQ(executes->execute(claim_as(executes->id(), id), {}, {}).outcome, Outcome::requeued);
  EXPECT_LE(get(id).available_at.value(), env_.wall_now());
  EXPECT_EQ(executes->execute(claim_as(executes->id(), id), {}, {}).outcome, Outcome::completed);
}

TEST_F(InlineTest, AChargedRequeueOfALeasedSegmentWaitsAsLongAsTheOtherSideSaid) {
  Policy policy = patient_policy();
  policy.backoff_base = policy.backoff_cap = hours(1);
  policy.jitter = 0;
  handle("task", [&](RunContext&) -> Json {
    Failure failure;
    failure.cls = FailureClass::rate_limit;
    failure.retry_after = seconds(180);
    failure.delay_source = "retry-after";
    throw FailureError(failure);
  });
  const RunId id = enqueue("task", policy);
  const auto executes = executor();
  const WallTime before = env_.wall_now();
  EXPECT_EQ(executes->execute(claim_as(executes->id(), id), {}, {}).outcome, Outcome::requeued);
  EXPECT_GE(get(id).available_at.value(), before + seconds(180));
  EXPECT_LE(get(id).available_at.value(), env_.wall_now() + seconds(180) + milliseconds(1));
  EXPECT_EQ(events(id).back().payload.at("delay_source"), "retry-after");
}

TEST_F(InlineTest, KeepsItsOwnLeaseAlive) {
  options_.heartbeat = milliseconds(30);
  handle("task", [&](RunContext& run) {
    return run.step("long", [&] {
      const int renewals = store_.calls("renew");
      eventually([&] { return store_.calls("renew") > renewals + 15; });
      return Json("done");
    });
  });
  const RunId id = enqueue("task", hasty_policy(milliseconds(200)));
  const auto executes = executor();
  const Claimed claimed = claim_as(executes->id(), id);
  EXPECT_EQ(executes->execute(claimed, {}, {}).outcome, Outcome::completed);
}

/// The environment comes before everything that uses it.
struct PassingTime {
  holdfast::testing::ShiftedEnv clocks_;
};

/// A segment in a thread of its own that waits for a lease which nobody renews.
class InlineWithoutStoreTest : protected PassingTime,
                               public EngineTest,
                               public ::testing::WithParamInterface<milliseconds> {
 protected:
  InlineWithoutStoreTest() : EngineTest(clocks_) {
    handle("task", [this](RunContext& run) {
      return run.step("s", [this] {
        ++works_;
        return Json("done");
      });
    });
  }
  void TearDown() override {
    // So that a test that fails ends, too.
    store_.set_down(false);
    never_renewed(0);
    if (thread_) thread_->join();
  }

  void never_renewed(int times = 1'000'000'000) { store_.fail("renew", Fault::before, times); }

  void begin() {
    options_.heartbeat = GetParam();
    never_renewed();
    executor_ = make_inline_executor(env_, store_, handlers_, options_);
    id_ = enqueue("task");
    thread_ = env_.spawn({"inline"}, [this, claimed = claim_as(executor_->id(), id_)] {
      try {
        outcome_ = executor_->execute(claimed, {}, stop_.get_token()).outcome;
      } catch (const StoreError&) {
        is_told_ = true;
      }
      has_ended_ = true;
    });
    ASSERT_TRUE(eventually([&] { return store_.calls("renew") > 2; }));
  }
  RunId id_;
  std::atomic<int> works_ = 0;
  std::atomic<bool> has_ended_ = false;
  std::atomic<bool> is_told_ = false;
  std::atomic<Outcome> outcome_ = Outcome::completed;
  std::stop_source stop_;

 private:
  std::unique_ptr<InlineExecutor> executor_;
  std::unique_ptr<Thread> thread_;
};

TEST_P(InlineWithoutStoreTest, ARunWhoseLeaseIsNotRenewedIsHandedBackAfterAWhile) {
  begin();
  EXPECT_FALSE(has_ended_);
  clocks_.suspend(seconds(31));
  ASSERT_TRUE(eventually([&] { return has_ended_.load(); }, seconds(20)));
  EXPECT_EQ(outcome_, Outcome::released);
  EXPECT_TRUE(is(id_, Status::queued));
  EXPECT_EQ(get(id_).requeue_count, 0);
  EXPECT_EQ(works_, 0);
}

TEST_P(InlineWithoutStoreTest, ACallerIsToldThatTheStoreIsAway) {
  begin();
  store_.set_down(true);
  ASSERT_TRUE(eventually(
      [&] {
        if (!has_ended_) clocks_.suspend(seconds(1));
        return has_ended_.load();
      },
      seconds(20)));
  EXPECT_TRUE(is_told_);
  EXPECT_EQ(works_, 0);
}

TEST_P(InlineWithoutStoreTest, AStopCancelsARunThatWaitsForItsLease) {
  begin();
  stop_.request_stop();
  ASSERT_TRUE(eventually([&] { return has_ended_.load(); }, seconds(20)));
  EXPECT_EQ(outcome_, Outcome::cancelled);
  EXPECT_TRUE(is(id_, Status::cancelled));
  EXPECT_EQ(works_, 0);
}

/// Renewed at the boundaries of steps, and by a thread of its own.
INSTANTIATE_TEST_SUITE_P(Heartbeats, InlineWithoutStoreTest,
                         ::testing::Values(milliseconds(0), milliseconds(30)),
                         [](const auto& of) { return std::to_string(of.param.count()); });

}  // namespace
}  // namespace holdfast::engine_test
