#include "store/postgres/pg_turns.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace holdfast::postgres {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Service kAgent{{"agent"}, {}, false};
const Kind kRuns{"agent", "default"};
/// By then whoever has a turn has taken it.
constexpr Duration kLater = milliseconds(30);

/// Processes that hear all that is said, in one order, those apart that are deaf.
class Fleet {
 public:
  explicit Fleet(int size) {
    for (int i = 0; i < size; ++i) add("process-" + std::to_string(i), kAgent);
  }
  void add(const std::string& name, const Service& service) {
    all_[name] = std::make_unique<Turns>(name);
    all_[name]->serve({service});
    all_[name]->offer({service});
    for (auto& [other, turns] : all_) tell_here(other);
  }
  void tell_here(const std::string& name) {
    Message message;
    message.here = all_[name]->offers();
    all_[name]->here_is_told();
    say(name, message);
  }
  /// `runs` 0: nobody knows how many.
  void queue(int runs, const Kind& kind = kRuns, const std::string& from = "caller") {
    Message message;
    message.queued = {{kind, runs}};
    say(from, message);
  }
  void say(const std::string& from, Message message) {
    message.from = from;
    message.number = ++number_;
    for (auto& [name, turns] : all_) {
      if (!deaf_.contains(name)) turns->hear(message, now);
    }
  }
  /// What those that are alive take now; says what they have to say of it.
  std::map<std::string, Turns::Turn> take(const std::set<std::string>& full = {}) {
    std::map<std::string, Turns::Turn> taken;
    for (auto& [name, turns] : all_) {
      if (deaf_.contains(name)) continue;
      for (const auto& turn : turns->take_turns(now)) {
        if (full.contains(name)) {
          turns->offer({});
        } else {
          taken[name] = turn;
        }
      }
    }
    say_all();
    return taken;
  }
  void say_all() {
    for (auto& [name, turns] : all_) {
      if (deaf_.contains(name)) continue;
      if (turns->is_here_untold()) tell_here(name);
      Message message;
      message.missed = turns->take_missed();
      if (!message.missed.empty()) say(name, message);
    }
  }
  Turns& at(const std::string& name) { return *all_.at(name); }
  void make_deaf(const std::string& name) { deaf_.insert(name); }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& [name, turns] : all_) names.insert(name);
    return names;
  }

  StoreTime now{seconds(1000)};

 private:
  std::map<std::string, std::unique_ptr<Turns>> all_;
  std::set<std::string> deaf_;
  std::int64_t number_ = 0;
};

TEST(PgTurns, OneOfManyHasTheTurnForOneRun) {
  Fleet fleet(8);
  std::set<std::string> chosen;
  for (int i = 0; i < 100; ++i) {
    fleet.queue(1);
    const auto taken = fleet.take();
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_EQ(taken.begin()->second.runs, 1);
    EXPECT_TRUE(taken.begin()->second.is_sure);
    chosen.insert(taken.begin()->first);
  }
  EXPECT_EQ(chosen.size(), 8u);
}

TEST(PgTurns, EachTurnIsTakenOnce) {
  Fleet fleet(3);
  fleet.queue(1);
  EXPECT_EQ(fleet.take().size(), 1u);
  EXPECT_TRUE(fleet.take().empty());
}

TEST(PgTurns, AsManyAsThereAreRuns) {
  Fleet fleet(8);
  fleet.queue(3);
  EXPECT_EQ(fleet.take().size(), 3u);
}

TEST(PgTurns, ABurstFillsAllAtOnce) {
  Fleet fleet(8);
  fleet.queue(1000);
  int runs = 0;
  const auto taken = fleet.take();
  EXPECT_EQ(taken.size(), 8u);
  for (const auto& [name, turn] : taken) runs += turn.runs;
  EXPECT_EQ(runs, 1000);
}

TEST(PgTurns, OnlyThoseThatServeItTakePart) {
  Fleet fleet(3);
  fleet.add("sorter", {{"sorter"}, {}, false});
  fleet.add("slow", {{"agent"}, {"slow"}, false});
  for (int i = 0; i < 30; ++i) {
    fleet.queue(1, {"sorter", "default"});
    auto taken = fleet.take();
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_EQ(taken.begin()->first, "sorter");
    fleet.queue(1);
    taken = fleet.take();
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_NE(taken.begin()->first, "sorter");
    EXPECT_NE(taken.begin()->first, "slow");
  }
}

TEST(PgTurns, WhoToldOfItIsLeftOut) {
  Fleet fleet(2);
  for (int i = 0; i < 20; ++i) {
    fleet.queue(1, kRuns, "process-0");
    const auto taken = fleet.take();
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_EQ(taken.begin()->first, "process-1");
  }
}

TEST(PgTurns, WhoHasNobodyIdleIsPassedOverUntilItIsBack) {
  Fleet fleet(8);
  auto full = fleet.names();
  full.erase("process-5");
  for (int i = 0; i < 20; ++i) {
    fleet.queue(1);
    std::map<std::string, Turns::Turn> taken;
    for (int words = 0; words < 8 && taken.empty(); ++words) taken = fleet.take(full);
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_EQ(taken.begin()->first, "process-5");
  }
  fleet.at("process-0").offer({kAgent});
  ASSERT_TRUE(fleet.at("process-0").is_here_untold());
  fleet.tell_here("process-0");
  full.erase("process-0");
  std::set<std::string> chosen;
  for (int i = 0; i < 20; ++i) {
    fleet.queue(1);
    const auto taken = fleet.take(full);
    ASSERT_EQ(taken.size(), 1u);
    chosen.insert(taken.begin()->first);
  }
  EXPECT_EQ(chosen, (std::set<std::string>{"process-0", "process-5"}));
}

/// Of the two that are left each looks a moment later for what was the dead one's, which is found
/// out the first time.
TEST(PgTurns, TheNextTakesTheTurnOfADeadOneAndTellsTheOthers) {
  Fleet fleet(3);
  fleet.make_deaf("process-1");
  int missed = 0;
  for (int i = 0; i < 100; ++i) {
    fleet.queue(1);
    auto taken = fleet.take();
    if (taken.empty()) {
      ++missed;
      std::optional<StoreTime> next;
      for (const char* name : {"process-0", "process-2"}) {
        if (!next) next = fleet.at(name).next_turn();
      }
      ASSERT_TRUE(next.has_value());
      EXPECT_LE(*next - fleet.now, kLater);
      fleet.now = *next;
      taken = fleet.take();
      ASSERT_EQ(taken.size(), 1u);
      EXPECT_FALSE(taken.begin()->second.is_sure);
      fleet.at(taken.begin()->first).looked(true);
      fleet.say_all();
    }
    ASSERT_EQ(taken.size(), 1u);
    fleet.now += milliseconds(300);
  }
  EXPECT_EQ(missed, 1);
}

TEST(PgTurns, TheNextSaysNothingWhereItFoundNothing) {
  Fleet fleet(3);
  fleet.queue(1);
  EXPECT_EQ(fleet.take().size(), 1u);
  fleet.now += kLater;
  const auto taken = fleet.take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_FALSE(taken.begin()->second.is_sure);
  Turns& second = fleet.at(taken.begin()->first);
  second.looked(false);
  EXPECT_FALSE(second.has_missed_untold());
  // Nor for what it finds later.
  second.looked(true);
  EXPECT_FALSE(second.has_missed_untold());
}

TEST(PgTurns, WhoWasMissedByMistakeComesBack) {
  Fleet fleet(2);
  Message message;
  message.missed = {"process-1"};
  fleet.say("process-0", message);
  EXPECT_TRUE(fleet.at("process-1").offers().empty());
  fleet.at("process-1").offer({kAgent});
  EXPECT_TRUE(fleet.at("process-1").is_here_untold());
}

/// It may be looking already, and wait a moment later.
TEST(PgTurns, WhoOffersNothingTakesItsTurnForWhatItServes) {
  Fleet fleet(1);
  fleet.at("process-0").offer({});
  fleet.queue(1);
  EXPECT_EQ(fleet.take().size(), 1u);
  fleet.queue(1, {"other", "default"});
  EXPECT_TRUE(fleet.take().empty());
}

TEST(PgTurns, WhatIsServedNoLongerIsNotOffered) {
  Fleet fleet(1);
  const Service other{{"other"}, {}, false};
  Turns& turns = fleet.at("process-0");
  turns.serve({kAgent, other});
  turns.offer({kAgent, other});
  turns.here_is_told();
  turns.serve({other});
  EXPECT_EQ(turns.offers(), std::vector<Service>{other});
  EXPECT_TRUE(turns.is_here_untold());
}

/// Of two that it has, one is idle.
TEST(PgTurns, WhoIsIdleForSomeOfItIsPassedOverForTheRest) {
  Fleet fleet(2);
  const Service other{{"other"}, {}, false};
  fleet.at("process-0").serve({kAgent, other});
  fleet.at("process-0").offer({other});
  fleet.tell_here("process-0");
  for (int i = 0; i < 20; ++i) {
    fleet.queue(1);
    EXPECT_TRUE(fleet.take().contains("process-1"));
    fleet.queue(1, {"other", "default"});
    const auto taken = fleet.take();
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_EQ(taken.begin()->first, "process-0");
  }
}

TEST(PgTurns, WhoLeavesOrFallsSilentIsNotCounted) {
  Fleet fleet(3);
  Message message;
  message.leaves = true;
  fleet.say("process-1", message);
  fleet.make_deaf("process-1");
  for (int i = 0; i < 20; ++i) {
    fleet.queue(1);
    EXPECT_EQ(fleet.take().size(), 1u);
  }
  fleet.make_deaf("process-2");
  fleet.now += seconds(51);
  for (int i = 0; i < 20; ++i) {
    fleet.queue(1);
    EXPECT_EQ(fleet.take().size(), 1u);
  }
}

/// Nobody says how many an application has put on the queue.
TEST(PgTurns, TwiceAsManyLookForWhatFilledTheFirst) {
  Fleet fleet(8);
  fleet.queue(0);
  std::set<std::string> looked;
  std::vector<std::size_t> steps;
  for (int words = 0; words < 6 && looked.size() < 8; ++words) {
    for (const auto& [name, turn] : fleet.take()) {
      looked.insert(name);
      EXPECT_TRUE(fleet.at(name).may_have_left_some());
      fleet.at(name).offer({});
    }
    steps.push_back(looked.size());
    fleet.say_all();
  }
  EXPECT_EQ(looked.size(), 8u);
  EXPECT_EQ(steps.front(), 1u);
  EXPECT_LE(steps.size(), 4u);
}

TEST(PgTurns, WhatIsCountedLeavesNothing) {
  Fleet fleet(1);
  fleet.queue(1);
  ASSERT_EQ(fleet.take().size(), 1u);
  EXPECT_FALSE(fleet.at("process-0").may_have_left_some());
}

TEST(PgTurns, WhoKnowsNobodyTakesEverything) {
  Fleet fleet(1);
  for (int i = 0; i < 1000; ++i) {
    fleet.queue(1);
    EXPECT_EQ(fleet.take().size(), 1u);
  }
}

TEST(PgTurns, WhoAsksIsAnswered) {
  Fleet fleet(1);
  Message message;
  message.asks = true;
  fleet.say("newcomer", message);
  EXPECT_TRUE(fleet.at("process-0").is_asked());
  fleet.at("process-0").here_is_told();
  EXPECT_FALSE(fleet.at("process-0").is_asked());
}

TEST(PgTurns, ItsOwnWordsConcernItNot) {
  Fleet fleet(1);
  fleet.queue(1, kRuns, "process-0");
  EXPECT_TRUE(fleet.take().empty());
}

}  // namespace
}  // namespace holdfast::postgres
