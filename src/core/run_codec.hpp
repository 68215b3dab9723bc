#pragma once

// Values of a run as JSON for stores to keep: lossless, and tolerant of keys that an older build
// did not write. Durations and times are integers in milliseconds. Not the JSON that people see:
// that is `to_json(Run)`.

#include "holdfast/run.hpp"

namespace holdfast {

Json encode(const Policy&);
Json encode(const Budget&);
Json encode(const Failure&);
Json encode(const Fence&);
Json encode(const Wait&);
Json encode(const Usage&);
Json encode(const Labels&);

/// What is missing, or of another type, keeps the default. An effect that this build does not know
/// is taken for the most careful one, a failure class for `unknown`.
Policy decode_policy(const Json&);
Budget decode_budget(const Json&);
Failure decode_failure(const Json&);
Fence decode_fence(const Json&);
Wait decode_wait(const Json&);
Usage decode_usage(const Json&);
Labels decode_labels(const Json&);

}  // namespace holdfast
