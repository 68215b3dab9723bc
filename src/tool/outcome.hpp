#pragma once

// What the end of a command means: for the model, or for the run (spec, section 5 "Tools of an
// agent", "Probe"). Pure.

#include <string_view>

#include "core/model.hpp"
#include "holdfast/runtime.hpp"
#include "tool/command.hpp"

namespace holdfast {

/// The result for the model. Throws FailureError where the end is the run's affair: the program was
/// not started, an interruption, a write whose outcome nobody knows.
ToolOutcome judge_call(const ToolSpec&, const ToolCommandEnd&, const StepContext&, const Limits&);

/// Throws FailureError for an interruption and for missing resources: these say nothing about the
/// write.
ProbeAnswer judge_probe(const ToolSpec&, const ToolCommandEnd&, const StepContext&, const Limits&,
                        int not_landed_status);

/// A value that can be recorded whatever its caller puts around it: over the limit it becomes the
/// beginning of its text, with a note; nested too deep it becomes its text.
Json limited_result(Json value, const Limits&);

/// The beginning of a text of which there was more, with a note for the model. 0: nobody knows how
/// much.
Json cut_result(std::string_view beginning, std::size_t total_bytes, const Limits&);

/// Did a stop that came so long after the call's start come at the step's deadline?
bool is_at_deadline(Duration took, const StepContext&);

/// The segment's failure where a call was interrupted by a stop of the run.
Failure interrupted_failure(const ToolSpec&, bool was_started);

}  // namespace holdfast
