#pragma once

#include <map>

#include "sim/plan.hpp"
#include "support/sim_env.hpp"

namespace holdfast::sim {

/// Picks by chance; the same seed, the same picks.
class SeededScheduler final : public SimScheduler {
 public:
  SeededScheduler(std::uint64_t seed, const Settings& settings)
      : chance_(seed), settings_(settings) {}

  std::size_t pick(std::span<SimTask* const> ready, std::optional<std::size_t> current) override {
    if (current && !chance_.percent(settings_.preempt)) return *current;
    // Also by priorities now and then anybody, so that nobody waits for ever.
    if (settings_.strategy == 0 || chance_.percent(10)) {
      return static_cast<std::size_t>(chance_.below(static_cast<int>(ready.size())));
    }
    if (current) ready[*current]->priority = --lowest_;
    std::size_t best = 0;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (ready[i]->priority == 0) ready[i]->priority = chance_.between(1, 1000);
      if (ready[i]->priority > ready[best]->priority) best = i;
    }
    return best;
  }

 private:
  Chance chance_;
  const Settings& settings_;
  int lowest_ = 0;
};

}  // namespace holdfast::sim
