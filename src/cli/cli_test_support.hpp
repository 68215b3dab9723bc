#pragma once

// A runtime that answers as it is told and remembers what it was asked, and a host around it. Tests
// only.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.hpp"

namespace holdfast::testing {

class FakeWorker final : public WorkerHandle {
 public:
  explicit FakeWorker(std::vector<std::string>& calls) : calls_(calls) {}
  void stop() override { calls_.emplace_back("stop"); }
  void stop_now() override { calls_.emplace_back("stop_now"); }
  void join() override {
    if (on_join) on_join();
    calls_.emplace_back("join");
  }
  const WorkerId& id() const override { return id_; }
  std::function<void()> on_join;

 private:
  std::vector<std::string>& calls_;
  WorkerId id_ = "host-1-w";
};

class FakeRuntime final : public Runtime {
 public:
  RuntimeOptions given;
  std::map<RunId, Run> runs;
  std::map<RunId, std::vector<Event>> journal;
  std::vector<std::string> calls;  ///< what was asked, in order
  std::vector<RunRequest> requests;
  std::vector<WorkerSettings> workers_started;
  std::vector<Decision> decisions;
  std::vector<ResolveRequest> resolutions;
  std::vector<ListFilter> filters;
  std::vector<PurgeRequest> purges;
  std::vector<std::pair<int, bool>> sweeps;
  std::vector<Operator> operators;
  std::vector<ReapReport> reap_answers;
  BulkReport bulk;
  PurgeReport purged;
  RunPage page;
  Json stats_answer = Json::object();
  Json workers_answer = Json::array();
  Json why_answer = Json::object();
  std::vector<Finding> findings;
  std::optional<SegmentResult> segment;
  std::vector<Event> observed;
  std::function<void(FakeWorker&)> on_worker;
  std::function<void()> on_run;              ///< while a run is executed here
  std::function<void(const RunId&)> on_get;  ///< the world goes on between two looks

  void register_task(const std::string&, Handler, TaskOptions) override {}
  Run enqueue(const RunRequest& request) override {
    requests.push_back(request);
    Run run;
    run.id = "new-run";
    run.agent = request.agent;
    run.input = request.input;
    return run;
  }
  std::vector<Run> enqueue(std::span<const RunRequest>) override { return {}; }
  SegmentResult run(const RunRequest& request, const Observer& observer, std::stop_token) override {
    calls.emplace_back("run");
    return execute(request, observer);
  }
  SegmentResult run_inline(const RunRequest& request, const Observer& observer,
                           std::stop_token) override {
    calls.emplace_back("run_inline");
    return execute(request, observer);
  }
  std::unique_ptr<WorkerHandle> start_worker(const WorkerSettings& settings) override {
    workers_started.push_back(settings);
    auto worker = std::make_unique<FakeWorker>(calls);
    if (on_worker) on_worker(*worker);
    return worker;
  }
  ReapReport reap(int limit, bool dry_run) override {
    sweeps.emplace_back(limit, dry_run);
    if (reap_answers.empty()) return {};
    const auto answer = reap_answers.front();
    reap_answers.erase(reap_answers.begin());
    return answer;
  }
  Run get(const RunId& id) override {
    if (on_get) on_get(id);
    const auto found = runs.find(id);
    if (found == runs.end()) throw RefusedError(Refusal::not_found, "there is no run " + id);
    return found->second;
  }
  RunPage list(const ListFilter& filter) override {
    filters.push_back(filter);
    return page;
  }
  std::vector<Event> events(const RunId& id, std::int64_t after, int limit) override {
    std::vector<Event> found;
    for (const auto& event : journal[id]) {
      if (event.sequence > after && static_cast<int>(found.size()) < limit) found.push_back(event);
    }
    return found;
  }
  std::vector<Event> all_events(std::int64_t& cursor, int) override {
    if (cursor > 0) return {};
    std::vector<Event> found;
    for (const auto& [id, events] : journal)
      found.insert(found.end(), events.begin(), events.end());
    cursor = static_cast<std::int64_t>(found.size());
    return found;
  }
  Run wait(const RunId& id, std::optional<Duration> timeout, std::stop_token) override {
    calls.push_back("wait " + (timeout ? std::to_string(timeout->count()) : std::string("-")));
    return get(id);
  }
  Run cancel(const RunId& id, const Operator& by) override { return change("cancel", id, by); }
  DecisionResult decide(const Decision& decision, const Observer& observer,
                        std::stop_token) override {
    decisions.push_back(decision);
    for (const auto& event : observed) observer(event);
    return {get(decision.run), segment};
  }
  Run redrive(const RunId& id, const Operator& by) override { return change("redrive", id, by); }
  BulkReport redrive_all(const ListFilter& filter, bool dry_run, const Operator& by) override {
    filters.push_back(filter);
    operators.push_back(by);
    calls.emplace_back(dry_run ? "redrive_all dry" : "redrive_all");
    return bulk;
  }
  Run resolve(const ResolveRequest& request) override {
    resolutions.push_back(request);
    return get(request.run);
  }
  Run hand_over(const RunId& id, bool force, const Operator& by) override {
    return change(force ? "hand_over forced" : "hand_over", id, by);
  }
  Run wake(const RunId& id, const Operator& by) override { return change("wake", id, by); }
  PurgeReport purge(const PurgeRequest& request) override {
    purges.push_back(request);
    for (const auto& id : request.ids) get(id);
    return purged;
  }
  Json stats() override { return stats_answer; }
  Json workers() override { return workers_answer; }
  Json why(const RunId& id) override {
    get(id);
    return why_answer;
  }
  std::vector<Finding> verify() override { return findings; }
  std::vector<Finding> doctor() override { return findings; }
  void backup(const std::string& file) override { calls.push_back("backup " + file); }
  const RuntimeOptions& options() const override { return given; }

 private:
  SegmentResult execute(const RunRequest& request, const Observer& observer) {
    requests.push_back(request);
    for (const auto& event : observed) observer(event);
    if (on_run) on_run();
    return segment.value();
  }
  Run change(const std::string& verb, const RunId& id, const Operator& by) {
    calls.push_back(verb + " " + id);
    operators.push_back(by);
    return get(id);
  }
};

/// One command line against a fake runtime: what it printed and its exit code.
class Shell {
 public:
  FakeRuntime runtime;
  std::string out;
  std::string err;
  std::optional<std::string> config = "holdfast.toml";
  bool terminal = false;
  bool closed = false;  ///< nobody reads standard output any more
  Duration paused{};
  std::function<void(int)> signal;  ///< the handler that the command installed
  std::function<void()> opening;    ///< called before the runtime is given out: may throw

  int run(const std::vector<std::string>& words) {
    out.clear();
    err.clear();
    Output::Setup setup;
    setup.write_result = [this](std::string_view text) {
      if (closed) throw OutputClosed{};
      out += text;
    };
    setup.reader_is_gone = [this] { return closed; };
    setup.write_note = [this](std::string_view text) { err += text; };
    setup.result_is_terminal = terminal;
    setup.note_is_terminal = terminal;
    setup.colours = terminal;
    Output output(std::move(setup));
    return run_command_line(
        words, [this](const GlobalOptions&) { return std::make_unique<FakeHost>(*this); }, output);
  }

  Json json() const { return Json::parse(out); }

 private:
  class FakeHost final : public Host {
   public:
    explicit FakeHost(Shell& shell) : shell_(shell) {}
    Runtime& runtime() override {
      if (shell_.opening) shell_.opening();
      return shell_.runtime;
    }
    std::optional<std::string> config_file() override { return shell_.config; }
    std::string config_target() override { return "holdfast.toml"; }
    const RuntimeOptions& options() override { return shell_.runtime.given; }
    MigrationReport migrate() override { return {1, 3}; }
    std::string sqlite_version() override { return "3.40.1"; }
    std::string user_name() override { return "ada"; }
    StoreTime now() override { return StoreTime(shell_.paused); }
    void pause(Duration duration) override { shell_.paused += duration; }
    void on_signal(std::function<void(int)> handler) override { shell_.signal = handler; }
    void leave(int code) override { throw code; }

   private:
    Shell& shell_;
  };
};

inline Run make_run(const std::string& id, Status status) {
  Run run;
  run.id = id;
  run.agent = "triage";
  run.status = status;
  run.input = "hello";
  return run;
}

inline SegmentResult ended(Outcome outcome, Run run) { return {outcome, std::move(run)}; }

inline Run completed_run(const std::string& id, Json answer) {
  auto run = make_run(id, Status::completed);
  run.reason = Reason::completed;
  run.answer = std::move(answer);
  return run;
}

inline Run failed_run(const std::string& id) {
  auto run = make_run(id, Status::failed);
  run.reason = Reason::retries_exhausted;
  run.error = Failure{FailureClass::overloaded, "503", "busy", {}, {}, {}, {}, {}};
  return run;
}

inline AgentSpec make_agent(const std::string& name) {
  AgentSpec agent;
  agent.name = name;
  return agent;
}

inline Event make_event(const std::string& run, std::int64_t sequence, EventKind kind,
                        Json payload = Json::object()) {
  Event event;
  event.run = run;
  event.sequence = sequence;
  event.kind = kind;
  event.payload = std::move(payload);
  return event;
}

}  // namespace holdfast::testing
