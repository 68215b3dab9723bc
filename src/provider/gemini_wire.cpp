#include "provider/gemini_wire.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "provider/wire_names.hpp"

namespace holdfast {
namespace {

constexpr const char* kGeminiDialect = "gemini";

/// The API refuses contents without a text.
constexpr const char* kNothingSaid = "(empty)";

/// Newer models refuse calls without the signature that they gave them; this stands for calls that
/// another model made.
constexpr const char* kForeignSignature = "skip_thought_signature_validator";

/// The conversation as the API wants it: contents of two roles, results of a turn in one content.
class ContentsWriter {
 public:
  explicit ContentsWriter(const Target& target) : target_(target) {}

  void add(const Message& message) {
    switch (message.role) {
      case Message::Role::system:
        if (!system_.empty()) system_ += "\n\n";
        system_ += message.text;
        return;
      case Message::Role::user:
        parts_of("user").push_back(some_text(message.text));
        return;
      case Message::Role::tool:
        parts_of("user").push_back(result_part(message));
        return;
      case Message::Role::assistant:
        add_answer(message);
        return;
    }
  }

  const std::string& system() const { return system_; }
  Json contents() && { return std::move(contents_); }

 private:
  Json& parts_of(const char* role) {
    if (contents_.empty() || contents_.back()["role"] != role) {
      contents_.push_back({{"role", role}, {"parts", Json::array()}});
    }
    return contents_.back()["parts"];
  }

  static Json some_text(const std::string& text) {
    return Json{{"text", text.empty() ? kNothingSaid : text}};
  }

  Json result_part(const Message& message) const {
    Json response{{"name", wire_name(message.tool_name)},
                  {"response", {{message.is_error ? "error" : "output", message.text}}}};
    // An id is only for who gave one to the call.
    const auto id = ids_.find(message.call_id);
    if (id != ids_.end()) response["id"] = id->second;
    return Json{{"functionResponse", std::move(response)}};
  }

  Json call_part(const ToolCall& call, const Json& own) {
    Json made{{"name", wire_name(call.name)}, {"args", sent_arguments(call)}};
    if (const std::string id = text_member(own, "id"); !id.empty()) made["id"] = ids_[call.id] = id;
    Json part{{"functionCall", std::move(made)}};
    if (const Json* signature = find_given(own, "thoughtSignature")) {
      part["thoughtSignature"] = *signature;
    }
    return part;
  }

  void add_answer(const Message& message) {
    Json& parts = parts_of("model");
    const auto own = own_parts(message, kGeminiDialect, target_);
    if (!own) {
      if (message.calls.empty() || !message.text.empty()) parts.push_back(some_text(message.text));
      Json first;
      if (message.made_by != target_.text()) first["thoughtSignature"] = kForeignSignature;
      for (const ToolCall& call : message.calls) {
        parts.push_back(call_part(call, std::exchange(first, nullptr)));
      }
      return;
    }
    std::size_t at = 0;
    std::size_t call = 0;
    for (const OwnPart& part : *own) {
      switch (part.kind) {
        case OwnPart::Kind::own:
          parts.push_back(part.value);
          break;
        case OwnPart::Kind::text: {
          Json text{{"text", message.text.substr(at, part.bytes)}};
          if (part.value.is_object()) text.update(part.value);
          parts.push_back(std::move(text));
          at += part.bytes;
          break;
        }
        case OwnPart::Kind::call:
          parts.push_back(call_part(message.calls[call++], part.value));
          break;
      }
    }
  }

  const Target& target_;
  std::map<std::string, std::string> ids_;  ///< the maker's, by ours
  std::string system_;
  Json contents_ = Json::array();
};

/// An answer with such an end is no answer, whatever came before it; another one may be.
bool is_failed_end(std::string_view reason) {
  constexpr std::array kFailed = std::to_array<std::string_view>(
      {"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL",
       "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "OTHER", "IMAGE_OTHER", "NO_IMAGE"});
  return std::find(kFailed.begin(), kFailed.end(), reason) != kFailed.end();
}

std::string end_of_candidate(const std::string& reason) {
  if (reason == "STOP" || reason == "FUNCTION_CALL") return "stop";
  if (reason == "MAX_TOKENS") return "length";
  // Filters whose words say nothing by themselves.
  if (reason == "SPII" || reason == "LANGUAGE") return "content_filter";
  return reason;
}

ModelUsage read_gemini_usage(const Json& usage) {
  ModelUsage out;
  out.prompt_tokens =
      token_count(usage, "promptTokenCount") + token_count(usage, "toolUsePromptTokenCount");
  out.cached_tokens = token_count(usage, "cachedContentTokenCount");
  out.reasoning_tokens = token_count(usage, "thoughtsTokenCount");
  out.completion_tokens = token_count(usage, "candidatesTokenCount") + out.reasoning_tokens;
  out.total_tokens = out.prompt_tokens + out.completion_tokens;
  return out;
}

}  // namespace

std::string render_gemini_request(const Target& target, const ModelRequest& request) {
  ContentsWriter writer(target);
  for (const Message& message : request.messages) writer.add(message);
  Json body = Json::object();
  if (!writer.system().empty()) {
    body["systemInstruction"] = {{"parts", Json::array({Json{{"text", writer.system()}}})}};
  }
  body["contents"] = std::move(writer).contents();
  Json functions = Json::array();
  for (const ToolDefinition& tool : request.tools) {
    Json function{{"name", wire_name(tool.name)}};
    if (!tool.description.empty()) function["description"] = tool.description;
    // A schema without properties is refused; a function without a schema takes nothing.
    Json parameters = sent_parameters(tool);
    if (parameters.value("type", Json()) != "object" || !parameters["properties"].empty()) {
      function["parametersJsonSchema"] = std::move(parameters);
    }
    functions.push_back(std::move(function));
  }
  // Beside tools most models refuse a form of the answer; then the system text alone says it.
  if (functions.empty() && !request.answer_schema.is_null()) {
    body["generationConfig"] = {{"responseMimeType", "application/json"},
                                {"responseJsonSchema", request.answer_schema}};
  }
  if (!functions.empty()) {
    body["tools"] = Json::array({Json{{"functionDeclarations", std::move(functions)}}});
  }
  return dump_json(body);
}

std::variant<std::string, Malformed> GeminiAssembler::add(const Json& response) {
  if (!response.is_object()) return Malformed{"a response is " + shape_of(&response)};
  if (const Json* feedback = find_given(response, "promptFeedback")) {
    block_reason_ = text_member(*feedback, "blockReason");
  }
  std::string added;
  if (const Json* candidates = find_given(response, "candidates")) {
    if (!candidates->is_array()) return Malformed{"candidates is " + shape_of(candidates)};
    for (const Json& candidate : *candidates) {
      if (!candidate.is_object()) return Malformed{"a candidate is " + shape_of(&candidate)};
      const Json* index = find_given(candidate, "index");
      if (index != nullptr && *index != 0) continue;  // one answer was asked for
      if (const Json* content = find_given(candidate, "content")) {
        const Json* parts = find_given(*content, "parts");
        if (parts != nullptr && !parts->is_array()) {
          return Malformed{"parts is " + shape_of(parts)};
        }
        for (const Json& part : parts == nullptr ? Json::array() : *parts) {
          if (auto malformed = add_part(part, &added)) return *malformed;
        }
      }
      const std::string reason = text_member(candidate, "finishReason");
      if (!reason.empty() && reason != "FINISH_REASON_UNSPECIFIED") finish_ = reason;
    }
  }
  if (const Json* usage = find_given(response, "usageMetadata")) {
    reply_.usage = read_gemini_usage(*usage);
    has_last_usage_ = has_end();
  }
  return added;
}

std::optional<Malformed> GeminiAssembler::add_part(const Json& part, std::string* added) {
  if (!part.is_object()) return Malformed{"a part is " + shape_of(&part)};
  Json own;
  const Json* signature = find_given(part, "thoughtSignature");
  if (signature != nullptr) own["thoughtSignature"] = *signature;
  if (const Json* call = find_given(part, "functionCall")) {
    RawCall raw = call_of_value(text_member(*call, "id"), text_member(*call, "name"),
                                find_member(*call, "args"));
    if (raw.name.empty()) return Malformed{"a functionCall has no name"};
    if (!raw.id.empty()) own["id"] = raw.id;
    reply_.calls.push_back(std::move(raw));
    parts_.add_call(std::move(own));
    return std::nullopt;
  }
  const Json* text = find_given(part, "text");
  const Json* thought = find_given(part, "thought");
  const bool is_thought = thought != nullptr && *thought == true;
  if (text != nullptr && text->is_string() && !is_thought) {
    const auto& piece = text->get_ref<const std::string&>();
    if (!piece.empty() || !own.is_null()) parts_.add_text(piece.size(), std::move(own));
    reply_.text += piece;
    *added += piece;
    return std::nullopt;
  }
  // A thought in plain words is for people; with its signature it is for the model again.
  if (!is_thought || signature != nullptr) parts_.add_own(part);
  return std::nullopt;
}

std::variant<RawReply, Malformed> GeminiAssembler::finish() const {
  RawReply out = reply_;
  if (!has_end()) return Malformed{"there is no finishReason"};
  if (is_failed_end(finish_)) return Malformed{"finishReason is " + finish_};
  out.finish = end_of_candidate(finish_.empty() ? block_reason_ : finish_);
  // A prompt is blocked for a reason of the other side, whatever its word.
  if (finish_.empty()) out.finish = "content_filter";
  if (out.finish == "stop" && !out.calls.empty()) out.finish = "tool_calls";
  out.opaque = parts_.kept(kGeminiDialect);
  return out;
}

}  // namespace holdfast
