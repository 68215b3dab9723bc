// sim_soak: simulated histories, one seed after another, until it is stopped or one breaks
// something.

#include <fmt/format.h>
#include <signal.h>

#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "env/env.hpp"
#include "sim/last_words.hpp"
#include "sim/shrink.hpp"

namespace {

using namespace holdfast;       // NOLINT(google-build-using-namespace)
using namespace holdfast::sim;  // NOLINT(google-build-using-namespace)

constexpr Duration kTellEvery = std::chrono::seconds(10);
constexpr int kShrinkTries = 500;

volatile sig_atomic_t is_stopped = 0;
void stop(int) { is_stopped = 1; }

struct Totals {
  std::uint64_t histories = 0;
  std::uint64_t switches = 0;
  std::int64_t events = 0;
  std::int64_t faults = 0;
  Duration time{};

  void add(const Report& report) {
    ++histories;
    switches += report.switches;
    events += report.events;
    faults += report.faults;
    time += report.time;
  }
  void tell(std::uint64_t first, Duration took) const {
    const double seconds = std::max(0.001, static_cast<double>(took.count()) / 1000);
    fmt::print(
        "{} histories from seed {} in {:.0f} s: {:.1f} histories/s, {} switches, {} events, {} "
        "faults, {} h of virtual time\n",
        histories, first, seconds, static_cast<double>(histories) / seconds, switches, events,
        faults, time.count() / 3'600'000);
    std::fflush(stdout);
  }
};

int soak(std::uint64_t first) {
  SimThreads threads;
  Totals totals;
  const StoreTime begun = real_env().store_now();
  StoreTime told = begun;
  for (std::uint64_t seed = first; is_stopped == 0; ++seed) {
    const Plan plan = make_plan(seed);
    const Report report = [&] {
      const LastWords last_words(seed);
      return run_history(plan, threads);
    }();
    totals.add(report);
    const StoreTime now = real_env().store_now();
    if (!report.is_good()) {
      totals.tell(first, now - begun);
      fmt::print("seed {}: {}\n", seed, to_text(report));
      const Plan small = shrink(plan, report.violations.front().name, threads, kShrinkTries);
      fmt::print("plan: {}\n", to_text(small));
      return 1;
    }
    if (now - told < kTellEvery) continue;
    told = now;
    totals.tell(first, now - begun);
  }
  totals.tell(first, real_env().store_now() - begun);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  set_log_level(LogLevel::off);
  // Another stretch of seeds each time, unless one is asked for.
  std::uint64_t first = real_env().random() >> 24;
  if (argc > 1) {
    const char* const end = argv[1] + std::strlen(argv[1]);
    const auto [rest, error] = std::from_chars(argv[1], end, first);
    if (argc > 2 || error != std::errc() || rest != end) {
      fmt::print(stderr, "usage: sim_soak [FIRST_SEED]\n");
      return 2;
    }
  }
  signal(SIGINT, stop);
  signal(SIGTERM, stop);
  return soak(first);
}
