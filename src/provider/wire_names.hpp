#pragma once

// Tool names and call ids as other sides take them. Pure.

#include <map>
#include <string>
#include <vector>

#include "core/model.hpp"

namespace holdfast {

/// A name that every target takes: `^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`. Others are made fit, and told
/// apart by a digest.
std::string wire_name(const std::string& name);

/// The tool that a name on the wire means; the name itself where there is none.
std::string own_name(const std::string& on_wire, const std::vector<ToolDefinition>& tools);

/// Our call ids as every target takes them (one wants nine letters and digits): numbered by their
/// place in the history, which only grows.
class CallIds {
 public:
  /// The next call of the history.
  std::string made(const std::string& ours);
  /// The id of a call that was made.
  std::string answered(const std::string& ours) const;

 private:
  int count_ = 0;
  std::map<std::string, std::string> by_ours_;
};

/// A call's arguments for sides that want an object: what was not JSON, or no object, goes back
/// inside one.
Json sent_arguments(const ToolCall&);

/// A tool's parameters with the `type` and the `properties` that strict sides want.
Json sent_parameters(const ToolDefinition&);

}  // namespace holdfast
