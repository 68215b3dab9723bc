// What happens on the way to a database server: refused, reset, swallowed, late, one reply lost.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "crash/load.hpp"
#include "support/postgres_server.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::crash {
namespace {

using testing::PostgresServer;
using testing::TcpProxy;

/// The processes of the site reach the server through the proxy.
class Way : public ::testing::Test {
 protected:
  Way() : proxy(PostgresServer::shared().port()) {
    PostgresServer& server = PostgresServer::shared();
    site.use_server(server.tcp_url(proxy.port(), site.schema()), server.url(site.schema()));
    site.configure({});
  }

  /// A fault under load, mended after a while, as often as the run is long.
  void expect_nothing_lost_by(const std::function<void()>& fault, milliseconds length) {
    Load load(site);
    for (int i = 0; i < scaled(1, 8); ++i) {
      ASSERT_TRUE(load.goes_on());
      EXPECT_GT(proxy.connections(), 2);
      fault();
      let_pass(length);
      proxy.mend();
    }
    ASSERT_TRUE(load.goes_on());
    load.expect_nothing_lost();
  }

  TcpProxy proxy;
  Site site;
};

/// A child has a copy of what its parent listens with, until it is another program.
TEST_F(Way, IsMendedWhileAChildIsBeingMade) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const std::vector<std::string> list = {"list"};
  proxy.refuse();
  EXPECT_TRUE(eventually(seconds(10), [&] { return site.cli(list).code == 1; }));
  proxy.mend();
  EXPECT_TRUE(eventually(seconds(10), [&] { return site.cli(list).code == 0; }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(Way, ThatIsResetLosesNothing) {
  expect_nothing_lost_by([&] { proxy.cut(); }, seconds(1));
}

TEST_F(Way, ThatIsRefusedLosesNothing) {
  expect_nothing_lost_by([&] { proxy.refuse(); }, seconds(2));
}

TEST_F(Way, ThatSwallowsEverythingLosesNothing) {
  expect_nothing_lost_by([&] { proxy.swallow(); }, seconds(3));
}

TEST_F(Way, ThatSwallowsEverythingUntilSessionsAreGivenUpLosesNothing) {
  Load load(site);
  ASSERT_TRUE(load.goes_on());
  proxy.swallow();
  let_pass(seconds(15));  // no answer is waited for that long
  proxy.mend();
  ASSERT_TRUE(load.goes_on());
  load.expect_nothing_lost();
}

TEST_F(Way, ThatIsSlowLosesNothing) {
  proxy.delay(milliseconds(10));
  expect_nothing_lost_by([&] { proxy.cut(); }, milliseconds(500));
}

TEST_F(Way, ThatIsRefusedKeepsNoWorkerFromStopping) {
  site.hold("lookup");
  const std::string run = site.enqueue("reader");
  Process worker = site.worker({"--grace", "1s"});
  ASSERT_TRUE(site.has_started("lookup"));
  proxy.refuse();
  // It has noticed, and tries again and again.
  ASSERT_TRUE(eventually(seconds(20), [&] {
    return site.log_of(worker).find("level=warn") != std::string::npos;
  })) << site.log_of(worker);
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(seconds(30)), 0) << site.log_of(worker);
  proxy.mend();
  site.let_go("lookup");
  Process second = site.worker();
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_EQ(site.count_events(run, EventKind::completed), 1);
  second.kill();
  site.expect_sound();
}

struct Lost {
  std::string name;
  std::string
      word;        ///< of its transaction; empty: the run's id, of which nothing else is said then
  bool in_flight;  ///< while the first step of the run is held
};

class LostReply : public Way, public ::testing::WithParamInterface<Lost> {};

TEST_P(LostReply, IsAskedForAndNothingIsDoneTwice) {
  const Lost& lost = GetParam();
  site.policy.lease = Duration(20000);
  site.runtime();
  std::vector<Process> workers;
  for (int i = 0; i < 2; ++i) {
    workers.push_back(site.app({"worker", "--lease", "20000", "--heartbeat", "1000"}));
    ASSERT_TRUE(site.is_up(workers.back()));
  }
  site.hold("count");
  if (!lost.in_flight) proxy.lose_reply_to(lost.word);
  RuntimeOptions options;
  options.store_url = site.store_url();
  options.policy = site.policy;
  options.heartbeat = Duration(5000);
  const auto caller = Runtime::open(options);
  caller->register_task("count", [](RunContext&) { return Json(); });
  RunRequest request;
  request.agent = "count";
  request.input = {{"steps", 2}};
  request.idempotency_key = "once";
  std::string run;
  EXPECT_TRUE(eventually(seconds(20), [&] {
    try {
      run = caller->enqueue(request).id;
    } catch (const StoreError& error) {
      EXPECT_FALSE(error.permanent()) << error.what();
    }
    return !run.empty();
  }));
  ASSERT_TRUE(site.has_started("count"));
  if (lost.in_flight) proxy.lose_reply_to(lost.word.empty() ? run : lost.word);
  if (lost.word.empty()) {
    EXPECT_TRUE(eventually(seconds(10), [&] { return proxy.has_lost_reply(); }));
  }
  site.let_go("count");
  ASSERT_TRUE(site.reaches(run, "completed"));
  EXPECT_TRUE(eventually(seconds(10), [&] { return proxy.has_lost_reply(); }))
      << "no transaction had the word";
  EXPECT_EQ(site.sql_number("SELECT count(*) FROM @.runs"), 1);
  EXPECT_EQ(site.times("count"), 2);
  EXPECT_EQ(site.count_events(run, EventKind::step), 2);
  EXPECT_EQ(site.count_events(run, EventKind::completed), 1);
  EXPECT_EQ(site.show(run).at("requeue_count"), 0);
  EXPECT_EQ(site.sql_number("SELECT count(*) FROM @.events WHERE kind IN ('reaped', 'failed')"), 0);
  for (Process& worker : workers) {
    EXPECT_FALSE(worker.status()) << site.log_of(worker);
    worker.kill();
  }
  site.expect_sound();
}

INSTANTIATE_TEST_SUITE_P(OfEachVerb, LostReply,
                         ::testing::Values(Lost{"Enqueue", "queued", false},
                                           Lost{"Claim", "claimed", false}, Lost{"Renew", "", true},
                                           Lost{"Fence", "non_idempotent_write", false},
                                           Lost{"Record", "step", true},
                                           Lost{"Settle", "completed", true}),
                         [](const auto& lost) { return lost.param.name; });

struct LostByAPerson {
  std::string name;
  std::string command;
  EventKind kind;  ///< whose word its transaction has
};

class LostReplyToAPerson : public Way, public ::testing::WithParamInterface<LostByAPerson> {
 protected:
  /// A run on which the command can be given.
  std::string prepare(const std::string& command) {
    if (command == "cancel" || command == "wake") return site.enqueue("plain", {"--delay", "1h"});
    Process worker = site.worker();
    if (command == "approve") {
      std::string waiting = site.enqueue("gated");
      EXPECT_TRUE(site.reaches(waiting, "waiting_for_approval"));
      return waiting;
    }
    const bool resolves = command == "resolve";
    if (resolves) site.hold("pay");
    const Json refusal = {{"errors", Json::array({Json{{"status", 401}}})}, {"reply", "hello"}};
    site.script("worded", Json::array({refusal}));
    std::string failed =
        resolves ? site.enqueue("payer", {"--max-requeues", "0"}) : site.enqueue("worded");
    if (resolves) {
      EXPECT_TRUE(site.has_started("pay"));
      worker.kill();
      site.let_go("pay");
      EXPECT_TRUE(eventually(seconds(20), [&] {
        return site.cli({"reap"}).code == 0 && site.status(failed) == "failed";
      }));
    }
    EXPECT_TRUE(site.reaches(failed, "failed"));
    site.script("worded", Json::array({Json{{"reply", "hello"}}}));
    return failed;
  }
};

TEST_P(LostReplyToAPerson, IsAskedForAndTheCommandIsDoneOnce) {
  const auto& [name, command, kind] = GetParam();
  const std::string run = prepare(command);
  std::vector<std::string> args = {command, run};
  if (command == "resolve") args.emplace_back("--landed");
  proxy.lose_reply_to(std::string(to_word(kind)));
  const Result given = site.cli(args);
  EXPECT_EQ(given.code, 0) << given.err;
  EXPECT_TRUE(proxy.has_lost_reply()) << "no transaction had the word";
  EXPECT_EQ(site.count_events(run, kind), 1);
  Process worker = site.worker();
  EXPECT_TRUE(site.reaches(run, command == "cancel" ? "cancelled" : "completed"));
  site.expect_sound();
}

INSTANTIATE_TEST_SUITE_P(OfEachCommand, LostReplyToAPerson,
                         ::testing::Values(LostByAPerson{"Approve", "approve", EventKind::approved},
                                           LostByAPerson{"Cancel", "cancel", EventKind::cancelled},
                                           LostByAPerson{"Redrive", "redrive", EventKind::redriven},
                                           LostByAPerson{"Resolve", "resolve", EventKind::resolved},
                                           LostByAPerson{"Wake", "wake", EventKind::woken}),
                         [](const auto& lost) { return lost.param.name; });

}  // namespace
}  // namespace holdfast::crash
