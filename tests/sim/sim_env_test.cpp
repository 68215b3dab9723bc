// The world that histories run in.

#include "support/sim_env.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/faults.hpp"
#include "sim/ledger.hpp"
#include "sim/scheduler.hpp"

namespace holdfast::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class SimWorld : public ::testing::Test {
 protected:
  SimThreads threads_;
  Settings settings_;
  SeededScheduler scheduler_{5, settings_};
  SimEnv env_{threads_, scheduler_, 5};
};

TEST_F(SimWorld, TimePassesOnlyWhereNobodyCanGoOn) {
  const StoreTime begun = env_.store_now();
  std::vector<std::string> order;
  const auto late = env_.spawn({"late"}, [&] {
    env_.sleep_for(hours(5), {});
    order.push_back("late");
  });
  const auto early = env_.spawn({"early"}, [&] {
    env_.sleep_for(seconds(1), {});
    order.push_back("early");
  });
  late->join();
  EXPECT_EQ(order, (std::vector<std::string>{"early", "late"}));
  EXPECT_EQ(env_.store_now() - begun, hours(5));
}

TEST_F(SimWorld, AnEventEndsAWait) {
  const auto count = env_.make_event_count();
  bool was_notified = false;
  const auto waiting =
      env_.spawn({"waiting"}, [&] { was_notified = count->wait_past(0, hours(1), {}); });
  env_.sleep_for(seconds(1), {});
  count->notify_all();
  waiting->join();
  EXPECT_TRUE(was_notified);
  EXPECT_EQ(env_.elapsed(), seconds(1));
}

TEST_F(SimWorld, AStopRequestEndsASleep) {
  std::stop_source stop;
  const auto sleeping =
      env_.spawn({"sleeping"}, [&] { env_.sleep_for(hours(1), stop.get_token()); });
  env_.sleep_for(seconds(2), {});
  stop.request_stop();
  sleeping->join();
  EXPECT_EQ(env_.elapsed(), seconds(2));
}

TEST_F(SimWorld, AKilledProcessStopsWhereItStands) {
  SimProcess& victim = env_.make_process("victim");
  int steps = 0;
  const auto task = env_.spawn_in(victim, "main", [&] {
    while (!env_.here().is_over) {
      ++steps;
      env_.sleep_for(seconds(1), {});
    }
  });
  env_.sleep_for(milliseconds(3500), {});
  env_.kill(victim);
  const int at_death = steps;
  env_.sleep_for(hours(1), {});
  EXPECT_EQ(steps, at_death);
  EXPECT_EQ(at_death, 4);
  env_.unwind();
}

TEST_F(SimWorld, AFrozenProcessGoesOnWhenItIsOver) {
  SimProcess& victim = env_.make_process("victim");
  Duration woke{};
  const auto task = env_.spawn_in(victim, "main", [&] {
    env_.sleep_for(seconds(1), {});
    woke = env_.elapsed();
  });
  env_.sleep_for(milliseconds(500), {});
  env_.freeze(victim, seconds(10));
  task->join();
  EXPECT_EQ(woke, milliseconds(10'500));
}

TEST_F(SimWorld, ClocksOfMachinesDifferAndTheStoresIsOne) {
  SimProcess& machine = env_.make_process("machine");
  machine.boot_skew = hours(7);
  const auto task = env_.spawn_in(machine, "main", [&] {
    EXPECT_EQ(env_.store_now() - env_.now(), hours(7));
    const SimEnv::AtStore at_store(env_);
    EXPECT_EQ(env_.store_now(), env_.now());
  });
  task->join();
}

TEST_F(SimWorld, AWorldInWhichNobodyCanGoOnComesToAHalt) {
  const auto forever = env_.make_event_count();
  SimProcess& one = env_.make_process("one");
  const auto task = env_.spawn_in(one, "main", [&] {
    const auto other = env_.spawn({"other"}, [&] { env_.sleep_for(hours(1), {}); });
    env_.kill(env_.here());
    other->join();
  });
  task->join();  // of a dead process: it never ends
  EXPECT_TRUE(env_.is_stuck());
  env_.unwind();
}

/// Reports what of this process goes on for ever.
class SimEndless : public SimWorld {
 protected:
  SimEndless() {
    env_.on_endless = [this](const SimTask& task) { seen_.push_back(task.name); };
  }
  std::unique_ptr<Thread> spawn(const std::string& name, std::function<void()> body) {
    return env_.spawn_in(victim_, name, std::move(body));
  }

  SimProcess& victim_ = env_.make_process("victim");
  std::vector<std::string> seen_;
};

TEST_F(SimEndless, ADeadProcessThatWaitsForEverIsSeenAndEnded) {
  bool was_left = false;
  const auto task = spawn("waits", [&] {
    try {
      for (;;) env_.sleep_for(seconds(1), {});
    } catch (...) {
      was_left = true;
      throw;
    }
  });
  const auto other = spawn("ends", [&] {
    while (!env_.here().is_over) env_.sleep_for(seconds(1), {});
  });
  env_.sleep_for(seconds(10), {});
  env_.unwind();
  EXPECT_EQ(seen_, std::vector<std::string>{"waits"});
  EXPECT_TRUE(was_left);
}

TEST_F(SimEndless, ADeadProcessThatAsksForEverWithoutWaitingIsSeenAndEnded) {
  const auto task = spawn("asks", [&] {
    env_.sleep_for(seconds(1), {});
    for (;;) {
      try {
        need_life(env_);
        env_.sleep_for(hours(1), {});
      } catch (const StoreError&) {
      }
    }
  });
  env_.unwind();
  EXPECT_EQ(seen_, std::vector<std::string>{"asks"});
}

TEST_F(SimEndless, WhoDropsTheHandleOfAnEndlessThreadEndsToo) {
  const auto task = spawn("drops", [&] {
    const auto thread = env_.spawn({"waits"}, [&] {
      for (;;) env_.sleep_for(seconds(1), {});
    });
    env_.sleep_for(seconds(1), {});
  });
  env_.sleep_for(seconds(10), {});
  env_.unwind();
  EXPECT_EQ(seen_, std::vector<std::string>{"waits"});
}

TEST_F(SimWorld, WhatAThreadThrowsIsSeen) {
  std::string seen;
  env_.on_escape = [&](const SimTask& task, const std::string& what) {
    seen = task.name + ": " + what;
  };
  env_.spawn({"careless"}, [] { throw std::runtime_error("oops"); })->join();
  EXPECT_EQ(seen, "careless: oops");
}

class SimLedger : public SimWorld {
 protected:
  SimLedger() : worker_(env_.make_identity().id) {
    fence_.step_key = "pay#1";
    lease_ = {"run", 1, worker_, false};
  }
  std::string broken() const { return violations_.empty() ? "" : violations_.all().front().name; }

  const WorkerId worker_;
  const std::unique_ptr<Store> rows_ = open_store("memory:", env_);
  Violations violations_{[] {}};
  Ledger ledger_{env_, *rows_, violations_, true};
  Lease lease_;
  Fence fence_;
};

TEST_F(SimLedger, AWriteWithoutAFenceIsSeen) {
  const Ledger::Call call(ledger_, "run", "pay#1", "pay", Effect::non_idempotent_write, {}, false);
  EXPECT_EQ(broken(), kFencedFirst);
}

TEST_F(SimLedger, AWriteInARunThatIsLostIsSeen) {
  ledger_.fenced(lease_, fence_);
  // There is no such run: somebody else purged it, say.
  const Ledger::Call call(ledger_, "run", "pay#1", "pay", Effect::idempotent_write, {}, false);
  EXPECT_EQ(broken(), "");
  ledger_.fenced(lease_, fence_);
  const Ledger::Call again(ledger_, "run", "pay#1", "pay", Effect::idempotent_write, {}, false);
  EXPECT_EQ(broken(), "");
}

TEST_F(SimLedger, AWriteThatBeginsTwiceIsSeen) {
  const auto begin = [&] {
    ledger_.fenced(lease_, fence_);
    Ledger::Call(ledger_, "run", "pay#1", "pay", Effect::non_idempotent_write, {}, false).land();
  };
  begin();
  EXPECT_EQ(broken(), "");
  begin();
  EXPECT_EQ(broken(), kWriteOnce);
}

TEST_F(SimLedger, AWriteThatGoesOnHasNotFailedToLand) {
  ledger_.fenced(lease_, fence_);
  const Ledger::Call call(ledger_, "run", "pay#1", "pay", Effect::non_idempotent_write, {}, false);
  ledger_.not_landed("run", "pay#1", false);
  EXPECT_EQ(broken(), kStillAtIt);
}

TEST_F(SimLedger, ACallThatNobodyApprovedIsSeen) {
  ledger_.approved("run", "1.1", {{"n", 1}});
  { const Ledger::Call call(ledger_, "run", "look#1.1", "look", Effect::read, {{"n", 1}}, true); }
  EXPECT_EQ(broken(), "");
  { const Ledger::Call call(ledger_, "run", "look#1.1", "look", Effect::read, {{"n", 2}}, true); }
  EXPECT_EQ(broken(), kApproved);
}

TEST_F(SimLedger, ARecordedStepThatIsExecutedIsSeen) {
  ledger_.recorded("run", "look#1", "done");
  const Ledger::Call call(ledger_, "run", "look#1", "look", Effect::read, {}, false);
  EXPECT_EQ(broken(), kExecutedOnce);
}

}  // namespace
}  // namespace holdfast::sim
