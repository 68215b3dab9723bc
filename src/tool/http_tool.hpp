#pragma once

// Tools that are HTTP calls (spec, section 5 "Tools of an agent"): what is sent, and what an end of
// the transfer means for the model or for the run.

#include <string>
#include <vector>

#include "core/model.hpp"
#include "env/env.hpp"
#include "holdfast/runtime.hpp"
#include "net/http.hpp"

namespace holdfast {

/// Makes one call. `hosts`: those that this process lets tools speak to. Throws FailureError where
/// the end is the run's affair. Any thread.
ToolOutcome call_http(const ToolSpec&, const Json& arguments, const StepContext&, Env&,
                      const Limits&, const std::vector<std::string>& hosts);

/// What an answer, or a transfer that broke, means. `took` is the time since the call's start.
/// Pure.
ToolOutcome judge_http(const ToolSpec&, const HttpResponse&, Duration took, const StepContext&,
                       const Limits&);

/// The headers that secrets of the environment make. Throws FailureError (configuration, not
/// started) naming a variable that is not set or that no header can hold.
std::vector<std::pair<std::string, std::string>> secret_headers(
    const std::string& tool, const std::map<std::string, std::string>& header_env,
    const std::string& bearer_env);

/// The variables that those secrets stand in.
std::vector<std::string> secret_names(const std::map<std::string, std::string>& header_env,
                                      const std::string& bearer_env);

/// Refuses a call to a host that this process's list does not have. Throws FailureError.
void check_host(const std::string& tool, const std::string& url,
                const std::vector<std::string>& hosts);

/// Throws FailureError: nothing reached the other side.
[[noreturn]] void throw_unsent(const std::string& tool, const HttpResponse&);

/// The failure of a write whose answer was lost on the way.
Failure lost_answer(const std::string& tool, std::string code, const std::string& what);

}  // namespace holdfast
