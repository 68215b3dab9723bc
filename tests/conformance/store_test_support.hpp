#pragma once

// What the suite of all stores shares: one store of each kind, and builders.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/decide.hpp"
#include "store/postgres/postgres_store.hpp"
#include "store/store.hpp"
#include "support/manual_env.hpp"
#include "support/postgres_server.hpp"
#include "support/temp_folder.hpp"

namespace holdfast::testing {

using namespace std::chrono_literals;

inline NewRun a_run(Env& env, const std::string& agent = "agent") {
  NewRun run;
  run.row.id = env.new_id();
  run.row.agent = agent;
  run.row.input = "do it";
  run.row.policy.lease = 60s;
  run.content_digest = "content of " + run.row.id;
  return run;
}

inline AgentOffer offer(const std::string& name = "agent") {
  AgentOffer offer;
  offer.name = name;
  offer.policy.lease = 60s;
  return offer;
}

inline StepRecord a_step(const std::string& key) {
  StepRecord step;
  step.key = key;
  step.payload = {{"key", key}, {"name", key}, {"result", 1}};
  return step;
}

inline Fence a_fence(const std::string& key, bool has_probe = false) {
  Fence fence;
  fence.step_key = key;
  fence.name = "tool:pay";
  fence.arguments = {{"amount", 5}};
  fence.idempotency_key = "k-" + key;
  fence.timeout = 30s;
  fence.has_probe = has_probe;
  return fence;
}

inline Settlement settlement(const Run& run, const SegmentEnd& end, Env& env) {
  return decide(run, end, false, env.wall_now(), 0.5);
}

inline Settlement failing(const Run& run, Env& env, FailureClass cls = FailureClass::overloaded) {
  Failure failure;
  failure.cls = cls;
  failure.message = "it went wrong";
  return settlement(run, Failed{failure}, env);
}

inline Settlement suspending(const Run& run, Env& env, std::optional<Duration> timeout = {},
                             WaitKind kind = WaitKind::approval) {
  Wait wait;
  wait.kind = kind;
  wait.turn = "turn-1";
  wait.calls = {{"1", "pay", {{"amount", 5}}, Verdict::undecided, false},
                {"2", "pay", {{"amount", 6}}, Verdict::undecided, false}};
  if (kind == WaitKind::input) {
    wait.calls.resize(1);
    wait.schema = {{"type", "object"}};
  }
  wait.timeout = timeout;
  return settlement(run, Suspended{wait}, env);
}

inline Decider worker_lost(Env& env) {
  return [&env](const Run& run) {
    return decide(run, WorkerLost{run.claimed_by.value_or("")}, false, env.wall_now(), 0.5);
  };
}

inline Operator by(const std::string& operation = "") { return {"ann", "", operation}; }

inline std::vector<std::string> kinds(Store& store, const RunId& id) {
  std::vector<std::string> kinds;
  for (const Event& event : store.events(id, 0, 0)) kinds.push_back(event.kind.text());
  return kinds;
}

using Kinds = std::vector<std::string>;

inline std::vector<std::string> store_kinds() { return {"memory", "sqlite", "postgres"}; }

/// Under the clocks of a test, in place of the server's.
inline std::unique_ptr<Store> open_postgres(const std::string& schema, Env& env) {
  return open_postgres_store(PostgresServer::shared().url(schema), env, [&env] {
    return Now{env.wall_now(), env.store_now()};
  });
}

/// A store of the kind that the parameter names, with clocks that stand still.
class StoreTest : public ::testing::TestWithParam<std::string> {
 protected:
  StoreTest() : store(open_empty(env)) {}

  /// Another one with nothing in it.
  std::unique_ptr<Store> open_empty(Env& clock) {
    if (GetParam() == "memory") return open_store("memory:", clock);
    if (GetParam() == "postgres") return open_postgres(PostgresServer::fresh_schema(), clock);
    return open_store("sqlite:" + folder.file("runs" + std::to_string(++files) + ".db"), clock);
  }
  holdfast::Run enqueue(const NewRun& run) {
    return store->enqueue(std::span(&run, 1)).front().run;
  }
  holdfast::Run enqueue() { return enqueue(a_run(env)); }

  std::vector<Claimed> claim(int limit = 1, const std::string& agent = "agent",
                             std::vector<std::string> queues = {}) {
    return store->claim({worker, {offer(agent)}, std::move(queues), limit, {}}).runs;
  }
  Claimed claim_one() {
    auto claimed = claim();
    if (claimed.empty()) throw std::logic_error("nothing to claim");
    return claimed.front();
  }
  /// A new run under a claim.
  Claimed claimed_run() {
    enqueue();
    return claim_one();
  }
  holdfast::Run get(const RunId& id) {
    auto run = store->find(id);
    if (!run) throw std::logic_error("no run " + id);
    return *run;
  }
  std::string status(const RunId& id) { return get(id).status.text(); }
  Write complete(const Claimed& claimed) {
    return store->settle(claimed.lease, settlement(claimed.run, Completed{"done"}, env));
  }
  ReapReport reap(int limit = 50) { return store->reap(limit, false, worker_lost(env)); }

  TempFolder folder;
  int files = 0;
  ManualEnv env;
  std::unique_ptr<Store> store;
  WorkerId worker = "worker-1";
};

}  // namespace holdfast::testing
