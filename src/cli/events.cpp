// `events` and `wait`: what happened, and what happens.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/commands.hpp"
#include "cli/format.hpp"
#include "cli/support.hpp"

namespace holdfast {
namespace {

constexpr int kPage = 1000;
constexpr Duration kShortestLook = std::chrono::milliseconds(50);
constexpr Duration kLongestLook = std::chrono::milliseconds(500);
constexpr Duration kLongestAway = std::chrono::seconds(5);

void print_event(Invocation& call, const Event& event, bool with_run) {
  if (call.out.json()) {
    call.out.value(to_json(event));
  } else {
    call.out.line((with_run ? safe_line(event.run) + " " : "") + event_line(event, call.out));
  }
}

/// A silent run must not keep us when the reader has gone.
void pause_before_next_look(Invocation& call, Duration duration) {
  call.out.need_reader();
  call.host.pause(duration);
}

/// A follower outlives a restart of the store's server: it asks again until there is an answer.
class PatientReader {
 public:
  explicit PatientReader(Invocation& call) : call_(&call) {}

  template <class Question>
  auto ask(const Question& question) {
    for (auto look = kShortestLook;; look = std::min(look * 2, kLongestAway)) {
      try {
        auto answer = question();
        if (is_away_) call_->out.note("the store can be read again");
        is_away_ = false;
        return answer;
      } catch (const StoreError& error) {
        if (error.permanent()) throw;
        if (!is_away_) {
          call_->out.note("the store cannot be read, waiting: " + safe_line(error.what()));
        }
        is_away_ = true;
      }
      pause_before_next_look(*call_, look);
    }
  }

 private:
  Invocation* call_;
  bool is_away_ = false;
};

/// Knows when no more events of a run are to be expected (spec, section 12 `events --follow`).
class EndOfRun {
 public:
  EndOfRun(Invocation& call, std::string id) : call_(&call), id_(std::move(id)) {}

  bool reached() {
    auto& runtime = call_->host.runtime();
    const auto run = runtime.get(id_);
    const auto status = run.status.known();
    if (run.claimed_by) note_holder(*run.claimed_by, runtime.workers());
    if (!status || !is_terminal(*status)) {
      ended_at_.reset();
      return false;
    }
    if (!run.claimed_by || is_gone_) return true;
    // A step may still be in flight; its holder acknowledges, or its lease would have ended.
    if (!ended_at_) ended_at_ = call_->host.now();
    return call_->host.now() - *ended_at_ >= run.policy.lease;
  }

 private:
  /// A holder that was among the live processes and is no more, is gone. One that never was is an
  /// inline execution: it shows in no list.
  void note_holder(const WorkerId& holder, const Json& workers) {
    const bool lives = std::any_of(workers.begin(), workers.end(), [&](const Json& worker) {
      return worker.value("id", "") == holder;
    });
    if (lives) seen_.insert(holder);
    is_gone_ = !lives && seen_.contains(holder);
  }

  Invocation* call_;
  std::string id_;
  std::set<WorkerId> seen_;
  bool is_gone_ = false;
  std::optional<StoreTime> ended_at_;
};

int follow_one(Invocation& call, const std::string& id, std::int64_t after) {
  auto& runtime = call.host.runtime();
  EndOfRun end(call, id);
  PatientReader reader(call);
  auto look = kShortestLook;
  while (true) {
    // Asked before reading: what was recorded until the end is then read below.
    const bool ended = reader.ask([&] { return end.reached(); });
    bool any = false;
    while (true) {
      const auto events = reader.ask([&] { return runtime.events(id, after, kPage); });
      for (const auto& event : events) print_event(call, event, false);
      if (events.empty()) break;
      after = events.back().sequence;
      any = true;
    }
    if (ended) return kDone;
    look = any ? kShortestLook : std::min(look * 2, kLongestLook);
    pause_before_next_look(call, look);
  }
}

int print_one(Invocation& call, const std::string& id, std::int64_t after) {
  auto& runtime = call.host.runtime();
  runtime.get(id);
  Json all = Json::array();
  while (true) {
    const auto events = runtime.events(id, after, kPage);
    for (const auto& event : events) {
      if (call.out.json()) {
        all.push_back(to_json(event));
      } else {
        print_event(call, event, false);
      }
    }
    if (static_cast<int>(events.size()) < kPage) break;
    after = events.back().sequence;
  }
  if (call.out.json()) call.out.value(all);
  return kDone;
}

int print_all(Invocation& call, bool follow) {
  auto& runtime = call.host.runtime();
  PatientReader reader(call);
  std::int64_t cursor = 0;
  auto look = kShortestLook;
  Json all = Json::array();
  while (true) {
    const auto read = [&] { return runtime.all_events(cursor, kPage); };
    const auto events = follow ? reader.ask(read) : read();
    for (const auto& event : events) {
      if (call.out.json() && !follow) {
        all.push_back(to_json(event));
      } else {
        print_event(call, event, true);
      }
    }
    if (!events.empty()) {
      look = kShortestLook;
      continue;
    }
    if (!follow) break;
    pause_before_next_look(call, look);
    look = std::min(look * 2, kLongestLook);
  }
  if (call.out.json()) call.out.value(all);
  return kDone;
}

}  // namespace

int show_events(Invocation& call) {
  const auto& args = call.args;
  const bool all = args.has("--all");
  const auto after = args.find_integer("--after", 0);
  if (all != args.operands().empty()) {
    throw RefusedError(Refusal::usage, all ? "give the id of a run or --all, not both"
                                           : "give the id of a run, or --all for every run's");
  }
  if (all && after) {
    throw RefusedError(Refusal::usage, "--after counts the events of one run: it needs an id");
  }
  const bool follow = args.has("--follow");
  if (all) return print_all(call, follow);
  return follow ? follow_one(call, args.operand(), after.value_or(0))
                : print_one(call, args.operand(), after.value_or(0));
}

int wait_for_runs(Invocation& call) {
  const auto timeout = call.args.find_duration("--timeout");
  auto& host = call.host;
  const auto begun = host.now();
  return for_each_id(call, [&](const std::string& id) {
    std::optional<Duration> left;
    if (timeout) {
      left = std::max(Duration(0),
                      *timeout - std::chrono::duration_cast<Duration>(host.now() - begun));
    }
    const auto run = host.runtime().wait(id, left, {});
    print_run(call, run, state_line(run));
    const auto status = run.status.known();
    if (!status || !(is_terminal(*status) || is_waiting(*status))) {
      call.out.error(fmt::format("{}: still {} when the time was over", id, run.status.text()));
    }
    return exit_code_of(run);
  });
}

}  // namespace holdfast
