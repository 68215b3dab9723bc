#pragma once

// What tests put between the engine and a store: every verb passes one place.

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "store/store.hpp"

namespace holdfast {

/// A verb on its way, with what of its arguments those who stand between look at.
struct StoreCall {
  std::string verb;  ///< as in Store; a reap that only looks is `look`
  const Lease* lease = nullptr;
  const Fence* fence = nullptr;
  const StepRecord* step = nullptr;
  const Settlement* settlement = nullptr;
  std::optional<Write> answer = std::nullopt;  ///< once it is answered
};

/// Forwards to another store, which must outlive it. Any thread.
class PassingStore : public Store {
 public:
  explicit PassingStore(Store& inner) : inner_(inner) {}

  std::vector<EnqueueResult> enqueue(std::span<const NewRun> runs) override {
    return pass({"enqueue"}, [&] { return inner_.enqueue(runs); });
  }
  Claimed start(const NewRun& run, const WorkerId& worker) override {
    return pass({"start"}, [&] { return inner_.start(run, worker); });
  }
  ClaimResult claim(const ClaimRequest& request) override {
    return pass({"claim"}, [&] { return inner_.claim(request); });
  }
  RenewReport renew(const WorkerId& worker, std::span<const Lease> leases) override {
    return pass({"renew"}, [&] { return inner_.renew(worker, leases); });
  }
  Write fence(const Lease& lease, const Fence& fence) override {
    return pass({"fence", &lease, &fence}, [&] { return inner_.fence(lease, fence); });
  }
  Write unfence(const Lease& lease, const Unfence& unfence) override {
    return pass({"unfence", &lease}, [&] { return inner_.unfence(lease, unfence); });
  }
  Write record(const Lease& lease, const StepRecord& step) override {
    return pass({"record", &lease, nullptr, &step}, [&] { return inner_.record(lease, step); });
  }
  Write settle(const Lease& lease, const Settlement& settlement) override {
    return pass({"settle", &lease, nullptr, nullptr, &settlement},
                [&] { return inner_.settle(lease, settlement); });
  }
  Write acknowledge_cancel(const Lease& lease) override {
    return pass({"acknowledge_cancel", &lease}, [&] { return inner_.acknowledge_cancel(lease); });
  }
  ReapReport reap(int limit, bool dry_run, const Decider& decider) override {
    return pass({dry_run ? "look" : "reap"}, [&] { return inner_.reap(limit, dry_run, decider); });
  }
  int expire_leases_of(const WorkerId& worker, StoreTime since) override {
    return pass({"expire_leases_of"}, [&] { return inner_.expire_leases_of(worker, since); });
  }
  ChangeResult cancel(const RunId& run, const Operator& by) override {
    return pass({"cancel"}, [&] { return inner_.cancel(run, by); });
  }
  ChangeResult answer(const Decision& decision, const Continuation& go_on) override {
    return pass({"answer"}, [&] { return inner_.answer(decision, go_on); });
  }
  std::vector<ChangeResult> redrive(std::span<const RunId> runs, const Operator& by) override {
    return pass({"redrive"}, [&] { return inner_.redrive(runs, by); });
  }
  ChangeResult resolve(const ResolveRequest& request) override {
    return pass({"resolve"}, [&] { return inner_.resolve(request); });
  }
  ChangeResult hand_over(const RunId& run, bool force, const Operator& by) override {
    return pass({"hand_over"}, [&] { return inner_.hand_over(run, force, by); });
  }
  ChangeResult wake(const RunId& run, const Operator& by) override {
    return pass({"wake"}, [&] { return inner_.wake(run, by); });
  }
  PurgeReport purge(const PurgeRequest& request, int limit) override {
    return pass({"purge"}, [&] { return inner_.purge(request, limit); });
  }
  std::optional<Run> find(const RunId& run) override {
    return pass({"find"}, [&] { return inner_.find(run); });
  }
  RunPage list(const ListFilter& filter) override {
    return pass({"list"}, [&] { return inner_.list(filter); });
  }
  std::vector<Event> events(const RunId& run, std::int64_t after, int limit) override {
    return pass({"events"}, [&] { return inner_.events(run, after, limit); });
  }
  std::vector<Event> all_events(std::int64_t& cursor, int limit) override {
    return pass({"all_events"}, [&] { return inner_.all_events(cursor, limit); });
  }
  StoreStats stats() override {
    return pass({"stats"}, [&] { return inner_.stats(); });
  }
  Admission admit_call(const std::string& target, Duration probe_for) override {
    return pass({"admit_call"}, [&] { return inner_.admit_call(target, probe_for); });
  }
  void note_call(const std::string& target, const CallEnd& end,
                 const CircuitOptions& options) override {
    pass({"note_call"}, [&] { return inner_.note_call(target, end, options), 0; });
  }
  std::vector<Circuit> circuits() override {
    return pass({"circuits"}, [&] { return inner_.circuits(); });
  }
  void report_worker(const WorkerRow& row) override {
    pass({"report_worker"}, [&] { return inner_.report_worker(row), 0; });
  }
  void forget_worker(const WorkerId& worker) override {
    pass({"forget_worker"}, [&] { return inner_.forget_worker(worker), 0; });
  }
  std::vector<WorkerRow> workers() override {
    return pass({"workers"}, [&] { return inner_.workers(); });
  }
  PresenceBoard* presence() override { return inner_.presence(); }
  void wait_for_work(Duration max, const std::stop_token& stop) override {
    inner_.wait_for_work(max, stop);
  }
  StoreTime now() override { return inner_.now(); }
  WallTime wall_now() override {
    return pass({"wall_now"}, [&] { return inner_.wall_now(); });
  }
  void backup(const std::string& file) override { inner_.backup(file); }
  std::vector<Finding> audit() override {
    return pass({"audit"}, [&] { return inner_.audit(); });
  }
  std::vector<Finding> check() override { return inner_.check(); }

 protected:
  /// Does `call`, or does not. What it throws is what the caller sees.
  virtual void around(StoreCall&, const std::function<void()>& call) = 0;
  Store& inner() { return inner_; }

 private:
  template <class Call>
  std::invoke_result_t<Call> pass(StoreCall verb, const Call& call) {
    std::optional<std::invoke_result_t<Call>> result;
    around(verb, [&] {
      result.emplace(call());
      if constexpr (std::is_same_v<std::invoke_result_t<Call>, Write>) verb.answer = *result;
    });
    return std::move(*result);
  }

  Store& inner_;
};

}  // namespace holdfast
