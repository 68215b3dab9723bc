#include "agent/recorded_outcome.hpp"

#include "base/text.hpp"

namespace holdfast {
namespace {

bool is_wrapped(const Json& json) {
  return json.is_object() && json.size() == 2 && json.contains("result") &&
         json.contains("is_error") && json["is_error"].is_boolean();
}

}  // namespace

Json to_recorded(const ToolOutcome& outcome) {
  if (!outcome.is_error && !is_wrapped(outcome.result)) return outcome.result;
  return {{"is_error", outcome.is_error}, {"result", outcome.result}};
}

ToolOutcome from_recorded(const Json& json) {
  if (!is_wrapped(json)) return {json, false};
  return {json["result"], json["is_error"].get<bool>()};
}

std::string result_text(const Json& result) {
  return result.is_string() ? result.get<std::string>() : dump_json(result);
}

}  // namespace holdfast
