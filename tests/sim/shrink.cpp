#include "sim/shrink.hpp"

#include <algorithm>
#include <vector>

namespace holdfast::sim {
namespace {

class Shrinker {
 public:
  Shrinker(Plan plan, std::string violation, SimThreads& threads, int tries)
      : best_(std::move(plan)), violation_(std::move(violation)), threads_(threads), left_(tries) {}

  Plan run() {
    for (bool gets_smaller = true; gets_smaller && left_ > 0;) {
      gets_smaller = fewer_elements();
      gets_smaller = plainer_world() || gets_smaller;
      gets_smaller = shorter_scripts() || gets_smaller;
    }
    return best_;
  }

 private:
  bool still_fails(const Plan& plan) {
    if (left_-- <= 0) return false;
    const Report report = run_history(plan, threads_);
    return std::ranges::any_of(report.violations,
                               [&](const Violation& v) { return v.name == violation_; });
  }

  bool keep_if_it_fails(Plan plan) {
    if (!still_fails(plan)) return false;
    best_ = std::move(plan);
    return true;
  }

  /// Halves first, then one at a time.
  bool fewer_elements() {
    bool any = false;
    for (std::size_t size = std::max<std::size_t>(best_.elements.size() / 2, 1);; size /= 2) {
      for (std::size_t at = 0; at < best_.elements.size();) {
        Plan fewer = best_;
        const auto first = fewer.elements.begin() + static_cast<std::ptrdiff_t>(at);
        const auto last = fewer.elements.begin() +
                          static_cast<std::ptrdiff_t>(std::min(at + size, fewer.elements.size()));
        fewer.elements.erase(first, last);
        if (keep_if_it_fails(std::move(fewer))) {
          any = true;
        } else {
          at += size;
        }
        if (left_ <= 0) return any;
      }
      if (size <= 1) return any;
    }
  }

  bool plainer_world() {
    bool any = false;
    const auto with = [&](auto&& change) {
      Plan plainer = best_;
      change(plainer.settings);
      if (to_text(plainer) != to_text(best_) && keep_if_it_fails(std::move(plainer))) any = true;
    };
    with([](Settings& s) { s.workers = std::max(1, s.workers - 1); });
    with([](Settings& s) { s.clients = 1; });
    with([](Settings& s) { s.concurrency = 1; });
    with([](Settings& s) { s.tool_trouble = 0; });
    with([](Settings& s) { s.model_trouble = 0; });
    with([](Settings& s) { s.suspicion = 0; });
    with([](Settings& s) { s.skew = 0; });
    with([](Settings& s) { s.latency = 0; });
    with([](Settings& s) { s.by_queue = false; });
    with([](Settings& s) { s.strategy = 0; });
    with([](Settings& s) { s.preempt = 0; });
    with([](Settings& s) { s.ends_gracefully = false; });
    with([](Settings& s) { s.faults_until = s.faults_until * 2 / 3; });
    return any;
  }

  bool shorter_scripts() {
    bool any = false;
    for (std::size_t i = 0; i < best_.elements.size(); ++i) {
      for (const char* part : {"turns", "steps"}) {
        for (std::size_t at = 0; has_script(i, part) && at < script(best_, i, part).size();) {
          Plan shorter = best_;
          script(shorter, i, part).erase(at);
          if (!keep_if_it_fails(std::move(shorter)))
            ++at;
          else
            any = true;
          if (left_ <= 0) return any;
        }
      }
    }
    return any;
  }

  bool has_script(std::size_t element, const char* part) const {
    const Json& detail = best_.elements[element].detail;
    return detail.is_object() && detail.contains("script") && detail["script"].contains(part);
  }
  static Json& script(Plan& plan, std::size_t element, const char* part) {
    return plan.elements[element].detail["script"][part];
  }

  Plan best_;
  const std::string violation_;
  SimThreads& threads_;
  int left_;
};

}  // namespace

Plan shrink(const Plan& plan, const std::string& violation, SimThreads& threads, int tries) {
  return Shrinker(plan, violation, threads, tries).run();
}

}  // namespace holdfast::sim
