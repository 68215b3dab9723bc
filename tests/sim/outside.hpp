#pragma once

// The simulated world outside: a model API, tools, and a task. What they do is written in the run's
// input; how they fail is left to chance, as long as there are faults. Every call is in the ledger.

#include <map>
#include <memory>
#include <string>

#include "core/model.hpp"
#include "holdfast/runtime.hpp"
#include "sim/faults.hpp"
#include "sim/ledger.hpp"

namespace holdfast::sim {

/// What all processes' outsides share.
struct Outside {
  SimEnv& env;
  Ledger& ledger;
  Faults& faults;
  Chance& chance;
  const Settings& settings;
  std::map<std::string, int> failed =
      {};  ///< how often a scripted failure has come, by run and step
  Tally tally = {};

  bool is_in_trouble(int percent) { return !faults.are_over() && chance.percent(percent); }
};

/// The agent `clerk` with its tools, and the limits of the plan.
RuntimeOptions make_options(Outside&, Hindrance&);
std::unique_ptr<ModelChain> make_models(Outside&, Hindrance&);
/// The task `steps`.
Handler make_steps(Outside&, Hindrance&);

}  // namespace holdfast::sim
