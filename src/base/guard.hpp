#pragma once

// Guards and failpoints: named places that a test build can switch off or trip, at no cost to
// release builds.
//
// A guard is a condition that a promise rests on: `if (!HOLDFAST_GUARD("settle_mine", is_mine(run,
// lease))) …`. In test builds (HOLDFAST_TESTING) a guard named in the environment variable
// HOLDFAST_GUARDS_OFF (comma-separated) always holds, which must turn some test red.
//
// A failpoint is a place before or after a write or an external call:
// HOLDFAST_FAILPOINT("claim.after"). In test builds
// HOLDFAST_FAILPOINTS="claim.after=kill@2;record.before=pause:500;settle.after=error" makes it kill
// the process (SIGKILL), stop it (SIGSTOP), pause (milliseconds) or throw StoreError, at its n-th
// passing (default: every time; @n: the n-th only). A list that cannot be read ends the process at
// the first failpoint.

#include <string_view>

#ifdef HOLDFAST_TESTING
#include <map>
#include <memory>
#include <string>
#endif

namespace holdfast {

#ifdef HOLDFAST_TESTING
bool guard_is_off(std::string_view name);
void pass_failpoint(std::string_view name);

/// A list of failpoints with their counts of passings. `pass` may be called from any thread.
class FailpointSet {
 public:
  /// Throws std::invalid_argument naming what it cannot read.
  explicit FailpointSet(std::string_view list);
  ~FailpointSet();
  FailpointSet(FailpointSet&&) noexcept;
  void pass(std::string_view name) const;

 private:
  struct Point;
  std::map<std::string, std::unique_ptr<Point>, std::less<>> points_;
};
#define HOLDFAST_GUARD(name, condition) (::holdfast::guard_is_off(name) || (condition))
#define HOLDFAST_FAILPOINT(name) ::holdfast::pass_failpoint(name)
#else
#define HOLDFAST_GUARD(name, condition) (condition)
#define HOLDFAST_FAILPOINT(name) static_cast<void>(0)
#endif

}  // namespace holdfast
