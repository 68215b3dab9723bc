// What people do with many runs: page by page, each page its own transaction, so that an
// interruption leaves every run either moved or untouched.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/guard.hpp"
#include "base/text.hpp"
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

void add_to(PurgeReport& total, const PurgeReport& one) {
  for (const auto& [status, count] : one.by_status) total.by_status[status] += count;
  total.total += one.total;
  total.unknown_writes += one.unknown_writes;
}

/// An age as people say it: whole seconds, where there are any.
std::string spoken_age(Duration age) {
  if (age < Duration::zero()) age = Duration::zero();
  if (age >= std::chrono::seconds(1)) age = std::chrono::floor<std::chrono::seconds>(age);
  return format_duration(age);
}

/// Which of the two ages of a purge a run goes by.
struct PurgeKind {
  const char* flag;
  const char* other_flag;
  const char* retention;
  const char* since;
  std::optional<Duration> wanted;
};

PurgeKind kind_of(const Run& run, const PurgeRequest& ages) {
  const auto status = run.status.known();
  if (status && is_terminal(*status)) {
    return {"--older-than", "--unfinished-older-than", "terminal", "it ended", ages.older_than};
  }
  return {"--unfinished-older-than", "--older-than", "unfinished", "its last event was",
          ages.unfinished_older_than};
}

/// Why a named run stays, and what would help. `age` since it ended, or since its last event.
std::string why_kept(const Run& run, const PurgeRequest& ages, Duration age) {
  const auto status = run.status.known();
  if (!status) return "a newer holdfast wrote its status, so that one decides on it";
  const bool is_abandoned = *status == Status::running && run.abandoned;
  if (!is_terminal(*status) && !is_waiting(*status) && !is_abandoned) {
    return fmt::format(
        "only terminal runs, waiting ones and abandoned interactive ones are purged; `holdfast "
        "cancel {}` ends it first",
        run.id);
  }
  const auto kind = kind_of(run, ages);
  if (ages.spares_unknown_writes && run.is_fenced_unsafe()) {
    const std::string advice =
        run.status.is(Status::failed)
            ? fmt::format("look, then `holdfast resolve {} --landed` or `--not-landed`", run.id)
            : fmt::format("look for its idempotency key {}", run.pending->idempotency_key);
    return fmt::format(
        "its write {} (step {}) may have landed: {}; {} 0s deletes it with the record of that "
        "write",
        run.pending->name, run.pending->step_key, advice, kind.flag);
  }
  if (!kind.wanted) {
    return fmt::format("{} is not about such a run: it goes by {}", kind.other_flag, kind.flag);
  }
  // Where the retention decided, the request spares unknown writes.
  const auto limit =
      ages.spares_unknown_writes
          ? fmt::format("{} of [retention] {}", format_duration(*kind.wanted), kind.retention)
          : fmt::format("{} of {}", format_duration(*kind.wanted), kind.flag);
  return fmt::format("{} {} ago, which is younger than the {}; {} 0s purges it all the same",
                     kind.since, spoken_age(age), limit, kind.flag);
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
    add_to(total, page);
    if (page.total < kPurgePage) return total;
  }
}

/// Named runs go by the same ages as the others; what stays is told with its reason. The record of
/// a write that may have landed goes only where an age was given.
PurgeReport Front::purge_named(const PurgeRequest& request) {
  auto named = request;
  if (!request.older_than && !request.unfinished_older_than) {
    named.older_than = options_.retention_terminal;
    named.unfinished_older_than = options_.retention_unfinished;
    named.spares_unknown_writes = true;
  }
  for (const auto& id : request.ids) get(id);
  PurgeReport total;
  std::vector<std::string> kept;
  for (const auto& id : request.ids) {
    named.ids = {id};
    const auto one = store_->purge(named, 1);
    add_to(total, one);
    if (one.total > 0) continue;
    const auto run = store_->find(id);
    if (!run) continue;
    const auto newest = store_->events(id, run->last_sequence - 1, 1);
    const auto last = run->finished_at.value_or(newest.empty() ? run->created_at : newest[0].at);
    kept.push_back(fmt::format("{} ({}): {}", id, run->status.text(),
                               why_kept(*run, named, store_->wall_now() - last)));
  }
  if (!kept.empty()) {
    throw RefusedError(Refusal::conflict, fmt::format("not purged: {}", fmt::join(kept, "; ")));
  }
  return total;
}

}  // namespace holdfast
