#include "engine_rates.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast {

double seconds_since(StoreTime begun) {
  const auto passed = real_env().store_now() - begun;
  return std::max(0.001, static_cast<double>(passed.count()) / 1000.0);
}

void print(const std::string& what, double value, const std::string& unit) {
  fmt::print("{:<52} {:>12.1f} {}\n", what, value, unit);
}

std::vector<RunId> enqueue(Store& store, const std::string& agent, int count) {
  std::vector<RunId> ids;
  std::vector<NewRun> batch;
  for (int i = 0; i < count; ++i) {
    NewRun run;
    run.row.id = real_env().new_id();
    run.row.agent = agent;
    run.content_digest = run.row.id;
    ids.push_back(run.row.id);
    batch.push_back(std::move(run));
    if (batch.size() == 1000 || i + 1 == count) {
      store.enqueue(batch);
      batch.clear();
    }
  }
  return ids;
}

HandlerSet handlers(std::vector<std::pair<std::string, Handler>> all) {
  HandlerSet set;
  for (auto& [name, handler] : all) set.add({{name, Policy{}, nullptr}, std::move(handler)});
  return set;
}

void drain(Store& store, const HandlerSet& set, int concurrency) {
  WorkerSettings settings;
  settings.concurrency = concurrency;
  settings.drain = true;
  start_worker(real_env(), store, set, EngineOptions{}, settings)->join();
}

double drain_rate(Store& store, int runs, const std::function<void()>& starting) {
  enqueue(store, "noop", runs);
  const HandlerSet set = handlers({{"noop", [](RunContext&) { return Json(); }}});
  if (starting) starting();
  const StoreTime begun = real_env().store_now();
  drain(store, set, 100);
  return runs / seconds_since(begun);
}

double step_rate(Store& store, int runs, int steps, const std::function<void()>& starting) {
  enqueue(store, "steps", runs);
  const HandlerSet set = handlers({{"steps", [steps](RunContext& run) {
                                      for (int i = 0; i < steps; ++i) {
                                        run.step("s", [] { return Json(); });
                                      }
                                      return Json();
                                    }}});
  if (starting) starting();
  const StoreTime begun = real_env().store_now();
  drain(store, set, runs);
  return runs * steps / seconds_since(begun);
}

}  // namespace holdfast
