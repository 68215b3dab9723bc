// The tool loop. It runs from the top in every segment: recorded steps return at once and rebuild
// the conversation, the first missing one is live. Everything that it decides on is recorded: the
// plan of a turn with the model's reply, each call's outcome as a `tool` step, also for calls that
// were refused or could not be executed. So a replay asks for the same steps and the same questions
// in the same order, and sends the same request.

#include "agent/agent_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "agent/answer_check.hpp"
#include "agent/budget_watch.hpp"
#include "agent/definition.hpp"
#include "agent/recorded_outcome.hpp"
#include "agent/repeat_watch.hpp"
#include "agent/turn.hpp"
#include "base/guard.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

/// What this process executes for a tool of the run, on the run's terms.
ToolSpec executable_of(const ToolTerms* terms, const Toolbox& tools, const std::string& name) {
  if (!terms) {
    fail_configuration("tool_removed",
                       fmt::format("tool '{}' is no longer one of this agent's tools: give it back "
                                   "to the agent, then redrive",
                                   name));
  }
  return executable(*terms, tools);
}

/// One segment of one run.
class AgentSegment {
 public:
  AgentSegment(RunContext& context, const AgentTerms& terms, ModelChain& chain, Toolbox& tools,
               const Limits& limits)
      : context_(context),
        terms_(terms),
        chain_(chain),
        tools_(tools),
        limits_(limits),
        budget_(context, terms),
        repeats_(context, terms.max_repeats),
        answers_(context, terms, limits),
        iterations_(context.run().iterations) {}

  Json run() {
    begin_conversation();
    for (int number = 1;; ++number) {
      Turn turn = next_turn(number);
      request_.messages.push_back(turn.message());
      request_.leaves_out = std::max(request_.leaves_out, turn.leaves_out);
      last_text_ = turn.text;
      if (!turn.text.empty()) partial_ = turn.text;
      repeats_.check(turn);
      // A pause is no end: the model goes on from what it said so far.
      if (turn.calls.empty() && turn.finish == "pause") continue;
      if (turn.calls.empty()) {
        if (const auto answer = answer_of(turn)) return *answer;
        continue;
      }
      // Before a person is asked about calls that would not be made.
      if (!is_recorded(turn.calls.back())) budget_.check(Spender::tool, partial_);
      ask_for_input(turn);
      ask_for_approval(turn);
      answer_calls(turn.calls);
    }
  }

 private:
  /// A reply cut at the token limit is delivered as it is, with a flag (docs/decisions, 0004).
  /// None: the model has been told to answer once more.
  std::optional<Json> answer_of(const Turn& turn) {
    Json answer = turn.text;
    if (answers_.is_needed()) {
      auto read = answers_.read(turn);
      if (const auto* mend = std::get_if<AnswerCheck::Mend>(&read)) {
        add_message(Message::Role::user, mend->text);
        return std::nullopt;
      }
      answer = std::get<Json>(std::move(read));
    }
    if (turn.finish == "length") throw EndRun{Reason::completed, {}, answer, turn.finish};
    return answer;
  }

  void begin_conversation() {
    request_.run = context_.run().id;
    request_.tools = terms_.tool_definitions();
    request_.answer_schema = terms_.answer_schema;
    std::string system = terms_.system;
    if (answers_.is_needed()) system += (system.empty() ? "" : "\n\n") + answers_.instruction();
    if (!system.empty()) add_message(Message::Role::system, system);
    const Json& input = context_.run().input;
    add_message(Message::Role::user, input.is_null() ? std::string() : result_text(input));
  }

  void add_message(Message::Role role, std::string text) {
    Message message;
    message.role = role;
    message.text = std::move(text);
    request_.messages.push_back(std::move(message));
  }

  Turn next_turn(int number) {
    StepOptions options;
    options.kind = StepKind::model;
    if (!context_.is_recorded("model")) budget_.check(Spender::model, partial_);
    const Json recorded = context_.step("model", options, [&](const StepContext& step) {
      refuse_beyond_limit();
      CallContext call;
      call.stop = step.stop;
      call.timeout = step.timeout;
      HOLDFAST_FAILPOINT("model.before");
      const ModelReply reply = ask_model(call);
      HOLDFAST_FAILPOINT("model.after");
      ++iterations_;
      return StepResult{to_json(plan_turn(number, reply, terms_, limits_)), reply.usage};
    });
    try {
      return parse_turn(number, recorded);
    } catch (const Json::exception& error) {
      fail_configuration(
          "bad_model_step",
          fmt::format("the recorded reply of turn {} cannot be read: {}", number, error.what()));
    }
  }

  ModelReply ask_model(const CallContext& call) {
    try {
      return chain_.complete(terms_.models, terms_.fallback_on, request_, call);
    } catch (const TruncatedFailure& error) {
      throw EndRun{Reason::context_truncated, cut(error.failure().message, limits_.error_bytes),
                   std::nullopt};
    }
  }

  /// Counted are the model calls of this drive; only a live one is refused, so that a redrive
  /// passes the recorded ones.
  void refuse_beyond_limit() const {
    if (HOLDFAST_GUARD("agent_max_iterations", iterations_ < terms_.max_iterations)) return;
    std::string message = fmt::format("no answer after {} model calls (max_iterations = {})",
                                      iterations_, terms_.max_iterations);
    if (!last_text_.empty()) message += ": " + last_text_;
    throw EndRun{Reason::max_iterations, cut(message, limits_.error_bytes), std::nullopt};
  }

  /// One question for each call whose tool has an input schema; before the approval, so that what
  /// is approved is what runs.
  void ask_for_input(Turn& turn) {
    for (PlannedCall& planned : turn.calls) {
      const ToolTerms* tool = terms_.find(planned.call.name);
      if (!planned.asks_input || !tool) continue;
      Question question;
      question.kind = WaitKind::input;
      question.key = fmt::format("input#{}", planned.call.id);
      question.calls = {gated(planned, *tool)};
      question.schema = tool->input_schema;
      question.prompt = fmt::format("Tool '{}' needs input", tool->name);
      question.timeout = terms_.wait_for(*tool);
      const Reply reply = context_.ask(question);
      const Verdict verdict = reply.verdicts.empty() ? Verdict::approved : reply.verdicts.front();
      if (reply.expired || verdict == Verdict::expired || verdict == Verdict::denied) {
        refuse(planned, *tool, reply.expired ? Verdict::expired : verdict, reply, "input");
        continue;
      }
      planned.arguments = merged_input(*tool, std::move(planned.arguments), reply.values);
      planned.problem = merged_problem(*tool, planned.arguments, limits_);
    }
  }

  /// One question for all gated calls of the turn.
  void ask_for_approval(Turn& turn) {
    Question question;
    question.kind = WaitKind::approval;
    question.key = fmt::format("approval#{}", turn.number);
    std::vector<std::pair<PlannedCall*, const ToolTerms*>> asked;
    for (PlannedCall& planned : turn.calls) {
      const ToolTerms* tool = terms_.find(planned.call.name);
      if (!planned.asks_approval || planned.problem || !tool) continue;
      question.calls.push_back(gated(planned, *tool));
      asked.emplace_back(&planned, tool);
      if (const std::optional<Duration> wait = terms_.wait_for(*tool)) {
        question.timeout = std::min(*wait, question.timeout.value_or(*wait));
      }
    }
    if (asked.empty()) return;
    // What was approved is what runs: a redrive may have brought other tools of the same names.
    std::string terms;
    for (const auto& [planned, tool] : asked) terms += tool->digest;
    question.terms = sha256_hex(terms);
    const Reply reply = context_.ask(question);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      Verdict verdict = i < reply.verdicts.size() ? reply.verdicts[i] : Verdict::undecided;
      if (verdict == Verdict::undecided && reply.expired) verdict = Verdict::expired;
      if (HOLDFAST_GUARD("agent_approved_runs", verdict == Verdict::approved)) continue;
      refuse(*asked[i].first, *asked[i].second, verdict, reply, "approval");
    }
  }

  static GatedCall gated(const PlannedCall& planned, const ToolTerms& tool) {
    GatedCall call;
    call.id = planned.call.id;
    call.name = planned.call.name;
    call.arguments = planned.arguments;
    call.ends_on_denial = tool.end_on_denial;
    return call;
  }

  /// The call is not executed: told to the model, or the end of the run.
  void refuse(PlannedCall& planned, const ToolTerms& tool, Verdict verdict, const Reply& reply,
              const char* question) const {
    std::string text;
    if (verdict == Verdict::denied) {
      text = fmt::format("the call of '{}' was denied{}{}; it was not executed", tool.name,
                         reply.actor.empty() ? "" : " by " + reply.actor,
                         reply.note.empty() ? "" : ": " + reply.note);
    } else {
      text = fmt::format("nobody decided on the call of '{}' in time ({}); it was not executed",
                         tool.name, question);
    }
    if (tool.end_on_denial) throw EndRun{Reason::approval_denied, text, std::nullopt};
    planned.problem = std::move(text);
  }

  /// In the model's order; only reads that follow each other run at the same time, so that a read
  /// that the model wrote behind a write sees what it did.
  void answer_calls(const std::vector<PlannedCall>& calls) {
    for (auto at = calls.begin(); at != calls.end();) {
      if (!at->problem && !is_recorded(*at)) budget_.check(Spender::tool, partial_);
      const std::vector<ReadStep> reads = reads_of({at, calls.end()});
      if (reads.empty()) {
        add_outcome(*at, tool_step(*at));
        ++at;
        continue;
      }
      for (const Json& recorded : context_.read_all(reads, terms_.parallel_reads)) {
        add_outcome(*at++, recorded);
      }
    }
  }

  /// Those at the beginning of `calls` that may run at the same time: no more than the budget has
  /// room for.
  std::vector<ReadStep> reads_of(std::span<const PlannedCall> calls) const {
    std::vector<ReadStep> reads;
    int room = budget_.tool_calls_left();
    for (const PlannedCall& planned : calls) {
      if (!HOLDFAST_GUARD("agent_writes_alone", only_reads(planned))) break;
      const bool is_live = !is_recorded(planned);
      if (is_live && !reads.empty() && !HOLDFAST_GUARD("agent_reads_in_budget", room > 0)) break;
      if (is_live) --room;
      reads.push_back({step_name(planned), step_options(planned), work_of(planned)});
    }
    return reads;
  }

  /// A call that is refused does nothing.
  bool only_reads(const PlannedCall& planned) const {
    if (planned.problem) return true;
    const ToolTerms* tool = terms_.find(planned.call.name);
    return tool && tool->effect == Effect::read;
  }

  /// The outcome of a call becomes a message.
  void add_outcome(const PlannedCall& planned, const Json& recorded) {
    const ToolOutcome outcome = from_recorded(recorded);
    repeats_.add(outcome);
    Message message;
    message.role = Message::Role::tool;
    message.text = result_text(outcome.result);
    message.call_id = planned.call.id;
    message.tool_name = planned.call.name;
    message.is_error = outcome.is_error;
    request_.messages.push_back(std::move(message));
  }

  /// The same name and key whether a call is executed or refused. Names that a model makes up can
  /// be of any length.
  static std::string step_name(const PlannedCall& planned) {
    return "tool:" + cut(planned.call.name, 128);
  }

  StepOptions step_options(const PlannedCall& planned) const {
    StepOptions options;
    options.kind = StepKind::tool;
    options.arguments =
        planned.call.bad_arguments ? Json(*planned.call.bad_arguments) : planned.arguments;
    options.key = fmt::format("{}#{}", step_name(planned), planned.call.id);
    const ToolTerms* tool = terms_.find(planned.call.name);
    if (planned.problem || !tool) return options;
    options.effect = tool->effect;
    options.timeout = tool->timeout;
    if (tool->has_probe) {
      options.probe = [this, &planned, tool](const StepContext& step) {
        return probe(planned, *tool, step);
      };
    }
    return options;
  }

  bool is_recorded(const PlannedCall& planned) const {
    return context_.is_recorded(step_name(planned), step_options(planned).key);
  }

  /// Of reads it runs on a thread of its own: it changes nothing here.
  StepWork work_of(const PlannedCall& planned) const {
    if (planned.problem) {
      return [&planned](const StepContext&) {
        return StepResult{to_recorded({*planned.problem, true}), std::nullopt};
      };
    }
    return [this, &planned](const StepContext& step) {
      const ToolTerms* tool = terms_.find(planned.call.name);
      const ToolSpec spec = executable_of(tool, tools_, planned.call.name);
      return StepResult{to_recorded(tools_.call(spec, planned.arguments, own_step(step))),
                        std::nullopt};
    };
  }

  Json tool_step(const PlannedCall& planned) {
    return context_.step(step_name(planned), step_options(planned), work_of(planned));
  }

  ProbeAnswer probe(const PlannedCall& planned, const ToolTerms& tool,
                    const StepContext& step) const {
    const ToolSpec spec = executable(tool, tools_);
    ProbeAnswer answer = tools_.probe(spec, planned.arguments, own_step(step));
    if (auto* landed = std::get_if<Landed>(&answer)) {
      landed->result = to_recorded({std::move(landed->result), false});
    }
    return answer;
  }

  StepContext own_step(StepContext step) const {
    step.run = request_.run;
    return step;
  }

  RunContext& context_;
  const AgentTerms& terms_;
  ModelChain& chain_;
  Toolbox& tools_;
  const Limits& limits_;
  BudgetWatch budget_;
  RepeatWatch repeats_;
  AnswerCheck answers_;
  ModelRequest request_;
  int iterations_;
  std::string last_text_;
  std::string partial_;  ///< the newest text that is one
};

}  // namespace

Handler make_agent(const AgentSpec& spec, ModelChain& chain, Toolbox& tools, const Limits& limits,
                   const std::vector<ProviderSpec>& providers) {
  // For a run that carries no definition: one that was made before its agent's first claim.
  const Json own = agent_definition(spec, tools, providers);
  return [own, &chain, &tools, limits](RunContext& context) -> Json {
    const Json& carried = context.run().definition;
    const AgentTerms terms = parse_definition(carried.is_null() ? own : carried);
    return AgentSegment(context, terms, chain, tools, limits).run();
  };
}

}  // namespace holdfast
