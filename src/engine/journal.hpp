#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "engine/keep_alive.hpp"
#include "engine/leave.hpp"
#include "engine/persist.hpp"
#include "engine/replay.hpp"

namespace holdfast {

/// What a segment is executed with. All references outlive it.
struct SegmentParts {
  Env& env;
  Store& store;
  KeepAlive& keep_alive;
  Trouble& trouble;
  const Limits& limits;
  LiveSegment& segment;
  const Observer& observer;
  /// Sleeps are waited for, and charged requeues follow at once (interactive and inline segments).
  bool waits_in_process = false;
  /// Cancels the run at its next boundary (interactive and inline segments).
  std::stop_token cancel_request;
  /// How long an unanswered write is repeated; none: until the worker's grace is over.
  std::optional<Duration> patience;

  Persistence persistence() const { return {env, segment, trouble, patience}; }
};

/// The RunContext of one segment: find the key in the journal and return its result, else check
/// trust in the lease, fence if it writes, do the work, record. The executing thread only; of reads
/// that run at the same time nothing but the work is done elsewhere.
class Journal final : public RunContext {
 public:
  /// Reads what earlier segments recorded. Throws StoreError.
  Journal(const SegmentParts&, Run run);

  const Run& run() const override { return run_; }
  using RunContext::step;
  Json step(std::string_view name, const StepOptions&, const Work&) override;
  std::vector<Json> read_all(const std::vector<ReadStep>&, int at_once) override;
  void sleep(std::string_view name, Duration) override;
  void sleep_until(std::string_view name, WallTime) override;
  Reply ask(const Question&) override;
  Spent spent() const override;
  bool is_recorded(std::string_view name, const std::string& key) const override;
  std::stop_token stop_token() const override { return parts_.segment.stop_token(); }

  // For the segment, once the handler is done.

  /// What the handler left by, or met and swallowed; also what happened since its last step.
  std::optional<Leave> leave();
  /// The failure of a non-idempotent write that decides the segment's end, whatever the handler
  /// made of it.
  const std::optional<Failure>& write_failure() const { return write_failure_; }
  /// The standing write's probe could not be asked: whoever claims the run next asks it.
  bool probe_is_open() const { return probe_is_open_; }
  /// What the probe said that does not know: of the event; null: there was none.
  const Json& probed() const { return probed_; }
  /// What the write of the standing fence asked of may still be at it.
  bool may_still_run() const { return may_still_run_; }
  /// The fence that stands is of a write that never started.
  bool fence_is_unstarted() const { return fence_unstarted_; }
  /// Shows the observer how the segment ended.
  void observe_end() {
    unseen_ = true;
    observe();
  }

 private:
  struct Step {
    std::string key;
    std::string name;
    const StepOptions& options;
    Duration timeout;

    bool writes() const { return options.effect != Effect::read; }
    bool is_unsafe() const { return options.effect == Effect::non_idempotent_write; }
  };
  /// How a call of the step's work or probe ended.
  enum class CallEnd { returned, threw, not_started };
  struct Call {
    CallEnd end = CallEnd::not_started;
    Cut cut = Cut::none;
    std::exception_ptr error;
  };
  /// The time that a call into the journal takes is the engine's, not the handler's.
  class InEngine {
   public:
    explicit InEngine(LiveSegment& segment) : segment_(segment) { segment_.engine_goes_on(); }
    InEngine(const InEngine&) = delete;
    InEngine& operator=(const InEngine&) = delete;
    ~InEngine() { segment_.handler_goes_on(); }

   private:
    LiveSegment& segment_;
  };
  class Reads;

  void enter();
  [[noreturn]] void leave_by(Leave);
  void check(Write, const char* what, const Step&);
  /// Waits until work may be started: trust in the lease, and no reason to end.
  void await_trust();
  void cancel_where_asked();

  Step next_step(std::string_view name, const StepOptions&);
  Json run_live(const Step&, const Work&);
  void fence(const Step&);
  void unfence(const Step&, std::optional<NewEvent> event);
  void drop_unstarted_fence();
  Call call(Effect, const Step&, const std::function<void(const StepContext&)>& body);
  /// `place`: among the reads that run at the same time. Any thread.
  Call call_at(int place, Effect, const Step&, const std::function<void(const StepContext&)>& body);
  Json record(const Step&, StepResult, std::vector<NewEvent> before);
  Json storable(const Step&, const Json& result) const;
  std::optional<Write> write_step(StepRecord&);

  std::optional<Json> settle_standing_fence(const Step&);
  ProbeAnswer ask_probe(const Step&);
  std::optional<Json> after_failure(const Step&, const Call&);
  [[noreturn]] void fail_write(const Step&, Failure);
  void wait_until(WallTime due);
  /// The store's, however long it takes to answer.
  WallTime wall_now() const;
  void observe_later() { unseen_ = true; }
  /// Shows the observer what was recorded since it was last called.
  void observe();

  const SegmentParts parts_;
  Run run_;
  Replay replay_;
  Spent spent_;  ///< but for its time
  std::optional<Leave> left_;
  std::optional<Failure> write_failure_;
  bool probe_is_open_ = false;
  Json probed_;
  bool may_still_run_ = false;
  StoreTime fenced_at_{};  ///< when the fence of the last write was sent, the first time
  bool fence_unstarted_ = false;
  bool in_step_ = false;
  bool unseen_ = false;
  std::int64_t last_seen_ = 0;
};

}  // namespace holdfast
