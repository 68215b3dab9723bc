// What a run has used up so far, as its handler is told in every segment.

#include "engine/engine_test_support.hpp"

namespace holdfast::engine_test {
namespace {

class JournalSpent : public EngineTest {};

TEST_F(JournalSpent, TellsWhatTheDriveHasUsedUpInEverySegment) {
  std::vector<Spent> seen;
  Failure busy;
  busy.cls = FailureClass::overloaded;
  std::atomic<int> fails = 0;
  StepOptions model;
  model.kind = StepKind::model;
  StepOptions tool;
  tool.kind = StepKind::tool;
  handle("task", [&](RunContext& run) -> Json {
    EXPECT_EQ(run.is_recorded("model"), run.spent().model_calls > 0);
    run.step("model", model, [](const StepContext&) {
      return StepResult{Json::object(), Usage{2, 3, 5, 0.5}};
    });
    run.step("tool", tool, [](const StepContext&) { return StepResult{}; });
    seen.push_back(run.spent());
    if (++fails < 3) throw FailureError(busy);
    return Json();
  });
  const RunId id = enqueue("task");
  work_off();
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  ASSERT_EQ(seen.size(), 3u);
  for (const Spent& spent : seen) {
    EXPECT_EQ(spent.usage, (Usage{2, 3, 5, 0.5}));
    EXPECT_EQ(spent.model_calls, 1);
    EXPECT_EQ(spent.tool_calls, 1);
    EXPECT_GE(spent.time, Duration::zero());
  }
  EXPECT_GE(seen.back().time, seen.front().time);
}

}  // namespace
}  // namespace holdfast::engine_test
