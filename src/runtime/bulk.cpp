// What people do with many runs: page by page, each page its own transaction, so that an
// interruption leaves every run either moved or untouched.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/guard.hpp"
#include "runtime/front.hpp"

namespace holdfast {
namespace {

constexpr int kRedrivePage = 100;
constexpr int kPurgePage = 500;

/// Moved by this operation, now or by a try whose reply was lost. One that it moved earlier and
/// that failed again since then stays where it is.
bool is_moved(const ChangeResult& change) {
  switch (change.answer) {
    case ChangeResult::Answer::applied:
    case ChangeResult::Answer::unchanged:
      return change.run && !change.run->status.is(Status::failed);
    case ChangeResult::Answer::not_found:
    case ChangeResult::Answer::refused:
      return false;
  }
  return false;
}

ListFilter page_of_failed(const ListFilter& wanted, WallTime cutoff) {
  auto filter = wanted;
  filter.status = to_word(Status::failed);
  filter.oldest_first = true;
  filter.ended_before = wanted.ended_before ? std::min(*wanted.ended_before, cutoff) : cutoff;
  return filter;
}

}  // namespace

BulkReport Front::redrive_all(const ListFilter& wanted, bool dry_run, const Operator& by) {
  if (wanted.status && *wanted.status != to_word(Status::failed)) {
    throw RefusedError(Refusal::usage, fmt::format("only failed runs can be redriven, not {} ones",
                                                   *wanted.status));
  }
  const auto operation = minted(by);
  // What fails from here on, this operation's own runs included, is left alone: it comes to an end.
  auto filter = page_of_failed(wanted, store_->wall_now());
  const int limit = wanted.limit > 0 ? wanted.limit : std::numeric_limits<int>::max();
  BulkReport report;
  do {
    filter.limit = std::min(kRedrivePage, limit - report.matched);
    const auto page = list(filter);
    std::vector<RunId> ids;
    for (const auto& run : page.runs) ids.push_back(run.id);
    report.matched += static_cast<int>(ids.size());
    if (dry_run) {
      for (const auto& run : page.runs) {
        if (!run.is_safe()) continue;
        report.moved += 1;
        report.ids.push_back(run.id);
      }
    } else if (!ids.empty()) {
      HOLDFAST_FAILPOINT("redrive.before");
      const auto changes =
          until_answered(env_, [&](bool) { return store_->redrive(ids, operation); });
      HOLDFAST_FAILPOINT("redrive.after");
      for (std::size_t i = 0; i < changes.size(); ++i) {
        if (!is_moved(changes[i])) continue;
        report.moved += 1;
        report.ids.push_back(ids[i]);
      }
    }
    filter.after = page.next;
  } while (filter.after && report.matched < limit);
  report.skipped = report.matched - report.moved;
  return report;
}

PurgeReport Front::purge(const PurgeRequest& request) {
  for (const auto& age : {request.older_than, request.unfinished_older_than}) {
    if (age && *age < Duration::zero()) {
      throw RefusedError(Refusal::usage, "an age must not be negative");
    }
  }
  if (!request.ids.empty()) return purge_named(request);
  auto by_age = request;
  if (!request.older_than && !request.unfinished_older_than) {
    by_age.older_than = options_.retention_terminal;
    by_age.unfinished_older_than = options_.retention_unfinished;
  }
  // Nothing changes in a dry run: a second page would be the first once more.
  if (request.dry_run) return store_->purge(by_age, std::numeric_limits<int>::max());
  PurgeReport total;
  while (true) {
    const auto page = until_answered(env_, [&](bool) { return store_->purge(by_age, kPurgePage); });
    for (const auto& [status, count] : page.by_status) total.by_status[status] += count;
    total.total += page.total;
    if (page.total < kPurgePage) return total;
  }
}

/// Named runs go whatever their age, unless an age was given too; what may never be purged stays.
PurgeReport Front::purge_named(const PurgeRequest& request) {
  auto named = request;
  if (!request.older_than && !request.unfinished_older_than) {
    named.older_than = Duration::zero();
    named.unfinished_older_than = Duration::zero();
  }
  for (const auto& id : request.ids) get(id);
  PurgeReport total;
  std::vector<std::string> kept;
  for (const auto& id : request.ids) {
    named.ids = {id};
    const auto one = store_->purge(named, 1);
    for (const auto& [status, count] : one.by_status) total.by_status[status] += count;
    total.total += one.total;
    if (one.total > 0) continue;
    if (const auto run = store_->find(id)) {
      kept.push_back(fmt::format("{} ({})", id, run->status.text()));
    }
  }
  if (!kept.empty()) {
    throw RefusedError(
        Refusal::conflict,
        fmt::format("not purged: {}; only terminal runs, waiting ones and abandoned interactive "
                    "ones can be: `holdfast cancel ID` ends a run first",
                    fmt::join(kept, ", ")));
  }
  return total;
}

}  // namespace holdfast
