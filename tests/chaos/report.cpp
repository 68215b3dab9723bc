#include "chaos/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace holdfast::chaos {

namespace {

/// By run, in order.
using Histories = std::map<std::string, std::vector<Event>>;

Histories read_histories(Runtime& runtime) {
  Histories all;
  std::int64_t cursor = 0;
  for (;;) {
    const auto some = runtime.all_events(cursor, 1000);
    if (some.empty()) return all;
    for (const Event& event : some) all[event.run].push_back(event);
  }
}

/// Which process a worker's identity names: HOST-PID-START-RANDOM.
pid_t pid_of(const std::string& worker) {
  std::vector<std::string> parts = {""};
  for (const char c : worker) {
    if (c == '-') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts.size() < 4 ? 0 : static_cast<pid_t>(std::stol(parts[parts.size() - 3]));
}

void judge_reaping(const std::vector<Event>& history, const Log& log, Report& report) {
  for (std::size_t i = 0; i < history.size(); ++i) {
    const Event& event = history[i];
    if (event.kind.is(EventKind::failed) && event.payload.contains("class")) ++report.dead_letters;
    if (!event.kind.is(EventKind::reaped)) continue;
    const auto killed = log.killed.find(pid_of(event.payload.at("worker").get<std::string>()));
    if (killed == log.killed.end() || event.at < killed->second) {
      ++report.expired;
      continue;
    }
    report.by_presence += event.payload.at("cause") == "presence" ? 1 : 0;
    report.detection.push_back(event.at - killed->second);
    if (i + 1 < history.size() && history[i + 1].kind.is(EventKind::claimed)) {
      report.recovery.push_back(history[i + 1].at - killed->second);
    }
  }
}

/// Whose call the journal has, by the key of the step.
void read_paid(const std::vector<Event>& history, std::map<std::string, pid_t>& recorded) {
  for (const Event& event : history) {
    if (!event.kind.is(EventKind::step) || event.payload.at("name") != "ask") continue;
    recorded[event.run + ":" + event.payload.at("key").get<std::string>()] =
        event.payload.at("result").get<pid_t>();
  }
}

std::string percentiles(std::vector<Duration> all) {
  if (all.empty()) return "none seen";
  std::sort(all.begin(), all.end());
  const auto at = [&](std::size_t share) { return all[(all.size() - 1) * share / 100].count(); };
  return fmt::format("p50 {} ms, p99 {} ms, of {}", at(50), at(99), all.size());
}

}  // namespace

Report judge(Scene& scene) {
  Report report;
  const Log& log = scene.log();
  crash::Site& site = scene.site();
  const Histories histories = read_histories(site.runtime());
  report.runs = static_cast<int>(histories.size());

  for (const std::string& id : log.acknowledged) {
    const std::string status = histories.contains(id) ? site.status(id) : "not there";
    if (status != "completed" && status != "cancelled") report.lost.push_back(id + " " + status);
  }
  // The last request may not have been answered any more.
  if (histories.size() > log.keys.size() + 1) {
    report.duplicates.push_back(
        fmt::format("{} runs of {} idempotency keys", histories.size(), log.keys.size()));
  }

  std::map<std::string, pid_t> recorded;
  for (const auto& [run, history] : histories) {
    judge_reaping(history, log, report);
    read_paid(history, recorded);
    report.steps += static_cast<int>(std::ranges::count_if(history, [](const Event& event) {
      return event.kind.is(EventKind::step) || event.kind.is(EventKind::tool) ||
             event.kind.is(EventKind::model);
    }));
  }

  std::map<std::string, std::vector<pid_t>> writes, paid;
  for (const crash::LedgerLine& line : site.ledger()) {
    if (line.phase != "start") continue;
    if (line.tool == "count" || line.tool == "pay" || line.tool == "send") {
      writes[line.key].push_back(line.pid);
    } else if (line.tool == "ask") {
      paid[line.key].push_back(line.pid);
    }
  }
  for (const auto& [key, pids] : writes) {
    if (pids.size() > 1) {
      report.duplicates.push_back(fmt::format("write {} by {}", key, fmt::join(pids, ", ")));
    }
  }
  for (const auto& [key, pids] : paid) {
    report.repeated += static_cast<int>(pids.size()) - 1;
    const auto found = recorded.find(key);
    if (found == recorded.end()) continue;  // cancelled meanwhile
    // Who was frozen between its last look at its lease and the call may be late: the stated limit.
    const auto last = std::find(pids.rbegin(), pids.rend(), found->second);
    for (auto after = pids.rbegin(); after != last; ++after) {
      if (!log.frozen.contains(*after)) report.paid_again.push_back(key);
    }
  }
  return report;
}

std::string Report::text(const Log& log, unsigned seed, milliseconds length) const {
  std::string faults;
  for (const auto& [name, count] : log.faults) faults += fmt::format("  {}: {}\n", name, count);
  return fmt::format(
      "chaos on {}, seed {}, {} s: {} runs, {} recorded steps\n{}"
      "lost runs: {}\nduplicates: {}\npaid calls begun after their result was recorded: {}\n"
      "paid calls repeated after an interruption: {}\nwrites a person had to look at: {}\n"
      "runs taken from workers that were frozen or cut off: {}\ndetection of a killed worker: {}; "
      "{} by presence\n"
      "recovery of its runs: {}\n",
      crash::is_postgres() ? "postgres" : "sqlite", seed, length.count() / 1000, runs, steps,
      faults, lost.size(), duplicates.size(), paid_again.size(), repeated, dead_letters, expired,
      percentiles(detection), by_presence, percentiles(recovery));
}

}  // namespace holdfast::chaos
