#include "runtime/circuits.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace holdfast {
namespace {

/// A probe whose process dies is given up after so many pauses.
constexpr int kPausesOfAProbe = 2;

class StoreCircuits final : public CircuitBoard {
 public:
  StoreCircuits(Store& store, const CircuitOptions& options) : store_(store), options_(options) {}

  Admission admit(const std::string& target, Duration timeout) override {
    const Duration longest = options_.open * kPausesOfAProbe;
    try {
      return store_.admit_call(target,
                               timeout > Duration::zero() ? std::min(timeout, longest) : longest);
    } catch (const StoreError&) {
      // Whoever can call a model does: that the store is away is dealt with where it matters.
      return {};
    }
  }

  void note(const std::string& target, const CallEnd& end) override {
    try {
      store_.note_call(target, end, options_);
    } catch (const StoreError&) {
      // An answer that was paid for is worth more than this.
    }
  }

 private:
  Store& store_;
  const CircuitOptions options_;
};

}  // namespace

std::unique_ptr<CircuitBoard> make_circuits(Store& store, const CircuitOptions& options) {
  return std::make_unique<StoreCircuits>(store, options);
}

Json show_circuit(const Circuit& circuit, StoreTime now, WallTime wall_now) {
  Json shown = {{"target", circuit.target},
                {"state", state_of(circuit, now)},
                {"failures", circuit.failures},
                {"class", circuit.failures > 0 ? Json(to_word(circuit.cause)) : Json()},
                {"code", circuit.failures > 0 ? Json(circuit.code) : Json()},
                {"next_probe_at", nullptr}};
  if (circuit.open_until) {
    const Duration left = std::max(*circuit.open_until - now, Duration::zero());
    shown["next_probe_at"] = format_time(wall_now + left);
  }
  return shown;
}

}  // namespace holdfast
