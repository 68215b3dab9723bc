// What a seed stands for.

#include <algorithm>

#include "sim/plan.hpp"

namespace holdfast::sim {
namespace {

const std::vector<std::string> kPlaces = {"claim",
                                          "claim",
                                          "fence",
                                          "fence",
                                          "record",
                                          "record",
                                          "settle",
                                          "settle",
                                          "renew",
                                          "reap",
                                          "tool",
                                          "tool",
                                          "model",
                                          "unfence",
                                          "expire_leases_of",
                                          "acknowledge_cancel",
                                          "look"};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : chance_(seed) { plan_.seed = seed; }

  Plan make() {
    set_up();
    const int runs = chance_.between(1, 7);
    for (int run = 0; run < runs; ++run) add_run(run);
    for (int i = chance_.between(0, 8); i > 0; --i) add_action(chance_.below(runs));
    // A third of the histories is quiet, so that what needs no fault shows without one.
    if (!chance_.percent(20)) {
      for (int i = chance_.between(1, 7); i > 0; --i) add_fault();
    }
    add_people();
    std::ranges::stable_sort(plan_.elements, {}, &Element::at);
    return std::move(plan_);
  }

 private:
  void set_up() {
    Settings& s = plan_.settings;
    s.workers = chance_.between(1, 3);
    s.clients = chance_.between(1, 3);
    s.concurrency = chance_.between(1, 3);
    s.lease = chance_.of<int>({2000, 3000, 5000});
    s.heartbeat = chance_.percent(8) ? 0 : s.lease / chance_.between(3, 5);
    s.reaper = chance_.of<int>({500, 1000, 2000});
    s.presence = chance_.percent(25) ? 0 : chance_.of<int>({200, 500, 1000});
    s.max_requeues = chance_.of<int>({0, 1, 3, 3, 3, 6});
    s.strict_expiry = chance_.percent(5);
    s.by_queue = chance_.percent(30);
    s.skew = chance_.percent(50) ? 0 : chance_.of<int>({50, 5000, 100000000});
    s.latency = chance_.of<int>({0, 5, 20});
    s.tool_trouble = chance_.percent(40) ? 0 : chance_.between(1, 30);
    s.model_trouble = chance_.percent(40) ? 0 : chance_.between(1, 30);
    s.suspicion = chance_.percent(60) ? 0 : chance_.between(1, 50);
    s.preempt = chance_.of<int>({0, 5, 30, 80});
    s.strategy = chance_.below(2);
    s.faults_until = chance_.between(3000, 10000);
    s.ends_gracefully = chance_.percent(40);
  }

  /// Mostly early, while there is most to do.
  int at() { return chance_.below(chance_.percent(60) ? 2000 : plan_.settings.faults_until); }

  Json tool_call() {
    const std::vector<std::string> tools = {"look", "look", "note", "pay",  "pay",
                                            "ship", "wire", "fire", "form", "sign"};
    return {{"tool", chance_.of(tools)}, {"n", chance_.below(1000)}};
  }

  Json agent_script() {
    Json turns = Json::array();
    for (int i = chance_.between(0, 3); i > 0; --i) {
      Json calls = Json::array();
      for (int j = chance_.between(1, 3); j > 0; --j) calls.push_back(tool_call());
      if (chance_.percent(5)) calls.push_back({{"tool", "no_such_tool"}, {"n", 1}});
      if (chance_.percent(5)) calls.push_back({{"tool", "look"}, {"bad", "{\"n\": "}});
      if (chance_.percent(5)) calls.push_back({{"tool", "pay"}, {"n", "not a number"}});
      turns.push_back(std::move(calls));
    }
    return {{"turns", std::move(turns)}};
  }

  Json task_script() {
    const std::vector<std::string> kinds = {"read",  "note", "pay",  "pay",  "ship",
                                            "sleep", "ask",  "gate", "fail", "throw"};
    Json steps = Json::array();
    for (int i = chance_.between(1, 5); i > 0; --i) {
      Json step = {{"do", chance_.of(kinds)}};
      if (step["do"] == "sleep") step["ms"] = chance_.between(1, 3000);
      if (step["do"] == "fail") {
        const std::vector<std::string> classes = {
            "connection",    "timeout",      "rate_limit",      "overloaded",
            "server_error",  "circuit_open", "quota_exhausted", "auth",
            "configuration", "client_error", "unknown"};
        step["class"] = chance_.of(classes);
        step["times"] = chance_.between(1, 3);
      }
      if (step["do"] == "throw") step["times"] = chance_.between(1, 3);
      steps.push_back(std::move(step));
    }
    return {{"steps", std::move(steps)}};
  }

  void add_run(int number) {
    Element e;
    e.what = chance_.percent(10) ? Do::run : chance_.percent(10) ? Do::run_inline : Do::enqueue;
    e.at = chance_.percent(60) ? chance_.below(200) : at();
    e.subject = number;
    const bool is_agent = chance_.percent(50);
    e.detail = {{"agent", is_agent ? "clerk" : "steps"},
                {"script", is_agent ? agent_script() : task_script()}};
    if (chance_.percent(30)) e.detail["queue"] = "side";
    if (chance_.percent(20)) e.detail["priority"] = chance_.between(-2, 2);
    if (chance_.percent(20)) e.detail["delay"] = chance_.below(3000);
    if (chance_.percent(20)) e.detail["max_requeues"] = chance_.below(3);
    if (e.what == Do::enqueue && chance_.percent(30)) {
      e.detail["key"] = "key-" + std::to_string(chance_.below(2));
      // Asked again, by somebody else perhaps.
      Element again = e;
      again.at += chance_.below(500);
      if (chance_.percent(50)) plan_.elements.push_back(std::move(again));
    }
    plan_.elements.push_back(std::move(e));
  }

  /// Those who do in time what a run will ask for.
  void add_people() {
    const std::vector<Element> made = plan_.elements;
    const bool is_quiet =
        std::ranges::none_of(made, [](const Element& e) { return is_fault(e.what); });
    for (const Element& run : made) {
      if (!run.detail.is_object() || !chance_.percent(50)) continue;
      const std::string script = run.detail.at("script").dump();
      const auto asks_for = [&](std::initializer_list<const char*> steps) {
        return std::ranges::any_of(steps, [&](const char* step) {
          return script.find('"' + std::string(step) + '"') != std::string::npos;
        });
      };
      if (asks_for({"wire", "fire", "sign", "gate"})) {
        come(run, chance_.percent(75) ? Do::approve : Do::deny);
      }
      if (asks_for({"form", "sign", "ask"})) come(run, Do::input);
      if (!is_quiet && asks_for({"pay"}) && chance_.percent(20)) {
        strike_near(run, kAnyWorker);
        come(run, Do::resolve);
      }
      if (asks_for({"fail", "throw"}) && chance_.percent(50)) come(run, Do::redrive);
      if (!is_quiet && run.what == Do::run && chance_.percent(50)) {
        strike_near(run, 100 + chance_.below(plan_.settings.clients));
        come(run, Do::hand_over);
      }
    }
  }

  void come(const Element& run, Do what) {
    Element e;
    e.what = what;
    e.at = run.at + chance_.below(2000);
    e.subject = run.subject;
    e.length = chance_.below(4);
    plan_.elements.push_back(std::move(e));
  }

  void strike_near(const Element& run, int victim) {
    Element e;
    e.what = Do::kill;
    e.at = run.at + chance_.below(500);
    e.subject = victim;
    e.place = "tool";
    e.after = chance_.percent(50);
    plan_.elements.push_back(std::move(e));
  }

  void add_action(int run) {
    const std::vector<Do> all = {Do::cancel,  Do::approve, Do::approve, Do::approve,   Do::deny,
                                 Do::input,   Do::input,   Do::redrive, Do::redrive,   Do::resolve,
                                 Do::resolve, Do::wake,    Do::reap,    Do::hand_over, Do::purge};
    Element e;
    e.what = chance_.of(all);
    e.at = at();
    e.subject = run;
    e.length = chance_.below(4);  // of a decision: one call only, or continued inline, …
    plan_.elements.push_back(std::move(e));
  }

  int victim(bool has_place) {
    const Settings& s = plan_.settings;
    if (has_place && chance_.percent(50)) return kAnyWorker;
    return chance_.percent(12) ? 100 + chance_.below(s.clients) : chance_.below(s.workers);
  }

  void add_fault() {
    const std::vector<Do> all = {
        Do::kill,          Do::kill,        Do::kill,        Do::freeze,      Do::freeze,
        Do::stop,          Do::store_error, Do::store_error, Do::store_error, Do::store_slow,
        Do::drop_presence, Do::jump_wall,   Do::suspend};
    Element e;
    e.what = chance_.of(all);
    e.at = at();
    const bool may_have_place = e.what == Do::kill || e.what == Do::freeze ||
                                e.what == Do::store_error || e.what == Do::drop_presence;
    const bool has_place = may_have_place && chance_.percent(75);
    e.subject = victim(has_place);
    if (has_place) {
      e.place = chance_.of(kPlaces);
      e.nth = chance_.of<int>({1, 1, 1, 2, 2, 3, 5});
      e.after = chance_.percent(50);
      e.at = chance_.percent(50) ? 0 : e.at;
    }
    const int lease = plan_.settings.lease;
    if (e.what == Do::freeze)
      e.length = chance_.of<int>({lease / 3, lease - 200, lease * 2, lease * 4});
    if (e.what == Do::store_error) e.length = chance_.of<int>({0, 0, 0, lease / 2, lease * 2});
    if (e.what == Do::store_slow) e.length = chance_.of<int>({200, lease, lease * 2});
    if (e.what == Do::jump_wall) e.length = chance_.of<int>({-3600000, -1000, 1000, 3600000});
    if (e.what == Do::suspend) e.length = chance_.of<int>({lease, lease * 3, 3600000});
    if (e.what == Do::stop) e.length = chance_.of<int>({0, 300, 30000});
    if (e.what == Do::kill || e.what == Do::stop) {
      if (e.subject < 100 && chance_.percent(70)) {
        Element again;
        again.what = Do::start;
        again.subject = e.subject == kAnyWorker ? chance_.below(plan_.settings.workers) : e.subject;
        again.at = e.at + chance_.between(0, 2000);
        plan_.elements.push_back(std::move(again));
      }
    }
    plan_.elements.push_back(std::move(e));
  }

  Plan plan_;
  Chance chance_;
};

}  // namespace

Plan make_plan(std::uint64_t seed) { return Maker(seed).make(); }

}  // namespace holdfast::sim
