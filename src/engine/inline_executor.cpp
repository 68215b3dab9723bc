#include "base/log.hpp"
#include "engine/segment.hpp"
#include "engine/segment_run.hpp"

namespace holdfast {
namespace {

/// How long a write of a segment in the caller's own thread is repeated before the caller is told.
constexpr Duration kPatience = std::chrono::seconds(30);

class Executor final : public InlineExecutor {
 public:
  Executor(Env& env, Store& store, const HandlerSet& handlers, const EngineOptions& options)
      : env_(env),
        store_(store),
        handlers_(handlers),
        options_(options),
        identity_(env.make_identity()),
        trouble_(env, identity_.id),
        changed_(env.make_event_count()),
        keep_alive_(env, store, trouble_, identity_.id, options.heartbeat,
                    {[](const Claimed&) {}, [] {}, [] {}}) {
    if (PresenceBoard* board = store.presence()) {
      try {
        presence_ = board->hold(identity_);
      } catch (const StoreError& error) {
        trouble_.report(error.what());
      }
    }
    keep_alive_.start();
  }
  ~Executor() override { keep_alive_.stop(); }

  const WorkerId& id() const override { return identity_.id; }

  SegmentResult execute(Claimed claimed, const Observer& observer,
                        const std::stop_token& stop) override {
    const RunId run_id = claimed.run.id;
    const HandlerEntry* entry = handlers_.find(claimed.run.agent);
    // Counted from now, which is later than the claim was sent: renewed before anything starts.
    const auto segment = std::make_shared<LiveSegment>(
        LiveSegment::Setup{claimed.lease, claimed.run.policy, StoreTime{}, keep_alive_.renews()},
        env_, *changed_);
    keep_alive_.add(segment);
    const SegmentParts parts{env_,     store_,   keep_alive_, trouble_, options_.limits,
                             *segment, observer, true,        stop,     kPatience};
    const SegmentOutcome done = entry == nullptr
                                    ? release_segment(parts, claimed.run)
                                    : run_segment(parts, *entry, std::move(claimed.run));
    keep_alive_.remove(*segment, done.answered);
    auto run = store_.find(run_id);
    if (!run) throw StoreError("run " + run_id + " was purged while it was executed", false);
    return {done.outcome, std::move(*run)};
  }

 private:
  Env& env_;
  Store& store_;
  const HandlerSet& handlers_;
  const EngineOptions options_;
  const Identity identity_;
  Trouble trouble_;
  const std::unique_ptr<EventCount> changed_;
  std::unique_ptr<PresenceHold> presence_;
  KeepAlive keep_alive_;
};

}  // namespace

std::unique_ptr<InlineExecutor> make_inline_executor(Env& env, Store& store,
                                                     const HandlerSet& handlers,
                                                     const EngineOptions& options) {
  return std::make_unique<Executor>(env, store, handlers, options);
}

}  // namespace holdfast
