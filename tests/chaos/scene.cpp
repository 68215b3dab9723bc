#include "chaos/scene.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include "support/postgres_server.hpp"

namespace holdfast::chaos {

namespace {

using crash::eventually;
using crash::is_postgres;
using crash::let_pass;
using testing::PostgresServer;

constexpr int kApps = 3;
constexpr int kAgentWorkers = 1;
constexpr std::size_t kAhead = 60;  ///< runs that nobody has finished yet
constexpr seconds kLongestFarewell(20);
constexpr int kBudget = 1000;  ///< what is killed so often must not be given up for it

crash::Settings settings() {
  crash::Settings made;
  made.lease = "2s";
  made.heartbeat = "500ms";
  made.max_requeues = kBudget;
  return made;
}

WallTime wall_now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

/// The store may be away for a moment; what it refuses is a mistake of the test.
template <class Call>
void try_until_answered(const std::atomic<bool>& is_over, const Call& call) {
  while (!is_over) {
    try {
      call();
      return;
    } catch (const StoreError& error) {
      EXPECT_FALSE(error.permanent()) << error.what();
      let_pass(milliseconds(50));
    }
  }
}

bool has_ended(const Run& run) {
  return run.status.is(Status::completed) || run.status.is(Status::cancelled);
}

}  // namespace

Scene::Scene(unsigned seed) : random_(seed), site_(settings()) {
  if (is_postgres()) {
    PostgresServer& server = PostgresServer::shared();
    proxy_ = std::make_unique<testing::TcpProxy>(server.port());
    site_.use_server(server.tcp_url(proxy_->port(), site_.schema()), server.url(site_.schema()));
    site_.configure(settings());
  }
  site_.policy.lease = Duration(2000);
  site_.policy.max_requeues = kBudget;
  for (const char* agent : {"journey", "errand", "gated"}) {
    site_.runtime().register_task(agent, [](RunContext&) { return Json(); });
  }
  for (int i = 0; i < kApps + kAgentWorkers; ++i) workers_.push_back(start_worker(i < kApps));
  for (const Worker& worker : workers_) {
    EXPECT_TRUE(site_.is_up(worker.process)) << site_.log_of(worker.process);
  }
  clients_.emplace_back([this] { enqueue_on_and_on(); });
  clients_.emplace_back([this] { decide_on_and_on(); });
}

Scene::~Scene() {
  is_over_ = true;
  for (std::thread& client : clients_) {
    if (client.joinable()) client.join();
  }
}

Scene::Worker Scene::start_worker(bool is_app) {
  if (!is_app) return {site_.worker({"--grace", "2s"}), is_app, {}, {}};
  return {site_.app({"worker", "--lease", "2000", "--heartbeat", "500", "--slots", "4"}),
          is_app,
          {},
          {}};
}

void Scene::kill(Worker& worker) {
  log_.killed[worker.process.pid()] = wall_now();
  worker.process.kill();
  worker = start_worker(worker.is_app);
}

/// Starts anew what has ended: as asked, or since the store was away when it began.
void Scene::supervise() {
  for (Worker& worker : workers_) {
    const bool was_asked = worker.leaving != SteadyTime{};
    const auto status = worker.process.status();
    if (!status) {
      EXPECT_FALSE(was_asked &&
                   std::chrono::steady_clock::now() > worker.leaving + kLongestFarewell)
          << "it does not stop: " << site_.log_of(worker.process);
      continue;
    }
    // The signal may have been quicker than the program's beginning.
    const bool is_as_asked = was_asked && (*status == 0 || *status == 128 + SIGTERM);
    const bool found_no_store =
        *status == 1 && site_.log_of(worker.process).find("the store") != std::string::npos;
    EXPECT_TRUE(is_as_asked || found_no_store) << *status << ": " << site_.log_of(worker.process);
    worker = start_worker(worker.is_app);
  }
}

void Scene::freeze(Worker& worker) {
  worker.process.signal(SIGSTOP);
  log_.frozen.insert(worker.process.pid());
  worker.thaw = std::chrono::steady_clock::now() + milliseconds(100 + dice(4000));
}

void Scene::thaw(bool all) {
  for (Worker& worker : workers_) {
    if (worker.thaw == SteadyTime{}) continue;
    if (!all && std::chrono::steady_clock::now() < worker.thaw) continue;
    worker.process.signal(SIGCONT);
    worker.thaw = {};
  }
}

void Scene::disturb_workers() {
  Worker& worker = workers_[static_cast<std::size_t>(dice(static_cast<int>(workers_.size())))];
  if (worker.thaw != SteadyTime{} || worker.leaving != SteadyTime{}) return;
  switch (dice(4)) {
    case 0:
    case 1:
      ++log_.faults["SIGKILL"];
      return kill(worker);
    case 2:
      ++log_.faults["freeze"];
      return freeze(worker);
    default:
      ++log_.faults["graceful stop"];
      worker.process.signal(SIGTERM);
      worker.leaving = std::chrono::steady_clock::now();
  }
}

void Scene::disturb_server() {
  PostgresServer& server = PostgresServer::shared();
  switch (dice(8)) {
    case 0:
      ++log_.faults["server stopped"];
      return server.restart(SIGINT);
    case 1:
      ++log_.faults["server crashed"];
      return server.restart(SIGQUIT);
    case 2:
      ++log_.faults["connections reset"];
      proxy_->cut();
      break;
    case 3:
      ++log_.faults["connections refused"];
      proxy_->refuse();
      break;
    case 4:
      ++log_.faults["packets swallowed"];
      proxy_->swallow();
      break;
    case 5:
      ++log_.faults["slow way"];
      proxy_->delay(milliseconds(20));
      break;
    default:
      ++log_.faults["reply lost"];
      proxy_->lose_reply_after(dice(40));
      return;
  }
  mend_at_ = std::chrono::steady_clock::now() + milliseconds(100 + dice(1500));
}

void Scene::mend() {
  if (!proxy_) return;
  proxy_->mend();
  proxy_->delay(milliseconds(0));
  mend_at_ = {};
}

void Scene::play(milliseconds length) {
  const SteadyTime end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
    let_pass(milliseconds(50 + dice(300)));
    thaw(false);
    supervise();
    if (mend_at_ != SteadyTime{} && std::chrono::steady_clock::now() >= mend_at_) mend();
    if (proxy_ && mend_at_ == SteadyTime{} && dice(6) == 0) {
      disturb_server();
    } else {
      disturb_workers();
    }
  }
  thaw(true);
  mend();
}

void Scene::enqueue_on_and_on() {
  std::mt19937 random(random_());
  std::vector<std::string> open;
  Runtime& runtime = site_.runtime();
  for (int number = 0; !is_over_; ++number) {
    RunRequest request;
    request.agent = number % 8 == 6 ? "errand" : number % 8 == 7 ? "gated" : "journey";
    request.input = {{"turns", 4}, {"ms", static_cast<int>(random() % 20)}};
    request.idempotency_key = "order-" + std::to_string(number);
    try_until_answered(is_over_, [&] {
      open.push_back(runtime.enqueue(request).id);
      const std::lock_guard lock(mutex_);
      log_.acknowledged.push_back(open.back());
      log_.keys.insert(*request.idempotency_key);
    });
    if (random() % 20 == 0 && !open.empty()) {
      try_until_answered(is_over_, [&] {
        try {
          runtime.cancel(open[random() % open.size()], {"chaos", "", ""});
        } catch (const RefusedError& error) {
          EXPECT_EQ(error.refusal(), Refusal::conflict) << error.what();
        }
      });
    }
    while (open.size() >= kAhead && !is_over_) {
      try_until_answered(is_over_, [&] {
        std::set<std::string> ended;
        for (const std::string& id : open) {
          if (has_ended(runtime.get(id))) ended.insert(id);
        }
        std::erase_if(open, [&](const std::string& id) { return ended.contains(id); });
      });
      if (open.size() >= kAhead) let_pass(milliseconds(100));
    }
  }
}

void Scene::decide_on_and_on() {
  while (!is_over_) {
    try_until_answered(is_over_, [&] { answer_people(false); });
    for (int i = 0; i < 10 && !is_over_; ++i) let_pass(milliseconds(50));
  }
}

/// Approves what waits, and looks into what ended in the middle of a write. `force`: nobody is
/// left who could still begin a write that is not in the ledger.
void Scene::answer_people(bool force) {
  Runtime& runtime = site_.runtime();
  ListFilter waiting;
  waiting.status = "waiting_for_approval";
  for (const Run& run : runtime.list(waiting).runs) {
    Decision decision;
    decision.run = run.id;
    decision.go_on = Decision::Continue::queue;
    decision.by.actor = "chaos";
    try {
      runtime.decide(decision, nullptr, {});
    } catch (const RefusedError& error) {
      // It was cancelled, or an answer that was lost had counted.
      EXPECT_EQ(error.refusal(), Refusal::conflict) << error.what();
    }
  }
  ListFilter failed;
  failed.status = "failed";
  for (const Run& run : runtime.list(failed).runs) resolve(run, force);
}

void Scene::resolve(const Run& run, bool force) {
  if (!run.pending) return;  // judged at the end
  ResolveRequest request;
  request.run = run.id;
  request.step = run.pending->step_key;
  request.by.actor = "chaos";
  for (const crash::LedgerLine& line : site_.ledger()) {
    request.landed |= line.key == run.pending->idempotency_key;
  }
  request.force = force && !request.landed;
  try {
    site_.runtime().resolve(request);
  } catch (const RefusedError& error) {
    EXPECT_EQ(error.refusal(), Refusal::conflict) << error.what();
  }
}

bool Scene::settle(milliseconds limit) {
  is_over_ = true;
  for (std::thread& client : clients_) client.join();
  thaw(true);
  mend();
  const SteadyTime all_awake = std::chrono::steady_clock::now() + seconds(5);
  return eventually(limit, [&] {
    let_pass(milliseconds(200));
    supervise();
    answer_people(std::chrono::steady_clock::now() >= all_awake);
    return site_.sql_number(
               "SELECT count(*) FROM @.runs WHERE status NOT IN ('completed', 'cancelled')") == 0;
  });
}

}  // namespace holdfast::chaos
