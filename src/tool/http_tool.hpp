#pragma once

// Tools that are HTTP calls (spec, section 5 "Tools of an agent"): what is sent, and what an end of
// the transfer means for the model or for the run.

#include <string>
#include <vector>

#include "core/model.hpp"
#include "env/env.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// Makes one call. `hosts`: those that this process lets tools speak to. Throws FailureError where
/// the end is the run's affair. Any thread.
ToolOutcome call_http(const ToolSpec&, const Json& arguments, const StepContext&, Env&,
                      const Limits&, const std::vector<std::string>& hosts);

/// The variables that its secrets stand in.
std::vector<std::string> secret_names(const HttpToolSpec&);

}  // namespace holdfast
