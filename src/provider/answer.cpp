#include "provider/answer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.hpp"
#include "provider/wire_names.hpp"

namespace holdfast {

std::variant<ModelReply, Malformed> to_reply(const RawReply& raw, const ModelRequest& request,
                                             int max_depth) {
  // One vendor calls the end of the window `model_length`.
  const bool was_cut = raw.finish == "length" || raw.finish == "model_length";
  if (raw.calls.empty() && raw.finish == "tool_calls") {
    return Malformed{"finish_reason is tool_calls, but there is no tool call"};
  }
  // A pause is no end: the answer may consist of what only its maker reads.
  const bool is_pause = raw.finish == "pause" && !raw.opaque.is_null();
  if (raw.calls.empty() && raw.text.empty() && !was_cut && !is_pause) {
    return Malformed{"the answer is empty (finish_reason " + raw.finish +
                     ", no text and no tool call)"};
  }
  ModelReply reply;
  reply.text = raw.text;
  reply.finish = was_cut ? "length" : raw.finish;
  reply.usage = raw.usage;
  reply.opaque = raw.opaque;
  for (const RawCall& call : raw.calls) {
    ToolCall out{call.id, own_name(call.name, request.tools), Json::object(), std::nullopt};
    // No arguments are an empty object, except where the end of the answer is missing.
    const bool is_blank = call.arguments.find_first_not_of(" \t\r\n") == std::string::npos;
    if (!is_blank) {
      auto parsed = parse_exact_json(call.arguments, max_depth);
      if (parsed && !call.is_rounded) {
        out.arguments = parsed->is_null() ? Json::object() : std::move(*parsed);
      } else {
        out.bad_arguments = call.arguments;
      }
    } else if (was_cut) {
      out.bad_arguments = call.arguments;
    }
    reply.calls.push_back(std::move(out));
  }
  return reply;
}

RawCall call_of_value(std::string id, std::string name, const Json* arguments) {
  RawCall call{std::move(id), std::move(name), {}};
  if (arguments != nullptr && !arguments->is_null()) {
    call.arguments = dump_json(*arguments);
    call.is_rounded = holds_rounded(*arguments);
  }
  return call;
}

std::optional<std::string> read_content(const Json& content) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return std::nullopt;
  std::string out;
  for (const Json& part : content) out += text_member(part, "text");
  return out;
}

const Json* find_given(const Json& object, const char* key) {
  const Json* found = find_member(object, key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string shape_of(const Json* value) {
  if (value == nullptr) return "missing";
  if (value->is_array() && value->empty()) return "an empty list";
  return value->type_name();
}

std::int64_t token_count(const Json& usage, const char* key) {
  const Json* found = find_member(usage, key);
  if (found == nullptr || !found->is_number()) return 0;
  const double number = found->get<double>();
  if (!std::isfinite(number) || number < 0) return 0;
  return static_cast<std::int64_t>(std::min(number, 1e15));
}

bool holds_rounded(const Json& value) {
  if (value.is_number_float()) return std::abs(value.get<double>()) >= 0x1p63;
  return value.is_structured() && std::any_of(value.begin(), value.end(), holds_rounded);
}

JsonExtent extent_of(const std::string& text) {
  int depth = 0;
  bool in_string = false;
  bool escaped = false;
  bool closed = false;
  for (char c : text) {
    const bool is_blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (closed && !is_blank) return JsonExtent::trailing;
    if (in_string) {
      if (escaped) {
        escaped = false;
      } else if (c == '\\') {
        escaped = true;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) closed = true;
  }
  return closed ? JsonExtent::complete : JsonExtent::open;
}

}  // namespace holdfast
