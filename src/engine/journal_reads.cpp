// Reads that run at the same time. The executing thread hands them out, each to a thread of its
// own, and records each as it ends: all of the journal stays with it. When one of them fails or the
// segment must end, nothing further begins, and what still comes back is recorded where it may be.

#include <fmt/format.h>

#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "base/guard.hpp"
#include "engine/journal.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kReadStackBytes = 512u << 10;

/// They are recorded in any order: only by a key of its own a later segment finds each.
void need_read(const ReadStep& read) {
  const std::string& key = read.options.key;
  const bool has_own_key = !key.empty() && !is_automatic_key(key, read.name);
  if (read.options.effect == Effect::read && has_own_key) return;
  throw FailureError(
      make_failure(FailureClass::configuration, "not_a_read",
                   fmt::format("step \"{}\" cannot run beside others: {}", read.name,
                               has_own_key ? "it is a write" : "it has no key of its own")));
}

}  // namespace

class Journal::Reads {
 public:
  Reads(Journal& journal, int at_once)
      : journal_(journal), at_once_(at_once), signal_(journal.parts_.env.make_event_count()) {}
  Reads(const Reads&) = delete;

  void add(const Step& step, const Work& work, Json& result) {
    reads_.push_back({static_cast<int>(reads_.size()), step, work, result, {}, {}, nullptr});
  }

  /// Results stand where `add` said. Throws what ends the segment, else the first failure.
  void run() {
    if (reads_.empty()) return;
    // A write that an earlier segment left open comes first.
    journal_.settle_standing_fence(reads_.front().step);
    if (at_once_ <= 1 || reads_.size() == 1) {
      for (Read& read : reads_) read.result = journal_.run_live(read.step, read.work);
      return;
    }
    for (Read& read : reads_) waiting_.push_back(&read);
    journal_.in_step_ = true;
    begin();
    while (under_way_ > 0) {
      for (Read* read : wait()) settle(*read);
      begin();
    }
    journal_.in_step_ = false;
    if (journal_.left_) throw_leave(*journal_.left_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct Read {
    int place;
    Step step;
    const Work& work;
    Json& result;
    StepResult given;
    Call done;
    std::unique_ptr<Thread> thread;
  };

  /// As many as may run.
  void begin() {
    while (!waiting_.empty() && HOLDFAST_GUARD("reads_bounded", under_way_ < at_once_)) {
      if (journal_.left_ || failure_) return;
      Read& read = *waiting_.front();
      if (!attempt(read, [&] {
            journal_.await_trust();
            journal_.drop_unstarted_fence();
          })) {
        return;
      }
      waiting_.pop_front();
      ++under_way_;
      start(read);
    }
  }

  void start(Read& read) {
    try {
      read.thread = journal_.parts_.env.spawn({"hf-read", kReadStackBytes}, [&] { execute(read); });
    } catch (const std::exception&) {
      // The system has no more threads: with those that there are, else with this one.
      if (under_way_ == 1) return execute(read);
      at_once_ = --under_way_;
      waiting_.push_front(&read);
    }
  }

  /// On the read's own thread.
  void execute(Read& read) {
    read.done =
        journal_.call_at(read.place, Effect::read, read.step, [&](const StepContext& context) {
          HOLDFAST_FAILPOINT("work.before");
          read.given = read.work(context);
          HOLDFAST_FAILPOINT("work.after");
        });
    {
      const std::lock_guard lock(mutex_);
      ended_.push_back(&read);
    }
    signal_->notify_all();
  }

  std::vector<Read*> wait() {
    for (;;) {
      const auto seen = signal_->current();
      {
        const std::lock_guard lock(mutex_);
        if (!ended_.empty()) return std::exchange(ended_, {});
      }
      signal_->wait_past(seen, std::chrono::hours(24), {});
    }
  }

  void settle(Read& read) {
    read.thread.reset();
    --under_way_;
    if (!may_record()) return;
    attempt(read, [&] {
      switch (read.done.end) {
        case CallEnd::returned:
          read.result = journal_.record(read.step, std::move(read.given), {});
          return;
        case CallEnd::threw:
          journal_.after_failure(read.step, read.done);
          break;  // interrupted for want of trust, and still ours
        case CallEnd::not_started:
          break;
      }
      waiting_.push_front(&read);
    });
  }

  /// A segment that only has to end still records what comes back.
  bool may_record() const {
    return !is_stopped_ && (!journal_.left_ || std::holds_alternative<Interrupt>(*journal_.left_));
  }

  /// What is thrown waits until nothing is under way any more.
  template <class Body>
  bool attempt(const Read& read, const Body& body) {
    try {
      body();
      return true;
    } catch (...) {
      // How it was left the journal keeps.
      if (journal_.left_) {
        stop_unless_ending();
      } else if (!failure_ || read.place < failed_place_) {
        failure_ = std::current_exception();
        failed_place_ = read.place;
      }
    }
    return false;
  }

  /// A stopping worker interrupts what is under way when its grace is over, and not before.
  void stop_unless_ending() {
    const bool is_interrupt = std::holds_alternative<Interrupt>(*journal_.left_);
    if (is_interrupt && journal_.parts_.segment.ending() != Ending::none) return;
    is_stopped_ = true;
    journal_.parts_.segment.stop_steps();
  }

  Journal& journal_;
  int at_once_;
  int under_way_ = 0;
  bool is_stopped_ = false;
  std::exception_ptr failure_;
  int failed_place_ = 0;
  std::deque<Read*> waiting_;
  const std::unique_ptr<EventCount> signal_;
  std::mutex mutex_;
  std::vector<Read*> ended_;
  std::deque<Read> reads_;
};

std::vector<Json> Journal::read_all(const std::vector<ReadStep>& wanted, int at_once) {
  enter();
  const InEngine in_engine(parts_.segment);
  std::vector<Json> results(wanted.size());
  Reads reads(*this, at_once);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ReadStep& read = wanted[i];
    need_read(read);
    const Step step = next_step(read.name, read.options);
    if (const auto* recorded = replay_.take(step.key, read.name, true, false)) {
      results[i] = recorded->result;
    } else {
      reads.add(step, read.work, results[i]);
    }
  }
  reads.run();
  return results;
}

}  // namespace holdfast
