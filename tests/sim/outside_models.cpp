#include <algorithm>

#include "base/canonical.hpp"
#include "base/text.hpp"
#include "core/classify.hpp"
#include "provider/providers.hpp"
#include "sim/outside.hpp"

namespace holdfast::sim {
namespace {

struct Trouble {
  std::optional<int> status;
  const char* body = "";
  const char* transport = "";
  const char* retry_after = "";
};

/// One of each class, as servers say it.
const std::vector<Trouble> kTroubles = {
    {429, R"({"error":{"type":"rate_limit"}})", "", "1"},
    {429, R"({"error":{"code":"insufficient_quota","type":"insufficient_quota"}})", "", ""},
    {503, "busy", "", ""},
    {529, R"({"error":{"type":"overloaded_error"}})", "", ""},
    {500, "", "", ""},
    {502, "<html>bad gateway</html>", "", ""},
    {408, "", "", ""},
    {504, "", "", ""},
    {401, R"({"error":{"code":"invalid_api_key"}})", "", ""},
    {404, R"({"error":{"code":"model_not_found"}})", "", ""},
    {400, R"({"error":{"code":"context_length_exceeded"}})", "", ""},
    {400, R"({"error":{"code":"content_filter"}})", "", ""},
    {400, R"({"error":{"message":"no"}})", "", ""},
    {200, "\x01 garbage", "", ""},
    {std::nullopt, "", "connection_reset", ""},
    {std::nullopt, "", "total_timeout", ""},
    {std::nullopt, "", "dns", ""}};

Failure failure_of(const std::string& provider, const Trouble& trouble) {
  Evidence evidence;
  evidence.status = trouble.status;
  evidence.body = trouble.body;
  evidence.transport_kind = trouble.transport;
  evidence.body_was_success = trouble.status == 200;
  if (*trouble.retry_after != '\0') evidence.headers["retry-after"] = trouble.retry_after;
  evidence.provider = provider;
  evidence.model = "m";
  return classify(evidence);
}

[[noreturn]] void fail(const std::string& provider, const Trouble& trouble) {
  throw FailureError(failure_of(provider, trouble));
}

std::string text_of(const ModelRequest& request) {
  Json messages = Json::array();
  for (const Message& message : request.messages) {
    Json calls = Json::array();
    for (const ToolCall& call : message.calls) {
      calls.push_back({call.id, call.name, call.arguments, call.bad_arguments.value_or("")});
    }
    messages.push_back({static_cast<int>(message.role), message.text, calls, message.call_id});
  }
  return dump_json(messages);
}

Json script_of(const ModelRequest& request) {
  for (const Message& message : request.messages) {
    if (message.role == Message::Role::user) return Json::parse(message.text);
  }
  return Json::object();
}

/// Of the last call that was made: what is too long is sent without its oldest turns.
int turn_of(const ModelRequest& request) {
  for (auto it = request.messages.rbegin(); it != request.messages.rend(); ++it) {
    if (!it->calls.empty()) return std::stoi(it->calls.back().id);
  }
  return 0;
}

class Model final : public Provider {
 public:
  Model(std::string name, Outside& outside, Hindrance& hindrance)
      : name_(std::move(name)), outside_(outside), hindrance_(hindrance) {}

  ModelReply complete(const std::string& model, const ModelRequest& request,
                      const CallContext& context) override {
    need_life_here();
    const int turn = turn_of(request);
    outside_.ledger.model_call(request.run, turn, text_of(request));
    pass(false);
    Chance& chance = outside_.chance;
    const int trouble = outside_.settings.model_trouble;
    const bool is_slow = outside_.is_in_trouble(trouble / 2);
    outside_.env.sleep_for(Duration(chance.below(is_slow ? outside_.settings.lease * 3 : 100)),
                           context.stop);
    need_life_here();
    if (context.stop.stop_requested()) fail(name_, {std::nullopt, "", "interrupted", ""});
    pass(true);
    if (outside_.is_in_trouble(trouble)) {
      const Trouble& met = chance.of(kTroubles);
      Failure failure = failure_of(name_, met);
      ++outside_.tally["model: " + std::string(to_word(failure.cls))];
      if (met.status == 200) ++outside_.tally["model: garbage"];
      throw FailureError(std::move(failure));
    }
    return answer(model, script_of(request), static_cast<std::size_t>(turn));
  }

 private:
  /// A dead process meets the end of its connection.
  void need_life_here() const {
    if (outside_.env.here().is_over) fail(name_, {std::nullopt, "", "connection_reset", ""});
  }
  void pass(bool after) {
    outside_.faults.pass("model", after, hindrance_, false);
    need_life_here();
  }

  ModelReply answer(const std::string& model, const Json& script, std::size_t turn) const {
    ModelReply reply;
    reply.provider = name_;
    reply.model = model;
    reply.usage.prompt_tokens = 10;
    reply.usage.completion_tokens = 5;
    reply.usage.total_tokens = 15;
    reply.usage.cost_usd = 0.25;
    const Json& turns = script.at("turns");
    if (turn >= turns.size()) {
      reply.text = "done";
      reply.finish = "stop";
      return reply;
    }
    reply.finish = "tool_calls";
    for (const Json& call : turns[turn]) {
      ToolCall made{"call_x", call.at("tool"), Json::object(), std::nullopt};
      if (call.contains("n")) made.arguments["n"] = call["n"];
      if (call.contains("bad")) made.bad_arguments = call["bad"].get<std::string>();
      reply.calls.push_back(std::move(made));
    }
    return reply;
  }

  const std::string name_;
  Outside& outside_;
  Hindrance& hindrance_;
};

}  // namespace

std::unique_ptr<ModelChain> make_models(Outside& outside, Hindrance& hindrance) {
  ProviderMap providers;
  for (const char* name : {"main", "backup"}) {
    providers[name] = std::make_unique<Model>(name, outside, hindrance);
  }
  return make_chain_of(std::move(providers), outside.env);
}

}  // namespace holdfast::sim
