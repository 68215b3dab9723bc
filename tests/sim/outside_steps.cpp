// A task whose steps are written in its input.

#include <fmt/format.h>

#include <stdexcept>

#include "sim/outside_tools.hpp"

namespace holdfast::sim {
namespace {

class Steps {
 public:
  Steps(Outside& outside, Hindrance& hindrance, RunContext& context)
      : outside_(outside), hindrance_(hindrance), context_(context) {}

  Json run() {
    int done = 0;
    for (const Json& step : context_.run().input.at("steps")) {
      number_ = ++done;
      take(step.at("do").get<std::string>(), step);
    }
    return {{"done", done}};
  }

 private:
  void take(const std::string& what, const Json& step) {
    if (what == "read") return work(what, Effect::read, false);
    if (what == "note") return work(what, Effect::idempotent_write, false);
    if (what == "pay" || what == "ship") return work(what, Effect::non_idempotent_write, false);
    if (what == "sleep") return context_.sleep("nap", Duration(step.at("ms").get<int>()));
    if (what == "ask") return ask();
    if (what == "gate") return gate();
    if (what == "fail") return fail(step);
    if (what == "throw") return throw_up(step);
    throw std::invalid_argument("no step " + what);
  }

  std::string key(const std::string& what) const { return fmt::format("{}#{}", what, number_); }

  void work(const std::string& what, Effect effect, bool is_gated) {
    StepOptions options;
    options.effect = effect;
    options.key = key(what);
    options.arguments = {{"n", number_}};
    options.timeout = std::chrono::seconds(4);
    if (what == "ship") {
      options.probe = [this](const StepContext& step) {
        return probe(outside_, hindrance_, context_.run().id, step);
      };
    }
    const Json result = context_.step(what, options, [&](const StepContext& step) {
      return StepResult{perform(outside_, hindrance_, {what, effect, is_gated}, context_.run().id,
                                options.arguments, step),
                        std::nullopt};
    });
    if (!outside_.env.here().is_over) outside_.ledger.given(context_.run().id, options.key, result);
  }

  void ask() {
    const Json schema = {{"type", "object"},
                         {"properties", {{"name", {{"type", "string"}}}}},
                         {"required", {"name"}}};
    context_.ask_input(key("ask"), schema, "Who is it?");
  }

  void gate() {
    Question question;
    question.kind = WaitKind::approval;
    question.key = key("gate");
    question.calls = {
        {std::to_string(number_), "gate", {{"n", number_}}, Verdict::undecided, false}};
    question.timeout = std::chrono::seconds(30);
    const Reply reply = context_.ask(question);
    if (reply.verdicts.at(0) != Verdict::approved) return;
    work("gate", Effect::non_idempotent_write, true);
  }

  /// As often as the script says, in this world; then no more.
  bool comes_again(const Json& step) {
    if (outside_.faults.are_over()) return false;
    int& failed = outside_.failed[context_.run().id + "/" + std::to_string(number_)];
    return failed++ < step.at("times").get<int>();
  }

  void fail(const Json& step) {
    if (!comes_again(step)) return;
    Failure failure = make_failure(*parse_word<FailureClass>(step.at("class").get<std::string>()),
                                   "scripted", "as the script says");
    failure.attempted = failure.cls != FailureClass::circuit_open;
    throw FailureError(std::move(failure));
  }

  void throw_up(const Json& step) {
    if (comes_again(step)) throw std::runtime_error("as the script says");
  }

  Outside& outside_;
  Hindrance& hindrance_;
  RunContext& context_;
  int number_ = 0;
};

}  // namespace

Handler make_steps(Outside& outside, Hindrance& hindrance) {
  return [&outside, &hindrance](RunContext& context) -> Json {
    return Steps(outside, hindrance, context).run();
  };
}

}  // namespace holdfast::sim
