#include "tool/environment.hpp"

#include <cstdlib>
#include <map>

namespace holdfast {

std::vector<std::string> tool_environment(const ToolSpec& spec, const StepContext& context) {
  std::map<std::string, std::string> variables;
  const auto inherit = [&](const std::string& name) {
    if (const char* value = std::getenv(name.c_str())) variables.insert_or_assign(name, value);
  };
  for (const char* name : {"PATH", "HOME", "LANG", "TZ"}) inherit(name);
  for (const std::string& name : spec.pass_env) inherit(name);
  for (const auto& [name, value] : spec.env) variables.insert_or_assign(name, value);
  variables.insert_or_assign("HOLDFAST_RUN_ID", context.run);
  variables.insert_or_assign("HOLDFAST_STEP", context.key);
  variables.insert_or_assign("HOLDFAST_TOOL", spec.name);
  variables.insert_or_assign("HOLDFAST_IDEMPOTENCY_KEY", context.idempotency_key);

  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

}  // namespace holdfast
