#pragma once

#include <string>

#include "holdfast/runtime.hpp"

namespace holdfast {

/// Checks everything that can be wrong with options before anything is opened: ranges, names that
/// dangle, are doubled or malformed, schemas that are none. Throws RefusedError (usage) naming the
/// key as `holdfast.toml` spells it (`agents.triage.lease.duration`) and what is expected (spec,
/// section 11).
void check_options(const RuntimeOptions&);

/// The same for one policy. `place` is where it stands: empty for the global tables, else
/// `agents.triage.`.
void check_policy(const std::string& place, const Policy&, Duration heartbeat);

}  // namespace holdfast
