#include "sim/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace holdfast::sim {
namespace {

std::string call_of(const std::string& key) { return key.substr(key.rfind('#') + 1); }

}  // namespace

void Ledger::fenced(const Lease& lease, const Fence& fence) {
  Written& write = writes_[{lease.run, fence.step_key}];
  write.fenced_by = lease.holder;
  write.fenced_claim = lease.claim;
  write.fenced_interactive = lease.interactive;
}

void Ledger::unfenced(const RunId& run, const std::string& key) {
  writes_[{run, key}].fenced_by.reset();
}

void Ledger::recorded(const RunId& run, const std::string& key, const Json& result) {
  recorded_[{run, key}] = result;
  if (key == "model" || key.starts_with("model#")) ++turns_[run];
}

void Ledger::not_landed(const RunId& run, const std::string& key, bool forced) {
  Written& write = writes_[{run, key}];
  const bool goes_on = std::ranges::any_of(write.under_way, &Call::goes_on);
  if (goes_on && !forced) {
    violations_.add(kStillAtIt, "run {}: step {} counts as not landed while a call of it goes on",
                    run, key);
  }
  if (write.landed && !forced) {
    violations_.add(kStillAtIt, "run {}: step {} counts as not landed, and it has", run, key);
  }
  write.begun = 0;
  write.landed.reset();
}

void Ledger::forget(const RunId& run) {
  std::erase_if(approved_, [&](const auto& entry) { return entry.first.first == run; });
}

void Ledger::need_lease(const Step& step, const Written& write) {
  const SimProcess* holder = env_.find_process(*write.fenced_by);
  if (holder == nullptr || holder->lost_presence) return;  // it is held for dead, and cannot know
  const SimEnv::AtStore at_store(env_);
  const auto run = rows_.find(step.first);
  if (!run || run->status.is(Status::cancelled)) return;  // its boundary lay before the cancel
  const bool is_held = run->status.is(Status::running) && run->claim == write.fenced_claim &&
                       run->claimed_by == write.fenced_by;
  if (!is_held) {
    violations_.add(kWriteUnderLease,
                    "run {}: {} begins step {} at claim {}, and the run is {} at {}", step.first,
                    *write.fenced_by, step.second, write.fenced_claim, run->status.text(),
                    run->claim);
  } else if (run->lease_until && *run->lease_until <= rows_.now()) {
    violations_.add(kWriteUnderLease, "run {}: {} begins step {} and its lease is over", step.first,
                    *write.fenced_by, step.second);
  }
}

void Ledger::begin_write(const Step& step, Written& write, Effect effect) {
  const SimProcess* holder = write.fenced_by ? env_.find_process(*write.fenced_by) : nullptr;
  if (holder != &env_.here()) {
    violations_.add(kFencedFirst, "run {}: {} begins step {} without a fence of its own",
                    step.first, env_.here().name, step.second);
    return;
  }
  if (effect == Effect::non_idempotent_write) need_lease(step, write);
  write.fenced_by.reset();
  if (effect == Effect::non_idempotent_write && ++write.begun > 1) {
    violations_.add(kWriteOnce, "run {}: step {} begins for the {}. time, by {}", step.first,
                    step.second, write.begun, env_.here().name);
  }
}

Ledger::Call::Call(Ledger& ledger, const RunId& run, const std::string& key,
                   const std::string& name, Effect effect, const Json& arguments, bool is_gated)
    : ledger_(ledger),
      step_(run, key),
      effect_(effect),
      process_(ledger.env_.here()),
      freezes_(process_.freezes) {
  ++ledger_.calls_;
  ++ledger_.tally_["call: " + std::string(to_word(effect_))];
  const bool is_zombie = process_.lost_presence || !ledger_.renews_;
  if (ledger_.recorded_.contains(step_) && !is_zombie) {
    ledger_.violations_.add(kExecutedOnce, "run {}: step {} is recorded, and {} executes it again",
                            run, key, ledger_.env_.here().name);
  }
  if (is_gated) {
    const auto said = ledger_.approved_.find({run, call_of(key)});
    if (said == ledger_.approved_.end() || said->second != arguments) {
      ledger_.violations_.add(
          kApproved, "run {}: {} is executed as {} with {}; approved was {}", run, name, key,
          dump_json(arguments),
          said == ledger_.approved_.end() ? "nothing" : dump_json(said->second));
    }
  }
  Written& write = ledger_.writes_[step_];
  if (effect_ != Effect::read) ledger_.begin_write(step_, write, effect_);
  write.under_way.push_back(this);
  auto& of_run = ledger_.under_way_[run];
  // Not one that a segment left behind and a later one had to make again.
  if (std::ranges::any_of(of_run, [&](const Call* other) {
        return other->step_ != step_ && !ledger_.recorded_.contains(other->step_);
      })) {
    ++ledger_.tally_[kBesideAnother];
  }
  of_run.push_back(this);
}

Ledger::Call::~Call() {
  std::erase(ledger_.writes_[step_].under_way, this);
  std::erase(ledger_.under_way_[step_.first], this);
}

Json Ledger::Call::land() {
  Written& write = ledger_.writes_[step_];
  ++write.executions;
  if (effect_ == Effect::idempotent_write && write.landed) return *write.landed;
  ++ledger_.landed_;
  if (effect_ == Effect::non_idempotent_write && write.landed && goes_on()) {
    ledger_.violations_.add(kWriteOnce, "run {}: step {} lands twice", step_.first, step_.second);
  }
  Json receipt = {{"receipt", fmt::format("{}/{}", step_.second, write.executions)}};
  write.landed = receipt;
  return receipt;
}

void Ledger::Call::never_began() {
  Written& write = ledger_.writes_[step_];
  if (effect_ == Effect::non_idempotent_write) --write.begun;
}

std::optional<Json> Ledger::find_landed(const RunId& run, const std::string& key) const {
  const auto found = writes_.find({run, key});
  return found == writes_.end() ? std::nullopt : found->second.landed;
}

void Ledger::given(const RunId& run, const std::string& key, const Json& result) {
  const auto found = recorded_.find({run, key});
  if (found == recorded_.end() || found->second == result) return;
  violations_.add(kExecutedOnce, "run {}: step {} is recorded as {}, and a segment sees {}", run,
                  key, dump_json(found->second), dump_json(result));
}

namespace {

/// The same conversation, one of them without its oldest turns: behind the system's text and the
/// task, what stands in the shorter one is the end of the longer one.
bool is_the_same(const std::string& one, const std::string& other) {
  if (one == other) return true;
  const Json first = Json::parse(one);
  const Json second = Json::parse(other);
  const Json& whole = first.size() > second.size() ? first : second;
  const Json& part = first.size() > second.size() ? second : first;
  constexpr std::ptrdiff_t kKept = 2;
  return part.size() < whole.size() && std::ssize(part) >= kKept &&
         std::equal(part.begin(), part.begin() + kKept, whole.begin()) &&
         std::equal(part.begin() + kKept, part.end(), whole.end() - (std::ssize(part) - kKept));
}

}  // namespace

void Ledger::model_call(const RunId& run, int turn, const std::string& request) {
  ++calls_;
  if (env_.here().lost_presence || !renews_) return;
  if (turn < turns_[run]) {
    violations_.add(kExecutedOnce, "run {}: {} calls the model for turn {}, and {} are recorded",
                    run, env_.here().name, turn + 1, turns_[run]);
  }
  const auto [known, is_first] = requests_.try_emplace({run, turn}, request);
  if (!is_first && !is_the_same(known->second, request)) {
    violations_.add(kExecutedOnce, "run {}: the request of turn {} was {}, and is now {}", run,
                    turn + 1, known->second, request);
  }
}

}  // namespace holdfast::sim
