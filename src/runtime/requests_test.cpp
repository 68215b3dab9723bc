#include <set>
#include <thread>

#include "runtime/test_runtime.hpp"

namespace holdfast::testing {
namespace {

class Requests : public RuntimeTest {};
HOLDFAST_FOR_EACH_STORE(Requests);

TEST_P(Requests, AnIdThatIsTakenIsNamedWithTheRemedyAndNothingIsMerged) {
  auto first = request("echo", "one");
  first.id = real_env().new_id();
  runtime_->enqueue(first);
  auto other = request("echo", "two");
  other.id = first.id;
  expect_refused(Refusal::conflict, *first.id, [&] { runtime_->enqueue(other); });
  expect_refused(Refusal::conflict, "make a new id", [&] { runtime_->enqueue(other); });
  expect_refused(Refusal::conflict, "holdfast show " + *first.id,
                 [&] { runtime_->enqueue(other); });
  EXPECT_EQ(runtime_->get(*first.id).input, "one");
  EXPECT_EQ(runtime_->list({}).runs.size(), 1u);
  // The same request again is the same run.
  EXPECT_EQ(runtime_->enqueue(first).id, *first.id);
}

TEST_P(Requests, AreStoredAndFoundByTheirId) {
  auto wanted = request("echo", {{"a", 1}});
  wanted.priority = -3;
  wanted.labels = {{"team", "ops"}};
  wanted.queue = "slow";
  wanted.max_requeues = 0;
  const auto run = runtime_->get(runtime_->enqueue(wanted).id);
  EXPECT_TRUE(run.status.is(Status::queued));
  EXPECT_EQ(run.input, wanted.input);
  EXPECT_EQ(run.priority, -3);
  EXPECT_EQ(run.queue, "slow");
  EXPECT_EQ(run.labels, wanted.labels);
  EXPECT_EQ(run.max_requeues, 0);
  EXPECT_EQ(run.policy.max_requeues, 0);
}

TEST_P(Requests, ForAnUnknownAgentNameTheOneThatIsMeant) {
  expect_refused(Refusal::not_found, "did you mean \"echo\"",
                 [&] { runtime_->enqueue(request("ehco")); });
  EXPECT_TRUE(runtime_->list({}).runs.empty());
}

TEST_P(Requests, WithOneKeyFromManyThreadsAreOneRun) {
  constexpr int kThreads = 24;
  std::vector<RunId> ids(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        auto wanted = request("echo", 1);
        wanted.idempotency_key = "k";
        wanted.delay = std::chrono::hours(1);
        ids[static_cast<std::size_t>(i)] = runtime_->enqueue(wanted).id;
      });
    }
  }
  EXPECT_EQ(std::set<RunId>(ids.begin(), ids.end()).size(), 1U);
  EXPECT_EQ(runtime_->list({}).runs.size(), 1U);
  expect_sound();
}

TEST_P(Requests, WithOneKeyAndOtherContentConflict) {
  auto wanted = request("echo", 1);
  wanted.idempotency_key = "k";
  const auto first = runtime_->enqueue(wanted);
  auto other = wanted;
  other.input = 2;
  expect_refused(Refusal::conflict, first.id, [&] { runtime_->enqueue(other); });
  other = wanted;
  other.priority = 1;
  expect_refused(Refusal::conflict, first.id, [&] { runtime_->enqueue(other); });
  EXPECT_EQ(runtime_->list({}).runs.size(), 1U);
}

TEST_P(Requests, WithAKeyFindTheRunWhateverItsState) {
  auto wanted = request("echo", 1);
  wanted.idempotency_key = "k";
  const auto done = runtime_->run_inline(wanted, {}, {}).run;
  const auto again = runtime_->enqueue(wanted);
  EXPECT_EQ(again.id, done.id);
  EXPECT_TRUE(again.status.is(Status::completed));
}

TEST_P(Requests, WhoseReplyWasLostAreStoredOnce) {
  store_->after_enqueue = lose_once();
  const auto run = runtime_->enqueue(request("echo", 1));
  EXPECT_TRUE(runtime_->get(run.id).status.is(Status::queued));
  EXPECT_EQ(runtime_->list({}).runs.size(), 1U);
  EXPECT_EQ(kinds(run.id), std::vector<std::string>{"queued"});
}

TEST_P(Requests, InABatchAreStoredAllOrNone) {
  auto taken = request("echo", 1);
  taken.idempotency_key = "k";
  runtime_->enqueue(taken);
  auto conflicting = taken;
  conflicting.input = 2;
  const std::vector<RunRequest> batch = {request("echo", 3), conflicting, request("echo", 4)};
  expect_refused(Refusal::conflict, "\"k\"", [&] { runtime_->enqueue(batch); });
  EXPECT_EQ(runtime_->list({}).runs.size(), 1U);

  const std::vector<RunRequest> unknown = {request("echo", 3), request("nobody", 3)};
  expect_refused(Refusal::not_found, "nobody", [&] { runtime_->enqueue(unknown); });
  EXPECT_EQ(runtime_->list({}).runs.size(), 1U);

  const std::vector<RunRequest> good = {request("echo", 3), request("echo", 4)};
  const auto runs = runtime_->enqueue(good);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[1].input, 4);
}

TEST_P(Requests, TakeTheQueueOfTheirTask) {
  runtime_->register_task("slow", [](RunContext&) { return Json(); }, {"night", std::nullopt});
  EXPECT_EQ(runtime_->enqueue(request("slow")).queue, "night");
}

TEST_P(Requests, ForTasksThatComeTooLateOrTwiceAreRefused) {
  const auto handler = [](RunContext&) { return Json(); };
  expect_refused(Refusal::usage, "of this name already",
                 [&] { runtime_->register_task("echo", handler); });
  run_inline("echo", 1);
  expect_refused(Refusal::usage, "before anything is executed",
                 [&] { runtime_->register_task("late", handler); });
}

}  // namespace
}  // namespace holdfast::testing
