// Which of the tests mean something on the store of this program.

#include <gtest/gtest.h>

#include "crash/harness.hpp"

int main(int argc, char** argv) {
  using holdfast::crash::is_long;
  using holdfast::crash::is_postgres;
  const std::string of_files = "FullDisk.*:Storage.*:Presence.ThatIsTakenAwayFromOutside*";
  const std::string of_servers = "Server.*:Way.*:*LostReply*:Failover.*";
  // What no store has a part in is shown once.
  const std::string of_no_store = "Provider*:Hostile.AReader*:Boundary.TheSources*";
  // Of each kind the one that asks most of a server; all of them in the long run.
  const std::string chosen =
      "*KilledAt.*:*FrozenAt.*:Boundary.AKilled*:Reapers.Several*:Reapers.ARunThatKills*:"
      "Reapers.OneThatIs*:People.OfTwo*:People.Decisions*:People.ApprovalContinues*:"
      "Shutdown.Started*:Shutdown.AStopBetween*:Shutdown.AStepThatOutlives*:Lease.AStepMuch*:Lease."
      "AZombieInsideANon*:"
      "Hostile.Odd*:Reapers.SettlingOwners*:Keys.*:DeadLetters.WithHuge*:" +
      of_servers + ":-Way.ThatSwallowsEverythingUntil*:Failover.WorksWhichever*";
  const std::string everything = "-" + of_files + ":" + of_no_store;
  GTEST_FLAG_SET(filter, !is_postgres() ? "-" + of_servers : is_long() ? everything : chosen);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
