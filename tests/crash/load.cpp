#include "crash/load.hpp"

#include <gtest/gtest.h>

namespace holdfast::crash {

Load::Load(Site& site, const LoadSettings& settings) : site_(site), settings_(settings) {
  site_.policy.lease = Duration(settings_.lease_ms);
  site_.runtime();
  for (int i = 0; i < settings_.workers; ++i) {
    workers_.push_back(site_.app({"worker", "--slots", std::to_string(settings_.slots), "--lease",
                                  std::to_string(settings_.lease_ms), "--heartbeat",
                                  std::to_string(settings_.heartbeat_ms)}));
  }
  for (const Process& worker : workers_) EXPECT_TRUE(site_.is_up(worker)) << site_.log_of(worker);
  caller_ = std::thread([this] { enqueue_on_and_on(); });
}

Load::~Load() {
  is_over_ = true;
  if (caller_.joinable()) caller_.join();
}

void Load::enqueue_on_and_on() {
  for (int number = 0; !is_over_; ++number) {
    RunRequest request;
    request.agent = "count";
    request.input = {{"steps", kSteps}, {"ms", settings_.step_ms}};
    request.idempotency_key = "order-" + std::to_string(number);
    while (!is_over_) {
      try {
        acknowledged_.push_back(site_.runtime().enqueue(request).id);
        break;
      } catch (const StoreError& error) {
        EXPECT_FALSE(error.permanent()) << error.what();
        let_pass(milliseconds(50));
      }
    }
    // No further ahead than what is done in a moment.
    const auto ahead = [&] { return kSteps * static_cast<int>(acknowledged_.size()) - 90; };
    eventually(seconds(60), [&] { return is_over_ || site_.times("count") >= ahead(); });
  }
}

bool Load::goes_on(int steps, milliseconds limit) {
  const int before = site_.times("count");
  return eventually(limit, [&] { return site_.times("count") >= before + steps; });
}

void Load::expect_nothing_lost() {
  is_over_ = true;
  caller_.join();
  const auto count = [&](const char* what) {
    return site_.sql_number(std::string("SELECT count(*) FROM @.") + what);
  };
  EXPECT_TRUE(eventually(seconds(60), [&] {
    return count("runs WHERE status IN ('queued', 'running')") == 0;
  })) << site_.runtime().stats().dump(1);
  for (Process& worker : workers_) {
    EXPECT_FALSE(worker.status()) << "it exited: " << site_.log_of(worker);
    EXPECT_EQ(site_.log_of(worker).find("given up"), std::string::npos) << site_.log_of(worker);
  }
  EXPECT_GT(acknowledged_.size(), 10u);
  for (const std::string& id : acknowledged_) ASSERT_EQ(site_.status(id), "completed") << id;
  EXPECT_EQ(count("runs WHERE status <> 'completed'"), 0);
  const auto taken = site_.sql(
      "SELECT run || ' ' || kind || ' ' || payload FROM @.events WHERE kind IN ('reaped', "
      "'requeued', 'failed')");
  EXPECT_EQ(taken, std::vector<std::string>()) << "a live worker was taken for dead";
  EXPECT_EQ(site_.times("count"), kSteps * count("runs"));
  site_.expect_sound();
}

}  // namespace holdfast::crash
