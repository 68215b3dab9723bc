// Is everything as it should be: the store's content (`verify`), and what it all runs on
// (`doctor`).

#include <fmt/core.h>

#include <set>

#include "base/text.hpp"
#include "core/invariants.hpp"
#include "provider/chain.hpp"
#include "runtime/front.hpp"
#include "runtime/verify.hpp"
#include "runtime/why.hpp"
#include "tool/toolbox.hpp"

namespace holdfast {
namespace {

using Grade = Finding::Grade;

constexpr Duration kSkew = std::chrono::minutes(1);
constexpr Duration kAges = std::chrono::hours(24 * 365 * 10);

Finding check_presence(Store& store) {
  if (store.presence() != nullptr) {
    return {Grade::ok, "presence", "a worker's death is seen at once"};
  }
  return {Grade::warning, "presence",
          "off: a worker's death is seen when its lease ends, not before"};
}

std::vector<Finding> check_settings(const RuntimeOptions& options) {
  std::vector<Finding> findings;
  if (options.heartbeat == Duration::zero()) {
    findings.push_back({Grade::warning, "lease.heartbeat",
                        "is 0s: a step that lasts longer than its lease may be started a second "
                        "time; set it to a third of lease.duration"});
  }
  if (options.reaper_interval == Duration::zero()) {
    findings.push_back({Grade::warning, "reaper.interval",
                        "is 0s: lost runs wait until somebody calls `holdfast reap`"});
  }
  if (options.agents.empty()) {
    findings.push_back({Grade::warning, "agents",
                        "none is configured: nothing can be run here; `holdfast init` writes a "
                        "first one"});
  }
  return findings;
}

}  // namespace

/// A run that changes while its row and events are read is read again, so that a store in use shows
/// no false findings.
std::vector<Finding> Front::check_stored(const RunId& id, std::int64_t& events) {
  constexpr int kReadings = 20;
  for (int reading = 0; reading < kReadings; ++reading) {
    const auto run = store_->find(id);
    if (!run) return {};
    const auto journal = store_->events(id, 0, 0);
    const auto again = store_->find(id);
    if (!again || again->last_sequence != run->last_sequence) continue;
    events += static_cast<std::int64_t>(journal.size());
    return check_run(*run, journal);
  }
  return {{Grade::warning, "verify",
           fmt::format("run {} changed at each of {} readings: verify it when it is at rest", id,
                       kReadings)}};
}

std::vector<Finding> Front::verify() {
  std::vector<Finding> findings;
  std::set<std::string> keys;
  std::int64_t runs = 0;
  std::int64_t events = 0;
  ListFilter filter;
  filter.limit = 200;
  do {
    const auto page = store_->list(filter);
    for (const auto& run : page.runs) {
      runs += 1;
      const auto found = check_stored(run.id, events);
      findings.insert(findings.end(), found.begin(), found.end());
      if (run.idempotency_key && !keys.insert(*run.idempotency_key).second) {
        findings.push_back({Grade::bad, kFoundInvariant,
                            fmt::format("run {}: its idempotency key \"{}\" belongs to another run "
                                        "too",
                                        run.id, *run.idempotency_key)});
      }
    }
    filter.after = page.next;
  } while (filter.after);
  const auto astray = store_->audit();
  findings.insert(findings.end(), astray.begin(), astray.end());
  findings.push_back(verified(runs, events));
  const auto not_shown = invariants_not_shown();
  findings.insert(findings.end(), not_shown.begin(), not_shown.end());
  return findings;
}

/// Against the newest entries of the store: time that lies ahead of us was written by a clock that
/// runs ahead, or ours has been set back.
Finding Front::check_clock() {
  ListFilter filter;
  filter.limit = 20;
  const auto now = store_->wall_now();
  std::optional<WallTime> newest;
  for (const auto& run : store_->list(filter).runs) {
    newest = std::max(newest.value_or(run.created_at), run.created_at);
    for (const auto& event : store_->events(run.id, run.last_sequence - 1, 1)) {
      newest = std::max(*newest, event.at);
    }
  }
  const auto time = format_time(now);
  if (!newest) return {Grade::ok, "clock", fmt::format("it is {}", time)};
  if (*newest > now + kSkew) {
    return {Grade::bad, "clock",
            fmt::format("it is {} here, but the store has an event of {}: this clock has been set "
                        "back, or another machine's runs ahead; set it (delayed runs start late "
                        "until then, leases are not affected)",
                        time, format_time(*newest))};
  }
  if (now - *newest > kAges) {
    return {Grade::warning, "clock",
            fmt::format("it is {} here, and the newest event is of {}: is this clock right?", time,
                        format_time(*newest))};
  }
  return {Grade::ok, "clock",
          fmt::format("it is {}, the newest event is of {}", time, format_time(*newest))};
}

std::vector<Finding> Front::check_workers() {
  std::vector<Finding> findings;
  const auto workers = live_workers();
  const auto due = store_->stats().due_by_agent;
  std::set<std::string> agents(names_.begin(), names_.end());
  for (const auto& [agent, count] : due) agents.insert(agent);
  for (const auto& agent : agents) {
    if (is_served(workers, agent, std::nullopt)) continue;
    const auto it = due.find(agent);
    findings.push_back(
        {Grade::warning, "agents." + agent,
         fmt::format("no live worker serves it{}; start one with `holdfast worker`",
                     it == due.end() ? std::string()
                                     : fmt::format(", and {} of its runs are due", it->second))});
  }
  for (const auto& worker : workers) {
    const auto name = worker.name.empty() ? worker.id : worker.name;
    if (worker.presence != "held") {
      findings.push_back({Grade::warning, "worker " + name,
                          fmt::format("its presence is {}: its death is seen when its leases end",
                                      worker.presence)});
    }
    if (worker.stuck > 0) {
      findings.push_back(
          {Grade::warning, "worker " + name,
           fmt::format("{} of its {} slots are stuck in steps that ignore their interruption; "
                       "restart it",
                       worker.stuck, worker.slots)});
    }
  }
  if (!workers.empty()) {
    findings.push_back({Grade::ok, "workers", fmt::format("{} live", workers.size())});
  }
  return findings;
}

std::vector<Finding> Front::doctor() {
  auto findings = store_->check();
  const auto add = [&](const std::vector<Finding>& more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  add(check_settings(options_));
  for (const auto& provider : options_.providers) add({check_provider(provider, env_)});
  for (const auto& tool : options_.tools) add({check_tool(tool, options_.http_hosts)});
  add({check_clock(), check_presence(*store_)});
  add(check_workers());
  return findings;
}

}  // namespace holdfast
