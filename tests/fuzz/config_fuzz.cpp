// The configuration file.

#include <algorithm>

#include "app/config.hpp"
#include "core/validate.hpp"
#include "fuzz/fuzz.hpp"

using namespace holdfast;
using fuzz::expect;

namespace {

constexpr std::string_view kSecret = "sk-hunter2-swordfish";

void check_agent(const AgentSpec& agent, const RuntimeOptions& options) {
  for (const std::string& model : agent.models) {
    const std::string provider = model.substr(0, model.find('/'));
    expect(std::ranges::find(options.providers, provider, &ProviderSpec::name) !=
               options.providers.end(),
           "an agent's models have a provider", model);
  }
  for (const std::string& tool : agent.tools) {
    expect(std::ranges::find(options.tools, tool, &ToolSpec::name) != options.tools.end(),
           "an agent's tools are there", tool);
  }
  expect(!agent.models.empty() && agent.max_iterations >= 1 && !agent.queue.empty(),
         "an agent can be executed", agent.name);
}

void check_options(const RuntimeOptions& options) {
  expect(options.reaper_limit >= 1 && options.limits.depth >= 1 && options.limits.result_bytes >= 1,
         "limits are at least 1");
  expect(options.policy.lease > Duration::zero() && options.heartbeat * 2 < options.policy.lease,
         "a lease outlasts two heartbeats");
  expect(options.retention_unfinished >= options.retention_terminal,
         "unfinished runs are kept at least as long");
  for (const ToolSpec& tool : options.tools) {
    expect(schema_problem(tool.parameters).empty() && !tool.command.empty() &&
               tool.timeout > Duration::zero(),
           "a tool can be called", tool.name);
  }
  for (const AgentSpec& agent : options.agents) check_agent(agent, options);
}

/// What is refused is told line by line, each with the file.
void check_refusal(const RefusedError& error) {
  expect(error.refusal() == Refusal::usage, "a mistake in a file is wrong usage", error.what());
  for (const std::string_view line : fuzz::split(error.what(), "\n")) {
    expect(line.starts_with("holdfast.toml:"), "every problem names its file", line);
    expect(fuzz::is_safe_line(line), "a problem can be shown", line);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  try {
    check_options(parse_configuration(text, "holdfast.toml", "/folder"));
  } catch (const RefusedError& error) {
    check_refusal(error);
  }
  if (fuzz::contains(text, "hunter2")) return 0;
  // A key where it must not be is refused, whatever stands before it, and never repeated.
  try {
    parse_configuration(text + "\n[providers.zz]\napi_key = \"" + std::string(kSecret) + "\"\n",
                        "holdfast.toml", "/folder");
    expect(fuzz::contains(text, "\"\"\"") || fuzz::contains(text, "'''"), "a key is refused", text);
  } catch (const RefusedError& error) {
    check_refusal(error);
    expect(!fuzz::contains(error.what(), kSecret), "no message repeats a key", error.what());
  }
  return 0;
}
