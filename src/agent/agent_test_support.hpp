#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/agent_loop.hpp"
#include "base/text.hpp"
#include "core/model.hpp"

namespace holdfast::agent_test {

/// What leaves a handler in place of its end; no std::exception, as with the real journal.
struct Crash {};
struct Suspend {
  Question question;
};

/// A run's journal in memory, kept over segments.
struct Journal {
  struct Entry {
    std::string key;
    std::string name;
    Effect effect = Effect::read;
    Json arguments;
    std::string result;  ///< as text: what comes back was stored
  };
  std::vector<Entry> entries;
  std::size_t drive_begins_at = 0;       ///< its first entry
  Duration time{};                       ///< that the drive has taken
  std::map<std::string, Reply> replies;  ///< by question key
  std::vector<std::string> reads;        ///< what was to run at the same time, over all segments
  std::map<std::string, std::string> asked;  ///< the calls' text at each question's first asking

  const Entry* find(const std::string& key) const {
    for (const Entry& entry : entries) {
      if (entry.key == key) return &entry;
    }
    return nullptr;
  }
};

/// One segment over a journal. It can be made to die behind the n-th live step's work, before or
/// after its record.
class FakeContext : public RunContext {
 public:
  FakeContext(Run run, Journal& journal) : run_(std::move(run)), journal_(journal) {}

  int dies_at_live_step = 0;  ///< 1, 2, …; 0: never
  bool dies_before_record = false;

  using RunContext::step;
  const Run& run() const override { return run_; }

  std::vector<Json> read_all(const std::vector<ReadStep>& reads, int at_once) override {
    std::string names;
    for (const ReadStep& read : reads) names += (names.empty() ? "" : " ") + read.options.key;
    journal_.reads.push_back(fmt::format("{} at once: {}", at_once, names));
    return RunContext::read_all(reads, at_once);
  }

  Json step(std::string_view name, const StepOptions& options, const Work& work) override {
    const std::string key = options.key.empty()
                                ? fmt::format("{}#{}", name, ++numbers_[std::string(name)])
                                : options.key;
    if (const Journal::Entry* entry = journal_.find(key)) {
      if (entry->name != name) throw std::logic_error("journal mismatch at " + key);
      return Json::parse(entry->result);
    }
    StepContext context;
    context.key = key;
    context.idempotency_key = run_.id + "/" + key;
    context.timeout = options.timeout.value_or(std::chrono::minutes(5));
    context.stop = stop_.get_token();
    const Json result = work(context).result;
    ++live_steps_;
    const bool dies = live_steps_ == dies_at_live_step;
    if (dies && dies_before_record) throw Crash{};
    journal_.entries.push_back(
        {key, std::string(name), options.effect, options.arguments, dump_json(result)});
    if (options.kind == StepKind::model) ++run_.iterations;
    if (dies) throw Crash{};
    return result;
  }

  void sleep(std::string_view, Duration) override {}
  void sleep_until(std::string_view, WallTime) override {}

  Reply ask(const Question& question) override {
    std::string calls;
    for (const GatedCall& call : question.calls) {
      calls += call.id + call.name + dump_json(call.arguments);
    }
    const auto [asked, is_new] = journal_.asked.emplace(question.key, calls);
    if (!is_new && asked->second != calls) throw std::logic_error("turn changed");
    const auto reply = journal_.replies.find(question.key);
    if (reply == journal_.replies.end()) throw Suspend{question};
    return reply->second;
  }

  Spent spent() const override {
    Spent spent;
    for (std::size_t i = journal_.drive_begins_at; i < journal_.entries.size(); ++i) {
      const std::string& name = journal_.entries[i].name;
      spent.model_calls += name == "model";
      spent.tool_calls += name.starts_with("tool:");
      if (name != "model") continue;
      const Json usage = Json::parse(journal_.entries[i].result)["usage"];
      spent.usage.total_tokens += usage["total_tokens"].get<std::int64_t>();
      spent.usage.cost_usd += usage["cost_usd"].get<double>();
    }
    for (std::size_t i = 0; i < journal_.drive_begins_at; ++i) {
      spent.earlier_model_calls += journal_.entries[i].name == "model";
    }
    spent.time = journal_.time;
    return spent;
  }
  bool is_recorded(std::string_view name, const std::string& key) const override {
    const auto number = numbers_.find(std::string(name));
    return journal_.find(!key.empty()
                             ? key
                             : fmt::format("{}#{}", name,
                                           (number == numbers_.end() ? 0 : number->second) + 1)) !=
           nullptr;
  }

  std::stop_token stop_token() const override { return stop_.get_token(); }
  int live_steps() const { return live_steps_; }

 private:
  Run run_;
  Journal& journal_;
  std::map<std::string, int> numbers_;
  std::stop_source stop_;
  int live_steps_ = 0;
};

/// Everything of a message that a provider could send.
inline std::string text_of(const ModelRequest& request) {
  Json messages = Json::array();
  for (const Message& message : request.messages) {
    Json calls = Json::array();
    for (const ToolCall& call : message.calls) {
      calls.push_back({call.id, call.name, call.arguments, call.bad_arguments.value_or("-")});
    }
    messages.push_back({static_cast<int>(message.role), message.text, calls, message.call_id,
                        message.tool_name, message.is_error, message.opaque, message.made_by});
  }
  Json tools = Json::array();
  for (const ToolDefinition& tool : request.tools) {
    tools.push_back({tool.name, tool.description, tool.parameters});
  }
  return dump_json({{"run", request.run}, {"messages", messages}, {"tools", tools}});
}

/// Answers by how many assistant messages the conversation has.
class ScriptedChain : public ModelChain {
 public:
  std::vector<ModelReply> replies;
  std::map<std::size_t, std::vector<std::string>> requests;  ///< by turn, each as text
  ModelRequest last;
  std::vector<int> leaves_out;  ///< of each request
  std::optional<Failure> failure;
  std::optional<std::size_t> truncates_at;  ///< a turn whose request fits no model

  ModelReply complete(const std::vector<std::string>&, const std::vector<FailureClass>&,
                      const ModelRequest& request, const CallContext&) override {
    std::size_t turn = 0;
    for (const Message& message : request.messages)
      turn += message.role == Message::Role::assistant;
    requests[turn].push_back(text_of(request));
    last = request;
    leaves_out.push_back(request.leaves_out);
    if (truncates_at == turn) {
      Failure truncated;
      truncated.cls = FailureClass::context_length;
      truncated.message = "it does not fit";
      throw TruncatedFailure(truncated);
    }
    if (failure) throw FailureError(*failure);
    if (calls() > 100) throw std::logic_error("the loop does not end");
    return replies.at(std::min(turn, replies.size() - 1));
  }
  std::size_t calls() const {
    std::size_t count = 0;
    for (const auto& [turn, texts] : requests) count += texts.size();
    return count;
  }
};

/// Tools as functions, and what was called.
class FakeToolbox : public Toolbox {
 public:
  std::map<std::string, ToolSpec> specs;
  std::vector<std::pair<std::string, Json>> called;
  std::vector<StepContext> contexts;
  std::vector<ToolSpec> executed;               ///< as the call was to be made
  std::map<std::string, ToolOutcome> outcomes;  ///< by tool; else {"ok": true}
  std::function<void()> on_call;                ///< before each; may be empty

  ToolSpec& add(const std::string& name) {
    ToolSpec spec;
    spec.name = name;
    spec.effect = Effect::read;
    return specs[name] = spec;
  }
  const ToolSpec* find(const std::string& name) const override {
    const auto it = specs.find(name);
    return it == specs.end() ? nullptr : &it->second;
  }
  ToolOutcome call(const ToolSpec& spec, const Json& arguments,
                   const StepContext& context) override {
    if (on_call) on_call();
    called.emplace_back(spec.name, arguments);
    executed.push_back(spec);
    contexts.push_back(context);
    const auto it = outcomes.find(spec.name);
    return it == outcomes.end() ? ToolOutcome{{{"ok", true}}, false} : it->second;
  }
  ProbeAnswer probe(const ToolSpec&, const Json&, const StepContext&) override {
    return NotLanded{};
  }
};

inline ModelReply answers(std::string text, std::string finish = "stop") {
  ModelReply reply;
  reply.provider = "main";
  reply.model = "m1";
  reply.text = std::move(text);
  reply.finish = std::move(finish);
  reply.usage = {{10, 5, 15, 0.25}, 0, 0, 0, false};
  return reply;
}

inline ModelReply calls(std::vector<std::pair<std::string, Json>> calls) {
  ModelReply reply = answers("", "tool_calls");
  for (auto& [name, arguments] : calls) {
    // All with one id, as some servers do.
    reply.calls.push_back({"call_x", name, std::move(arguments), std::nullopt});
  }
  reply.opaque = {{"kept", "as it is"}};
  return reply;
}

/// An agent with its surroundings.
struct Fixture {
  ScriptedChain chain;
  FakeToolbox tools;
  AgentSpec spec;
  Limits limits;
  Run run;
  Journal journal;

  Fixture() {
    spec.name = "triage";
    spec.models = {"main/m1"};
    spec.system = "You sort tickets.";
    run.id = "0192f0c1-0000-7000-8000-000000000001";
    run.agent = "triage";
    run.input = "ticket 7";
  }

  /// As the first claim does.
  void define() { run.definition = agent_definition(spec, tools); }

  using End = std::variant<Json, Crash, Suspend, EndRun, Failure>;
  End segment(int dies_at = 0, bool before_record = false) {
    if (run.definition.is_null()) define();
    const Handler handler = make_agent(spec, chain, tools, limits);
    Run claimed = run;
    claimed.iterations = static_cast<int>(
        std::count_if(journal.entries.begin(), journal.entries.end(),
                      [](const Journal::Entry& entry) { return entry.name == "model"; }));
    FakeContext context(claimed, journal);
    context.dies_at_live_step = dies_at;
    context.dies_before_record = before_record;
    try {
      return handler(context);
    } catch (const Crash& crash) {
      return crash;
    } catch (const Suspend& suspend) {
      return suspend;
    } catch (const EndRun& end) {
      return end;
    } catch (const FailureError& error) {
      return error.failure();
    }
  }

  Json result_of(const std::string& key) const {
    const Journal::Entry* entry = journal.find(key);
    return entry ? Json::parse(entry->result) : Json("not recorded");
  }
  /// What the model was last told as the outcome of a call.
  std::string told(const std::string& call_id) const {
    for (const Message& message : chain.last.messages) {
      if (message.call_id == call_id) return message.text;
    }
    return "nothing";
  }
};

}  // namespace holdfast::agent_test
