// A run that is cancelled and purged between its claim and the look at its journal.

#include "engine/engine_test_support.hpp"

namespace holdfast::engine_test {
namespace {

class JournalPurgedTest : public EngineTest {};

TEST_F(JournalPurgedTest, WhatWasRecordedIsNotExecutedAgainWhenItsJournalIsGone) {
  std::atomic<int> paid = 0;
  std::atomic<int> handled = 0;
  RunId id;
  handle("task", [&](RunContext& run) -> Json {
    ++handled;
    run.step("paid", [&] { return Json(++paid); });
    // Purged behind the second claim, before its segment has read what was recorded.
    store_.before("events", [&] {
      memory_->cancel(id, {"somebody", "", env_.new_id()});
      PurgeRequest all;
      all.older_than = Duration(0);
      memory_->purge(all, 10);
    });
    throw FailureError(make_failure(FailureClass::server_error, "", "again"));
  });
  NewRun wanted = new_run("task");
  id = wanted.row.id;
  enqueue(wanted);
  const auto worker = work(1);
  ASSERT_TRUE(eventually([&] { return handled == 2; }));
  worker->stop();
  worker->join();
  EXPECT_FALSE(memory_->find(id).has_value());
  EXPECT_EQ(paid, 1);
}

}  // namespace
}  // namespace holdfast::engine_test
