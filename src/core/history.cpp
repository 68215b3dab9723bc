#include "core/history.hpp"

#include <map>
#include <set>

#include "base/text.hpp"

namespace holdfast {
namespace {

/// The calls that the latest turn made and that have no result yet, by id.
using OpenCalls = std::map<std::string, std::string>;

std::string shown_call(const std::string& id, const std::string& name) {
  return "call " + cut(id, 64) + " of '" + cut(name, 64) + "'";
}

std::optional<std::string> still_open(const OpenCalls& open) {
  if (open.empty()) return std::nullopt;
  return shown_call(open.begin()->first, open.begin()->second) + " has no result";
}

}  // namespace

ModelUsage& ModelUsage::operator+=(const ModelUsage& other) {
  Usage::operator+=(other);
  cached_tokens += other.cached_tokens;
  cache_write_tokens += other.cache_write_tokens;
  reasoning_tokens += other.reasoning_tokens;
  estimated = estimated || other.estimated;
  return *this;
}

std::optional<std::string> history_problem(const std::vector<Message>& messages) {
  OpenCalls open;
  std::set<std::string> made;
  for (const Message& message : messages) {
    if (message.role == Message::Role::tool) {
      const auto call = open.find(message.call_id);
      if (call == open.end()) {
        return "the result for " + shown_call(message.call_id, message.tool_name) +
               (made.contains(message.call_id) ? " is not the first one, or comes too late"
                                               : " answers no call");
      }
      if (call->second != message.tool_name) {
        return "the result for " + shown_call(call->first, call->second) + " is one of '" +
               cut(message.tool_name, 64) + "'";
      }
      open.erase(call);
      continue;
    }
    if (auto problem = still_open(open)) return problem;
    for (const ToolCall& call : message.calls) {
      if (call.id.empty() || !made.insert(call.id).second) {
        return shown_call(call.id, call.name) + " has no id of its own";
      }
      open.emplace(call.id, call.name);
    }
  }
  return still_open(open);
}

}  // namespace holdfast
