#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>
#include <variant>

#include "base/safe_text.hpp"
#include "base/text.hpp"
#include "core/classify.hpp"
#include "provider/providers.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMaxScriptBytes = std::size_t{64} << 20;
constexpr const char* kExpected =
    "an entry is {\"reply\": \"text\"} or {\"tool_calls\": [{\"name\": \"…\", \"arguments\": "
    "{…}}]}, each with \"delay\": \"2s\" and \"errors\": [{\"status\": 503, \"headers\": {}, "
    "\"body\": \"…\"}] if wanted";

/// A key of the script, for messages.
std::string shown_key(const std::string& key) { return cut(safe_line(key), 60); }

struct ScriptedError {
  int status = 500;
  std::map<std::string, std::string> headers;
  std::string body;
};

struct Entry {
  std::string reply;
  std::vector<ToolCall> calls;
  Duration delay{};
  std::vector<ScriptedError> errors;
};

/// Reads the script; every fault names file and entry.
class ScriptReader {
 public:
  explicit ScriptReader(const ProviderSpec& spec) : spec_(spec) {}

  std::vector<Entry> read() const {
    if (spec_.script.empty()) {
      refuse_file("providers." + spec_.name + ".script is empty; name a JSON file");
    }
    std::ifstream file(spec_.script, std::ios::binary);
    std::ostringstream bytes;
    if (file) bytes << file.rdbuf();
    if (!file || bytes.str().empty()) {
      refuse_file("script " + spec_.script + " of provider " + spec_.name +
                  " cannot be read or is empty; expected a JSON list: " + kExpected);
    }
    const std::string text = bytes.str();
    if (text.size() > kMaxScriptBytes) refuse_file("script " + spec_.script + " is too large");
    std::string problem;
    auto json = parse_exact_json(text, 64, &problem);
    if (!json) refuse_file("script " + spec_.script + " cannot be used: " + problem);
    if (!json->is_array()) {
      refuse_file("script " + spec_.script + " is " + json->type_name() +
                  "; expected a list: " + kExpected);
    }
    if (json->empty()) {
      refuse_file("script " + spec_.script + " is an empty list; add an entry: " + kExpected);
    }
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < json->size(); ++i) entries.push_back(read_entry((*json)[i], i));
    return entries;
  }

 private:
  [[noreturn]] static void refuse_file(const std::string& message) {
    throw RefusedError(Refusal::usage, message);
  }

  [[noreturn]] void refuse(std::size_t index, const std::string& what) const {
    refuse_file("script " + spec_.script + ", entry " + std::to_string(index) +
                " (counted from 0): " + what + "; " + kExpected);
  }

  Entry read_entry(const Json& json, std::size_t index) const {
    if (!json.is_object()) refuse(index, std::string("is ") + json.type_name());
    for (const auto& [key, value] : json.items()) {
      if (key != "reply" && key != "tool_calls" && key != "delay" && key != "errors") {
        refuse(index, "unknown key `" + shown_key(key) + "`");
      }
    }
    if (json.contains("reply") == json.contains("tool_calls")) {
      refuse(index, "needs exactly one of `reply` and `tool_calls`");
    }
    Entry entry;
    if (json.contains("reply")) {
      if (!json["reply"].is_string()) refuse(index, "`reply` must be a text");
      entry.reply = json["reply"];
    } else {
      entry.calls = read_calls(json["tool_calls"], index);
    }
    if (json.contains("delay")) {
      std::optional<Duration> delay;
      if (json["delay"].is_string()) delay = parse_duration(json["delay"].get<std::string>());
      if (!delay) refuse(index, "`delay` must be a duration like \"500ms\" or \"2s\"");
      entry.delay = *delay;
    }
    if (json.contains("errors")) entry.errors = read_errors(json["errors"], index);
    return entry;
  }

  std::vector<ToolCall> read_calls(const Json& json, std::size_t index) const {
    if (!json.is_array() || json.empty()) refuse(index, "`tool_calls` must be a list of calls");
    std::vector<ToolCall> calls;
    for (const Json& call : json) {
      const bool is_named = call.is_object() && call.contains("name") && call["name"].is_string() &&
                            !call["name"].get_ref<const std::string&>().empty();
      if (!is_named) refuse(index, "each tool call needs a `name`");
      for (const auto& [key, value] : call.items()) {
        if (key != "name" && key != "arguments") {
          refuse(index, "unknown key `" + shown_key(key) + "` in a tool call");
        }
      }
      ToolCall out;
      out.name = call["name"];
      out.arguments = call.value("arguments", Json::object());
      // A text stands for what a model wrote: it may be no JSON, on purpose.
      if (out.arguments.is_string()) {
        const std::string text = out.arguments;
        auto parsed = parse_exact_json(text);
        out.arguments = parsed ? std::move(*parsed) : Json::object();
        if (!parsed) out.bad_arguments = text;
      }
      calls.push_back(std::move(out));
    }
    return calls;
  }

  std::vector<ScriptedError> read_errors(const Json& json, std::size_t index) const {
    if (!json.is_array()) refuse(index, "`errors` must be a list");
    std::vector<ScriptedError> errors;
    for (const Json& error : json) {
      const bool has_status = error.is_object() && error.contains("status") &&
                              error["status"].is_number_integer() && error["status"] >= 100 &&
                              error["status"] <= 999;
      if (!has_status) refuse(index, "each error needs a `status` from 100 to 999");
      ScriptedError out;
      out.status = error["status"];
      for (const auto& [key, value] : error.items()) {
        if (key == "status") continue;
        if (key == "body") {
          out.body = value.is_string() ? value.get<std::string>() : dump_json(value);
        } else if (key == "headers") {
          out.headers = read_headers(value, index);
        } else {
          refuse(index, "unknown key `" + shown_key(key) + "` in an error");
        }
      }
      errors.push_back(std::move(out));
    }
    return errors;
  }

  std::map<std::string, std::string> read_headers(const Json& json, std::size_t index) const {
    if (!json.is_object()) refuse(index, "`headers` of an error must be an object");
    std::map<std::string, std::string> headers;
    for (const auto& [name, value] : json.items()) {
      if (!value.is_string() && !value.is_number()) {
        refuse(index, "header `" + shown_key(name) + "` must be a text");
      }
      std::string lower = name;
      std::transform(lower.begin(), lower.end(), lower.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      headers[lower] = value.is_string() ? value.get<std::string>() : dump_json(value);
    }
    return headers;
  }

  const ProviderSpec& spec_;
};

std::int64_t tokens_in(std::size_t bytes) { return static_cast<std::int64_t>((bytes + 3) / 4); }

/// A stand-in for what models count: one token for four bytes of text, names and arguments; at
/// least one. Equal conversations cost the same.
std::int64_t prompt_tokens(const ModelRequest& request) {
  std::size_t bytes = 0;
  for (const Message& message : request.messages) {
    bytes += message.text.size();
    for (const ToolCall& call : message.calls) {
      bytes += call.name.size() + dump_json(call.arguments).size();
    }
  }
  return std::max<std::int64_t>(1, tokens_in(bytes));
}

class Scripted final : public Provider {
 public:
  Scripted(ProviderSpec spec, Env& env) : spec_(std::move(spec)), env_(env) {}

  void prepare() override {
    const std::lock_guard lock(mutex_);
    if (entries_.empty()) entries_ = ScriptReader(spec_).read();
  }

  std::optional<std::int64_t> request_room(const std::string& model) const override {
    return holdfast::request_room(spec_, model);
  }

  ModelReply complete(const std::string& model, const ModelRequest& request,
                      const CallContext& context) override {
    prepare();
    // Also those that are not sent any more.
    const auto turn = static_cast<std::size_t>(
        request.left_out +
        std::count_if(request.messages.begin(), request.messages.end(),
                      [](const Message& m) { return m.role == Message::Role::assistant; }));
    if (turn >= entries_.size()) throw FailureError(past_the_end(model, turn));
    const Entry& entry = entries_[turn];
    if (const ScriptedError* error = next_error(request.run, turn, entry)) {
      Evidence evidence;
      evidence.status = error->status;
      evidence.headers = error->headers;
      evidence.body = error->body;
      evidence.provider = spec_.name;
      evidence.model = model;
      evidence.body_was_success = error->status >= 200 && error->status < 300;
      throw FailureError(classify(evidence));
    }
    wait(entry.delay, model, context);
    return answer(entry, model, request, context);
  }

 private:
  Failure past_the_end(const std::string& model, std::size_t turn) const {
    Failure failure;
    failure.cls = FailureClass::configuration;
    failure.code = "script_ended";
    failure.provider = spec_.name;
    failure.model = model;
    failure.message = "the script " + spec_.script + " has " + std::to_string(entries_.size()) +
                      " entries, but the conversation asks for entry " + std::to_string(turn) +
                      " (counted from 0); add it to the script";
    return failure;
  }

  const ScriptedError* next_error(const RunId& run, std::size_t turn, const Entry& entry) {
    if (entry.errors.empty()) return nullptr;
    const std::lock_guard lock(mutex_);
    std::size_t& given = given_[{run, turn}];
    if (given >= entry.errors.size()) return nullptr;
    return &entry.errors[given++];
  }

  void wait(Duration delay, const std::string& model, const CallContext& context) {
    Duration limit = spec_.timeout;
    if (context.timeout > Duration::zero()) limit = std::min(limit, context.timeout);
    const bool is_late = delay > limit;
    const Duration time = is_late ? limit : delay;
    if (time > Duration::zero()) env_.sleep_for(time, context.stop);
    const bool was_stopped = context.stop.stop_requested();
    if (!was_stopped && !is_late) return;
    Evidence evidence;
    evidence.transport_kind = was_stopped ? "interrupted" : "total_timeout";
    evidence.phase = TransportPhase::first_byte;
    evidence.provider = spec_.name;
    evidence.model = model;
    throw FailureError(classify(evidence));
  }

  ModelReply answer(const Entry& entry, const std::string& model, const ModelRequest& request,
                    const CallContext& context) const {
    ModelReply reply;
    reply.provider = spec_.name;
    reply.model = model;
    reply.text = entry.reply;
    reply.calls = entry.calls;
    reply.finish = entry.calls.empty() ? "stop" : "tool_calls";
    std::size_t bytes = entry.reply.size();
    for (const ToolCall& call : entry.calls) {
      bytes += call.name.size() + dump_json(call.arguments).size();
    }
    reply.usage.prompt_tokens = prompt_tokens(request);
    reply.usage.completion_tokens = std::max<std::int64_t>(1, tokens_in(bytes));
    reply.usage.total_tokens = reply.usage.prompt_tokens + reply.usage.completion_tokens;
    reply.usage.cost_usd = cost_of(spec_, model, reply.usage);
    if (!reply.text.empty() && context.on_text) context.on_text(reply.text);
    return reply;
  }

  const ProviderSpec spec_;
  Env& env_;
  std::vector<Entry> entries_;  ///< not changed any more once they were read
  std::mutex mutex_;
  /// How many of an entry's errors a run has met; kept for entries that have errors only.
  std::map<std::pair<RunId, std::size_t>, std::size_t> given_;
};

}  // namespace

std::unique_ptr<Provider> make_scripted(const ProviderSpec& spec, Env& env) {
  return std::make_unique<Scripted>(spec, env);
}

}  // namespace holdfast
