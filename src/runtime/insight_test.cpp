#include <fstream>

#include "runtime/test_runtime.hpp"

namespace holdfast::testing {
namespace {

class Insight : public RuntimeTest {
 protected:
  std::string doctor_says(const std::string& subject) {
    std::string text;
    for (const auto& finding : runtime_->doctor()) {
      if (finding.subject == subject) text += finding.text + "\n";
    }
    return text;
  }
  /// A live process, as a worker reports itself.
  std::unique_ptr<PresenceHold> live_worker(WorkerRow row) {
    const auto identity = real_env().make_identity();
    auto hold = store_->presence() ? store_->presence()->hold(identity) : nullptr;
    row.id = identity.id;
    row.host = identity.host;
    row.pid = identity.pid;
    row.presence = "held";
    store_->report_worker(row);
    return hold;
  }
};
HOLDFAST_FOR_EACH_STORE(Insight);

TEST_P(Insight, StatsCountRunsByStatusAndReason) {
  run_inline("echo");
  dead_letter();
  run_inline("approve");
  auto later = request("echo", 1);
  later.delay = std::chrono::hours(1);
  runtime_->enqueue(later);
  auto urgent = request("echo", 1);
  urgent.priority = 7;
  runtime_->enqueue(urgent);
  running();
  const auto stats = runtime_->stats();
  EXPECT_EQ(stats["by_status"], (Json{{"completed", 1},
                                      {"failed", 1},
                                      {"waiting_for_approval", 1},
                                      {"queued", 2},
                                      {"running", 1}}));
  EXPECT_EQ(stats["by_reason"], (Json{{"completed", 1}, {"not_retryable", 1}}));
  EXPECT_EQ(stats["due"], 1);
  EXPECT_EQ(stats["delayed"], 1);
  EXPECT_TRUE(stats["oldest_due_seconds"].is_number());
  EXPECT_TRUE(stats["oldest_due_by_priority"].contains("7"));
  EXPECT_EQ(stats["leases"], (Json{{"held", 1}, {"stale", 0}}));
  EXPECT_EQ(stats["circuits"], Json::array());
  EXPECT_EQ(stats["unserved"], (Json{{"echo", 1}}));
}

TEST_P(Insight, StatsOfAnEmptyStoreAreWhole) {
  const auto stats = runtime_->stats();
  EXPECT_TRUE(stats["by_status"].is_object());
  EXPECT_TRUE(stats["oldest_due_seconds"].is_null());
  EXPECT_EQ(stats["workers"], (Json{{"live", 0}, {"slots", 0}, {"busy", 0}, {"stuck", 0}}));
}

TEST_P(Insight, WorkersAreTheLiveOnes) {
  WorkerRow row;
  row.name = "night";
  row.agents = {"echo"};
  row.slots = 4;
  row.busy = 1;
  row.started_at = store_->wall_now();
  const auto hold = live_worker(row);
  WorkerRow gone;
  gone.id = "gone-worker";
  gone.presence = "held";
  gone.slots = 9;
  store_->report_worker(gone);
  const auto workers = runtime_->workers();
  ASSERT_EQ(workers.size(), 1U) << workers.dump();
  EXPECT_EQ(workers[0]["name"], "night");
  EXPECT_EQ(workers[0]["presence"], "held");
  EXPECT_EQ(runtime_->stats()["workers"],
            (Json{{"live", 1}, {"slots", 4}, {"busy", 1}, {"stuck", 0}}));
  runtime_->enqueue(request("echo", 1));
  EXPECT_EQ(runtime_->stats()["unserved"], Json::object());
}

TEST_P(Insight, WhyFollowsTheRun) {
  const auto id = runtime_->enqueue(request("echo", 1)).id;
  EXPECT_NE(runtime_->why(id)["text"].get<std::string>().find("No live worker"), std::string::npos);
  const auto dead = run_inline("write");
  const auto why = runtime_->why(dead.id);
  EXPECT_EQ(why["status"], "failed");
  EXPECT_NE(why["text"].get<std::string>().find(dead.pending->idempotency_key), std::string::npos);
  EXPECT_NE(why["commands"].dump().find("--not-landed"), std::string::npos);
}

TEST_P(Insight, VerifyOfASoundStoreFindsNothingAndSaysWhatItCannotSee) {
  run_inline("echo");
  run_inline("fail", "overloaded");
  run_inline("write");
  run_inline("approve");
  runtime_->run(request("fail", "auth"), {}, {});
  const auto findings = runtime_->verify();
  for (const auto& finding : findings) {
    EXPECT_EQ(finding.grade, Finding::Grade::ok) << finding.subject << ": " << finding.text;
  }
  EXPECT_NE(findings.front().text.find("5 runs"), std::string::npos) << findings.front().text;
  EXPECT_GT(findings.size(), 5U);
}

TEST_P(Insight, DoctorSeesThatNobodyServes) {
  runtime_->enqueue(request("echo", 1));
  EXPECT_NE(doctor_says("agents.echo").find("1 of its runs are due"), std::string::npos);
  EXPECT_NE(doctor_says("agents.fill").find("no live worker serves it"), std::string::npos);
  EXPECT_NE(doctor_says("clock").find("the newest event is of"), std::string::npos);
  EXPECT_FALSE(doctor_says("presence").empty());
}

TEST_P(Insight, DoctorSeesStuckSlots) {
  WorkerRow row;
  row.name = "night";
  row.agents = {"echo"};
  row.slots = 4;
  row.stuck = 2;
  const auto hold = live_worker(row);
  EXPECT_NE(doctor_says("worker night").find("2 of its 4 slots are stuck"), std::string::npos);
}

TEST_P(Insight, DoctorChecksWhatIsConfigured) {
  RuntimeOptions options;
  options.heartbeat = Duration::zero();
  options.reaper_interval = Duration::zero();
  ToolSpec tool;
  tool.name = "lookup";
  tool.command = {"/nowhere/lookup.sh"};
  options.tools = {tool};
  open(options);
  EXPECT_FALSE(doctor_says("lease.heartbeat").empty());
  EXPECT_FALSE(doctor_says("reaper.interval").empty());
  bool found = false;
  for (const auto& finding : runtime_->doctor()) {
    const bool is_tool = finding.text.find("/nowhere/lookup.sh") != std::string::npos;
    found = found || (is_tool && finding.grade == Finding::Grade::bad);
  }
  EXPECT_TRUE(found);
}

TEST_P(Insight, OpenRefusesBadOptionsBeforeItTouchesTheStore) {
  RuntimeOptions options;
  options.store_url = "sqlite:" + (folder_.path() / "other.db").string();
  options.reaper_limit = 0;
  expect_refused(Refusal::usage, "reaper.limit", [&] { Runtime::open(options); });
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "other.db"));
}

TEST_P(Insight, BackupIsAStoreOfItsOwn) {
  const auto run = run_inline("echo", 5);
  expect_refused(Refusal::usage, "file", [&] { runtime_->backup(""); });
  if (std::string(GetParam()) == "memory") return;  // there is no file to copy
  const auto file = (folder_.path() / "copy.db").string();
  runtime_->backup(file);
  RuntimeOptions options;
  options.store_url = "sqlite:" + file;
  EXPECT_EQ(Runtime::open(options)->get(run.id).answer, Json(5));
}

TEST(Migrate, SaysTheVersionsBeforeAndAfter) {
  const TempFolder folder;
  const auto url = "sqlite:" + (folder.path() / "runs.db").string();
  const auto first = migrate(url);
  EXPECT_GT(first.after, first.before);
  const auto second = migrate(url);
  EXPECT_EQ(second.before, first.after);
  EXPECT_EQ(second.after, first.after);
}

TEST(Version, IsThatOfTheProject) {
  std::ifstream file(std::string(HOLDFAST_SOURCE_DIR) + "/CMakeLists.txt");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find(std::string("VERSION ") + version() + " "), std::string::npos);
}

}  // namespace
}  // namespace holdfast::testing
