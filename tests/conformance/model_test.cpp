// The same random operations on memory and the other stores, under one clock: answers, rows and
// events agree.

#include <fmt/format.h>
#include <rapidcheck.h>

#include "base/text.hpp"
#include "conformance/store_test_support.hpp"
#include "core/run_codec.hpp"
#include "store/postgres/connection.hpp"

namespace holdfast::testing {
namespace {

/// Everything of a run that a store keeps, as text.
std::string text_of(const Run& run) {
  Json json = to_json(run);
  json.erase("abandoned");  // filled in where a run is read, not where it is changed
  json["lease_until"] =
      run.lease_until ? Json(run.lease_until->time_since_epoch().count()) : Json();
  json["policy"] = encode(run.policy);
  json["fence"] = run.pending ? encode(*run.pending) : Json();
  json["wait"] = run.waiting_for ? encode(*run.waiting_for) : Json();
  json["failure"] = run.error ? encode(*run.error) : Json();
  json["definition"] = run.definition;
  json["last_sequence"] = run.last_sequence;
  json["key"] = run.idempotency_key.value_or("");
  json["lost_by_presence"] = run.lease_lost_by_presence;
  json["has_policy"] = run.has_policy;
  return dump_json(json);
}

std::string text_of(const std::vector<Event>& events) {
  Json all = Json::array();
  for (const Event& event : events) all.push_back(to_json(event));
  return dump_json(all);
}

std::string text_of(const ChangeResult& result) {
  return fmt::format("{} {} {} {}", static_cast<int>(result.answer), result.why,
                     result.run ? text_of(*result.run) : "",
                     result.continued ? result.continued->lease.claim : 0);
}

struct Numbers {
  int operation = 0;
  int a = 0;
  int b = 0;
  int c = 0;
};
std::ostream& operator<<(std::ostream& out, const Numbers& n) {
  return out << "{" << n.operation << "," << n.a << "," << n.b << "," << n.c << "}";
}

/// Drives one store; what it answers is told as text.
class Driver {
 public:
  Driver(ManualEnv& env, std::unique_ptr<Store> store) : env_(env), store_(std::move(store)) {}

  std::string apply(const Numbers& n, const RunId& fresh, const std::vector<RunId>& ids) {
    const RunId id = ids.empty() ? "none" : ids[static_cast<std::size_t>(n.a) % ids.size()];
    const Operator who = by(n.c % 3 == 0 ? fmt::format("op-{}", n.b % 4) : "");
    switch (n.operation) {
      case 0:
      case 1:
        return enqueue(n, fresh);
      case 2:
      case 3:
        return claim(n);
      case 4:
        return renew();
      case 5:
      case 6:
        return record(n);
      case 7:
        return fence(n);
      case 8:
      case 9:
        return settle(n);
      case 10:
        return reap(n);
      case 11:
        return text_of(store_->cancel(id, who));
      case 12:
        return answer(n, id, who);
      case 13:
        return text_of(store_->redrive(std::span(&id, 1), who).front());
      case 14:
        return resolve(n, id, who);
      case 15:
        return text_of(store_->wake(id, who));
      case 16:
        return text_of(store_->hand_over(id, n.b % 2 == 0, who));
      case 17:
        return purge(n);
      case 18:
        return std::to_string(
            store_->expire_leases_of(worker(n), env_.store_now() - Duration(n.b)));
      case 19:
        return acknowledge(n);
      case 20:
        return start(n, fresh);
      default:
        return unfence(n);
    }
  }

  std::string state(const std::vector<RunId>& ids) {
    std::string text;
    for (const RunId& id : ids) {
      const auto run = store_->find(id);
      text += run ? text_of(*run) : "gone";
      text += "\n" + text_of(store_->events(id, 0, 0)) + "\n";
    }
    for (const bool oldest_first : {false, true}) {
      ListFilter filter;
      filter.oldest_first = oldest_first;
      filter.limit = 3;
      do {
        const auto page = store_->list(filter);
        for (const Run& run : page.runs) text += run.id + " ";
        filter.after = page.next;
        text += "| ";
      } while (filter.after);
    }
    std::int64_t cursor = 0;
    text += text_of(store_->all_events(cursor, 0)) + "\n";
    const auto stats = store_->stats();
    for (const auto& [word, number] : stats.by_status) text += fmt::format("{}={} ", word, number);
    for (const auto& [word, number] : stats.by_reason) text += fmt::format("{}={} ", word, number);
    return text + fmt::format("{} {} {} {} {}", stats.due, stats.delayed, stats.leases_held,
                              stats.leases_stale, stats.oldest_due.value_or(-1ms).count());
  }

 private:
  static WorkerId worker(const Numbers& n) { return fmt::format("worker-{}", n.a % 3); }

  std::string enqueue(const Numbers& n, const RunId& fresh) {
    NewRun run = a_run(env_, n.a % 4 == 0 ? "other" : "agent");
    run.row.id = fresh;
    run.row.queue = n.b % 3 == 0 ? "slow" : "default";
    run.row.priority = n.c % 3;
    if (n.b % 4 == 0) run.delay = Duration(n.c * 100);
    if (n.b % 5 == 0) run.row.idempotency_key = fmt::format("key-{}", n.a % 3);
    run.content_digest = fmt::format("digest-{}", n.c % 2);
    run.row.max_requeues = run.row.policy.max_requeues = n.c % 4;
    run.row.labels = {{"n", std::to_string(n.a % 2)}};
    const auto result = store_->enqueue(std::span(&run, 1)).front();
    return fmt::format("{} {}", static_cast<int>(result.answer), text_of(result.run));
  }

  std::string claim(const Numbers& n) {
    ClaimRequest request{worker(n), {offer()}, {}, 1 + n.b % 3, {}};
    if (n.c % 2 == 0) request.agents.push_back(offer("other"));
    if (n.c % 3 == 0) request.queues = {"default"};
    const auto result = store_->claim(request);
    std::string text = std::to_string(result.next_due.value_or(-1ms).count());
    for (const Claimed& claimed : result.runs) {
      text += text_of(claimed.run);
      claims_.push_back(claimed);
    }
    return text;
  }

  std::string renew() {
    std::vector<Lease> leases;
    for (std::size_t i = 0; i < claims_.size(); i += 2) leases.push_back(claims_[i].lease);
    const auto report = store_->renew("worker-1", leases);
    std::string text;
    for (const Write answer : report.answers) text += std::to_string(static_cast<int>(answer));
    for (const Claimed& stray : report.strays) text += text_of(stray.run);
    return text;
  }

  const Claimed* pick(const Numbers& n) const {
    return claims_.empty() ? nullptr : &claims_[static_cast<std::size_t>(n.a) % claims_.size()];
  }
  static std::string told(Write write) { return std::to_string(static_cast<int>(write)); }

  std::string record(const Numbers& n) {
    const Claimed* claimed = pick(n);
    if (claimed == nullptr) return "";
    StepRecord step = a_step(fmt::format("s-{}", n.b % 4));
    step.is_retry = n.c % 2 == 0;
    if (n.c % 3 == 0) step.usage = Usage{1, 2, 3, 0.5};
    return told(store_->record(claimed->lease, step));
  }

  std::string fence(const Numbers& n) {
    const Claimed* claimed = pick(n);
    if (claimed == nullptr) return "";
    return told(store_->fence(claimed->lease, a_fence(fmt::format("s-{}", n.b % 4), n.c % 2 == 0)));
  }

  std::string unfence(const Numbers& n) {
    const Claimed* claimed = pick(n);
    if (claimed == nullptr) return "";
    return told(store_->unfence(claimed->lease, {fmt::format("s-{}", n.b % 4), {}}));
  }

  std::string acknowledge(const Numbers& n) {
    const Claimed* claimed = pick(n);
    return claimed == nullptr ? "" : told(store_->acknowledge_cancel(claimed->lease));
  }

  std::string settle(const Numbers& n) {
    const Claimed* claimed = pick(n);
    if (claimed == nullptr) return "";
    const auto row = store_->find(claimed->run.id).value_or(claimed->run);
    Settlement end;
    switch (n.b % 6) {
      case 0:
        end = settlement(row, Completed{{{"n", n.c}}}, env_);
        break;
      case 1:
        end = failing(row, env_);
        break;
      case 2:
        end = failing(row, env_, FailureClass::auth);
        break;
      case 3:
        end =
            suspending(row, env_, n.c % 2 == 0 ? std::optional(Duration(n.c * 50)) : std::nullopt);
        break;
      case 4:
        end = settlement(row, Slept{"z", "z", env_.wall_now() + Duration(n.c * 10)}, env_);
        break;
      default:
        end = settlement(row, Interrupted{}, env_);
        break;
    }
    return told(store_->settle(claimed->lease, end));
  }

  std::string reap(const Numbers& n) {
    const auto report = store_->reap(1 + n.b % 4, n.c % 4 == 0, worker_lost(env_));
    return fmt::format("{} {} {} {} {}", report.requeued, report.dead_lettered, report.skipped,
                       report.expired, report.full);
  }

  std::string answer(const Numbers& n, const RunId& id, const Operator& who) {
    Decision decision;
    decision.run = id;
    decision.kind = n.b % 2 == 0 ? DecisionKind::approve : DecisionKind::deny;
    if (n.b % 3 == 0) decision.turn = n.b % 5 == 0 ? "other" : "turn-1";
    if (n.c % 3 == 0) decision.call = std::to_string(1 + n.c % 2);
    decision.by = who;
    const Continuation go_on{n.c % 4 == 0, "inline", n.c % 8 == 0};
    const auto result = store_->answer(decision, go_on);
    if (result.continued) claims_.push_back(*result.continued);
    return text_of(result);
  }

  std::string resolve(const Numbers& n, const RunId& id, const Operator& who) {
    ResolveRequest request;
    request.run = id;
    request.landed = n.b % 2 == 0;
    request.force = n.c % 2 == 0;
    request.by = who;
    return text_of(store_->resolve(request));
  }

  std::string purge(const Numbers& n) {
    PurgeRequest request;
    if (n.a % 2 == 0) request.older_than = Duration(n.b * 1000);
    if (n.a % 3 == 0) request.unfinished_older_than = Duration(n.c * 1000);
    request.dry_run = n.b % 4 == 0;
    const auto report = store_->purge(request, 1 + n.c % 3);
    std::string text = std::to_string(report.total);
    for (const auto& [word, number] : report.by_status) text += fmt::format(" {}={}", word, number);
    return text;
  }

  std::string start(const Numbers& n, const RunId& fresh) {
    NewRun run = a_run(env_);
    run.row.id = fresh;
    run.content_digest = "started";
    claims_.push_back(store_->start(run, worker(n)));
    return text_of(claims_.back().run);
  }

  ManualEnv& env_;
  std::unique_ptr<Store> store_;
  std::vector<Claimed> claims_;
};

/// `open(env)` makes an empty store to hold against the model.
template <class Open>
void expect_same_histories(const std::string& name, const Open& open) {
  const auto number = rc::gen::inRange(0, 100);
  const auto numbers = rc::gen::build<Numbers>(
      rc::gen::set(&Numbers::operation, rc::gen::inRange(0, 22)), rc::gen::set(&Numbers::a, number),
      rc::gen::set(&Numbers::b, number), rc::gen::set(&Numbers::c, number));
  const bool is_ok = rc::check("memory and " + name + " agree", [&] {
    const auto history = *rc::gen::container<std::vector<Numbers>>(numbers);
    ManualEnv env;
    Driver memory(env, open_store("memory:", env));
    Driver other(env, open(env));
    std::vector<RunId> ids;
    for (const Numbers& n : history) {
      const RunId fresh = env.new_id();
      const std::string expected = memory.apply(n, fresh, ids);
      const std::string actual = other.apply(n, fresh, ids);
      RC_ASSERT(actual == expected);
      ids.push_back(fresh);
      env.advance(Duration(n.c % 2 == 0 ? n.b : n.b * 500));
    }
    RC_ASSERT(other.state(ids) == memory.state(ids));
  });
  EXPECT_TRUE(is_ok);
}

TEST(Model, MemoryAndSqliteAgreeOnEveryHistory) {
  TempFolder folder;
  int number = 0;
  expect_same_histories("sqlite", [&](Env& env) {
    return open_store(fmt::format("sqlite:{}", folder.file(fmt::format("{}.db", ++number))), env);
  });
}

/// In one schema that is emptied: making one costs as much as a history.
TEST(Model, MemoryAndPostgresAgreeOnEveryHistory) {
  const std::string schema = PostgresServer::fresh_schema();
  expect_same_histories("postgres", [&](Env& env) {
    auto store = open_postgres(schema, env);
    postgres::Connection db(postgres::parse_target(PostgresServer::shared().url(schema)));
    for (const char* table : {"runs", "run_data", "labels", "events", "policies", "workers"}) {
      db.execute(fmt::format("DELETE FROM {}.{}", schema, table));
    }
    return store;
  });
}

}  // namespace
}  // namespace holdfast::testing
