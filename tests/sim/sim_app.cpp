// sim: runs simulated histories. `sim --help` says how.

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "base/log.hpp"
#include "sim/history.hpp"

using namespace holdfast::sim;  // NOLINT(google-build-using-namespace)

int main(int argc, char** argv) {
  holdfast::set_log_level(holdfast::LogLevel::off);
  std::uint64_t first = 1;
  std::uint64_t last = 1;
  if (argc > 2) first = last = std::strtoull(argv[2], nullptr, 10);
  if (argc > 3) last = std::strtoull(argv[3], nullptr, 10);
  SimThreads threads;
  int bad = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Plan plan = make_plan(seed);
    const Report report = run_history(plan, threads);
    if (!report.is_good() || first == last) fmt::print("seed {} {}\n", seed, to_text(report));
    bad += report.is_good() ? 0 : 1;
    std::fflush(stdout);
  }
  fmt::print("{} bad\n", bad);
  return bad == 0 ? 0 : 1;
}
