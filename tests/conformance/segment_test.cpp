#include "conformance/store_test_support.hpp"

namespace holdfast::testing {
namespace {

class Segment : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Stores, Segment, ::testing::ValuesIn(store_kinds()));

TEST_P(Segment, RecordedStepRenewsAndAppends) {
  const Claimed claimed = claimed_run();
  env.advance(10s);
  StepRecord step = a_step("fetch#1");
  step.usage = Usage{10, 5, 15, 0.25};
  step.counts_iteration = true;
  EXPECT_EQ(store->record(claimed.lease, step), Write::applied);
  const auto run = get(claimed.run.id);
  EXPECT_EQ(run.lease_until, env.store_now() + 60s);
  EXPECT_EQ(run.iterations, 1);
  EXPECT_EQ(run.usage, (Usage{10, 5, 15, 0.25}));
  const auto events = store->events(claimed.run.id, 2, 0);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].sequence, 3);
  EXPECT_EQ(events[0].kind, EventKind::step);
  EXPECT_EQ(events[0].claim, 1);
  EXPECT_EQ(events[0].at, env.wall_now());
  EXPECT_EQ(events[0].payload, step.payload);
}

TEST_P(Segment, RetriedRecordIsThereOnce) {
  const Claimed claimed = claimed_run();
  StepRecord step = a_step("fetch#1");
  EXPECT_EQ(store->record(claimed.lease, step), Write::applied);
  step.is_retry = true;
  EXPECT_EQ(store->record(claimed.lease, step), Write::applied);
  step.key = "fetch#2";
  step.payload["key"] = "fetch#2";
  EXPECT_EQ(store->record(claimed.lease, step), Write::applied);
  EXPECT_EQ(kinds(*store, claimed.run.id), (Kinds{"queued", "claimed", "step", "step"}));
}

TEST_P(Segment, LosesEveryWriteAfterItWasReapedAndClaimedByAnother) {
  const Claimed old = claimed_run();
  env.advance(61s);
  EXPECT_EQ(reap().requeued, 1);
  worker = "worker-2";
  const Claimed current = claim_one();
  EXPECT_EQ(current.lease.claim, 2);
  const auto before = kinds(*store, old.run.id);
  EXPECT_EQ(store->record(old.lease, a_step("late")), Write::lost);
  EXPECT_EQ(store->fence(old.lease, a_fence("late")), Write::lost);
  EXPECT_EQ(store->unfence(old.lease, {"late", {}}), Write::lost);
  EXPECT_EQ(complete(old), Write::lost);
  EXPECT_EQ(store->acknowledge_cancel(old.lease), Write::lost);
  EXPECT_EQ(store->renew("worker-1", std::span(&old.lease, 1)).answers, std::vector{Write::lost});
  EXPECT_EQ(kinds(*store, old.run.id), before);
  EXPECT_EQ(store->record(current.lease, a_step("mine")), Write::applied);
}

TEST_P(Segment, LateRenewalByTheTrueOwnerSucceedsWhileNobodyReaped) {
  const Claimed claimed = claimed_run();
  env.advance(10min);
  EXPECT_EQ(store->renew(worker, std::span(&claimed.lease, 1)).answers,
            std::vector{Write::applied});
  EXPECT_EQ(reap().requeued, 0);
}

TEST_P(Segment, FenceStandsUntilItsStepIsRecorded) {
  const Claimed claimed = claimed_run();
  EXPECT_EQ(store->fence(claimed.lease, a_fence("pay#1")), Write::applied);
  const auto fenced = get(claimed.run.id);
  ASSERT_TRUE(fenced.pending.has_value());
  EXPECT_EQ(fenced.pending->step_key, "pay#1");
  EXPECT_EQ(fenced.pending->arguments, (Json{{"amount", 5}}));
  EXPECT_EQ(fenced.pending->since, env.wall_now());
  EXPECT_EQ(fenced.pending->deadline, env.store_now() + 30s);
  EXPECT_EQ(fenced.pending->claim, 1);
  EXPECT_EQ(store->record(claimed.lease, a_step("pay#1")), Write::applied);
  EXPECT_FALSE(get(claimed.run.id).pending.has_value());
}

TEST_P(Segment, UnfenceClearsTheFence) {
  const Claimed claimed = claimed_run();
  store->fence(claimed.lease, a_fence("pay#1"));
  EXPECT_EQ(store->unfence(claimed.lease, {"pay#1", {}}), Write::applied);
  EXPECT_FALSE(get(claimed.run.id).pending.has_value());
}

TEST_P(Segment, CompletesOnceAndRepeatsHarmlessly) {
  const Claimed claimed = claimed_run();
  EXPECT_EQ(complete(claimed), Write::applied);
  const auto run = get(claimed.run.id);
  EXPECT_EQ(run.status, Status::completed);
  EXPECT_EQ(run.reason, Word<Reason>(Reason::completed));
  EXPECT_EQ(run.answer, Json("done"));
  EXPECT_EQ(run.finished_at, env.wall_now());
  EXPECT_FALSE(run.lease_until.has_value());
  EXPECT_FALSE(run.claimed_by.has_value());
  EXPECT_EQ(complete(claimed), Write::applied);
  EXPECT_EQ(kinds(*store, claimed.run.id), (Kinds{"queued", "claimed", "completed"}));
}

TEST_P(Segment, RetryableFailureRequeuesWithBackoffAndKeepsItsError) {
  const Claimed claimed = claimed_run();
  EXPECT_EQ(store->settle(claimed.lease, failing(claimed.run, env)), Write::applied);
  const auto run = get(claimed.run.id);
  EXPECT_EQ(run.status, Status::queued);
  EXPECT_EQ(run.requeue_count, 1);
  EXPECT_EQ(run.reclaim_count, 0);
  EXPECT_GT(run.available_at, env.wall_now());
  ASSERT_TRUE(run.error.has_value());
  EXPECT_EQ(run.error->cls, FailureClass::overloaded);
  EXPECT_EQ(run.error->message, "it went wrong");
  EXPECT_TRUE(claim().empty());
  env.advance(1h);
  EXPECT_EQ(claim_one().lease.claim, 2);
}

TEST_P(Segment, ReleasedRunIsAvailableAtOnceAndNotCharged) {
  const Claimed claimed = claimed_run();
  EXPECT_EQ(store->settle(claimed.lease, settlement(claimed.run, Interrupted{}, env)),
            Write::applied);
  EXPECT_EQ(get(claimed.run.id).requeue_count, 0);
  EXPECT_EQ(claim().size(), 1u);
}

TEST_P(Segment, CancelledRunTakesTheStepInFlightAndNothingElse) {
  const Claimed claimed = claimed_run();
  store->fence(claimed.lease, a_fence("pay#1"));
  EXPECT_EQ(store->cancel(claimed.run.id, by("op-1")).answer, ChangeResult::Answer::applied);
  EXPECT_EQ(store->renew(worker, std::span(&claimed.lease, 1)).answers,
            std::vector{Write::cancelled});
  EXPECT_EQ(store->record(claimed.lease, a_step("pay#1")), Write::cancelled);
  EXPECT_EQ(store->record(claimed.lease, a_step("pay#1")), Write::cancelled);
  EXPECT_EQ(complete(claimed), Write::cancelled);
  EXPECT_EQ(kinds(*store, claimed.run.id), (Kinds{"queued", "claimed", "cancelled", "step"}));
  const auto run = get(claimed.run.id);
  EXPECT_EQ(run.status, Status::cancelled);
  EXPECT_FALSE(run.pending.has_value());
  EXPECT_EQ(run.claimed_by, worker);
  EXPECT_FALSE(run.lease_until.has_value());
  EXPECT_EQ(store->acknowledge_cancel(claimed.lease), Write::applied);
  EXPECT_FALSE(get(claimed.run.id).claimed_by.has_value());
  EXPECT_EQ(store->record(claimed.lease, a_step("more")), Write::lost);
}

TEST_P(Segment, RenewalNamesLostAndStrayRuns) {
  const Claimed kept = claimed_run();
  const Claimed ended = claimed_run();
  const Claimed stray = claimed_run();
  complete(ended);
  const std::vector<Lease> leases{kept.lease, ended.lease, Lease{"no such run", 1, worker, false}};
  env.advance(5s);
  const auto report = store->renew(worker, leases);
  EXPECT_EQ(report.answers, (std::vector{Write::applied, Write::lost, Write::lost}));
  ASSERT_EQ(report.strays.size(), 1u);
  EXPECT_EQ(report.strays[0].run.id, stray.run.id);
  EXPECT_EQ(report.strays[0].run.input, Json("do it"));
  EXPECT_EQ(report.strays[0].lease.claim, 1);
  EXPECT_EQ(get(kept.run.id).lease_until, env.store_now() + 60s);
  EXPECT_EQ(get(stray.run.id).lease_until, env.store_now() + 55s);
}

TEST_P(Segment, WallClockJumpsTouchNoLease) {
  const Claimed claimed = claimed_run();
  env.jump_wall(std::chrono::hours(24));
  EXPECT_EQ(reap().requeued, 0);
  env.jump_wall(-std::chrono::hours(48));
  EXPECT_EQ(reap().requeued, 0);
  env.advance(60s);
  EXPECT_EQ(reap().requeued, 1);
}

/// Something happens just after somebody has looked at the clock.
class OvertakenEnv : public ManualEnv {
 public:
  StoreTime store_now() override {
    const StoreTime now = ManualEnv::store_now();
    if (auto hook = std::exchange(meanwhile, nullptr)) hook();
    return now;
  }
  std::function<void()> meanwhile;
};

TEST_P(Segment, ARenewalThatIsOvertakenByALaterOneShortensNoLease) {
  OvertakenEnv clock;
  const auto own = open_empty(clock);
  const NewRun run = a_run(clock);
  own->enqueue(std::span(&run, 1));
  const Claimed claimed = own->claim({worker, {offer()}, {}, 1, {}}).runs.at(0);
  std::unique_ptr<Thread> later;
  std::atomic<bool> has_renewed = false;
  clock.meanwhile = [&] {
    clock.advance(10s);
    later = clock.spawn({}, [&] {
      own->renew(worker, std::span(&claimed.lease, 1));
      has_renewed = true;
    });
    // It may also have to wait for this one.
    for (int i = 0; i < 100 && !has_renewed; ++i) clock.sleep_for(2ms, {});
  };
  own->renew(worker, std::span(&claimed.lease, 1));
  later->join();
  EXPECT_EQ(*own->find(run.row.id)->lease_until, clock.store_now() + 60s);
}

TEST_P(Segment, EventSequencesHaveNoGapsUnderConcurrentWriters) {
  const Claimed claimed = claimed_run();
  std::vector<std::unique_ptr<Thread>> threads;
  std::atomic<int> applied{0};
  for (int t = 0; t < 6; ++t) {
    threads.push_back(env.spawn({}, [&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto key = std::to_string(t) + "." + std::to_string(i);
        applied += store->record(claimed.lease, a_step(key)) == Write::applied ? 1 : 0;
      }
    }));
  }
  threads.clear();
  EXPECT_EQ(applied, 120);
  const auto events = store->events(claimed.run.id, 0, 0);
  ASSERT_EQ(events.size(), 122u);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].sequence, static_cast<std::int64_t>(i) + 1);
  }
  EXPECT_EQ(get(claimed.run.id).last_sequence, 122);
}

TEST_P(Segment, EveryPageOfALongJournalIsExact) {
  const Claimed claimed = claimed_run();
  const Claimed other = claimed_run();
  constexpr std::int64_t kEvents = 200;
  for (std::int64_t i = 2; i < kEvents; ++i) {
    ASSERT_EQ(store->record(claimed.lease, a_step(std::to_string(i))), Write::applied);
    ASSERT_EQ(store->record(other.lease, a_step("x")), Write::applied);
  }
  for (std::int64_t after = 0; after <= kEvents + 1; ++after) {
    for (const int limit : {0, 1, 2, 63, 64, 65, 500}) {
      std::vector<std::int64_t> found;
      for (const Event& event : store->events(claimed.run.id, after, limit)) {
        found.push_back(event.sequence);
      }
      std::vector<std::int64_t> expected;
      for (std::int64_t i = after + 1; i <= kEvents; ++i) {
        if (limit == 0 || std::ssize(expected) < limit) expected.push_back(i);
      }
      ASSERT_EQ(found, expected) << "after " << after << ", at most " << limit;
    }
  }
}

TEST_P(Segment, OddTextComesBackReadable) {
  NewRun wanted = a_run(env);
  const std::string odd = std::string("a\0b", 3) + "\xed\xa0\x80" + "\xff" + "\xf0\x9f\x98\x80";
  wanted.row.input = {{"text", odd}};
  wanted.row.queue = odd;
  wanted.row.idempotency_key = odd;
  wanted.row.labels = {{"label", odd}};
  enqueue(wanted);
  const Claimed claimed = claim_one();
  StepRecord step = a_step("odd");
  step.payload["result"] = odd;
  EXPECT_EQ(store->record(claimed.lease, step), Write::applied);
  Failure failure;
  failure.cls = FailureClass::auth;
  failure.message = odd;
  EXPECT_EQ(store->settle(claimed.lease, settlement(claimed.run, Failed{failure}, env)),
            Write::applied);
  const auto run = get(wanted.row.id);
  const auto text = run.input["text"].get<std::string>();
  EXPECT_EQ(text.find('\xff'), std::string::npos);
  EXPECT_NE(text.find("\xef\xbf\xbd"), std::string::npos);
  EXPECT_NE(text.find("\xf0\x9f\x98\x80"), std::string::npos);
  EXPECT_EQ(text.substr(0, 3), std::string("a\0b", 3));
  EXPECT_EQ(store->events(run.id, 2, 1).at(0).payload["result"], text);
  EXPECT_NE(run.error->message.find("\xf0\x9f\x98\x80"), std::string::npos);
  EXPECT_EQ(run.status, Status::failed);
  EXPECT_EQ(run.queue, text);
  EXPECT_EQ(run.idempotency_key, text);
  EXPECT_EQ(run.labels.at("label"), text);
  EXPECT_EQ(store->redrive(std::span(&run.id, 1), {"ann", odd, env.new_id()}).at(0).answer,
            ChangeResult::Answer::applied);
  const auto redriven = store->events(run.id, 0, 0).back();
  EXPECT_EQ(redriven.payload.at("note"), text);
}

TEST_P(Segment, LargeResultsComeBackWhole) {
  const Claimed claimed = claimed_run();
  StepRecord step = a_step("big");
  step.payload["result"] = std::string(3u << 20, 'x');
  EXPECT_EQ(store->record(claimed.lease, step), Write::applied);
  EXPECT_EQ(store->events(claimed.run.id, 2, 1).at(0).payload, step.payload);
}

}  // namespace
}  // namespace holdfast::testing
