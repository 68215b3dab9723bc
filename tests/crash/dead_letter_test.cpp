// Runs that failed for good: they lie there until somebody decides on them, whatever happens to the
// store and whatever they say.

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <set>

#include "crash/harness.hpp"
#include "support/postgres_server.hpp"

namespace holdfast::crash {
namespace {

std::int64_t count_dead(const Site& site) {
  return site.sql_number("SELECT count(*) FROM @.runs WHERE status = 'failed'");
}

/// Each run of the list, page by page; `between` is done behind each of them.
std::set<std::string> listed(const Site& site, int limit,
                             const std::function<void()>& between = {}) {
  std::set<std::string> seen;
  std::string after;
  for (;;) {
    std::vector<std::string> args = {"--json", "list",    "--status",
                                     "failed", "--limit", std::to_string(limit)};
    if (!after.empty()) args.insert(args.end(), {"--after", after});
    const Result page = site.cli(args);
    EXPECT_EQ(page.code, 0) << page.err;
    if (page.code != 0) return seen;
    const Json parsed = Json::parse(page.out);
    EXPECT_LE(parsed.at("runs").size(), static_cast<std::size_t>(limit));
    for (const Json& run : parsed.at("runs")) {
      EXPECT_TRUE(seen.insert(run.at("id")).second) << "shown twice";
    }
    if (between) between();
    if (parsed.at("next").is_null()) return seen;
    after = parsed.at("next");
  }
}

TEST(DeadLetters, AreAllListedAndPagedOverOnceEach) {
  Site site;
  site.policy.max_requeues = 0;
  const int count = scaled(300, 20000);
  Json always = Json::array();
  for (int i = 0; i < 4; ++i) always.push_back("503");
  std::set<std::string> expected;
  for (const std::string& id : site.enqueue_many("faults", count, {{"faults", always}})) {
    expected.insert(id);
  }
  Process worker = site.app({"worker", "--slots", "16", "--budget", "0"});
  ASSERT_TRUE(eventually(seconds(scaled(60, 1200)), [&] {
    return site.runtime().stats().at("by_status").value("failed", 0) == count;
  })) << site.runtime().stats().dump(1);

  int pages = 0;
  const auto grow = [&] {
    site.enqueue_many("faults", 1, {{"faults", always}});
    ++pages;
  };
  const std::set<std::string> seen = listed(site, 70, grow);
  for (const std::string& id : expected) EXPECT_EQ(seen.count(id), 1u) << id;
  EXPECT_GT(pages, 3);
  worker.kill();
  site.expect_sound();
}

/// The server is restarted while they come to lie there, and while they lie there.
TEST(Server, ThatIsRestartedForgetsNoDeadLetter) {
  Site site;
  site.policy.max_requeues = 0;
  site.runtime();
  const int each = scaled(60, 7000);
  std::vector<std::string> ids;
  Process worker = site.app({"worker", "--slots", "8", "--budget", "0"});
  for (const int way : {SIGINT, SIGQUIT}) {
    const std::int64_t before = count_dead(site);
    const auto more = site.enqueue_many("faults", each, {{"faults", Json::array({"503"})}});
    ids.insert(ids.end(), more.begin(), more.end());
    ASSERT_TRUE(eventually(seconds(60), [&] { return count_dead(site) > before; }));
    testing::PostgresServer::shared().restart(way);
  }
  const auto all = static_cast<std::int64_t>(ids.size());
  ASSERT_TRUE(eventually(seconds(scaled(60, 1200)), [&] { return count_dead(site) == all; }))
      << site.runtime().stats().dump(1);
  testing::PostgresServer::shared().restart(SIGQUIT);
  const std::set<std::string> expected(ids.begin(), ids.end());
  EXPECT_EQ(listed(site, scaled(50, 500)), expected);
  for (const std::string& id : ids) ASSERT_EQ(site.count_events(id, EventKind::failed), 1) << id;

  const Result redriven = site.cli({"--json", "redrive", "--agent", "faults"}, {}, seconds(300));
  ASSERT_EQ(redriven.code, 0) << redriven.err;
  const Json report = Json::parse(redriven.out);
  EXPECT_EQ(report.at("moved"), all) << report.dump();
  EXPECT_EQ(report.at("skipped"), 0) << report.dump();
  EXPECT_TRUE(eventually(seconds(scaled(60, 1200)), [&] {
    return site.sql_number("SELECT count(*) FROM @.runs WHERE status = 'completed'") == all;
  })) << site.runtime().stats().dump(1);
  EXPECT_EQ(site.times("faults"), 2 * static_cast<int>(all));
  worker.kill();
  site.expect_sound();
}

TEST(DeadLetters, WithHugeErrorTextsAreShortInTheStoreAndInLists) {
  Site site;
  site.policy.max_requeues = 0;
  const int count = scaled(20, 1000);
  const auto ids = site.enqueue_many("faults", count, {{"faults", Json::array({"huge"})}});
  Process worker = site.app({"worker", "--slots", "4", "--budget", "0"});
  ASSERT_TRUE(eventually(seconds(scaled(60, 600)), [&] { return count_dead(site) == count; }))
      << site.runtime().stats().dump(1);
  // 4 KiB of it, and the note of what was cut.
  const auto longest = site.sql_number("SELECT max(length(error)) FROM @.runs");
  EXPECT_GT(longest, 4000);
  EXPECT_LT(longest, 6000);
  EXPECT_LT(site.sql_number("SELECT max(length(payload)) FROM @.events"), 10000);
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"--json", "list", "--status", "failed", "--limit", "1000"},
        std::vector<std::string>{"list", "--status", "failed", "--limit", "1000"}}) {
    const Result list = site.cli(args);
    EXPECT_EQ(list.code, 0) << list.err;
    EXPECT_NE(list.out.find(ids.back()), std::string::npos);
    EXPECT_LT(list.out.size(), static_cast<std::size_t>(count) * 8000);
  }
  const std::string text = site.show(ids.front()).at("error").at("message");
  EXPECT_NE(text.find("the other side answered 503!!!"), std::string::npos) << text;
  EXPECT_NE(text.find("cut"), std::string::npos) << text.substr(text.size() - 200);
  worker.kill();
  site.expect_sound();
}

}  // namespace
}  // namespace holdfast::crash
