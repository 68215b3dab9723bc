#include "sim/history.hpp"

#include <algorithm>

#include "sim/members.hpp"
#include "sim/scheduler.hpp"

namespace holdfast::sim {
namespace {

constexpr Duration kLongestHealing = std::chrono::minutes(10);
constexpr Duration kLook = std::chrono::milliseconds(500);

class History {
 public:
  History(const Plan& plan, SimThreads& threads, SimScheduler& scheduler, const Controls& controls)
      : plan_(plan),
        settings_(plan.settings),
        chance_(plan.seed ^ 0x5157u),
        env_(threads, scheduler, plan.seed ^ 0xe0f1u, {400'000, std::chrono::hours(24)}),
        rows_(open_store("memory:", env_)) {
    faults_.set_oracle(controls.oracle);
    if (controls.onlooker) {
      env_.on_tell = [this, onlooker = controls.onlooker](const std::string& text) {
        onlooker(fmt::format("{:>7} {}.{} {}", env_.elapsed().count(), env_.here().name,
                             env_.current().name, text));
      };
    }
    env_.on_escape = [this](const SimTask& task, const std::string& what) {
      if (!task.process->is_over) {
        violations_.add(kNoBug, "thread {} of {} ends with: {}", task.name, task.process->name,
                        what);
      }
    };
  }

  Report run() {
    for (int i = 0; i < settings_.workers; ++i) start_worker(i);
    start_clients();
    under_faults();
    if (!env_.is_halted()) heal();
    if (!env_.is_halted()) witness_.check_everything();
    if (!env_.is_halted() && settings_.ends_gracefully) stop_all();
    Report report = summed_up();
    env_.unwind();
    return report;
  }

 private:
  /// Whether those who are not hindered keep their leases: not where they are renewed at step
  /// boundaries only, nor where a machine that slept finds its leases refused.
  bool keeps_leases() const { return settings_.heartbeat > 0 && !settings_.strict_expiry; }

  void start_worker(int number) {
    members_.push_back(std::make_unique<WorkerMember>(shared_, number));
    workers_[number] = static_cast<WorkerMember*>(members_.back().get());
    members_.back()->begin();
  }

  void start_clients() {
    const auto count = static_cast<std::size_t>(settings_.clients);
    std::vector<std::vector<Element>> shares(count);
    std::size_t next = 0;
    for (const Element& element : plan_.elements) {
      if (!is_fault(element.what)) shares[next++ % count].push_back(element);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const int number = static_cast<int>(i);
      members_.push_back(std::make_unique<ClientMember>(shared_, number, std::move(shares[i])));
      clients_[100 + number] = members_.back().get();
      members_.back()->begin();
    }
  }

  void sleep_until(int at) {
    const Duration wait = Duration(at) - env_.elapsed();
    if (wait > Duration::zero()) env_.sleep_for(wait, {});
  }

  void under_faults() {
    for (const Element& element : plan_.elements) {
      if (is_fault(element.what) && !element.place.empty()) faults_.arm(element);
    }
    for (const Element& element : plan_.elements) {
      if (!is_fault(element.what) || !element.place.empty()) continue;
      sleep_until(element.at);
      if (env_.is_halted()) return;
      strike(element);
    }
    sleep_until(settings_.faults_until);
    faults_.end();
  }

  void strike(const Element& element) {
    const auto worker = workers_.find(element.subject);
    const auto client = clients_.find(element.subject);
    Member* member = worker != workers_.end()   ? worker->second
                     : client != clients_.end() ? client->second
                                                : nullptr;
    if (member == nullptr) return;
    if (element.what == Do::start) {
      if (worker != workers_.end() && member->is_gone()) start_worker(element.subject);
    } else if (element.what == Do::stop) {
      if (worker != workers_.end()) worker->second->stop(Duration(element.length));
    } else if (!member->is_gone()) {
      faults_.strike(element, member->process(), member->hindrance());
    }
  }

  /// No faults any more, and somebody to do the work: everything must come to rest.
  void heal() {
    const StoreTime begun = env_.now();
    while (!env_.is_halted() && has_work()) {
      if (env_.now() - begun > kLongestHealing) {
        tell_what_stands_still();
        return;
      }
      for (int i = 0; i < settings_.workers; ++i) replace(i);
      env_.sleep_for(kLook, {});
    }
    if (env_.is_stuck() || env_.is_spent()) tell_what_stands_still();
  }

  void replace(int number) {
    // One that is about to stop counts for nothing.
    if (workers_[number]->is_gone() || workers_[number]->is_asked()) start_worker(number);
  }

  bool has_work() {
    const auto is_busy = [](const auto& client) { return !client.second->is_gone(); };
    if (std::ranges::any_of(clients_, is_busy)) return true;
    const SimEnv::AtStore at_store(env_);
    return std::ranges::any_of(all_runs(), [&](const Run& run) { return stands_still(run); });
  }

  /// Not at rest: somebody has yet to do something.
  bool stands_still(const Run& run) {
    if (run.status.is(Status::queued)) return true;
    if (!run.status.is(Status::running)) return false;
    if (run.lease_until) return true;
    const SimProcess* holder = run.claimed_by ? env_.find_process(*run.claimed_by) : nullptr;
    return holder != nullptr && !holder->is_dead && !holder->has_ended;
  }

  std::vector<Run> all_runs() {
    ListFilter all;
    all.limit = 1000;
    return rows_->list(all).runs;
  }

  void tell_what_stands_still() {
    const SimEnv::AtStore at_store(env_);
    for (const Run& run : all_runs()) {
      if (!stands_still(run)) continue;
      violations_.add(kProgress, "run {} is {} at claim {} of {} long after the last fault", run.id,
                      run.status.text(), run.claim, run.claimed_by.value_or("nobody"));
    }
    for (const auto& [number, client] : clients_) {
      if (!client->is_gone())
        violations_.add(kProgress, "client {} does not come to its end", number);
    }
    if (env_.is_spent()) violations_.add(kProgress, "the world does not come to rest");
    if (env_.is_stuck()) violations_.add(kProgress, "no thread can ever go on");
  }

  void stop_all() {
    for (auto& [number, worker] : workers_) worker->stop(std::chrono::seconds(3));
    const auto is_left = [](const auto& worker) { return !worker.second->is_gone(); };
    for (int look = 0; look < 1000 && std::ranges::any_of(workers_, is_left); ++look) {
      if (env_.is_halted()) return tell_what_stands_still();
      env_.sleep_for(kLook, {});
    }
    if (std::ranges::any_of(workers_, is_left)) {
      violations_.add(kProgress, "a worker does not stop");
    }
    const SimEnv::AtStore at_store(env_);
    for (const Run& run : all_runs()) {
      if (run.status.is(Status::running) && run.lease_until) {
        violations_.add(kProgress, "run {} is left running by workers that were stopped", run.id);
      }
    }
    witness_.check_everything();
  }

  Report summed_up() {
    Report report;
    report.violations = violations_.all();
    report.digest = env_.digest();
    report.points = env_.points();
    report.switches = env_.switches();
    report.events = witness_.events();
    report.calls = ledger_.calls();
    report.landed = ledger_.landed();
    report.overlapped = ledger_.overlapped();
    report.faults = faults_.struck();
    report.time = env_.elapsed();
    const SimEnv::AtStore at_store(env_);
    for (const auto& [status, count] : rows_->stats().by_status) {
      report.runs[status] = static_cast<int>(count);
    }
    return report;
  }

  const Plan& plan_;
  const Settings& settings_;
  Chance chance_;
  SimEnv env_;
  const std::unique_ptr<Store> rows_;
  Violations violations_{[this] { env_.halt(); }};
  Ledger ledger_{env_, *rows_, violations_, settings_.heartbeat > 0};
  Faults faults_{env_, settings_, chance_};
  Witness witness_{env_, *rows_, ledger_, violations_, keeps_leases()};
  Outside outside_{env_, ledger_, faults_, chance_, settings_};
  Shared shared_{env_, *rows_, faults_, ledger_, witness_, outside_, settings_};
  std::vector<std::unique_ptr<Member>> members_;  ///< all that there ever were
  std::map<int, WorkerMember*> workers_;          ///< the newest of each number
  std::map<int, Member*> clients_;
};

}  // namespace

Report run_history(const Plan& plan, SimThreads& threads, const Controls& controls) {
  SeededScheduler by_seed(plan.seed, plan.settings);
  SimScheduler& scheduler = controls.scheduler != nullptr ? *controls.scheduler : by_seed;
  return History(plan, threads, scheduler, controls).run();
}

std::string to_text(const Report& report) {
  std::string text = fmt::format(
      "digest {:016x}: {} points, {} switches, {} events, {} calls, {} of them beside others, {} "
      "writes, {} faults, {} s",
      report.digest, report.points, report.switches, report.events, report.calls, report.overlapped,
      report.landed, report.faults, report.time.count() / 1000);
  for (const auto& [status, count] : report.runs) text += fmt::format(", {} {}", count, status);
  for (const Violation& violation : report.violations) {
    text += fmt::format("\n  {}: {}", violation.name, violation.text);
  }
  return text;
}

}  // namespace holdfast::sim
