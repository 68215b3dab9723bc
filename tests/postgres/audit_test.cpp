// What `verify` finds in rows that nobody should have written.

#include "core/invariants.hpp"
#include "postgres/postgres_test_support.hpp"

namespace holdfast::testing {
namespace {

struct Damage {
  std::string name;
  std::string sql;  ///< `ID` stands for the run
  std::string invariant;
  std::string text;
};

class PostgresAudit : public PostgresTest, public ::testing::WithParamInterface<Damage> {
 protected:
  /// A run that waits, with steps, a label and a key.
  RunId a_waiting_run(Store& store) {
    NewRun wanted = a_run(real_env());
    wanted.row.labels = {{"k", "v"}};
    wanted.row.idempotency_key = "key";
    store.enqueue(std::span(&wanted, 1));
    const Claimed claimed = claim(store, "w").at(0);
    store.record(claimed.lease, a_step("a"));
    store.record(claimed.lease, a_step("b"));
    store.settle(claimed.lease, suspending(claimed.run, real_env(), 1h));
    return claimed.run.id;
  }
};

TEST_P(PostgresAudit, Finds) {
  auto store = open();
  const RunId id = a_waiting_run(*store);
  ASSERT_TRUE(store->audit().empty());
  std::string sql = session()->in_schema(GetParam().sql);
  for (auto at = sql.find("ID"); at != std::string::npos; at = sql.find("ID")) {
    sql.replace(at, 2, "'" + id + "'");
  }
  session()->execute(sql);
  const auto findings = store->audit();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].grade, Finding::Grade::bad);
  EXPECT_EQ(findings[0].subject, GetParam().invariant);
  EXPECT_TRUE(has(findings[0].text, GetParam().text)) << findings[0].text;
}

INSTANTIATE_TEST_SUITE_P(
    Damages, PostgresAudit,
    ::testing::Values(
        Damage{"EventsOfNoRun",
               "UPDATE @.events SET run = gen_random_uuid() WHERE sequence = 1;"
               "UPDATE @.events SET sequence = sequence - 1 WHERE run = ID AND sequence < 3;"
               "UPDATE @.events SET sequence = sequence - 1 WHERE run = ID AND sequence > 2;"
               "UPDATE @.runs SET last_sequence = last_sequence - 1",
               kFoundInvariant, "1 of its events are still there"},
        Damage{"RequestOfNoRun",
               "INSERT INTO @.run_data (run, input, idempotency_key, content_digest) "
               "VALUES (gen_random_uuid(), '1', 'lost', '')",
               kFoundInvariant, "its request is still there, idempotency key lost"},
        Damage{"LabelOfNoRun", "INSERT INTO @.labels VALUES (gen_random_uuid(), 'team', 'x')",
               kFoundInvariant, "its label team is still there"},
        Damage{"RunWithoutRequest", "DELETE FROM @.run_data WHERE run = ID", kFoundInvariant,
               "its request (run_data) is missing"},
        Damage{"GapInTheJournal", "DELETE FROM @.events WHERE run = ID AND sequence = 2",
               kJournalInvariant, "4 of its events are stored, numbered 1 to 5"},
        Damage{"EventsBehindTheNewest", "UPDATE @.runs SET last_sequence = 4 WHERE id = ID",
               kJournalInvariant, "numbered 1 to 5, and its newest is number 4"},
        Damage{"EventsThatFollowersMeetInAnotherOrder",
               "UPDATE @.events SET position = 1 WHERE run = ID AND sequence = 3",
               kJournalInvariant, "meets event 3 before"},
        Damage{"EventsThatFollowersDoNotSee",
               "UPDATE @.events SET position = 9e18::bigint WHERE run = ID AND sequence = 5",
               kJournalInvariant, "1 events stand beyond the newest transaction"},
        Damage{"LeaseThatNoReaperFinds",
               "UPDATE @.runs SET lease_until = 5, lease_key = 6 WHERE id = ID", kOrphanInvariant,
               "no reaper would find its lease in time"},
        Damage{"PolicyThatIsNotStored", "DELETE FROM @.policies", kJournalInvariant,
               "is not stored"},
        Damage{"PolicyThatIsNoJson", "UPDATE @.policies SET json = 'x'", kJournalInvariant,
               "is not JSON"},
        Damage{"ErrorThatIsNoJson", "UPDATE @.runs SET error = '{' WHERE id = ID",
               kJournalInvariant, "its error is not JSON"},
        Damage{"FenceThatIsNoJson", "UPDATE @.runs SET fence = '[1' WHERE id = ID",
               kLeaseAndFenceShape, "its fence is not JSON"},
        Damage{"WaitThatIsNoJson", "UPDATE @.runs SET waiting = '' WHERE id = ID", kOrphanInvariant,
               "what it waits for is not JSON"},
        Damage{"DeadlineThatNoReaperFinds",
               "UPDATE @.runs SET wait_deadline = wait_deadline + 1 WHERE id = ID",
               kOrphanInvariant, "the deadline that reapers look for"},
        Damage{"DeadlineOfNoWait", "UPDATE @.runs SET waiting = NULL WHERE id = ID",
               kOrphanInvariant, "the deadline that reapers look for"}),
    [](const auto& damage) { return damage.param.name; });

}  // namespace
}  // namespace holdfast::testing
