#include "sim/exhaustive.hpp"

#include <vector>

namespace holdfast::sim {
namespace {

/// One place at which a history can go more than one way.
struct Choice {
  std::size_t taken = 0;
  std::size_t ways = 1;
  bool is_fault = false;
};

/// Follows the choices that it was given, then takes the first way everywhere, and notes what there
/// was to choose.
class Guide final : public SimScheduler {
 public:
  explicit Guide(const Bound& bound) : bound_(bound) {}

  /// For the next history; false when there is none.
  bool advance() {
    while (!choices_.empty() && choices_.back().taken + 1 >= choices_.back().ways) {
      choices_.pop_back();
    }
    if (choices_.empty()) return false;
    ++choices_.back().taken;
    rewind();
    return true;
  }
  void rewind() {
    next_ = 0;
    preemptions_ = 0;
    faults_ = 0;
  }

  std::size_t pick(std::span<SimTask* const> ready, std::optional<std::size_t> current) override {
    const std::size_t first = current.value_or(0);
    if (preemptions_ >= bound_.preemptions) return first;
    const std::size_t way = choose(ready.size(), false);
    if (way == 0) return first;
    ++preemptions_;
    return way <= first ? way - 1 : way;  // the others in their order
  }

  std::optional<Element> fault(bool after, bool is_store, const Hindrance& hindrance, int lease) {
    const bool is_worker = hindrance.subject >= 0 && hindrance.subject < 100;
    if (!is_worker || faults_ >= bound_.faults) return std::nullopt;
    const std::size_t way = choose(is_store ? 4 : 3, true);
    if (way == 0) return std::nullopt;
    ++faults_;
    Element fault;
    fault.subject = hindrance.subject;
    fault.after = after;
    fault.what = way == 1 ? Do::kill : way == 2 ? Do::freeze : Do::store_error;
    if (fault.what == Do::freeze) fault.length = lease * 2;
    return fault;
  }

 private:
  std::size_t choose(std::size_t ways, bool is_fault) {
    if (next_ == choices_.size()) choices_.push_back({0, ways, is_fault});
    return choices_[next_++].taken;
  }

  const Bound bound_;
  std::vector<Choice> choices_;
  std::size_t next_ = 0;
  int preemptions_ = 0;
  int faults_ = 0;
};

}  // namespace

Plan small_world() {
  Plan plan;
  plan.seed = 1;
  Settings& s = plan.settings;
  s.workers = 2;
  s.clients = 1;
  s.concurrency = 1;
  s.lease = 1000;
  s.heartbeat = 400;
  s.reaper = 500;
  s.presence = 0;
  s.latency = 0;
  s.faults_until = 1;
  s.one_reaper = true;
  Element run;
  run.detail = {{"agent", "steps"}, {"script", {{"steps", {{{"do", "read"}}, {{"do", "pay"}}}}}}};
  plan.elements.push_back(std::move(run));
  return plan;
}

Search search(const Plan& plan, const Bound& bound, SimThreads& threads, const Onlooker& onlooker) {
  Search result;
  Guide guide(bound);
  Controls controls;
  controls.scheduler = &guide;
  controls.oracle = [&](const std::string&, bool after, bool is_store, const Hindrance& hindrance) {
    return guide.fault(after, is_store, hindrance, plan.settings.lease);
  };
  do {
    ++result.histories;
    const Report report = run_history(plan, threads, controls);
    if (report.is_good()) continue;
    result.failed = report;
    if (onlooker) {
      guide.rewind();
      controls.onlooker = onlooker;
      run_history(plan, threads, controls);
    }
    return result;
  } while (result.histories < bound.histories && guide.advance());
  result.is_complete = result.histories < bound.histories || !guide.advance();
  return result;
}

}  // namespace holdfast::sim
