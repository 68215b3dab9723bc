#pragma once

#include <string>

#include "core/circuit.hpp"

namespace holdfast {

/// What all processes know of the models' circuits (spec, section 6). Never throws: where nothing
/// can be known, calls are made. Any thread.
class CircuitBoard {
 public:
  virtual ~CircuitBoard() = default;
  /// May `provider/model` be called? `timeout`: of the call; zero: none.
  virtual Admission admit(const std::string& target, Duration timeout) = 0;
  /// Each admitted call ends here, once.
  virtual void note(const std::string& target, const CallEnd&) = 0;
};

}  // namespace holdfast
