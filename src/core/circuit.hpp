#pragma once

// The circuit of one model of one provider, shared by all processes through the store: after
// failures in a row nobody calls it for a while, then one call tries (spec, section 6, "trips the
// circuit" and "Parking"). Pure: the store keeps it, and its clock decides.

#include <optional>
#include <string>
#include <string_view>

#include "holdfast/runtime.hpp"

namespace holdfast {

struct Circuit {
  std::string target;  ///< `provider/model`
  int failures = 0;    ///< in a row, of classes that trip it
  /// None: closed. Ahead: open, nobody calls. Over: half-open, one probe at a time.
  std::optional<StoreTime> open_until;
  std::optional<StoreTime> probe_until;        ///< a probe is under way, and is given up then
  FailureClass cause = FailureClass::unknown;  ///< of the newest of these failures
  std::string code;                            ///< the same one's

  friend bool operator==(const Circuit&, const Circuit&) = default;
};

/// Whether a call may be made.
struct Admission {
  bool is_open = false;    ///< it may not
  bool is_probe = false;   ///< it may, and everybody else waits for what becomes of it
  Duration retry_after{};  ///< until somebody may try again
  int failures = 0;
  FailureClass cause = FailureClass::unknown;
};

/// How a call ended.
struct CallEnd {
  enum class What {
    answered,  ///< by the provider, also with a refusal: it is there
    failed,    ///< with a class that trips
    given_up   ///< by us, before anything could be told
  } what = What::answered;
  bool was_probe = false;
  FailureClass cls = FailureClass::unknown;
  std::string code;
  std::optional<Duration> hint;  ///< how long the provider asked to wait
};

/// Does a failure of this class count against the circuit?
bool trips(FailureClass);

/// May this call be made? Where it becomes the probe, `circuit` says so, for `probe_for` at most.
Admission admit(Circuit& circuit, StoreTime now, Duration probe_for);

/// What a call that ended so makes of the circuit.
void note(Circuit& circuit, const CallEnd&, const CircuitOptions&, StoreTime now);

/// The word for its state: `closed`, `open` or `half_open`.
std::string_view state_of(const Circuit&, StoreTime now);

Json encode(const Circuit&);
/// What is missing or malformed is as in a closed one.
Circuit decode_circuit(const std::string& target, const Json&);

}  // namespace holdfast
