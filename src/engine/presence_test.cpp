// A worker's presence that is taken away from outside, or that it cannot have.

#include "engine/engine_test_support.hpp"

namespace holdfast::engine_test {
namespace {

/// Gives presences, takes them away, and refuses them, as it is told. Any thread.
class StubBoard final : public PresenceBoard {
 public:
  std::unique_ptr<PresenceHold> hold(const Identity&) override {
    if (refuses) throw StoreError("no rights on the folder", false);
    is_taken = false;
    ++holds;
    return std::make_unique<Hold>(*this);
  }
  std::vector<WorkerId> watch(Duration timeout, const std::stop_token& stop) override {
    real_env().sleep_for(timeout, stop);
    return {};
  }
  std::unique_ptr<PresenceProof> prove_gone(const WorkerId&) override { return nullptr; }
  bool is_gone(const WorkerId&) override { return false; }

  std::atomic<bool> refuses = false;
  std::atomic<bool> is_taken = false;
  std::atomic<int> holds = 0;

 private:
  class Hold final : public PresenceHold {
   public:
    explicit Hold(StubBoard& board) : board_(board) {}
    bool is_intact() override { return !board_.is_taken; }

   private:
    StubBoard& board_;
  };
};

class PresenceTest : public EngineTest {
 protected:
  PresenceTest() {
    options_.heartbeat = milliseconds(20);
    store_.other_presence = &board_;
  }
  std::string shown() {
    const auto rows = memory_->workers();
    return rows.empty() ? "" : rows.front().presence;
  }

  StubBoard board_;
};

TEST_F(PresenceTest, ThatWasTakenAwayIsTakenBack) {
  handle("task", [](RunContext&) { return Json(); });
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return shown() == "held"; }));
  EXPECT_EQ(board_.holds, 1);
  board_.is_taken = true;
  EXPECT_TRUE(eventually([&] { return board_.holds == 2; }));
  const int reports = store_.calls("report_worker");
  ASSERT_TRUE(eventually([&] { return store_.calls("report_worker") >= reports + 3; }));
  EXPECT_EQ(board_.holds, 2) << "what is held is left alone";
  EXPECT_EQ(shown(), "held");
}

TEST_F(PresenceTest, ThatCannotBeTakenBackIsShownAndTheWorkerGoesOn) {
  handle("task", [](RunContext&) { return Json(); });
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return shown() == "held"; }));
  board_.refuses = true;
  board_.is_taken = true;
  ASSERT_TRUE(eventually([&] { return shown() == "no rights on the folder"; }));
  const RunId id = enqueue("task");
  EXPECT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(count(id, EventKind::claimed), 1);
  board_.refuses = false;
  EXPECT_TRUE(eventually([&] { return shown() == "held"; }));
}

TEST_F(PresenceTest, ThatIsLostUnderAWriteInFlightRepeatsNothing) {
  store_.other_presence = nullptr;
  options_.heartbeat = seconds(20);
  options_.reaper_interval = milliseconds(20);
  Gate gate;
  std::atomic<int> payments = 0;
  handle("task", [&](RunContext& run) {
    return run.step("pay", payment(), [&](const StepContext&) {
      gate.pass();
      return StepResult{Json(++payments), std::nullopt};
    });
  });
  const RunId id = enqueue("task");
  const auto holder = work();
  const OpenedAtEnd opened(gate);
  ASSERT_TRUE(eventually([&] { return gate.is_reached(); }));
  // Held for gone, though it lives: its run rests with a person, and its late result is refused.
  ASSERT_EQ(memory_->expire_leases_of(holder->id(), memory_->now()), 1);
  const auto other = work();
  const OpenedAtEnd opened_for_it(gate);
  ASSERT_TRUE(eventually([&] { return is(id, Status::failed); }));
  const auto before = events(id);
  gate.open();
  holder->stop();
  holder->join();
  EXPECT_EQ(events(id).size(), before.size());
  EXPECT_TRUE(get(id).reason->is(Reason::not_retryable));
  EXPECT_TRUE(get(id).is_fenced_unsafe());
  EXPECT_EQ(payments, 1);
}

}  // namespace
}  // namespace holdfast::engine_test
