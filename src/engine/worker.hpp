#pragma once

#include <memory>

#include "engine/handlers.hpp"
#include "env/env.hpp"
#include "holdfast/runtime.hpp"
#include "store/store.hpp"

namespace holdfast {

/// What of the runtime's options the engine follows.
struct EngineOptions {
  Duration heartbeat = std::chrono::seconds(20);
  Duration presence_interval = std::chrono::milliseconds(100);
  Duration reaper_interval = std::chrono::seconds(5);
  int reaper_limit = 50;
  Limits limits;
};

/// Starts a worker with its slots, keep-alive, reaper and presence, on threads of `env`. All
/// referenced things must outlive it.
std::unique_ptr<WorkerHandle> start_worker(Env&, Store&, const HandlerSet&, const EngineOptions&,
                                           const WorkerSettings&);

}  // namespace holdfast
