// What reapers do with those who only seem to be gone.

#include "engine/engine_test_support.hpp"

namespace holdfast::engine_test {
namespace {

/// Suspects one worker, and can prove nothing.
class SuspiciousBoard final : public PresenceBoard {
 public:
  explicit SuspiciousBoard(WorkerId suspect) : suspect_(std::move(suspect)) {}
  std::unique_ptr<PresenceHold> hold(const Identity&) override { return nullptr; }
  std::vector<WorkerId> watch(Duration, const std::stop_token&) override { return {suspect_}; }
  std::unique_ptr<PresenceProof> prove_gone(const WorkerId&) override { return nullptr; }
  bool is_gone(const WorkerId&) override { return false; }

 private:
  const WorkerId suspect_;
};

class ReaperTest : public EngineTest {};

TEST_F(ReaperTest, SuspicionWithoutProofEndsNoLease) {
  handle("task", [](RunContext&) { return Json(); });
  const RunId id = enqueue("task");
  claim_as("slow", id);
  SuspiciousBoard board("slow");
  store_.other_presence = &board;
  const ReapReport report = reap_once(env_, store_, 50, false);
  EXPECT_EQ(report.requeued + report.dead_lettered, 0);
  EXPECT_TRUE(is(id, Status::running));
  EXPECT_EQ(store_.calls("expire_leases_of"), 0);
}

/// One sweep handles few at a time, and a judge that has just begun looks at the holders of all.
TEST_F(ReaperTest, ANewJudgeWaitsForWhoeverMayLiveBehindTheDeadOnes) {
  options_.reaper_interval = milliseconds(20);
  options_.reaper_limit = 1;
  handle("task", [](RunContext&) { return Json(); });
  store_.has_presence = false;
  const auto over = [&](const WorkerId& holder) {
    RunId id = enqueue("task", hasty_policy(milliseconds(20)));
    claim_as(holder, id);
    EXPECT_TRUE(eventually([&] { return *get(id).lease_until <= memory_->now(); }));
    return id;
  };
  const RunId left = over("nobody knows");
  WorkerRow row;
  row.id = "slow";
  const auto there = memory_->presence()->hold({row.id, "host", 1, 1});
  memory_->report_worker(row);
  const RunId held = over(row.id);
  const auto judge = work();
  ASSERT_TRUE(eventually([&] { return count(left, EventKind::reaped) == 1; }, seconds(20)));
  ASSERT_TRUE(eventually([&] { return store_.calls("workers") >= 5; }));
  EXPECT_EQ(count(held, EventKind::reaped), 0);
}

}  // namespace
}  // namespace holdfast::engine_test
