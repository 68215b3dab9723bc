#include "runtime/circuits.hpp"

#include <fstream>

#include "runtime/test_runtime.hpp"

namespace holdfast::testing {
namespace {

using namespace std::chrono_literals;

/// An agent whose provider answers 503 three times and then the text.
class CircuitsTest : public ::testing::Test {
 protected:
  void open(Duration pause) {
    std::ofstream(folder_.path() / "script.json")
        << R"([{"reply": "done", "errors": [{"status": 503}, {"status": 503}, {"status": 503}]}])";
    RuntimeOptions options;
    options.store_url = "sqlite:" + (folder_.path() / "runs.db").string();
    options.policy.backoff_base = 1ms;
    options.policy.max_requeues = 3;
    options.circuit.threshold = 2;
    options.circuit.open = pause;
    ProviderSpec provider;
    provider.name = "main";
    provider.kind = "scripted";
    provider.script = (folder_.path() / "script.json").string();
    options.providers = {provider};
    AgentSpec agent;
    agent.name = "agent";
    agent.models = {"main/m"};
    options.agents = {agent};
    runtime_ = Runtime::open(options);
    RunRequest request;
    request.agent = "agent";
    request.input = "go";
    id_ = runtime_->enqueue(request).id;
  }
  void work_until(const std::function<bool()>& is_done) {
    const auto worker = runtime_->start_worker({});
    while (!is_done()) real_env().sleep_for(5ms, {});
    worker->stop();
    worker->join();
  }
  int count(EventKind kind) {
    int found = 0;
    for (const Event& event : runtime_->events(id_, 0, 0)) found += event.kind.is(kind) ? 1 : 0;
    return found;
  }

  TempFolder folder_;
  std::unique_ptr<Runtime> runtime_;
  RunId id_;
};

TEST_F(CircuitsTest, ARunWaitsUnchargedAndGoesOnWhenTheProviderIsBack) {
  open(200ms);
  work_until([&] { return runtime_->get(id_).finished_at.has_value(); });
  const auto run = runtime_->get(id_);
  EXPECT_TRUE(run.status.is(Status::completed));
  EXPECT_EQ(run.answer, Json("done"));
  EXPECT_EQ(run.requeue_count, 3) << "for each call that failed, and for nothing else";
  EXPECT_EQ(count(EventKind::requeued), 3);
  EXPECT_GE(count(EventKind::parked), 2) << "before each probe";
  EXPECT_TRUE(runtime_->stats()["circuits"].empty());
}

TEST_F(CircuitsTest, AnOpenOneIsShown) {
  open(1h);
  work_until([&] { return count(EventKind::parked) > 0; });
  const Json circuits = runtime_->stats()["circuits"];
  ASSERT_EQ(circuits.size(), 1u);
  EXPECT_EQ(circuits[0]["target"], "main/m");
  EXPECT_EQ(circuits[0]["state"], "open");
  EXPECT_EQ(circuits[0]["failures"], 2);
  EXPECT_EQ(circuits[0]["class"], "overloaded");
  EXPECT_TRUE(circuits[0]["next_probe_at"].is_string());
  const Json why = runtime_->why(id_);
  EXPECT_NE(why["text"].get<std::string>().find("main/m failed 2 times in a row"),
            std::string::npos)
      << why["text"];
  EXPECT_EQ(why["facts"]["circuits"].size(), 1u);
}

}  // namespace
}  // namespace holdfast::testing
