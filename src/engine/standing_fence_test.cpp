// What becomes of a write whose worker died inside it: the fence that it left, and its probe.

#include "engine/engine_test_support.hpp"

namespace holdfast::engine_test {
namespace {

class StandingFence : public EngineTest {
 protected:
  /// A run whose worker died inside a payment that has a probe.
  RunId leave_fenced(const std::string& agent, Duration timeout) {
    RunId id = enqueue(agent);
    const Claimed claimed = claim_as("dead", id);
    Fence fence;
    fence.step_key = "pay#1";
    fence.name = "pay";
    fence.timeout = timeout;
    fence.has_probe = true;
    EXPECT_EQ(memory_->fence(claimed.lease, fence), Write::applied);
    // It is proven gone, and its run is reaped.
    EXPECT_EQ(memory_->expire_leases_of("dead", memory_->now()), 1);
    EXPECT_TRUE(eventually([&] { return reap_once(env_, *memory_, 50, false).requeued == 1; }));
    return id;
  }
  void handle_payment(const std::string& agent, const ProbeAnswer& answer) {
    handle(agent, [this, answer](RunContext& run) {
      StepOptions options = payment();
      options.probe = [this, answer](const StepContext&) {
        ++probes_;
        return answer;
      };
      return run.step("pay", options, [this](const StepContext&) {
        ++payments_;
        return StepResult{Json("paid"), std::nullopt};
      });
    });
  }
  std::atomic<int> probes_ = 0;
  std::atomic<int> payments_ = 0;
};

TEST_F(StandingFence, LandedRecordsTheStep) {
  handle_payment("task", Landed{Json("found")});
  const RunId id = leave_fenced("task", hours(1));
  work_off();
  EXPECT_EQ(get(id).answer, Json("found"));
  EXPECT_EQ(payments_, 0);
  EXPECT_EQ(count(id, EventKind::probed), 1);
  EXPECT_FALSE(get(id).pending.has_value());
}

TEST_F(StandingFence, NotLandedIsBelievedOnlyAfterTheDeadline) {
  handle_payment("task", NotLanded{});
  const RunId id = leave_fenced("task", milliseconds(800));
  const StoreTime deadline = get(id).pending->deadline;
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_GE(env_.store_now(), deadline);
  EXPECT_EQ(payments_, 1);
  EXPECT_GE(probes_, 1);
  EXPECT_EQ(get(id).requeue_count, 1);
}

TEST_F(StandingFence, UnknownIsLeftToAPerson) {
  handle_payment("task", Unknown{"no idea"});
  const RunId id = leave_fenced("task", milliseconds(1));
  work_off();
  EXPECT_TRUE(get(id).reason->is(Reason::not_retryable));
  EXPECT_TRUE(get(id).is_fenced_unsafe());
  EXPECT_EQ(payments_, 0);
  const auto journal = events(id);
  EXPECT_TRUE(journal.at(journal.size() - 2).kind.is(EventKind::probed));
  EXPECT_EQ(journal.at(journal.size() - 2).payload.at("answer"), "unknown");
  EXPECT_TRUE(journal.back().kind.is(EventKind::failed));
}

TEST_F(StandingFence, AProbeThatCannotBeStartedIsAskedByTheNextClaim) {
  handle("task", [this](RunContext& run) {
    StepOptions options = payment();
    options.probe = [this](const StepContext&) -> ProbeAnswer {
      if (++probes_ > 1) return Landed{Json("found")};
      Failure failure = make_failure(FailureClass::overloaded, "no_resources", "no process left");
      failure.not_started = true;
      throw FailureError(failure);
    };
    return run.step("pay", options, [this](const StepContext&) {
      ++payments_;
      return StepResult{Json("paid"), std::nullopt};
    });
  });
  const RunId id = leave_fenced("task", milliseconds(1));
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed) || is(id, Status::failed); }));
  EXPECT_EQ(get(id).answer, Json("found"));
  EXPECT_EQ(probes_, 2);
  EXPECT_EQ(payments_, 0);
  EXPECT_EQ(count(id, EventKind::requeued), 1);
  EXPECT_EQ(get(id).requeue_count, 2);  // the lost worker, and this
}

TEST_F(StandingFence, ATaskThatAsksForAnotherStepDoesNotTouchIt) {
  std::atomic<int> others = 0;
  handle("task",
         [&](RunContext& run) { return run.step("another", [&] { return Json(++others); }); });
  const RunId id = leave_fenced("task", milliseconds(1));
  work_off();
  EXPECT_TRUE(is(id, Status::failed));
  EXPECT_TRUE(get(id).is_fenced_unsafe());
  EXPECT_EQ(others, 0);
  EXPECT_NE(error_of(id).find("another"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::engine_test
