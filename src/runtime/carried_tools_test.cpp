// Workers of different configurations over one store: a run's tools are those of its first claim.

#include <fstream>

#include "runtime/test_runtime.hpp"

namespace holdfast::testing {
namespace {

class CarriedTools : public ::testing::Test {
 protected:
  RuntimeOptions options(std::vector<ToolSpec> tools) {
    const std::string script = (folder_.path() / "turns.json").string();
    std::ofstream(script) << R"([{"tool_calls": [{"name": "pay"}]}, {"reply": "paid"}])";
    RuntimeOptions options;
    options.store_url = "sqlite:" + (folder_.path() / "runs.db").string();
    ProviderSpec provider;
    provider.name = "main";
    provider.kind = "scripted";
    provider.script = script;
    options.providers = {provider};
    AgentSpec agent;
    agent.name = "payer";
    agent.models = {"main/m"};
    for (const ToolSpec& tool : tools) agent.tools.push_back(tool.name);
    options.tools = std::move(tools);
    options.agents = {agent};
    return options;
  }

  ToolSpec pay() {
    ToolSpec tool;
    tool.name = "pay";
    tool.approval = true;
    tool.function = [this](const Json&, const StepContext&) -> Json { return ++paid_; };
    return tool;
  }

  static void work_off(Runtime& runtime) {
    WorkerSettings settings;
    settings.drain = true;
    settings.with_reaper = false;
    runtime.start_worker(settings)->join();
  }

  TempFolder folder_;
  std::atomic<int> paid_ = 0;
};

TEST_F(CarriedTools, ARunIsLeftToAWorkerThatHasItsTools) {
  const auto able = Runtime::open(options({pay()}));
  const auto unable = Runtime::open(options({}));
  RunRequest request;
  request.agent = "payer";
  const RunId id = able->enqueue(request).id;
  work_off(*able);
  Decision decision;
  decision.run = id;
  able->decide(decision, {}, {});

  work_off(*unable);
  const auto left = able->get(id);
  EXPECT_TRUE(left.status.is(Status::queued)) << left.status.text();
  EXPECT_EQ(left.requeue_count, 0);
  const std::string why = able->why(id)["text"];
  EXPECT_NE(why.find("tool 'pay'"), std::string::npos) << why;

  able->wake(id, {"ada", "", "wake-1"});
  work_off(*able);
  EXPECT_EQ(able->get(id).answer, Json("paid"));
  EXPECT_EQ(paid_, 1);
  for (const auto& finding : able->verify()) {
    EXPECT_NE(finding.grade, Finding::Grade::bad) << finding.text;
  }
}

}  // namespace
}  // namespace holdfast::testing
