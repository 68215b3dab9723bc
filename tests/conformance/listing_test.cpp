#include <set>

#include "conformance/store_test_support.hpp"

namespace holdfast::testing {
namespace {

class Listing : public StoreTest {
 protected:
  std::vector<RunId> list(const ListFilter& filter = {}) {
    std::vector<RunId> ids;
    for (const auto& run : store->list(filter).runs) ids.push_back(run.id);
    return ids;
  }
  std::vector<RunId> all_pages(ListFilter filter) {
    std::vector<RunId> ids;
    do {
      const auto page = store->list(filter);
      for (const auto& run : page.runs) ids.push_back(run.id);
      filter.after = page.next;
    } while (filter.after);
    return ids;
  }
  PurgeReport purge(std::optional<Duration> terminal, std::optional<Duration> unfinished = {},
                    bool dry_run = false) {
    PurgeRequest request;
    request.older_than = terminal;
    request.unfinished_older_than = unfinished;
    request.dry_run = dry_run;
    return store->purge(request, 100);
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, Listing, ::testing::ValuesIn(store_kinds()));

TEST_P(Listing, ShowsNewestFirstWithInputsAndLabels) {
  NewRun first = a_run(env);
  first.row.labels = {{"k", "v"}};
  enqueue(first);
  const auto second = enqueue();
  const auto page = store->list({});
  ASSERT_EQ(page.runs.size(), 2u);
  EXPECT_EQ(page.runs[0].id, second.id);
  EXPECT_EQ(page.runs[1].labels, first.row.labels);
  EXPECT_EQ(page.runs[1].input, first.row.input);
  EXPECT_FALSE(page.next.has_value());
}

TEST_P(Listing, PagesShowEveryRunOnceWhileOthersAreEnqueued) {
  std::set<RunId> expected;
  for (int i = 0; i < 7; ++i) expected.insert(enqueue().id);
  ListFilter filter;
  filter.limit = 3;
  std::vector<RunId> seen;
  do {
    const auto page = store->list(filter);
    for (const auto& run : page.runs) seen.push_back(run.id);
    filter.after = page.next;
    enqueue();
  } while (filter.after);
  EXPECT_EQ(seen.size(), expected.size());
  EXPECT_EQ(std::set(seen.begin(), seen.end()), expected);
}

TEST_P(Listing, OldestFirstGoesByTheEnd) {
  std::vector<Claimed> claims;
  for (int i = 0; i < 4; ++i) claims.push_back(claimed_run());
  for (const std::size_t i : {2u, 0u, 3u}) {
    env.advance(1s);
    store->settle(claims[i].lease, failing(claims[i].run, env, FailureClass::auth));
  }
  ListFilter filter;
  filter.oldest_first = true;
  filter.status = "failed";
  filter.limit = 2;
  EXPECT_EQ(all_pages(filter), (std::vector{claims[2].run.id, claims[0].run.id, claims[3].run.id}));
  filter.ended_before = env.wall_now() - 1s;
  EXPECT_EQ(all_pages(filter), (std::vector{claims[2].run.id, claims[0].run.id}));
}

TEST_P(Listing, FiltersByEveryField) {
  NewRun wanted = a_run(env, "special");
  wanted.row.queue = "urgent";
  wanted.row.labels = {{"team", "ops"}, {"tier", "1"}};
  enqueue(wanted);
  NewRun other = a_run(env);
  other.row.labels = {{"team", "ops"}};
  enqueue(other);
  const Claimed running = claim_one();
  const Claimed failed = claimed_run();
  store->settle(failed.lease, failing(failed.run, env, FailureClass::auth));
  const Claimed waiting = claimed_run();
  store->settle(waiting.lease, suspending(waiting.run, env));
  const Claimed done = claimed_run();
  complete(done);
  const std::vector only{wanted.row.id};
  ListFilter filter;
  filter.agent = "special";
  EXPECT_EQ(list(filter), only);
  filter = {};
  filter.queue = "urgent";
  EXPECT_EQ(list(filter), only);
  filter = {};
  filter.labels = {{"team", "ops"}};
  EXPECT_EQ(list(filter).size(), 2u);
  filter.labels = wanted.row.labels;
  EXPECT_EQ(list(filter), only);
  for (const auto& [status, id] :
       {std::pair("queued", wanted.row.id), std::pair("running", running.run.id),
        std::pair("failed", failed.run.id), std::pair("waiting_for_approval", waiting.run.id),
        std::pair("completed", done.run.id)}) {
    filter = {};
    filter.status = status;
    EXPECT_EQ(list(filter), std::vector{id}) << status;
  }
  filter = {};
  filter.status = "waiting_for_input";
  EXPECT_TRUE(list(filter).empty());
  filter = {};
  filter.reason = "not_retryable";
  EXPECT_EQ(list(filter), std::vector{failed.run.id});
}

TEST_P(Listing, RefusesACursorThatIsNone) {
  ListFilter filter;
  filter.after = "nonsense";
  EXPECT_THROW(store->list(filter), RefusedError);
}

TEST_P(Listing, RefusesACursorOfAnotherFilter) {
  for (int i = 0; i < 3; ++i) enqueue();
  ListFilter filter;
  filter.limit = 1;
  filter.agent = "agent";
  const auto cursor = store->list(filter).next;
  ASSERT_TRUE(cursor);
  filter.after = cursor;
  filter.limit = 2;
  EXPECT_EQ(store->list(filter).runs.size(), 2u) << "the limit is no part of it";
  const auto expect_refused = [&](const ListFilter& other) {
    try {
      store->list(other);
      ADD_FAILURE() << "not refused";
    } catch (const RefusedError& error) {
      EXPECT_EQ(error.refusal(), Refusal::usage);
      EXPECT_NE(std::string(error.what()).find("this cursor is of another filter"),
                std::string::npos)
          << error.what();
    }
  };
  auto other = filter;
  other.agent.reset();
  expect_refused(other);
  other = filter;
  other.status = "failed";
  expect_refused(other);
  other = filter;
  other.reason = "not_retryable";
  expect_refused(other);
  other = filter;
  other.queue = "agent";
  other.agent.reset();
  expect_refused(other);
  other = filter;
  other.labels = {{"a", "b"}};
  expect_refused(other);
  other = filter;
  other.oldest_first = true;
  expect_refused(other);
}

TEST_P(Listing, EventsOfAllRunsComeInTheOrderOfCommits) {
  const auto first = enqueue();
  env.advance(1ms);
  const auto second = enqueue();
  complete(claim_one());
  std::int64_t cursor = 0;
  std::vector<std::pair<RunId, std::string>> seen;
  while (true) {
    const auto some = store->all_events(cursor, 2);
    if (some.empty()) break;
    for (const Event& event : some) seen.emplace_back(event.run, event.kind.text());
  }
  const std::vector<std::pair<RunId, std::string>> expected{
      {first.id, "queued"}, {second.id, "queued"}, {first.id, "claimed"}, {first.id, "completed"}};
  EXPECT_EQ(seen, expected);
}

TEST_P(Listing, CursorOfAllEventsSeesWhatFollowsAPurge) {
  complete(claimed_run());
  std::int64_t cursor = 0;
  store->all_events(cursor, 100);
  env.advance(1h);
  EXPECT_EQ(purge(1s).total, 1);
  const auto run = enqueue();
  const auto events = store->all_events(cursor, 100);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].run, run.id);
}

TEST_P(Listing, PurgeTakesOldEndedRunsWithEverythingOfTheirs) {
  NewRun wanted = a_run(env);
  wanted.row.idempotency_key = "key";
  wanted.row.labels = {{"k", "v"}};
  enqueue(wanted);
  complete(claim_one());
  const auto queued = enqueue();
  env.advance(10min);
  EXPECT_EQ(purge(11min).total, 0);
  EXPECT_EQ(purge(10min, {}, true).total, 1);
  EXPECT_TRUE(store->find(wanted.row.id).has_value());
  const auto report = purge(10min);
  EXPECT_EQ(report.total, 1);
  EXPECT_EQ(report.by_status.at("completed"), 1);
  EXPECT_FALSE(store->find(wanted.row.id).has_value());
  EXPECT_TRUE(store->events(wanted.row.id, 0, 0).empty());
  EXPECT_TRUE(store->find(queued.id).has_value());
  ListFilter filter;
  filter.labels = {{"k", "v"}};
  EXPECT_TRUE(list(filter).empty());
  NewRun again = a_run(env);
  again.row.idempotency_key = "key";
  EXPECT_EQ(store->enqueue(std::span(&again, 1)).front().answer, EnqueueResult::Answer::stored);
}

TEST_P(Listing, PurgeOfUnfinishedRunsTakesWaitingAndAbandonedOnesOnly) {
  const Claimed waiting = claimed_run();
  store->settle(waiting.lease, suspending(waiting.run, env));
  const NewRun abandoned = a_run(env);
  store->start(abandoned, "gone-process");
  const NewRun living = a_run(env);
  const Identity identity = env.make_identity();
  const auto hold = store->presence()->hold(identity);
  store->start(living, identity.id);
  const Claimed leased = claimed_run();
  const auto queued = enqueue();
  env.advance(1h);
  const auto report = purge({}, 30min);
  EXPECT_EQ(report.total, 2);
  EXPECT_FALSE(store->find(waiting.run.id).has_value());
  EXPECT_FALSE(store->find(abandoned.row.id).has_value());
  EXPECT_TRUE(store->find(living.row.id).has_value());
  EXPECT_TRUE(store->find(leased.run.id).has_value());
  EXPECT_TRUE(store->find(queued.id).has_value());
}

TEST_P(Listing, PurgeOfNamedRunsLeavesOthersAlone) {
  const Claimed first = claimed_run();
  const Claimed second = claimed_run();
  complete(first);
  complete(second);
  PurgeRequest request;
  request.ids = {first.run.id, "nothing"};
  request.older_than = 0s;
  EXPECT_EQ(store->purge(request, 1).total, 1);
  EXPECT_FALSE(store->find(first.run.id).has_value());
  EXPECT_TRUE(store->find(second.run.id).has_value());
}

TEST_P(Listing, PurgeGoesByItsLimit) {
  for (int i = 0; i < 5; ++i) complete(claimed_run());
  env.advance(1h);
  PurgeRequest request;
  request.older_than = 1s;
  EXPECT_EQ(store->purge(request, 2).total, 2);
  EXPECT_EQ(store->purge(request, 2).total, 2);
  EXPECT_EQ(store->purge(request, 2).total, 1);
}

TEST_P(Listing, StatsCountRunsLeasesAndTheQueue) {
  NewRun urgent = a_run(env, "other");
  urgent.row.priority = 5;
  enqueue(urgent);
  env.advance(2s);
  claimed_run();
  env.advance(61s);
  claimed_run();
  const Claimed failed = claimed_run();
  store->settle(failed.lease, failing(failed.run, env, FailureClass::auth));
  complete(claimed_run());
  NewRun delayed = a_run(env);
  delayed.delay = 1h;
  enqueue(delayed);
  const auto stats = store->stats();
  const std::map<std::string, std::int64_t> by_status{
      {"queued", 2}, {"running", 2}, {"failed", 1}, {"completed", 1}};
  EXPECT_EQ(stats.by_status, by_status);
  EXPECT_EQ(stats.by_reason.at("not_retryable"), 1);
  EXPECT_EQ(stats.due, 1);
  EXPECT_EQ(stats.delayed, 1);
  EXPECT_EQ(stats.oldest_due, 63s);
  EXPECT_EQ(stats.oldest_due_by_priority.at(5), 63s);
  EXPECT_EQ(stats.leases_held, 1);
  EXPECT_EQ(stats.leases_stale, 1);
  EXPECT_EQ(stats.due_by_agent.at("other"), 1);
}

TEST_P(Listing, WorkersAreShownUntilForgottenAndAsGoneWhenTheyAre) {
  const Identity identity = env.make_identity();
  auto hold = store->presence()->hold(identity);
  WorkerRow row;
  row.id = identity.id;
  row.name = "blue";
  row.host = "box";
  row.pid = 7;
  row.started_at = env.wall_now();
  row.agents = {"a", "b"};
  row.slots = 8;
  row.busy = 3;
  row.stuck = 1;
  row.presence = "held";
  store->report_worker(row);
  env.advance(5s);
  row.busy = 4;
  store->report_worker(row);
  auto rows = store->workers();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "blue");
  EXPECT_EQ(rows[0].agents, row.agents);
  EXPECT_EQ(rows[0].busy, 4);
  EXPECT_EQ(rows[0].started_at, row.started_at);
  EXPECT_EQ(rows[0].seen_at, env.store_now());
  EXPECT_FALSE(rows[0].is_gone);
  hold.reset();
  EXPECT_TRUE(store->workers().at(0).is_gone);
  store->forget_worker(identity.id);
  EXPECT_TRUE(store->workers().empty());
}

TEST_P(Listing, CheckFindsNothingBad) {
  for (const Finding& finding : store->check()) {
    EXPECT_NE(finding.grade, Finding::Grade::bad) << finding.text;
  }
}

TEST_P(Listing, AuditFindsNothingInOrdinaryLives) {
  NewRun wanted = a_run(env);
  wanted.row.labels = {{"k", "v"}};
  wanted.row.idempotency_key = "key";
  enqueue(wanted);
  const Claimed purged = claim_one();
  complete(purged);
  const Claimed waiting = claimed_run();
  store->settle(waiting.lease, suspending(waiting.run, env, 1h));
  const Claimed failed = claimed_run();
  store->fence(failed.lease, a_fence("pay#1"));
  store->settle(failed.lease, failing(get(failed.run.id), env));
  const Claimed held = claimed_run();
  for (int i = 0; i < 130; ++i) store->record(held.lease, a_step(std::to_string(i)));
  store->renew(worker, std::span(&held.lease, 1));
  enqueue();
  PurgeRequest request;
  request.ids = {purged.run.id};
  request.older_than = 0s;
  EXPECT_EQ(store->purge(request, 1).total, 1);
  for (const Finding& finding : store->audit()) ADD_FAILURE() << finding.text;
}

}  // namespace
}  // namespace holdfast::testing
