#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/transition.hpp"
#include "holdfast/context.hpp"

namespace holdfast {

/// What a process can execute under one name.
struct HandlerEntry {
  AgentOffer offer;
  Handler handler;
  bool is_agent =
      false;  ///< an LLM loop: its unknown exceptions are bugs, not retried (spec, section 6)
  /// Why this process cannot execute the run, whose definition may be another configuration's;
  /// empty: it can. Without it every run can be executed.
  std::function<std::string(const Run&)> problem = {};
};

/// All handlers of this process. Filled before workers start, read-only afterwards.
class HandlerSet {
 public:
  void add(HandlerEntry entry) { entries_.insert_or_assign(entry.offer.name, std::move(entry)); }
  const HandlerEntry* find(const std::string& name) const {
    const auto it = entries_.find(name);
    return it == entries_.end() ? nullptr : &it->second;
  }
  std::vector<AgentOffer> offers() const {
    std::vector<AgentOffer> all;
    for (const auto& [name, entry] : entries_) all.push_back(entry.offer);
    return all;
  }

 private:
  std::map<std::string, HandlerEntry> entries_;
};

}  // namespace holdfast
