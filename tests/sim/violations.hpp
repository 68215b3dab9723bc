#pragma once

// What a history broke, each promise by its own name.

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/invariants.hpp"

namespace holdfast::sim {

// Beside those that rows and events show (core/invariants.hpp).
inline constexpr char kOneWriter[] = "invariant 1 (one writer at a claim)";
inline constexpr char kProgress[] = "invariant 3 (no run stands still)";
inline constexpr char kWriteOnce[] = "invariant 4 (a write starts once)";
inline constexpr char kWriteUnderLease[] = "invariant 4 (no write without a lease)";
inline constexpr char kExecutedOnce[] = "invariant 5 (a recorded step is executed once)";
inline constexpr char kLivingKeep[] = "invariant 8 (the living are not reaped)";
inline constexpr char kNotReaped[] = "invariant 10 (no lease, no reaping)";
inline constexpr char kFencedFirst[] = "fence before write";
inline constexpr char kStillAtIt[] = "not landed is believed in time";
inline constexpr char kApproved[] = "what was approved is what runs";
inline constexpr char kDecidedOnce[] = "a call is decided once";
inline constexpr char kComesToEnd[] = "what lost its store for good comes to its end";
inline constexpr char kNoBug[] = "no exception leaves the engine";

/// How often what happened, by its name.
using Tally = std::map<std::string, int>;

/// In the tally: a call that began beside another one of its run.
inline constexpr char kBesideAnother[] = "call: beside another";

struct Violation {
  std::string name;
  std::string text;
};

/// Everything that was found, in order. The history ends with the first.
class Violations {
 public:
  explicit Violations(std::function<void()> on_first) : on_first_(std::move(on_first)) {}

  template <class... Args>
  void add(const char* name, fmt::format_string<Args...> text, Args&&... args) {
    add_text(name, fmt::format(text, std::forward<Args>(args)...));
  }
  void add_text(const std::string& name, std::string text) {
    // One cause shows in many ways: the first few tell it.
    if (all_.size() < 8) all_.push_back({name, std::move(text)});
    if (all_.size() == 1) on_first_();
  }
  bool empty() const { return all_.empty(); }
  const std::vector<Violation>& all() const { return all_; }

 private:
  std::vector<Violation> all_;
  std::function<void()> on_first_;
};

}  // namespace holdfast::sim
