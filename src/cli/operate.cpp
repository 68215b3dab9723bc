// What operators do with runs: cancel, redrive, handover, wake, reap, purge.

#include <fmt/format.h>

#include <limits>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/format.hpp"
#include "cli/support.hpp"

namespace holdfast {
namespace {

constexpr Duration kTellEvery = std::chrono::seconds(10);

int redrive_by_filter(Invocation& call) {
  const auto& args = call.args;
  ListFilter filter;
  filter.status = to_word(Status::failed);
  filter.reason = args.find_text("--reason");
  filter.agent = args.find_text("--agent");
  filter.labels = args.labels();
  filter.oldest_first = true;
  filter.limit = args.find_integer("--limit", 1).value_or(0);  // 0: all of them
  const bool dry_run = args.has("--dry-run");
  const auto report = call.host.runtime().redrive_all(filter, dry_run, operator_of(call));
  if (call.out.json()) {
    call.out.value({{"matched", report.matched},
                    {"moved", report.moved},
                    {"skipped", report.skipped},
                    {"ids", report.ids}});
    return kDone;
  }
  for (const auto& id : report.ids) call.out.line(safe_line(id));
  const auto* would_be = dry_run ? "would be " : "";
  call.out.line(fmt::format("{} matched, {} {}moved, {} {}skipped", report.matched, report.moved,
                            would_be, report.skipped, would_be));
  return kDone;
}

int redrive_by_id(Invocation& call) {
  const auto by = operator_of(call);
  const bool dry_run = call.args.has("--dry-run");
  return for_each_id(call, [&](const std::string& id) {
    auto& runtime = call.host.runtime();
    if (!dry_run) {
      const auto run = runtime.redrive(id, by);
      print_run(call, run, state_line(run));
      return kDone;
    }
    const auto run = runtime.get(id);
    const bool would = run.status.is(Status::failed) && run.is_safe();
    print_run(
        call, run,
        fmt::format("{}: {}", state_line(run), would ? "would be moved" : "would be refused"));
    return would ? kDone : kConflict;
  });
}

ReapReport sweep(Invocation& call, int limit, bool all, bool dry_run) {
  auto& runtime = call.host.runtime();
  // Nothing changes in a dry run: a second sweep would be the first once more.
  if (dry_run && all) limit = std::numeric_limits<int>::max();
  ReapReport total;
  StoreTime told = call.host.now();
  bool again = true;
  while (again) {
    const auto report = runtime.reap(limit, dry_run);
    total.requeued += report.requeued;
    total.dead_lettered += report.dead_lettered;
    total.skipped += report.skipped;
    total.expired += report.expired;
    const bool moved = report.requeued + report.dead_lettered + report.expired > 0;
    again = all && !dry_run && report.full && moved;
    if (const StoreTime now = call.host.now(); again && now - told >= kTellEvery) {
      told = now;
      call.out.note(fmt::format("holdfast: {} handled so far",
                                total.requeued + total.dead_lettered + total.expired));
    }
  }
  return total;
}

/// What goes with a purged run beyond itself.
std::string unknown_writes_text(const PurgeReport& report) {
  if (report.unknown_writes == 0) return "";
  if (report.total == 1) return ", with the record of a write that may have landed";
  return fmt::format(", {} of them with the record of a write that may have landed",
                     report.unknown_writes);
}

std::string counts_text(const PurgeReport& report, bool dry_run) {
  std::string text;
  for (const auto& [status, count] : report.by_status) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, safe_line(status));
  }
  if (text.empty()) text = "0 runs";
  return fmt::format("{} {}{}", text, dry_run ? "would be purged" : "purged",
                     unknown_writes_text(report));
}

Json counts_json(const PurgeReport& report) {
  return {{"by_status", report.by_status},
          {"total", report.total},
          {"unknown_writes", report.unknown_writes}};
}

}  // namespace

int cancel_runs(Invocation& call) {
  const auto by = operator_of(call);
  return for_each_id(call, [&](const std::string& id) {
    const auto run = call.host.runtime().cancel(id, by);
    print_run(call, run, state_line(run));
    return kDone;
  });
}

int redrive_runs(Invocation& call) {
  const auto& args = call.args;
  const bool by_id = !args.operands().empty();
  bool filtered = false;
  for (const auto* option : {"--reason", "--agent", "--label", "--limit"}) {
    filtered |= args.has(option);
  }
  if (by_id && (filtered || args.has("--all"))) {
    throw RefusedError(Refusal::usage, "give ids or a filter, not both");
  }
  if (!by_id && !filtered && !args.has("--all")) {
    throw RefusedError(Refusal::usage,
                       "give ids, a filter (--reason, --agent, --label, --limit), or --all for "
                       "every failed run");
  }
  return by_id ? redrive_by_id(call) : redrive_by_filter(call);
}

int hand_over_run(Invocation& call) {
  const auto run = call.host.runtime().hand_over(call.args.operand(), call.args.has("--force"),
                                                 operator_of(call));
  print_run(call, run, state_line(run));
  return kDone;
}

int wake_run(Invocation& call) {
  const auto run = call.host.runtime().wake(call.args.operand(), operator_of(call));
  print_run(call, run, state_line(run));
  return kDone;
}

int reap_runs(Invocation& call) {
  const auto& args = call.args;
  const auto limit = args.find_integer("--limit", 1);
  const bool dry_run = args.has("--dry-run");
  const auto report =
      sweep(call, limit.value_or(call.host.options().reaper_limit), args.has("--all"), dry_run);
  if (call.out.json()) {
    call.out.value({{"requeued", report.requeued},
                    {"dead_lettered", report.dead_lettered},
                    {"skipped", report.skipped},
                    {"expired", report.expired}});
  } else {
    const auto* would_be = dry_run ? "would be " : "";
    call.out.line(fmt::format("{} {}requeued, {} {}dead-lettered, {} {}skipped", report.requeued,
                              would_be, report.dead_lettered, would_be, report.skipped, would_be));
  }
  return kDone;
}

int purge_runs(Invocation& call) {
  const auto& args = call.args;
  PurgeRequest request;
  request.older_than = args.find_duration("--older-than");
  request.unfinished_older_than = args.find_duration("--unfinished-older-than");
  request.dry_run = args.has("--dry-run");
  PurgeReport total;
  int code = kDone;
  if (args.operands().empty()) {
    total = call.host.runtime().purge(request);
  } else {
    code = for_each_id(call, [&](const std::string& id) {
      request.ids = {id};
      const auto report = call.host.runtime().purge(request);
      for (const auto& [status, count] : report.by_status) total.by_status[status] += count;
      total.total += report.total;
      total.unknown_writes += report.unknown_writes;
      if (!call.out.json()) {
        call.out.line(fmt::format(
            "{} {}{}{}", safe_line(id),
            report.by_status.empty() ? "" : safe_line(report.by_status.begin()->first) + ", ",
            request.dry_run ? "would be purged" : "purged", unknown_writes_text(report)));
      }
      return kDone;
    });
  }
  if (call.out.json()) {
    call.out.value(counts_json(total));
  } else if (args.operands().empty()) {
    call.out.line(counts_text(total, request.dry_run));
  }
  return code;
}

}  // namespace holdfast
