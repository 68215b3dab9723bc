#pragma once

#include <nlohmann/json.hpp>

namespace holdfast {

/// JSON values of requests, answers, arguments and results. Object keys are kept sorted, so that
/// equal values have equal text.
using Json = nlohmann::json;

}  // namespace holdfast
