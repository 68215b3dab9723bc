#pragma once

// Where a run stands, in plain words (spec, section 12 `why`). Pure.

#include <optional>
#include <string>
#include <vector>

#include "core/transition.hpp"
#include "holdfast/json.hpp"
#include "holdfast/run.hpp"
#include "store/store.hpp"

namespace holdfast {

/// Everything that the words rest on.
struct WhyInput {
  Run run;
  std::vector<Event> events;       ///< all of the run's, in order
  std::vector<WorkerRow> workers;  ///< live ones
  std::vector<Circuit> circuits;   ///< of all models
  bool holder_gone = false;        ///< the holder's presence is proven gone
  Now now;
};

/// {"id", "status", "text", "facts": {…}, "commands": […]}
Json explain(const WhyInput&);

/// Does one of these live workers execute this agent (in this queue)?
bool is_served(const std::vector<WorkerRow>&, const std::string& agent,
               const std::optional<std::string>& queue);

}  // namespace holdfast
