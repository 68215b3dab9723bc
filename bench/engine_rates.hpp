#pragma once

// What benchmarks of the engine over any store have in common.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/segment.hpp"

namespace holdfast {

double seconds_since(StoreTime begun);
void print(const std::string& what, double value, const std::string& unit);

/// In batches of 1,000.
std::vector<RunId> enqueue(Store&, const std::string& agent, int count);
HandlerSet handlers(std::vector<std::pair<std::string, Handler>>);
/// By a worker of this process, until nothing is left.
void drain(Store&, const HandlerSet&, int concurrency);

/// Runs a second of a drain of no-op runs, concurrency 100. `starting` is called when they are
/// enqueued.
double drain_rate(Store&, int runs, const std::function<void()>& starting = {});
/// Durable no-op steps a second of so many runs in flight.
double step_rate(Store&, int runs, int steps, const std::function<void()>& starting = {});

}  // namespace holdfast
