#include "provider/wire_names.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/text.hpp"

namespace holdfast {
namespace {

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string wire_name(const std::string& name) {
  // One target wants a letter or an underscore in front.
  const bool starts_well =
      !name.empty() &&
      (std::isalpha(static_cast<unsigned char>(name.front())) != 0 || name[0] == '_');
  const bool is_plain =
      starts_well && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
        return is_letter_or_digit(c) || c == '_' || c == '-';
      });
  if (is_plain) return name;
  std::string out = starts_well ? "" : "_";
  for (char c : name.substr(0, 54)) out += is_letter_or_digit(c) ? c : '_';
  return out + "_" + sha256_hex(name).substr(0, 8);
}

std::string own_name(const std::string& on_wire, const std::vector<ToolDefinition>& tools) {
  const auto tool = std::find_if(tools.begin(), tools.end(), [&](const ToolDefinition& t) {
    return wire_name(t.name) == on_wire;
  });
  return tool == tools.end() ? on_wire : tool->name;
}

std::string CallIds::made(const std::string& ours) {
  std::string number = std::to_string(++count_);
  if (number.size() < 5) number.insert(0, 5 - number.size(), '0');
  return by_ours_[ours] = "call" + number;
}

std::string CallIds::answered(const std::string& ours) const {
  auto found = by_ours_.find(ours);
  return found == by_ours_.end() ? "call00000" : found->second;
}

Json sent_arguments(const ToolCall& call) {
  if (call.bad_arguments) return Json{{"unreadable_arguments", *call.bad_arguments}};
  if (call.arguments.is_null()) return Json::object();
  if (call.arguments.is_object()) return call.arguments;
  return Json{{"unreadable_arguments", dump_json(call.arguments)}};
}

Json sent_parameters(const ToolDefinition& tool) {
  Json parameters = tool.parameters.is_object() ? tool.parameters : Json::object();
  if (!parameters.contains("type")) parameters["type"] = "object";
  if (parameters.value("type", Json()) == "object" && !parameters.contains("properties")) {
    parameters["properties"] = Json::object();
  }
  return parameters;
}

}  // namespace holdfast
