#pragma once

#include <memory>

#include "engine/vigil.hpp"
#include "engine/worker.hpp"

namespace holdfast {

/// Executes claimed segments in the caller's own thread: `run` (interactive, no lease) and inline
/// worker segments (leased: it keeps them alive itself). It holds a presence of its own for as long
/// as it lives. One thread at a time.
class InlineExecutor {
 public:
  virtual ~InlineExecutor() = default;
  virtual const WorkerId& id() const = 0;

  /// One segment from its claim to its outcome, settled. `stop`: cancel at the next boundary.
  /// A charged requeue of a leased segment is available at once (spec, section 6 "Inline
  /// execution").
  virtual SegmentResult execute(Claimed, const Observer&, const std::stop_token& stop) = 0;
};
std::unique_ptr<InlineExecutor> make_inline_executor(Env&, Store&, const HandlerSet&,
                                                     const EngineOptions&);

/// One sweep: those proven gone, waits, then stale runs (spec, section 7). With a vigil it waits
/// before it judges a holder that may live, until the store has answered for as long as the vigil
/// asks for.
ReapReport reap_once(Env&, Store&, int limit, bool dry_run, Vigil* vigil = nullptr,
                     const std::stop_token& stop = {});

}  // namespace holdfast
