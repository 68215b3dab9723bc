#include <set>
#include <thread>

#include "runtime/test_runtime.hpp"

namespace holdfast::testing {
namespace {

class RunVerbs : public RuntimeTest {
 protected:
  /// The wall time of a lease's end is reckoned anew at each look.
  Json row(const RunId& id) {
    auto json = to_json(runtime_->get(id));
    json.erase("lease_expires_at");
    return json;
  }
  /// One run in each status but failed.
  std::vector<RunId> one_of_each_other_status() {
    auto later = request("echo", 1);
    later.delay = std::chrono::hours(1);
    const auto cancelled = runtime_->enqueue(later).id;
    runtime_->cancel(cancelled, {"ada", "", ""});
    return {runtime_->enqueue(later).id, running().id,          run_inline("approve").id,
            run_inline("fill").id,       run_inline("echo").id, cancelled};
  }
  /// How many of these calls were accepted, from as many threads at once.
  template <class Call>
  static int accepted_at_once(int threads, const Call& call) {
    std::atomic<int> accepted = 0;
    std::atomic<int> conflicts = 0;
    {
      std::vector<std::jthread> all;
      for (int i = 0; i < threads; ++i) {
        all.emplace_back([&] {
          try {
            call();
            ++accepted;
          } catch (const RefusedError& error) {
            EXPECT_EQ(error.refusal(), Refusal::conflict) << error.what();
            ++conflicts;
          }
        });
      }
    }
    EXPECT_EQ(accepted + conflicts, threads);
    return accepted;
  }
};
HOLDFAST_FOR_EACH_STORE(RunVerbs);

TEST_P(RunVerbs, RefuseAnIdThatDoesNotExist) {
  const RunId id = "01890000-0000-7000-8000-000000000000";
  expect_refused(Refusal::not_found, id, [&] { runtime_->get(id); });
  expect_refused(Refusal::not_found, id, [&] { runtime_->cancel(id, {}); });
  expect_refused(Refusal::not_found, id, [&] { runtime_->redrive(id, {}); });
  expect_refused(Refusal::not_found, id, [&] { runtime_->wake(id, {}); });
  expect_refused(Refusal::not_found, id, [&] { runtime_->hand_over(id, true, {}); });
  expect_refused(Refusal::not_found, id, [&] { runtime_->events(id, 0, 0); });
  expect_refused(Refusal::not_found, id, [&] { runtime_->why(id); });
  ResolveRequest request;
  request.run = id;
  expect_refused(Refusal::not_found, id, [&] { runtime_->resolve(request); });
  Decision decision;
  decision.run = id;
  expect_refused(Refusal::not_found, id, [&] { runtime_->decide(decision, {}, {}); });
  PurgeRequest purge;
  purge.ids = {id};
  expect_refused(Refusal::not_found, id, [&] { runtime_->purge(purge); });
}

TEST_P(RunVerbs, RedriveOnlyWhatFailed) {
  for (const auto& id : one_of_each_other_status()) {
    const auto before = row(id);
    const auto events = kinds(id);
    expect_refused(Refusal::conflict, id, [&] { runtime_->redrive(id, {"ada", "", ""}); });
    expect_refused(Refusal::conflict, before["status"], [&] { runtime_->redrive(id, {}); });
    EXPECT_EQ(row(id), before);
    EXPECT_EQ(kinds(id), events);
  }
  expect_sound();
}

TEST_P(RunVerbs, ManyRedrivesAtOnceAreOne) {
  const auto dead = dead_letter();
  EXPECT_EQ(accepted_at_once(100, [&] { runtime_->redrive(dead.id, {"ada", "", ""}); }), 1);
  EXPECT_EQ(count(dead.id, "redriven"), 1);
  EXPECT_EQ(runtime_->get(dead.id).redrive_count, 1);
  expect_sound();
}

TEST_P(RunVerbs, RedriveGoesOnBehindTheLastStep) {
  const auto dead = dead_letter();
  EXPECT_TRUE(dead.reason->is(Reason::not_retryable));
  mended_ = true;
  const auto redriven = runtime_->redrive(dead.id, {"ada", "mended", ""});
  EXPECT_FALSE(redriven.error);
  WorkerSettings settings;
  settings.drain = true;
  runtime_->start_worker(settings)->join();
  EXPECT_EQ(runtime_->get(dead.id).answer, Json("mended"));
  EXPECT_EQ(before_, 1);
  EXPECT_EQ(count(dead.id, "failed"), 1) << "the old failure stays in the history";
  expect_sound();
}

TEST_P(RunVerbs, RedriveWithALostReplyHappensOnce) {
  const auto dead = dead_letter();
  store_->after_redrive = lose_once();
  EXPECT_TRUE(runtime_->redrive(dead.id, {}).status.is(Status::queued));
  EXPECT_EQ(count(dead.id, "redriven"), 1);
}

TEST_P(RunVerbs, ManyCancelsOfWhatIsOverChangeNothing) {
  const auto completed = run_inline("echo").id;
  const auto failed = dead_letter().id;
  const auto cancelled = runtime_->enqueue(request("echo")).id;
  runtime_->cancel(cancelled, {});
  for (const auto& [id, accepted] :
       {std::pair{completed, 0}, std::pair{failed, 0}, std::pair{cancelled, 50}}) {
    const auto before = to_json(runtime_->get(id));
    const auto events = kinds(id);
    EXPECT_EQ(accepted_at_once(50, [&] { runtime_->cancel(id, {"ada", "", ""}); }), accepted);
    EXPECT_EQ(to_json(runtime_->get(id)), before);
    EXPECT_EQ(kinds(id), events);
  }
}

TEST_P(RunVerbs, CancelWorksInEveryStatusThatIsNotOver) {
  auto later = request("echo", 1);
  later.delay = std::chrono::hours(1);
  for (const auto& id : {runtime_->enqueue(later).id, running().id, run_inline("approve").id,
                         run_inline("fill").id}) {
    EXPECT_TRUE(runtime_->cancel(id, {"ada", "enough", ""}).status.is(Status::cancelled));
    const auto run = runtime_->get(id);
    EXPECT_FALSE(run.available_at || run.lease_until || run.waiting_for);
    EXPECT_EQ(runtime_->events(id, 0, 0).back().payload["actor"], "ada");
  }
  expect_sound();
}

TEST_P(RunVerbs, UnknownWriteIsResolvedAsLandedAndGoesOn) {
  const auto dead = run_inline("write");
  ASSERT_TRUE(dead.status.is(Status::failed));
  ASSERT_TRUE(dead.pending);
  EXPECT_TRUE(dead.reason->is(Reason::not_retryable));
  expect_refused(Refusal::conflict, "holdfast resolve", [&] { runtime_->redrive(dead.id, {}); });
  mended_ = true;
  ResolveRequest resolve;
  resolve.run = dead.id;
  resolve.landed = true;
  resolve.result = "paid before";
  EXPECT_TRUE(runtime_->resolve(resolve).status.is(Status::queued));
  WorkerSettings settings;
  settings.drain = true;
  runtime_->start_worker(settings)->join();
  EXPECT_EQ(runtime_->get(dead.id).answer, Json("paid before"));
  EXPECT_EQ(written_, 1);
  expect_refused(Refusal::conflict, dead.id, [&] { runtime_->resolve(resolve); });
  expect_sound();
}

TEST_P(RunVerbs, ResolveIsRefusedForAStepThatThePersonDidNotSee) {
  const auto dead = run_inline("write");
  ResolveRequest resolve;
  resolve.run = dead.id;
  resolve.step = "other#1";
  expect_refused(Refusal::conflict, dead.pending->step_key, [&] { runtime_->resolve(resolve); });
  resolve.step.reset();
  resolve.result = 1;
  expect_refused(Refusal::usage, "landed", [&] { runtime_->resolve(resolve); });
  EXPECT_TRUE(runtime_->get(dead.id).pending);
}

TEST_P(RunVerbs, WakeMakesADelayedRunAvailable) {
  auto later = request("echo", 1);
  later.delay = std::chrono::hours(1);
  const auto id = runtime_->enqueue(later).id;
  const auto run = runtime_->wake(id, {"ada", "", ""});
  EXPECT_LE(*run.available_at, store_->wall_now());
  EXPECT_EQ(count(id, "woken"), 1);
  expect_refused(Refusal::conflict, "it is available already", [&] {
    runtime_->wake(id, {"ada", "", ""});
  });
  expect_refused(Refusal::conflict, "`holdfast why " + id, [&] { runtime_->wake(id, {}); });
  EXPECT_EQ(count(id, "woken"), 1);
  expect_refused(Refusal::conflict, "completed",
                 [&] { runtime_->wake(run_inline("echo").id, {}); });
  expect_sound();
}

TEST_P(RunVerbs, RunOfAProcessThatIsGoneIsAbandonedUntilItIsHandedOver) {
  NewRun wanted;
  wanted.row.id = real_env().new_id();
  wanted.row.agent = "echo";
  wanted.row.input = 3;
  // A worker that left no trace at all is gone.
  store_->start(wanted, "gone-worker");
  EXPECT_TRUE(runtime_->get(wanted.row.id).abandoned);
  EXPECT_TRUE(runtime_->list({}).runs.at(0).abandoned);
  EXPECT_TRUE(runtime_->hand_over(wanted.row.id, false, {"ada", "", ""}).status.is(Status::queued));
  EXPECT_FALSE(runtime_->get(wanted.row.id).abandoned);
  expect_refused(Refusal::conflict, "queued",
                 [&] { runtime_->hand_over(wanted.row.id, true, {}); });
  WorkerSettings settings;
  settings.drain = true;
  runtime_->start_worker(settings)->join();
  EXPECT_EQ(runtime_->get(wanted.row.id).answer, Json(3));
  expect_sound();
}

TEST_P(RunVerbs, LeasedRunIsNeverAbandonedNorHandedOver) {
  const auto run = running("gone-worker");
  EXPECT_FALSE(runtime_->get(run.id).abandoned);
  expect_refused(Refusal::conflict, "lease", [&] { runtime_->hand_over(run.id, true, {}); });
}

TEST_P(RunVerbs, WaitReturnsAtTheEndOrWhenItsTimeIsOver) {
  auto later = request("echo", 1);
  later.delay = std::chrono::hours(1);
  const auto id = runtime_->enqueue(later).id;
  EXPECT_TRUE(runtime_->wait(id, Duration(20), {}).status.is(Status::queued));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(runtime_->wait(id, std::nullopt, stop.get_token()).status.is(Status::queued));
  const auto waiting = run_inline("approve").id;
  EXPECT_TRUE(runtime_->wait(waiting, std::nullopt, {}).status.is(Status::waiting_for_approval));
  const auto done = run_inline("echo").id;
  EXPECT_TRUE(runtime_->wait(done, std::nullopt, {}).status.is(Status::completed));
}

TEST_P(RunVerbs, ListRefusesWordsThatNothingCanMatch) {
  ListFilter filter;
  filter.status = "quued";
  expect_refused(Refusal::usage, "did you mean \"queued\"", [&] { runtime_->list(filter); });
  filter = {};
  filter.reason = "retries_exausted";
  expect_refused(Refusal::usage, "retries_exhausted", [&] { runtime_->list(filter); });
  filter = {};
  filter.limit = 0;
  expect_refused(Refusal::usage, "at least 1", [&] { runtime_->list(filter); });
}

TEST_P(RunVerbs, ListPagesThroughAllRunsOnce) {
  for (int i = 0; i < 7; ++i) runtime_->enqueue(request("echo", i));
  ListFilter filter;
  filter.limit = 3;
  std::set<int> seen;
  do {
    const auto page = runtime_->list(filter);
    for (const auto& run : page.runs) EXPECT_TRUE(seen.insert(run.input.get<int>()).second);
    filter.after = page.next;
  } while (filter.after);
  EXPECT_EQ(seen.size(), 7U);
}

TEST_P(RunVerbs, ReapTakesTheRunsOfALostWorkerBack) {
  const auto run = running("gone-worker");
  store_->expire_leases_of("gone-worker", store_->now());
  EXPECT_EQ(runtime_->reap(50, true).requeued, 1);
  EXPECT_TRUE(runtime_->get(run.id).status.is(Status::running));
  EXPECT_EQ(runtime_->reap(50, false).requeued, 1);
  EXPECT_EQ(runtime_->get(run.id).reclaim_count, 1);
  expect_refused(Refusal::usage, "at least 1", [&] { runtime_->reap(0, false); });
  expect_sound();
}

}  // namespace
}  // namespace holdfast::testing
