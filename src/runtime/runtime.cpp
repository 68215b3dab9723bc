#include <fmt/core.h>

#include "agent/agent_loop.hpp"
#include "base/log.hpp"
#include "core/validate.hpp"
#include "provider/chain.hpp"
#include "runtime/check_options.hpp"
#include "runtime/circuits.hpp"
#include "runtime/front.hpp"
#include "tool/toolbox.hpp"

namespace holdfast {
namespace {

// An LLM loop's unknown exceptions are bugs that a second try meets again (spec, section 6).
AgentOffer offer_of(const AgentSpec& agent, const RuntimeOptions& options, const Toolbox& toolbox) {
  auto policy = agent.policy.value_or(options.policy);
  policy.retry_unknown = false;
  return {agent.name, policy, agent_definition(agent, toolbox, options.providers)};
}

}  // namespace

std::unique_ptr<Runtime> Runtime::open(RuntimeOptions options) {
  // Before the store: a mistake in the options must not leave a new database behind.
  check_options(options);
  auto& env = real_env();
  auto store = open_store(options.store_url, env);
  return make_runtime(std::move(options), env, std::move(store));
}

std::unique_ptr<Runtime> make_runtime(RuntimeOptions options, Env& env,
                                      std::unique_ptr<Store> store,
                                      std::unique_ptr<ModelChain> chain) {
  check_options(options);
  if (chain == nullptr) {
    chain =
        make_chain(options.providers, env, options.limits, make_circuits(*store, options.circuit));
  }
  return std::make_unique<Front>(std::move(options), env, std::move(store), std::move(chain));
}

MigrationReport migrate(const std::string& store_url) {
  return migrate_store(store_url, real_env());
}

const char* version() { return HOLDFAST_VERSION; }

Front::Front(RuntimeOptions options, Env& env, std::unique_ptr<Store> store,
             std::unique_ptr<ModelChain> chain)
    : env_(env),
      options_(std::move(options)),
      store_(std::move(store)),
      chain_(std::move(chain)),
      toolbox_(make_toolbox(options_.tools, env_, options_.limits, options_.http_hosts)),
      vigil_(env_, options_.heartbeat, options_.heartbeat) {
  for (const auto& agent : options_.agents) {
    handlers_.add({offer_of(agent, options_, *toolbox_),
                   make_agent(agent, *chain_, *toolbox_, options_.limits, options_.providers), true,
                   [this](const holdfast::Run& run) {
                     auto problem = execution_problem(run.definition, *toolbox_);
                     return problem.empty() ? model_problem(run.definition, *chain_) : problem;
                   }});
    queue_of_[agent.name] = agent.queue;
    names_.push_back(agent.name);
  }
}

void Front::register_task(const std::string& name, Handler handler, TaskOptions task) {
  const auto refuse = [&](const std::string& problem) {
    throw RefusedError(Refusal::usage, fmt::format("task \"{}\": {}", name, problem));
  };
  if (executing_) refuse("tasks are registered before anything is executed");
  if (name.empty()) refuse("needs a name");
  if (!handler) refuse("needs a handler");
  if (task.queue.empty()) refuse("its queue must not be empty");
  if (handlers_.find(name) != nullptr) refuse("there is an agent or task of this name already");
  const auto policy = task.policy.value_or(options_.policy);
  check_policy(name + ".", policy, options_.heartbeat);
  handlers_.add({AgentOffer{name, policy, nullptr}, std::move(handler), false});
  queue_of_[name] = task.queue;
  names_.push_back(name);
}

void Front::begin_to_execute() {
  chain_->prepare();
  executing_ = true;
}

EngineOptions Front::engine_options() const {
  EngineOptions engine;
  engine.heartbeat = options_.heartbeat;
  engine.presence_interval = options_.presence_interval;
  engine.reaper_interval = options_.reaper_interval;
  engine.reaper_limit = options_.reaper_limit;
  engine.limits = options_.limits;
  return engine;
}

std::unique_ptr<WorkerHandle> Front::start_worker(const WorkerSettings& settings) {
  if (settings.concurrency < 1) {
    throw RefusedError(Refusal::usage,
                       fmt::format("concurrency must be at least 1, got {}", settings.concurrency));
  }
  if (settings.grace < Duration::zero()) {
    throw RefusedError(Refusal::usage, "grace must not be negative");
  }
  for (const auto& queue : settings.queues) check_name("queue", queue);
  if (names_.empty()) {
    throw RefusedError(Refusal::not_found,
                       "no agent is configured and no task is registered: this worker could "
                       "execute nothing; add [agents.NAME] to holdfast.toml or call register_task");
  }
  begin_to_execute();
  return holdfast::start_worker(env_, *store_, executable(), engine_options(), settings);
}

const HandlerSet& Front::executable() {
  std::call_once(executable_once_, [this] {
    for (const std::string& name : names_) {
      holdfast::Run run;
      run.agent = name;
      try {
        need_executable(run);
        executable_.add(get_handler(name));
      } catch (const RefusedError& error) {
        log(LogLevel::warn, "this process leaves an agent's runs to others",
            {{"agent", name}, {"why", error.what()}});
      }
    }
  });
  if (executable_.offers().empty()) {
    holdfast::Run first;
    first.agent = names_.front();
    need_executable(first);
  }
  return executable_;
}

ReapReport Front::reap(int limit, bool dry_run) {
  if (limit < 1) {
    throw RefusedError(Refusal::usage, fmt::format("limit must be at least 1, got {}", limit));
  }
  return reap_once(env_, *store_, limit, dry_run, &vigil_);
}

void Front::backup(const std::string& file) {
  if (file.empty()) throw RefusedError(Refusal::usage, "backup needs a file name");
  store_->backup(file);
}

}  // namespace holdfast
