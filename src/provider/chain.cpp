#include "provider/chain.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/classify.hpp"
#include "core/context_window.hpp"
#include "core/history.hpp"
#include "provider/judge.hpp"
#include "provider/providers.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMaxMessageBytes = 4096;
constexpr std::size_t kFrameBytes = 64;  ///< around the attempts' own texts

/// `provider/model`; the model may hold slashes of its own.
std::pair<std::string, std::string> split_target(const std::string& target) {
  const std::size_t slash = target.find('/');
  if (slash == std::string::npos) return {target, {}};
  return {target.substr(0, slash), target.substr(slash + 1)};
}

class Chain final : public ModelChain {
 public:
  Chain(ProviderMap providers, Env& env, std::unique_ptr<CircuitBoard> circuits)
      : providers_(std::move(providers)), env_(env), circuits_(std::move(circuits)) {}

  ModelReply complete(const std::vector<std::string>& models,
                      const std::vector<FailureClass>& fallback_on, const ModelRequest& request,
                      const CallContext& context) override {
    if (models.empty()) {
      throw FailureError(make_failure(FailureClass::unknown, "empty_chain",
                                      "the agent names no model; add one to `models`, like "
                                      "\"main/gpt-5-mini\""));
    }
    if (const auto problem = history_problem(request.messages);
        !HOLDFAST_GUARD("history_whole", !problem)) {
      Failure failure = make_failure(FailureClass::client_error, "broken_history",
                                     "nothing was sent, the conversation is broken: " + *problem);
      failure.not_started = true;
      throw FailureError(std::move(failure));
    }
    const StoreTime started = env_.store_now();
    ModelUsage lost;
    std::vector<std::string> attempts;
    std::vector<Skipped> skipped;
    std::optional<Failure> newest;
    bool is_truncated = false;
    for (const std::string& target : models) {
      CallContext limited = context;
      if (context.timeout > Duration::zero()) {
        // Models share the step's time; a chain must not outlast its deadline.
        limited.timeout = std::max(Duration(1), context.timeout - (env_.store_now() - started));
      }
      try {
        auto reply = call_with_room(target, request, limited, skipped);
        if (!reply) continue;
        reply->usage += lost;
        return std::move(*reply);
      } catch (const FailureError& error) {
        if (const auto* paid = dynamic_cast<const PaidFailure*>(&error)) lost += paid->used();
        newest = error.failure();
        is_truncated = dynamic_cast<const TruncatedFailure*>(&error) != nullptr;
        attempts.push_back(newest->message);
        if (!may_go_on(*newest, fallback_on, context, started)) break;
      }
    }
    if (newest && is_truncated) throw TruncatedFailure(summed_up(std::move(*newest), attempts));
    if (newest) throw FailureError(summed_up(std::move(*newest), attempts));
    throw FailureError(nobody_called(skipped));
  }

  void prepare() override {
    for (const auto& [name, provider] : providers_) provider->prepare();
  }

  std::string lack(const std::vector<std::string>& models) const override {
    std::string first;
    for (const std::string& model : models) {
      const auto provider = providers_.find(model.substr(0, model.find('/')));
      if (provider == providers_.end()) continue;
      std::string lack = provider->second->lack();
      if (lack.empty()) return {};
      if (first.empty()) first = std::move(lack);
    }
    return first;
  }

 private:
  /// A model that was not called: no attempt.
  struct Skipped {
    std::string target;
    Admission admission;
  };

  /// Sends what the model has room for. Refused as too long all the same, it is sent without half
  /// of the turns that could still be left out, as long as there are any.
  std::optional<ModelReply> call_with_room(const std::string& target, const ModelRequest& request,
                                           const CallContext& context,
                                           std::vector<Skipped>& skipped) {
    const StoreTime started = env_.store_now();
    const int spare = spare_turns(request);
    int left_out = fitted(target, request);
    ModelUsage paid_in_vain;
    for (bool was_refused = false;; was_refused = true) {
      CallContext limited = context;
      if (context.timeout > Duration::zero()) {
        limited.timeout = std::max(Duration(1), context.timeout - (env_.store_now() - started));
      }
      try {
        auto reply = call(target, without_turns(request, left_out), limited, skipped);
        if (!reply) return reply;
        reply->usage += paid_in_vain;
        reply->left_out = left_out;
        reply->was_refused = was_refused;
        return reply;
      } catch (const FailureError& error) {
        Failure failure = error.failure();
        if (failure.cls != FailureClass::context_length) throw;
        if (!HOLDFAST_GUARD("context_never_again", left_out < spare)) {
          if (left_out == 0) throw;
          failure.message = "also without its " + std::to_string(left_out) +
                            " oldest turns the request is too long: " + failure.message;
          throw TruncatedFailure(std::move(failure));
        }
        if (const auto* paid = dynamic_cast<const PaidFailure*>(&error)) {
          paid_in_vain += paid->used();
        }
        left_out += (spare - left_out + 1) / 2;
      }
    }
  }

  /// How many turns are left out, as far as the room of the model is known.
  int fitted(const std::string& target, const ModelRequest& request) const {
    const auto [name, model] = split_target(target);
    const auto provider = providers_.find(name);
    const auto room =
        provider == providers_.end() ? std::nullopt : provider->second->request_room(model);
    if (!room) return std::min(request.leaves_out, spare_turns(request));
    const auto count = turns_to_leave_out(request, request.leaves_out, *room);
    if (count) return *count;
    const int spare = spare_turns(request);
    Failure failure = make_failure(
        FailureClass::context_length, "context_window",
        "nothing was sent: the system text, the tools, the task and the last turn take about " +
            std::to_string(estimated_tokens(without_turns(request, spare))) + " tokens, and " +
            target + " takes requests of at most " + std::to_string(*room));
    failure.attempted = false;
    failure.provider = name;
    failure.model = model;
    throw TruncatedFailure(std::move(failure));
  }

  /// None where its circuit is open.
  std::optional<ModelReply> call(const std::string& target, const ModelRequest& request,
                                 const CallContext& context, std::vector<Skipped>& skipped) {
    const auto [name, model] = split_target(target);
    auto provider = providers_.find(name);
    if (provider == providers_.end() || model.empty()) {
      std::vector<std::string> names;
      for (const auto& [known, unused] : providers_) names.push_back(known);
      auto close = did_you_mean(name, names);
      Failure failure = make_failure(
          FailureClass::configuration, model.empty() ? "bad_model_name" : "unknown_provider",
          model.empty() ? "model `" + target + "` is not of the form provider/model"
                        : "model `" + target + "` names a provider that is not configured" +
                              (close ? "; did you mean `" + *close + "`?"
                                     : "; add [providers." + name + "]"));
      failure.provider = name;
      failure.model = model;
      throw FailureError(std::move(failure));
    }
    if (circuits_ == nullptr) return provider->second->complete(model, request, context);
    const Admission admission = circuits_->admit(target, context.timeout);
    if (admission.is_open) {
      skipped.push_back({target, admission});
      return std::nullopt;
    }
    CallEnd end;
    end.what = CallEnd::What::given_up;
    end.was_probe = admission.is_probe;
    try {
      ModelReply reply = provider->second->complete(model, request, context);
      end.what = CallEnd::What::answered;
      circuits_->note(target, end);
      return reply;
    } catch (const FailureError& error) {
      circuits_->note(target, end_of(error.failure(), end, context));
      throw;
    } catch (...) {
      circuits_->note(target, end);
      throw;
    }
  }

  /// A provider that refuses is there; a call that we interrupted says nothing.
  static CallEnd end_of(const Failure& failure, CallEnd end, const CallContext& context) {
    if (context.stop.stop_requested()) return end;
    end.what = trips(failure.cls) ? CallEnd::What::failed : CallEnd::What::answered;
    end.cls = failure.cls;
    end.code = failure.code;
    end.hint = failure.retry_after;
    return end;
  }

  /// Every circuit of the chain was open. It waits for the first of them.
  static Failure nobody_called(const std::vector<Skipped>& skipped) {
    if (skipped.empty()) {
      return make_failure(FailureClass::unknown, "empty_chain", "no model was called");
    }
    bool are_spent = true;
    Duration first = skipped.front().admission.retry_after;
    std::string message;
    for (const auto& [target, admission] : skipped) {
      are_spent = are_spent && admission.cause == FailureClass::quota_exhausted;
      first = std::min(first, admission.retry_after);
      if (!message.empty()) message += "; ";
      message += "the circuit of " + target + " is open after " +
                 std::to_string(admission.failures) + " failures (" +
                 std::string(to_word(admission.cause)) + ")";
    }
    Failure failure =
        make_failure(are_spent ? FailureClass::quota_exhausted : FailureClass::circuit_open,
                     "circuit_open", cut("no model was called: " + message, kMaxMessageBytes));
    failure.attempted = false;
    failure.retry_after = std::max(first, Duration(1));
    failure.delay_source = "circuit";
    const auto [provider, model] = split_target(skipped.back().target);
    failure.provider = provider;
    failure.model = model;
    return failure;
  }

  /// The class decides; a provider's own word about retrying is about this provider only.
  bool may_go_on(const Failure& failure, const std::vector<FailureClass>& fallback_on,
                 const CallContext& context, StoreTime started) {
    if (context.stop.stop_requested()) return false;
    if (context.timeout > Duration::zero() && env_.store_now() - started >= context.timeout) {
      return false;
    }
    return falls_back(failure.cls) ||
           std::find(fallback_on.begin(), fallback_on.end(), failure.cls) != fallback_on.end();
  }

  static Failure summed_up(Failure last, const std::vector<std::string>& attempts) {
    if (attempts.size() == 1) return last;
    std::string message = std::to_string(attempts.size()) + " models were tried and none answered.";
    const std::size_t share = (kMaxMessageBytes - kFrameBytes) / attempts.size();
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      const std::string number = " " + std::to_string(i + 1) + ") ";
      message += number + cut(attempts[i], share - std::min(share, number.size()));
    }
    last.message = cut(message, kMaxMessageBytes);
    return last;
  }

  const ProviderMap providers_;
  Env& env_;
  const std::unique_ptr<CircuitBoard> circuits_;  ///< null: every model is called
};

std::unique_ptr<Provider> make_provider(const ProviderSpec& spec, Env& env, const Limits& limits,
                                        const std::vector<std::string>& key_names) {
  if (spec.kind != "openai" && spec.api != "chat") {
    throw RefusedError(Refusal::usage, "providers." + spec.name +
                                           ".api: only a provider of kind `openai` has a choice");
  }
  if (spec.kind == "openai") return make_openai(spec, env, limits, key_names);
  if (spec.kind == "anthropic") return make_anthropic(spec, env, limits, key_names);
  if (spec.kind == "gemini") return make_gemini(spec, env, limits, key_names);
  if (spec.kind == "ollama") return make_ollama(spec, env, limits, key_names);
  if (spec.kind == "scripted") return make_scripted(spec, env);
  throw RefusedError(Refusal::usage, "providers." + spec.name + ".kind is `" + spec.kind +
                                         "`; this build knows `openai` (any compatible server), "
                                         "`anthropic`, `gemini`, `ollama` and `scripted`");
}

}  // namespace

std::unique_ptr<ModelChain> make_chain_of(ProviderMap providers, Env& env,
                                          std::unique_ptr<CircuitBoard> circuits) {
  return std::make_unique<Chain>(std::move(providers), env, std::move(circuits));
}

std::unique_ptr<ModelChain> make_chain(const std::vector<ProviderSpec>& specs, Env& env,
                                       const Limits& limits,
                                       std::unique_ptr<CircuitBoard> circuits) {
  ProviderMap providers;
  std::vector<std::string> key_names;
  for (const ProviderSpec& spec : specs) {
    if (!spec.api_key_env.empty()) key_names.push_back(spec.api_key_env);
  }
  for (const ProviderSpec& spec : specs) {
    if (spec.name.empty() || spec.name.find('/') != std::string::npos) {
      throw RefusedError(Refusal::usage,
                         "provider `" + spec.name + "`: a name must not be empty or hold a slash");
    }
    if (providers.contains(spec.name)) {
      throw RefusedError(Refusal::usage, "provider `" + spec.name + "` is configured twice");
    }
    providers[spec.name] = make_provider(spec, env, limits, key_names);
  }
  return make_chain_of(std::move(providers), env, std::move(circuits));
}

Finding check_provider(const ProviderSpec& spec, Env& env) {
  Finding finding;
  finding.subject = "provider " + spec.name;
  try {
    // Setting it up checks the address and reads the script; nothing is sent.
    const auto chain = make_chain({spec}, env, Limits{});
    chain->prepare();
    if (std::string lack = chain->lack({spec.name + "/"}); !lack.empty()) {
      finding.grade = Finding::Grade::bad;
      finding.text = std::move(lack);
      return finding;
    }
  } catch (const RefusedError& error) {
    finding.grade = Finding::Grade::bad;
    finding.text = error.what();
    return finding;
  }
  if (spec.kind == "scripted") {
    finding.text = "answers from " + spec.script;
    return finding;
  }
  const std::string base_url = base_url_of(spec);
  const bool is_plain = base_url.starts_with("http://");
  const bool is_local = base_url.starts_with("http://127.") ||
                        base_url.starts_with("http://localhost") ||
                        base_url.starts_with("http://[::1]");
  if (is_plain && !is_local && !spec.api_key_env.empty()) {
    finding.grade = Finding::Grade::warning;
    finding.text = "the key would travel unencrypted to " + base_url + "; use https://";
    return finding;
  }
  finding.text =
      "set up for " + base_url + (spec.api_key_env.empty() ? ", no key is sent" : ", key present");
  return finding;
}

}  // namespace holdfast
