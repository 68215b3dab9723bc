#include "core/circuit.hpp"

#include <algorithm>
#include <limits>

#include "base/guard.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMaxCodeBytes = 128;
constexpr std::int64_t kFarthestTime = std::int64_t{1} << 53;

void reset(Circuit& circuit) {
  circuit.failures = 0;
  circuit.open_until.reset();
  circuit.probe_until.reset();
  circuit.cause = FailureClass::unknown;
  circuit.code.clear();
}

/// A provider that asks for more than the pause gets it, within that of a spent quota.
Duration pause_after(const CallEnd& end, const CircuitOptions& options) {
  if (end.cls == FailureClass::quota_exhausted) return options.quota_open;
  const Duration asked = std::clamp(end.hint.value_or(Duration::zero()), Duration::zero(),
                                    std::max(options.quota_open, options.open));
  return std::max(options.open, asked);
}

Json encode_time(const std::optional<StoreTime>& time) {
  return time ? Json(time->time_since_epoch().count()) : Json();
}

std::optional<StoreTime> decode_time(const Json& json, const char* name) {
  const Json* found = find_member(json, name);
  if (found == nullptr || !found->is_number_integer()) return std::nullopt;
  return StoreTime(Duration(std::clamp(found->get<std::int64_t>(), -kFarthestTime, kFarthestTime)));
}

}  // namespace

bool trips(FailureClass cls) {
  switch (cls) {
    case FailureClass::connection:
    case FailureClass::timeout:
    case FailureClass::rate_limit:
    case FailureClass::overloaded:
    case FailureClass::server_error:
    case FailureClass::quota_exhausted:
      return true;
    case FailureClass::circuit_open:
    case FailureClass::auth:
    case FailureClass::configuration:
    case FailureClass::client_error:
    case FailureClass::context_length:
    case FailureClass::content_policy:
    case FailureClass::unknown:
      return false;
  }
  return false;
}

Admission admit(Circuit& circuit, StoreTime now, Duration probe_for) {
  Admission admission;
  admission.failures = circuit.failures;
  admission.cause = circuit.cause;
  if (!circuit.open_until) return admission;
  if (!HOLDFAST_GUARD("circuit_open", now >= *circuit.open_until)) {
    admission.is_open = true;
    admission.retry_after = *circuit.open_until - now;
    return admission;
  }
  if (!HOLDFAST_GUARD("circuit_one_probe", !circuit.probe_until || now >= *circuit.probe_until)) {
    admission.is_open = true;
    admission.retry_after = *circuit.probe_until - now;
    return admission;
  }
  admission.is_probe = true;
  circuit.probe_until = now + std::max(probe_for, Duration(1));
  return admission;
}

void note(Circuit& circuit, const CallEnd& end, const CircuitOptions& options, StoreTime now) {
  switch (end.what) {
    case CallEnd::What::answered:
      reset(circuit);
      return;
    case CallEnd::What::given_up:
      if (end.was_probe) circuit.probe_until.reset();
      return;
    case CallEnd::What::failed:
      break;
  }
  if (circuit.failures < std::numeric_limits<int>::max()) ++circuit.failures;
  circuit.cause = end.cls;
  circuit.code = cut(clean_utf8(end.code), kMaxCodeBytes);
  if (end.was_probe) circuit.probe_until.reset();
  const bool is_spent = end.cls == FailureClass::quota_exhausted;
  // One that was already under way when others opened it says nothing new.
  const bool opens =
      is_spent || end.was_probe || (!circuit.open_until && circuit.failures >= options.threshold);
  if (!opens) return;
  const StoreTime until = now + pause_after(end, options);
  circuit.open_until = std::max(until, circuit.open_until.value_or(until));
}

std::string_view state_of(const Circuit& circuit, StoreTime now) {
  if (!circuit.open_until) return "closed";
  return now < *circuit.open_until ? "open" : "half_open";
}

Json encode(const Circuit& circuit) {
  return {{"failures", circuit.failures},
          {"open_until", encode_time(circuit.open_until)},
          {"probe_until", encode_time(circuit.probe_until)},
          {"cause", to_word(circuit.cause)},
          {"code", circuit.code}};
}

Circuit decode_circuit(const std::string& target, const Json& json) {
  Circuit circuit;
  circuit.target = target;
  if (const Json* failures = find_member(json, "failures");
      failures != nullptr && failures->is_number_integer()) {
    circuit.failures = static_cast<int>(std::clamp<std::int64_t>(failures->get<std::int64_t>(), 0,
                                                                 std::numeric_limits<int>::max()));
  }
  circuit.open_until = decode_time(json, "open_until");
  circuit.probe_until = decode_time(json, "probe_until");
  if (const Json* cause = find_member(json, "cause"); cause != nullptr && cause->is_string()) {
    circuit.cause = parse_word<FailureClass>(cause->get_ref<const std::string&>())
                        .value_or(FailureClass::unknown);
  }
  if (const Json* code = find_member(json, "code"); code != nullptr && code->is_string()) {
    circuit.code = code->get<std::string>();
  }
  return circuit;
}

}  // namespace holdfast
