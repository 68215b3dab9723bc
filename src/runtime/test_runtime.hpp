#pragma once

// A runtime over a store of its own, with tasks that do what tests need. Tests only.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "runtime/front.hpp"

namespace holdfast::testing {

/// A folder that goes with its owner.
class TempFolder {
 public:
  TempFolder() : path_(std::filesystem::temp_directory_path() / ("hf-" + real_env().new_id())) {
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Forwards to a store, and lets a test stand between: before a verb, or between its effect and its
/// reply.
class BetweenStore final : public Store {
 public:
  explicit BetweenStore(std::unique_ptr<Store> inner) : in_(std::move(inner)) {}

  std::function<void()> after_enqueue;
  std::function<void()> after_answer;
  std::function<void()> before_redrive;
  std::function<void()> after_redrive;
  std::function<void()> after_claim;

  std::vector<EnqueueResult> enqueue(std::span<const NewRun> runs) override {
    auto result = in_->enqueue(runs);
    call(after_enqueue);
    return result;
  }
  Claimed start(const NewRun& run, const WorkerId& id) override { return in_->start(run, id); }
  ClaimResult claim(const ClaimRequest& request) override {
    auto result = in_->claim(request);
    call(after_claim);
    return result;
  }
  RenewReport renew(const WorkerId& id, std::span<const Lease> leases) override {
    return in_->renew(id, leases);
  }
  Write fence(const Lease& lease, const Fence& fence) override { return in_->fence(lease, fence); }
  Write unfence(const Lease& lease, const Unfence& what) override {
    return in_->unfence(lease, what);
  }
  Write record(const Lease& lease, const StepRecord& step) override {
    return in_->record(lease, step);
  }
  Write settle(const Lease& lease, const Settlement& end) override {
    return in_->settle(lease, end);
  }
  Write acknowledge_cancel(const Lease& lease) override { return in_->acknowledge_cancel(lease); }
  ReapReport reap(int limit, bool dry_run, const Decider& decider) override {
    return in_->reap(limit, dry_run, decider);
  }
  int expire_leases_of(const WorkerId& id, StoreTime since) override {
    return in_->expire_leases_of(id, since);
  }
  ChangeResult cancel(const RunId& id, const Operator& by) override { return in_->cancel(id, by); }
  ChangeResult answer(const Decision& decision, const Continuation& how) override {
    auto result = in_->answer(decision, how);
    call(after_answer);
    return result;
  }
  std::vector<ChangeResult> redrive(std::span<const RunId> ids, const Operator& by) override {
    call(before_redrive);
    auto result = in_->redrive(ids, by);
    call(after_redrive);
    return result;
  }
  ChangeResult resolve(const ResolveRequest& request) override { return in_->resolve(request); }
  ChangeResult hand_over(const RunId& id, bool force, const Operator& by) override {
    return in_->hand_over(id, force, by);
  }
  ChangeResult wake(const RunId& id, const Operator& by) override { return in_->wake(id, by); }
  PurgeReport purge(const PurgeRequest& request, int limit) override {
    return in_->purge(request, limit);
  }
  std::optional<Run> find(const RunId& id) override { return in_->find(id); }
  RunPage list(const ListFilter& filter) override { return in_->list(filter); }
  std::vector<Event> events(const RunId& id, std::int64_t after, int limit) override {
    return in_->events(id, after, limit);
  }
  std::vector<Event> all_events(std::int64_t& cursor, int limit) override {
    return in_->all_events(cursor, limit);
  }
  StoreStats stats() override { return in_->stats(); }
  Admission admit_call(const std::string& target, Duration probe_for) override {
    return in_->admit_call(target, probe_for);
  }
  void note_call(const std::string& target, const CallEnd& end,
                 const CircuitOptions& options) override {
    in_->note_call(target, end, options);
  }
  std::vector<Circuit> circuits() override { return in_->circuits(); }
  void report_worker(const WorkerRow& row) override { in_->report_worker(row); }
  void forget_worker(const WorkerId& id) override { in_->forget_worker(id); }
  std::vector<WorkerRow> workers() override { return in_->workers(); }
  PresenceBoard* presence() override { return in_->presence(); }
  void wait_for_work(Duration max, const std::stop_token& stop) override {
    in_->wait_for_work(max, stop);
  }
  StoreTime now() override { return in_->now(); }
  WallTime wall_now() override { return in_->wall_now(); }
  void backup(const std::string& file) override { in_->backup(file); }
  std::vector<Finding> check() override { return in_->check(); }
  std::vector<Finding> audit() override { return in_->audit(); }

 private:
  static void call(const std::function<void()>& hook) {
    if (hook) hook();
  }
  const std::unique_ptr<Store> in_;
};

/// A hook that loses a reply, once.
inline std::function<void()> lose_once() {
  return [lost = false]() mutable {
    if (!std::exchange(lost, true)) throw StoreError("the connection was cut", false);
  };
}

inline Question approval_question() {
  Question question;
  question.kind = WaitKind::approval;
  question.key = "go";
  question.calls = {{"1", "act", {{"amount", 5}}, Verdict::undecided, false}};
  question.prompt = "May it act?";
  return question;
}

/// For `memory` and `sqlite`: a runtime with tasks
/// - `echo` (one step; the answer is the input),
/// - `fail` (fails with the class that its input names, until `mended`),
/// - `write` (a non-idempotent write whose outcome is unknown, until `mended`),
/// - `approve` (acts once approved; counted by `acted`), `fill` (asks for {name}),
/// - `nap` (sleeps for its input in milliseconds).
class RuntimeTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { open(RuntimeOptions{}); }

  void open(RuntimeOptions options) {
    options.store_url = url();
    auto store = std::make_unique<BetweenStore>(open_store(options.store_url, real_env()));
    store_ = store.get();
    runtime_ = make_runtime(std::move(options), real_env(), std::move(store));
    register_tasks(*runtime_);
  }

  std::string url() const {
    const std::string kind = GetParam();
    return kind == "memory" ? "memory:" : "sqlite:" + (folder_.path() / "runs.db").string();
  }

  void register_tasks(Runtime& runtime) {
    runtime.register_task("echo", [](RunContext& context) {
      return context.step("echo", [&] { return context.run().input; });
    });
    runtime.register_task("fail", [this](RunContext& context) -> Json {
      context.step("before", [this]() -> Json { return ++before_; });
      if (mended_) return "mended";
      Failure failure;
      failure.cls = *parse_word<FailureClass>(context.run().input.get<std::string>());
      failure.message = "it broke";
      throw FailureError(failure);
    });
    runtime.register_task("write", [this](RunContext& context) -> Json {
      StepOptions options;
      options.effect = Effect::non_idempotent_write;
      options.arguments = {{"amount", 5}};
      options.timeout = std::chrono::hours(1);
      return context.step("pay", options, [this](const StepContext&) -> StepResult {
        ++written_;
        if (mended_) return {"paid", std::nullopt};
        Failure failure;
        failure.cls = FailureClass::timeout;
        failure.message = "no answer";
        failure.outcome_unknown = true;
        throw FailureError(failure);
      });
    });
    runtime.register_task("approve", [this](RunContext& context) -> Json {
      const auto reply = context.ask(approval_question());
      if (reply.verdicts.at(0) != Verdict::approved) return "refused";
      return context.step("act", [this]() -> Json { return ++acted_; });
    });
    runtime.register_task("fill", [](RunContext& context) {
      const Json schema = {{"type", "object"},
                           {"properties", {{"name", {{"type", "string"}}}}},
                           {"required", {"name"}}};
      return context.ask_input("who", schema, "Who is it?");
    });
    runtime.register_task("nap", [](RunContext& context) -> Json {
      context.sleep("nap", Duration(context.run().input.get<int>()));
      return "rested";
    });
  }

  static RunRequest request(const std::string& agent, Json input = nullptr) {
    RunRequest request;
    request.agent = agent;
    request.input = std::move(input);
    return request;
  }

  holdfast::Run run_inline(const std::string& agent, Json input = nullptr) {
    return runtime_->run_inline(request(agent, std::move(input)), {}, {}).run;
  }
  holdfast::Run dead_letter() { return run_inline("fail", "client_error"); }

  /// Claimed by a worker that does nothing with it.
  holdfast::Run running(const std::string& worker = "some-worker") {
    const auto stored = runtime_->enqueue(request("echo", 1));
    ClaimRequest claim;
    claim.worker = worker;
    claim.agents = {{"echo", Policy{}, nullptr}};
    claim.only = stored.id;
    return store_->claim(claim).runs.at(0).run;
  }

  std::vector<std::string> kinds(const RunId& id) {
    std::vector<std::string> all;
    for (const auto& event : runtime_->events(id, 0, 0)) all.push_back(event.kind.text());
    return all;
  }
  long count(const RunId& id, const std::string& kind) {
    const auto all = kinds(id);
    return std::count(all.begin(), all.end(), kind);
  }

  void expect_sound() {
    for (const auto& finding : runtime_->verify()) {
      EXPECT_NE(finding.grade, Finding::Grade::bad) << finding.subject << ": " << finding.text;
    }
  }

  template <class Call>
  static void expect_refused(Refusal refusal, const std::string& part, const Call& call) {
    try {
      call();
      ADD_FAILURE() << "not refused: " << part;
    } catch (const RefusedError& error) {
      EXPECT_EQ(error.refusal(), refusal) << error.what();
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }

  TempFolder folder_;
  std::atomic<bool> mended_ = false;
  std::atomic<int> before_ = 0;
  std::atomic<int> written_ = 0;
  std::atomic<int> acted_ = 0;
  std::unique_ptr<Runtime> runtime_;
  BetweenStore* store_ = nullptr;
};

inline std::string store_name(const ::testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace holdfast::testing

#define HOLDFAST_FOR_EACH_STORE(suite) \
  INSTANTIATE_TEST_SUITE_P(Stores, suite, ::testing::Values("memory", "sqlite"), store_name)
