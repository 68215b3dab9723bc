// What people see of the whole: counts and processes.

#include <algorithm>

#include "base/text.hpp"
#include "runtime/circuits.hpp"
#include "runtime/front.hpp"
#include "runtime/why.hpp"

namespace holdfast {
namespace {

Json as_seconds(Duration duration) { return static_cast<double>(duration.count()) / 1000.0; }

Json counts(const std::map<std::string, std::int64_t>& by_word) {
  auto json = Json::object();
  for (const auto& [word, count] : by_word) json[word] = count;
  return json;
}

Json presence_counts(const std::vector<WorkerRow>& workers) {
  std::int64_t slots = 0;
  std::int64_t busy = 0;
  std::int64_t stuck = 0;
  for (const auto& worker : workers) {
    slots += worker.slots;
    busy += worker.busy;
    stuck += worker.stuck;
  }
  return {{"live", workers.size()}, {"slots", slots}, {"busy", busy}, {"stuck", stuck}};
}

}  // namespace

/// Processes whose presence is gone are left out. Where there is no presence to be asked, one that
/// has not reported for two leases is taken as gone.
std::vector<WorkerRow> Front::live_workers() {
  auto workers = store_->workers();
  const auto now = store_->now();
  const auto patience = std::max(options_.policy.lease, options_.heartbeat * 2) * 2;
  std::erase_if(workers, [&](const WorkerRow& worker) {
    const bool is_silent = worker.presence != "held" && now - worker.seen_at > patience;
    return worker.is_gone || is_silent;
  });
  return workers;
}

Json Front::shown_circuits() {
  auto shown = Json::array();
  for (const Circuit& circuit : store_->circuits()) {
    if (circuit.failures == 0 && !circuit.open_until) continue;
    shown.push_back(show_circuit(circuit, store_->now(), store_->wall_now()));
  }
  return shown;
}

Json Front::stats() {
  const auto counted = store_->stats();
  const auto workers = live_workers();
  auto by_priority = Json::object();
  for (const auto& [priority, age] : counted.oldest_due_by_priority) {
    by_priority[std::to_string(priority)] = as_seconds(age);
  }
  auto unserved = Json::object();
  for (const auto& [agent, due] : counted.due_by_agent) {
    if (!is_served(workers, agent, std::nullopt)) unserved[agent] = due;
  }
  return {{"by_status", counts(counted.by_status)},
          {"by_reason", counts(counted.by_reason)},
          {"due", counted.due},
          {"delayed", counted.delayed},
          {"oldest_due_seconds", counted.oldest_due ? as_seconds(*counted.oldest_due) : Json()},
          {"oldest_due_by_priority", by_priority},
          {"leases", {{"held", counted.leases_held}, {"stale", counted.leases_stale}}},
          {"circuits", shown_circuits()},
          {"workers", presence_counts(workers)},
          {"unserved", unserved}};
}

Json Front::workers() {
  auto json = Json::array();
  const auto now = store_->now();
  const auto wall_now = store_->wall_now();
  for (const auto& worker : live_workers()) {
    json.push_back({{"id", worker.id},
                    {"name", worker.name},
                    {"host", worker.host},
                    {"pid", worker.pid},
                    {"started_at", format_time(worker.started_at)},
                    {"seen_at", format_time(wall_now - (now - worker.seen_at))},
                    {"agents", worker.agents},
                    {"queues", worker.queues},
                    {"slots", worker.slots},
                    {"busy", worker.busy},
                    {"stuck", worker.stuck},
                    {"presence", worker.presence}});
  }
  return json;
}

Json Front::why(const RunId& id) {
  WhyInput input;
  input.run = get(id);
  input.events = store_->events(id, 0, 0);
  input.workers = live_workers();
  input.circuits = store_->circuits();
  if (input.run.claimed_by) input.holder_gone = is_holder_gone(*input.run.claimed_by);
  input.now = {store_->wall_now(), store_->now()};
  return explain(input);
}

}  // namespace holdfast
