#include "sim/faults.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/failure.hpp"

namespace holdfast::sim {

void need_life(SimEnv& env) {
  if (!env.here().is_over) return;
  env.refused();
  throw StoreError("this process is dead", true);
}

namespace {

std::string name_of(const Element& fault, const Settings& settings) {
  std::string name = "fault: " + to_word(fault.what);
  if (fault.what == Do::freeze && fault.length > settings.lease) name += " beyond the lease";
  if (fault.what == Do::store_error && !fault.place.empty()) {
    name += fault.after ? " after a call" : " before a call";
  }
  return name;
}

}  // namespace

void Faults::impair(SimProcess& process, Duration length) {
  // What was hindered has a lease's time to recover, and what it left behind another to run out.
  const Duration lease(settings_.lease);
  process.impaired_until = std::max(process.impaired_until, env_.now() + length + lease * 2);
}

void Faults::strike(const Element& fault, SimProcess& process, Hindrance& hindrance) {
  ++struck_;
  ++tally_[name_of(fault, settings_)];
  env_.trace(to_word(fault.what));
  env_.trace(static_cast<std::uint64_t>(process.id));
  env_.tell([&] {
    return fmt::format("FAULT {} of {} for {}", to_word(fault.what), process.name, fault.length);
  });
  const Duration length(fault.length);
  switch (fault.what) {
    case Do::kill:
      env_.kill(process);
      if (hindrance.drop_presence) hindrance.drop_presence();
      return;
    case Do::freeze:
      impair(process, length);
      env_.freeze(process, length);
      return;
    case Do::drop_presence:
      if (!hindrance.drop_presence) return;
      process.lost_presence = true;
      hindrance.drop_presence();
      return;
    case Do::store_error:
      impair(process, length);
      hindrance.store_down_until = env_.now() + length;
      return;
    case Do::store_slow:
      impair(process, length * 2);
      hindrance.store_slow_until = env_.now() + length;
      return;
    case Do::jump_wall:
      env_.jump_wall(length);
      jumped_ += length;
      furthest_ = std::max(furthest_, jumped_);
      return;
    case Do::suspend:
      env_.suspend(length);
      return;
    case Do::enqueue:
    case Do::run:
    case Do::run_inline:
    case Do::cancel:
    case Do::approve:
    case Do::deny:
    case Do::input:
    case Do::redrive:
    case Do::resolve:
    case Do::wake:
    case Do::hand_over:
    case Do::purge:
    case Do::reap:
    case Do::stop:
    case Do::start:
      return;
  }
}

void Faults::end() {
  are_over_ = true;
  armed_.clear();
  env_.thaw_all();
  // Runs are due by the wall clock: it is set to the latest that it ever showed.
  env_.jump_wall(furthest_ - jumped_);
}

bool Faults::comes_by(Armed& armed, const std::string& place, bool after,
                      const Hindrance& hindrance) {
  const Element& fault = armed.fault;
  const Duration since = env_.elapsed();
  const bool is_victim =
      fault.subject == hindrance.subject ||
      (fault.subject == kAnyWorker && hindrance.subject >= 0 && hindrance.subject < kAnyWorker);
  return is_victim && fault.place == place && fault.after == after && since >= Duration(fault.at) &&
         ++armed.passed == fault.nth;
}

std::optional<WorkerId> Faults::suspect() {
  if (are_over_ || present_.empty() || !chance_.percent(settings_.suspicion)) return std::nullopt;
  ++tally_["fault: a living worker is suspected"];
  return chance_.of(present_);
}

void Faults::wait(Duration time) {
  if (time > Duration::zero()) env_.sleep_for(time, {});
  need_life(env_);
}

void Faults::pass(const std::string& place, bool after, Hindrance& hindrance, bool is_store) {
  need_life(env_);
  bool is_cut = false;
  for (auto armed = armed_.begin(); armed != armed_.end();) {
    if (!comes_by(*armed, place, after, hindrance)) {
      ++armed;
      continue;
    }
    const Element fault = armed->fault;
    armed = armed_.erase(armed);
    strike(fault, env_.here(), hindrance);
    is_cut = is_cut || fault.what == Do::store_error;
  }
  if (oracle_) {
    if (const auto fault = oracle_(place, after, is_store, hindrance)) {
      strike(*fault, env_.here(), hindrance);
      is_cut = fault->what == Do::store_error;
    }
  }
  env_.point();
  need_life(env_);
  if (!is_store) return;
  if (settings_.latency > 0 && chance_.percent(50))
    wait(Duration(chance_.below(settings_.latency + 1)));
  if (!are_over_ && env_.now() < hindrance.store_slow_until) {
    wait(Duration(chance_.below(settings_.lease)));
  }
  if (is_cut || (!are_over_ && env_.now() < hindrance.store_down_until)) {
    if (env_.now() < hindrance.store_down_until) wait(Duration(chance_.below(50)));
    throw StoreError(after ? "the reply was lost" : "the store cannot be reached", false);
  }
}

}  // namespace holdfast::sim
