#pragma once

#include <string>
#include <variant>

#include "core/decide.hpp"

namespace holdfast {

// How the journal leaves a handler. None of these derives from std::exception, so that a handler's
// catch-all for errors lets them pass.

/// The run was reaped, claimed by another or ended: nothing more may be written.
struct LeaseLost {};
/// A person cancelled the run.
struct Cancelled {};
/// The run waits for a person.
struct Suspend {
  Wait wait;
};
/// The run sleeps until a due time.
struct Sleep {
  Slept slept;
};
/// The worker stops: the run is handed back.
struct Interrupt {};

using Leave = std::variant<LeaseLost, Cancelled, Suspend, Sleep, Interrupt>;

/// Throws the alternative itself.
[[noreturn]] inline void throw_leave(const Leave& leave) {
  std::visit([](const auto& how) { throw how; }, leave);
  throw LeaseLost{};  // not reached: every alternative throws
}

}  // namespace holdfast
