#include "sim/outside_tools.hpp"

namespace holdfast::sim {
namespace {

constexpr Duration kToolTimeout = std::chrono::seconds(4);

[[noreturn]] void fail_unknown(const std::string& name, FailureClass cls) {
  Failure failure = make_failure(cls, "simulated", name + " gave no answer");
  failure.outcome_unknown = true;
  throw FailureError(std::move(failure));
}

[[noreturn]] void fail_unstarted(const std::string& name) {
  Failure failure = make_failure(FailureClass::connection, "simulated", name + " was not reached");
  failure.not_started = true;
  throw FailureError(std::move(failure));
}

FailureClass some_class(Chance& chance) {
  const std::vector<FailureClass> all = {FailureClass::connection, FailureClass::timeout,
                                         FailureClass::server_error, FailureClass::client_error,
                                         FailureClass::unknown};
  return chance.of(all);
}

Duration some_time(Outside& outside) {
  Chance& chance = outside.chance;
  if (outside.is_in_trouble(outside.settings.tool_trouble)) {
    return Duration(chance.below(outside.settings.lease * 2));
  }
  return Duration(chance.below(chance.percent(70) ? 20 : 400));
}

ToolSpec tool(const std::string& name, Effect effect) {
  ToolSpec spec;
  spec.name = name;
  spec.description = "simulated";
  spec.effect = effect;
  spec.timeout = kToolTimeout;
  spec.parameters = {{"type", "object"}, {"properties", {{"n", {{"type", "integer"}}}}}};
  return spec;
}

void execute_with(ToolSpec& spec, Outside& outside, Hindrance& hindrance) {
  const ToolCallOf call{spec.name, spec.effect, spec.approval};
  spec.function = [&outside, &hindrance, call](const Json& arguments, const StepContext& step) {
    return perform(outside, hindrance, call, step.run, arguments, step);
  };
}

}  // namespace

Json perform(Outside& outside, Hindrance& hindrance, const ToolCallOf& what, const RunId& run,
             const Json& arguments, const StepContext& step) {
  need_life(outside.env);
  // In the ledger before anybody else can go on: this is the first instant of the call.
  Ledger::Call call(outside.ledger, run, step.key, what.name, what.effect, arguments,
                    what.is_gated);
  outside.faults.pass("tool", false, hindrance, false);
  const int trouble = outside.settings.tool_trouble;
  if (outside.is_in_trouble(trouble / 3)) {
    call.never_began();
    fail_unstarted(what.name);
  }
  // A read may be deaf, and end long after its segment has lost the run.
  const bool is_deaf = what.effect == Effect::read && outside.is_in_trouble(trouble);
  outside.env.sleep_for(some_time(outside), is_deaf ? std::stop_token() : step.stop);
  need_life(outside.env);
  if (!is_deaf && step.stop.stop_requested()) fail_unknown(what.name, FailureClass::timeout);
  if (outside.is_in_trouble(trouble / 3)) fail_unknown(what.name, some_class(outside.chance));
  Json receipt = call.land();
  outside.faults.pass("tool", true, hindrance, false);
  if (outside.chance.percent(30)) {
    outside.env.sleep_for(Duration(outside.chance.below(50)), step.stop);
    need_life(outside.env);
  }
  if (outside.is_in_trouble(trouble / 3)) fail_unknown(what.name, some_class(outside.chance));
  return receipt;
}

ProbeAnswer probe(Outside& outside, Hindrance& hindrance, const RunId& run,
                  const StepContext& step) {
  outside.faults.pass("probe", false, hindrance, false);
  outside.env.sleep_for(Duration(outside.chance.below(50)), step.stop);
  need_life(outside.env);
  if (outside.is_in_trouble(outside.settings.tool_trouble)) return Unknown{"simulated"};
  if (auto landed = outside.ledger.find_landed(run, step.key)) return Landed{*landed};
  return NotLanded{};
}

RuntimeOptions make_options(Outside& outside, Hindrance& hindrance) {
  const Settings& s = outside.settings;
  RuntimeOptions options;
  options.store_url = "memory:";
  options.heartbeat = Duration(s.heartbeat);
  options.presence_interval = Duration(std::max(1, s.presence));
  options.reaper_interval = Duration(s.reaper);
  options.reaper_limit = 3;
  options.policy.lease = Duration(s.lease);
  options.policy.strict_expiry = s.strict_expiry;
  options.policy.max_requeues = s.max_requeues;
  options.policy.backoff_base = std::chrono::milliseconds(100);
  options.policy.backoff_cap = std::chrono::seconds(2);
  options.policy.hint_cap = std::chrono::seconds(3);
  for (const char* name : {"main", "backup"}) {
    ProviderSpec provider;
    provider.name = name;
    provider.base_url = "http://simulated.invalid";
    options.providers.push_back(provider);
  }
  ToolSpec look = tool("look", Effect::read);
  ToolSpec note = tool("note", Effect::idempotent_write);
  ToolSpec pay = tool("pay", Effect::non_idempotent_write);
  ToolSpec ship = tool("ship", Effect::non_idempotent_write);
  ship.probe = [&](const Json&, const StepContext& step) {
    return probe(outside, hindrance, step.run, step);
  };
  ToolSpec wire = tool("wire", Effect::non_idempotent_write);
  wire.approval = true;
  ToolSpec fire = tool("fire", Effect::idempotent_write);
  fire.approval = true;
  fire.end_on_denial = true;
  fire.approval_timeout = std::chrono::seconds(3);
  ToolSpec form = tool("form", Effect::read);
  form.input_schema = {
      {"type", "object"}, {"properties", {{"name", {{"type", "string"}}}}}, {"required", {"name"}}};
  ToolSpec sign = tool("sign", Effect::non_idempotent_write);
  sign.approval = true;
  sign.approval_timeout = std::chrono::seconds(4);
  sign.input_schema = form.input_schema;
  for (ToolSpec spec : {look, note, pay, ship, wire, fire, form, sign}) {
    execute_with(spec, outside, hindrance);
    options.tools.push_back(std::move(spec));
  }
  AgentSpec clerk;
  clerk.name = "clerk";
  clerk.models = {"main/m", "backup/m"};
  clerk.max_iterations = 12;
  clerk.system = "You are simulated.";
  for (const ToolSpec& spec : options.tools) clerk.tools.push_back(spec.name);
  options.agents.push_back(std::move(clerk));
  return options;
}

}  // namespace holdfast::sim
