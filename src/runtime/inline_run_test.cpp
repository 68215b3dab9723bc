#include <thread>

#include "runtime/test_runtime.hpp"

namespace holdfast::testing {
namespace {

class InlineRun : public RuntimeTest {};
HOLDFAST_FOR_EACH_STORE(InlineRun);

TEST_P(InlineRun, InteractiveHasNoLeaseAndShowsItsEvents) {
  std::vector<std::string> seen;
  const auto result = runtime_->run(
      request("echo", "hello"), [&](const Event& event) { seen.push_back(event.kind.text()); }, {});
  EXPECT_EQ(result.outcome, Outcome::completed);
  EXPECT_EQ(result.run.answer, Json("hello"));
  EXPECT_TRUE(result.run.origin.is(Origin::interactive));
  EXPECT_EQ(kinds(result.run.id), (std::vector<std::string>{"started", "step", "completed"}));
  EXPECT_NE(std::find(seen.begin(), seen.end(), "step"), seen.end());
  expect_sound();
}

TEST_P(InlineRun, InteractiveFailureIsNotRetried) {
  const auto result = runtime_->run(request("fail", "overloaded"), {}, {});
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_TRUE(result.run.reason->is(Reason::provider_failed));
  EXPECT_EQ(result.run.error->message, "it broke");
  EXPECT_EQ(count(result.run.id, "requeued"), 0);
}

TEST_P(InlineRun, SpendsItsBudgetAtOnce) {
  const auto result = runtime_->run_inline(request("fail", "overloaded"), {}, {});
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_TRUE(result.run.reason->is(Reason::retries_exhausted));
  EXPECT_EQ(count(result.run.id, "claimed"), 4);
  EXPECT_EQ(count(result.run.id, "requeued"), 3);
  EXPECT_EQ(before_, 1) << "a recorded step was executed again";
  expect_sound();
}

TEST_P(InlineRun, WaitsForItsSleep) {
  const auto result = runtime_->run_inline(request("nap", 30), {}, {});
  EXPECT_EQ(result.outcome, Outcome::completed);
  EXPECT_EQ(result.run.answer, Json("rested"));
  EXPECT_EQ(result.run.requeue_count, 0);
  expect_sound();
}

TEST_P(InlineRun, StopsWhereAPersonMustDecide) {
  EXPECT_EQ(runtime_->run_inline(request("approve"), {}, {}).outcome, Outcome::awaiting_approval);
  EXPECT_EQ(runtime_->run_inline(request("fill"), {}, {}).outcome, Outcome::awaiting_input);
}

TEST_P(InlineRun, IsStoredBeforeItIsExecutedAndSurvivesALostClaimReply) {
  store_->after_claim = lose_once();
  const auto result = runtime_->run_inline(request("echo", 7), {}, {});
  EXPECT_EQ(result.outcome, Outcome::completed);
  EXPECT_EQ(result.run.claim, 1);
}

TEST_P(InlineRun, FollowsAnotherWorkerToTheEnd) {
  auto wanted = request("echo", 1);
  wanted.idempotency_key = "k";
  const auto stored = runtime_->enqueue(wanted);
  ClaimRequest claim;
  claim.worker = "other";
  claim.agents = {{"echo", Policy{}, nullptr}};
  claim.only = stored.id;
  const auto theirs = store_->claim(claim).runs.at(0);
  std::optional<SegmentResult> result;
  std::jthread follower([&] { result = runtime_->run_inline(wanted, {}, {}); });
  Settlement done = decide(theirs.run, Completed{"theirs"}, false, store_->wall_now(), 0);
  EXPECT_EQ(store_->settle(theirs.lease, done), Write::applied);
  follower.join();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, Outcome::completed);
  EXPECT_EQ(result->run.answer, Json("theirs"));
}

TEST_P(InlineRun, StoppedWhileItWaitsIsCancelled) {
  std::stop_source stop;
  auto wanted = request("echo", 1);
  wanted.delay = std::chrono::hours(1);
  store_->after_claim = [&] { stop.request_stop(); };
  const auto result = runtime_->run_inline(wanted, {}, stop.get_token());
  EXPECT_EQ(result.outcome, Outcome::cancelled);
  EXPECT_EQ(count(result.run.id, "claimed"), 0);
}

TEST_P(InlineRun, StoppedWhileAnotherWorkerHasItIsLeftAlone) {
  auto wanted = request("echo", 1);
  wanted.idempotency_key = "k";
  const auto stored = runtime_->enqueue(wanted);
  ClaimRequest claim;
  claim.worker = "other";
  claim.agents = {{"echo", Policy{}, nullptr}};
  claim.only = stored.id;
  store_->claim(claim);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(runtime_->run_inline(wanted, {}, stop.get_token()).outcome, Outcome::lease_lost);
  EXPECT_TRUE(runtime_->get(stored.id).status.is(Status::running));
}

TEST_P(InlineRun, WorkerDrainsWhatIsQueued) {
  for (int i = 0; i < 10; ++i) runtime_->enqueue(request("echo", i));
  WorkerSettings settings;
  settings.drain = true;
  const auto worker = runtime_->start_worker(settings);
  worker->join();
  EXPECT_EQ(runtime_->stats()["by_status"], (Json{{"completed", 10}}));
  expect_sound();
}

TEST_P(InlineRun, WorkerSettingsOutOfRangeAreRefused) {
  WorkerSettings settings;
  settings.concurrency = 0;
  expect_refused(Refusal::usage, "at least 1", [&] { runtime_->start_worker(settings); });
  auto empty = make_runtime({}, real_env(), open_store("memory:", real_env()));
  expect_refused(Refusal::not_found, "no agent", [&] { empty->start_worker({}); });
}

}  // namespace
}  // namespace holdfast::testing
