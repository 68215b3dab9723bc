#include "engine/journal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

constexpr Duration kModelTimeout = std::chrono::minutes(10);
constexpr Duration kStepTimeout = std::chrono::minutes(5);

constexpr Duration kLongestTimeout = std::chrono::hours(24 * 3650);
constexpr Duration kLook = std::chrono::milliseconds(100);
constexpr Duration kWallLook = std::chrono::milliseconds(500);

}  // namespace

Journal::Journal(const SegmentParts& parts, Run run)
    : parts_(parts), run_(std::move(run)), last_seen_(run_.last_sequence) {
  // A first claim has no earlier segment whose journal it could read.
  if (run_.claim > 1) {
    const auto events =
        ask_store(parts_.persistence(), [&] { return parts_.store.events(run_.id, 0, 0); });
    // Cancelled and purged since it was claimed: what was recorded is not known any more.
    const bool is_whole = !events.empty() && events.back().sequence >= run_.last_sequence;
    if (!HOLDFAST_GUARD("journal_whole", is_whole)) left_ = LeaseLost{};
    replay_ = Replay(events);
  }
  // The row and its events are written together: these are what the journal says.
  spent_.usage = run_.usage;
  spent_.model_calls = run_.iterations;
  spent_.tool_calls = replay_.drive().tool_calls;
  spent_.earlier_model_calls = replay_.drive().earlier_model_calls;
}

WallTime Journal::wall_now() const {
  return ask_store(parts_.persistence(), [&] { return parts_.store.wall_now(); });
}

Spent Journal::spent() const {
  Spent spent = spent_;
  const Replay::Drive& drive = replay_.drive();
  if (const auto begun = drive.begun_at ? drive.begun_at : run_.started_at) {
    spent.time = std::max(Duration::zero(), wall_now() - *begun - drive.waited);
  }
  return spent;
}

bool Journal::is_recorded(std::string_view name, const std::string& key) const {
  return replay_.holds(name, key);
}

void Journal::leave_by(Leave leave) {
  if (!left_) left_ = std::move(leave);
  throw_leave(*left_);
}

void Journal::enter() {
  // First: the work of a read is on a thread of its own.
  if (in_step_) {
    Failure failure;
    failure.cls = FailureClass::configuration;
    failure.code = "nested_step";
    failure.message = "a step's work must not begin another step, sleep or ask";
    throw FailureError(std::move(failure));
  }
  if (left_) throw_leave(*left_);
  if (write_failure_) throw FailureError(*write_failure_);
  if (parts_.segment.ending() == Ending::at_boundary) leave_by(Interrupt{});
}

std::optional<Leave> Journal::leave() {
  if (left_) return left_;
  switch (parts_.segment.ending()) {
    case Ending::none:
    case Ending::at_boundary:
      return std::nullopt;
    case Ending::at_once:
      // The handler may have returned early because it saw its stop token.
      return Interrupt{};
    case Ending::cancelled:
      return Cancelled{};
    case Ending::lost:
      return LeaseLost{};
  }
  return std::nullopt;
}

void Journal::check(Write write, const char* what, const Step& step) {
  switch (write) {
    case Write::applied:
      return;
    case Write::cancelled:
      leave_by(Cancelled{});
    case Write::lost:
      if (step.writes()) {
        log(LogLevel::warn, "the run was lost",
            {{"while", what}, {"run", run_.id}, {"step", step.name}, {"key", step.key}});
      }
      leave_by(LeaseLost{});
  }
}

void Journal::cancel_where_asked() {
  if (!parts_.cancel_request.stop_requested()) return;
  const Operator by{"", "stopped by its caller", parts_.env.new_id()};
  const auto answer = persist(parts_.persistence(), [&](bool) {
    return parts_.store.cancel(run_.id, by).answer == ChangeResult::Answer::not_found
               ? Write::lost
               : Write::cancelled;
  });
  if (answer == Write::cancelled) leave_by(Cancelled{});
  leave_by(LeaseLost{});
}

void Journal::await_trust() {
  const StoreTime begun = parts_.env.store_now();
  for (;;) {
    cancel_where_asked();
    const auto seen = parts_.segment.changed().current();
    switch (parts_.segment.ending()) {
      case Ending::none:
        break;
      case Ending::at_boundary:
      case Ending::at_once:
        leave_by(Interrupt{});
      case Ending::cancelled:
        leave_by(Cancelled{});
      case Ending::lost:
        leave_by(LeaseLost{});
    }
    if (HOLDFAST_GUARD("trust_before_step", parts_.segment.is_trusted())) return;
    if (parts_.keep_alive.renews()) {
      parts_.keep_alive.renew_soon();
    } else {
      try {
        parts_.keep_alive.renew_here(parts_.segment);
        continue;
      } catch (const StoreError& error) {
        parts_.trouble.report(error.what());
      }
    }
    // Nothing is under way: it is safe to wait for the store's word, however long that takes. Who
    // executes in the caller's own thread hands the run back after a while, or says that it cannot.
    const Duration waited = parts_.env.store_now() - begun;
    if (HOLDFAST_GUARD("trust_given_up", parts_.patience && waited >= *parts_.patience)) {
      leave_by(Interrupt{});
    }
    parts_.segment.changed().wait_past(seen, kLook, parts_.cancel_request);
  }
}

Journal::Step Journal::next_step(std::string_view name, const StepOptions& options) {
  const Duration timeout =
      options.timeout.value_or(options.kind == StepKind::model ? kModelTimeout : kStepTimeout);
  return Step{replay_.next_key(name, options.key), std::string(name), options,
              std::clamp(timeout, Duration::zero(), kLongestTimeout)};
}

Json Journal::step(std::string_view name, const StepOptions& options, const Work& work) {
  enter();
  const InEngine in_engine(parts_.segment);
  const Step step = next_step(name, options);
  if (const auto* recorded = replay_.take(step.key, name, !options.key.empty(), false)) {
    return recorded->result;
  }
  if (auto landed = settle_standing_fence(step)) return *landed;
  return run_live(step, work);
}

Json Journal::run_live(const Step& step, const Work& work) {
  for (;;) {
    await_trust();
    drop_unstarted_fence();
    if (step.writes()) fence(step);
    StepResult result;
    HOLDFAST_FAILPOINT("work.before");
    const Call done = call(step.options.effect, step,
                           [&](const StepContext& context) { result = work(context); });
    HOLDFAST_FAILPOINT("work.after");
    switch (done.end) {
      case CallEnd::returned:
        return record(step, std::move(result), {});
      case CallEnd::not_started:
        // Too little was left after the fence's reply, or the segment must end: the fence is of a
        // write that nobody started.
        fence_unstarted_ = step.writes();
        break;
      case CallEnd::threw:
        if (auto landed = after_failure(step, done)) return *landed;
        break;  // interrupted for want of trust, and still ours: repeated, uncharged
    }
  }
}

void Journal::sleep(std::string_view name, Duration duration) {
  sleep_until(name, wall_now() + std::min(duration, Duration(std::chrono::hours(24 * 36500))));
}

void Journal::sleep_until(std::string_view name, WallTime due) {
  enter();
  const InEngine in_engine(parts_.segment);
  const StepOptions options;
  const Step step{replay_.next_key(name, ""), std::string(name), options, Duration::zero()};
  const RecordedStep* recorded = replay_.take(step.key, name, false, true);
  const WallTime until = recorded != nullptr ? recorded->until : due;
  if (recorded != nullptr && recorded->woken) return;
  const WallTime now = std::max(wall_now(), replay_.claimed_at().value_or(WallTime{}));
  const bool is_over = now >= until;
  if (recorded != nullptr && is_over) return;
  await_trust();
  drop_unstarted_fence();
  if (!is_over && !parts_.waits_in_process) leave_by(Sleep{Slept{step.key, step.name, until}});
  if (recorded == nullptr) {
    StepRecord record;
    record.kind = EventKind::slept;
    record.key = step.key;
    record.payload = {{"key", step.key}, {"name", step.name}, {"until", format_time(until)}};
    const auto answer = write_step(record);
    if (!answer) leave_by(Interrupt{});
    check(*answer, "recording a sleep", step);
  }
  wait_until(until);
}

void Journal::wait_until(WallTime due) {
  for (;;) {
    await_trust();
    const Duration left = due - wall_now();
    if (left <= Duration::zero()) return;
    // In pieces: the wall clock may be set, and the segment may have to end.
    const auto seen = parts_.segment.changed().current();
    if (parts_.cancel_request.stop_requested()) continue;
    parts_.segment.changed().wait_past(seen, std::min(left, kWallLook), parts_.cancel_request);
  }
}

Reply Journal::ask(const Question& question) {
  enter();
  const InEngine in_engine(parts_.segment);
  const std::string turn = turn_digest(run_.id, question);
  const Answers answers = replay_.find_answers(turn, question.calls);
  const bool is_approval = question.kind == WaitKind::approval;
  Reply reply;
  reply.expired = answers.expired;
  reply.actor = answers.actor;
  reply.note = answers.note;
  bool is_answered = answers.expired || answers.values.has_value();
  if (is_approval) {
    is_answered = std::all_of(answers.verdicts.begin(), answers.verdicts.end(),
                              [](const auto& verdict) { return verdict.has_value(); }) &&
                  (!answers.verdicts.empty() || !answers.actor.empty() || answers.expired);
    for (const auto& verdict : answers.verdicts) {
      reply.verdicts.push_back(verdict.value_or(Verdict::undecided));
    }
  } else if (answers.values) {
    reply.values = *answers.values;
    reply.expired = false;
  }
  if (HOLDFAST_GUARD("ask_answered", is_answered)) return reply;
  await_trust();
  drop_unstarted_fence();
  Wait wait;
  wait.kind = question.kind;
  wait.turn = turn;
  wait.calls = question.calls;
  for (GatedCall& asked : wait.calls) asked.decision = Verdict::undecided;
  wait.schema = question.schema;
  wait.prompt = question.prompt;
  wait.timeout = question.timeout;
  leave_by(Suspend{std::move(wait)});
}

void Journal::observe() {
  if (!unseen_ || !parts_.observer) return;
  unseen_ = false;
  try {
    for (const Event& event : parts_.store.events(run_.id, last_seen_, 0)) {
      last_seen_ = event.sequence;
      parts_.observer(event);
    }
  } catch (const StoreError& error) {
    unseen_ = true;  // shown with the next one
    parts_.trouble.report(error.what());
  }
}

}  // namespace holdfast
