#include "tool/toolbox.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "tool/check_spec.hpp"
#include "tool/command.hpp"
#include "tool/environment.hpp"
#include "tool/http_tool.hpp"
#include "tool/outcome.hpp"

namespace holdfast {
namespace {

constexpr int kProbeNotLanded = 3;

/// Any thread.
class OwnToolbox : public Toolbox {
 public:
  OwnToolbox(std::vector<ToolSpec> specs, Env& env, const Limits& limits,
             std::vector<std::string> hosts)
      : env_(env), limits_(limits), hosts_(std::move(hosts)) {
    for (ToolSpec& spec : specs) {
      check_tool_spec(spec);
      const std::string name = spec.name;
      if (!specs_.emplace(name, std::move(spec)).second) {
        throw RefusedError(Refusal::usage,
                           fmt::format("tool '{}' is declared twice: rename one of them", name));
      }
    }
  }

  const ToolSpec* find(const std::string& name) const override {
    const auto it = specs_.find(name);
    return it == specs_.end() ? nullptr : &it->second;
  }

  ToolOutcome call(const ToolSpec& spec, const Json& arguments,
                   const StepContext& context) override {
    HOLDFAST_FAILPOINT("tool.before");
    ToolOutcome outcome = execute(spec, arguments, context);
    HOLDFAST_FAILPOINT("tool.after");
    return outcome;
  }

  ProbeAnswer probe(const ToolSpec& spec, const Json& arguments,
                    const StepContext& context) override {
    HOLDFAST_FAILPOINT("probe.before");
    ProbeAnswer answer =
        spec.probe ? spec.probe(arguments, context) : probe_by_command(spec, arguments, context);
    HOLDFAST_FAILPOINT("probe.after");
    return answer;
  }

 private:
  ToolCommand command_for(const ToolSpec& spec, const std::vector<std::string>& program,
                          const Json& input, const StepContext& context) const {
    ToolCommand command;
    command.arguments = program;
    command.environment = tool_environment(spec, context);
    command.folder = spec.working_folder;
    command.input = dump_json(input) + "\n";
    command.output_limit = limits_.result_bytes;
    command.error_limit = limits_.error_bytes;
    command.timeout = context.timeout;
    command.stop = context.stop;
    return command;
  }

  ToolOutcome execute(const ToolSpec& spec, const Json& arguments, const StepContext& context) {
    if (spec.http) return call_http(spec, arguments, context, env_, limits_, hosts_);
    if (spec.function) return {limited_result(spec.function(arguments, context), limits_), false};
    return call_command(spec, arguments, context);
  }

  ToolOutcome call_command(const ToolSpec& spec, const Json& arguments,
                           const StepContext& context) const {
    const ToolCommandEnd end =
        run_command(command_for(spec, spec.command, arguments, context), env_);
    return judge_call(spec, end, context, limits_);
  }

  ProbeAnswer probe_by_command(const ToolSpec& spec, const Json& arguments,
                               const StepContext& context) const {
    if (spec.probe_command.empty()) return Unknown{"the tool has no probe"};
    const Json question = {{"idempotency_key", context.idempotency_key}, {"arguments", arguments}};
    const ToolCommandEnd end =
        run_command(command_for(spec, spec.probe_command, question, context), env_);
    return judge_probe(spec, end, context, limits_, kProbeNotLanded);
  }

  std::map<std::string, ToolSpec> specs_;
  Env& env_;
  Limits limits_;
  const std::vector<std::string> hosts_;
};

}  // namespace

std::unique_ptr<Toolbox> make_toolbox(std::vector<ToolSpec> specs, Env& env, const Limits& limits,
                                      std::vector<std::string> hosts) {
  return std::make_unique<OwnToolbox>(std::move(specs), env, limits, std::move(hosts));
}

}  // namespace holdfast
