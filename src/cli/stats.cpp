// `stats` and `workers`.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/format.hpp"
#include "cli/support.hpp"

namespace holdfast {
namespace {

std::string seconds_text(const Json& seconds) {
  if (!seconds.is_number()) return "-";
  return age_text(Duration(static_cast<std::int64_t>(seconds.get<double>() * 1000)));
}

std::string count_of(const Json& counts, const char* key) {
  const auto found = counts.find(key);
  return found == counts.end() ? "0" : dump_json(*found);
}

/// `12 completed, 3 failed`, or a dash.
std::string counts_line(const Json& counts) {
  std::string text;
  for (const auto& [word, count] : counts.items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", dump_json(count), safe_line(word));
  }
  return text.empty() ? "-" : text;
}

std::string list_text(const Json& list, const char* when_empty) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : " ") + shorten_json(item, 40);
  return text.empty() ? when_empty : text;
}

}  // namespace

int show_stats(Invocation& call) {
  const auto stats = call.host.runtime().stats();
  if (call.out.json()) {
    call.out.value(stats);
    return kDone;
  }
  const auto part = [&](const char* key) { return stats.value(key, Json::object()); };
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::string_view name, std::string value) {
    rows.push_back({call.out.paint(Colour::bold, name), std::move(value)});
  };
  add("runs", counts_line(part("by_status")));
  add("reasons", counts_line(part("by_reason")));
  add("due", fmt::format("{} (oldest {})", count_of(stats, "due"),
                         seconds_text(stats.value("oldest_due_seconds", Json()))));
  const auto by_priority = part("oldest_due_by_priority");
  for (const auto& [priority, age] : by_priority.items()) {
    add("  priority " + safe_line(priority), "oldest " + seconds_text(age));
  }
  add("delayed", count_of(stats, "delayed"));
  const auto leases = part("leases");
  add("leases", fmt::format("{} held, {} of them stale", count_of(leases, "held"),
                            count_of(leases, "stale")));
  const auto workers = part("workers");
  add("workers", fmt::format("{} live, {} of {} slots busy, {} stuck", count_of(workers, "live"),
                             count_of(workers, "busy"), count_of(workers, "slots"),
                             count_of(workers, "stuck")));
  const auto unserved = part("unserved");
  if (!unserved.empty()) {
    add("no worker for", call.out.paint(Colour::yellow, counts_line(unserved)));
  }
  for (const auto& circuit : stats.value("circuits", Json::array())) {
    const auto text = [&](const char* key) {
      const Json value = circuit.value(key, Json());
      return value.is_string() ? safe_line(value.get<std::string>()) : std::string("-");
    };
    add("circuit " + text("target"),
        fmt::format("{}, {} failures in a row ({}), next probe {}", text("state"),
                    count_of(circuit, "failures"), text("class"), text("next_probe_at")));
  }
  call.out.raw(render_table(rows));
  return kDone;
}

int show_workers(Invocation& call) {
  const auto workers = call.host.runtime().workers();
  if (call.out.json()) {
    call.out.value(workers);
    return kDone;
  }
  if (workers.empty()) {
    call.out.note("no live workers");
    return kDone;
  }
  std::vector<std::vector<std::string>> rows = {
      {"ID", "NAME", "HOST", "PID", "BUSY", "STUCK", "PRESENCE", "QUEUES", "AGENTS", "STARTED"}};
  for (const auto& worker : workers) {
    const auto stuck = count_of(worker, "stuck");
    rows.push_back({safe_line(worker.value("id", "")), shorten(worker.value("name", ""), 24),
                    shorten(worker.value("host", ""), 24), count_of(worker, "pid"),
                    fmt::format("{}/{}", count_of(worker, "busy"), count_of(worker, "slots")),
                    stuck == "0" ? stuck : call.out.paint(Colour::red, stuck),
                    shorten(worker.value("presence", ""), 40),
                    list_text(worker.value("queues", Json::array()), "all"),
                    list_text(worker.value("agents", Json::array()), "-"),
                    safe_line(worker.value("started_at", ""))});
  }
  call.out.raw(render_table(rows));
  return kDone;
}

}  // namespace holdfast
