#include "runtime/check_options.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "holdfast/failure.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

RuntimeOptions good() {
  RuntimeOptions options;
  ProviderSpec provider;
  provider.name = "main";
  options.providers = {provider};
  ToolSpec tool;
  tool.name = "lookup";
  tool.command = {"./lookup.sh"};
  options.tools = {tool};
  AgentSpec agent;
  agent.name = "triage";
  agent.models = {"main/gpt/5"};
  agent.tools = {"lookup"};
  options.agents = {agent};
  return options;
}

struct Mistake {
  const char* key;
  std::function<void(RuntimeOptions&)> make;
};

TEST(CheckOptions, AcceptsDefaultsAndAnAgent) {
  EXPECT_NO_THROW(check_options({}));
  EXPECT_NO_THROW(check_options(good()));
}

TEST(CheckOptions, NamesTheKeyOfEachMistake) {
  const std::vector<Mistake> mistakes = {
      {"store.url", [](auto& o) { o.store_url = ""; }},
      {"lease.duration", [](auto& o) { o.policy.lease = 0s; }},
      {"lease.duration", [](auto& o) { o.heartbeat = 30s; }},
      {"lease.heartbeat", [](auto& o) { o.heartbeat = -1s; }},
      {"lease.margin", [](auto& o) { o.policy.margin = 40s; }},
      {"lease.gap_timeout", [](auto& o) { o.policy.gap_timeout = 0s; }},
      {"lease.presence_interval", [](auto& o) { o.presence_interval = 0s; }},
      {"retry.max_requeues", [](auto& o) { o.policy.max_requeues = -1; }},
      {"retry.backoff_base", [](auto& o) { o.policy.backoff_base = -1s; }},
      {"retry.backoff_cap", [](auto& o) { o.policy.backoff_cap = -1s; }},
      {"retry.backoff_factor", [](auto& o) { o.policy.backoff_factor = 0.5; }},
      {"retry.backoff_factor", [](auto& o) { o.policy.backoff_factor = std::nan(""); }},
      {"retry.jitter", [](auto& o) { o.policy.jitter = 1.5; }},
      {"retry.max_wait", [](auto& o) { o.policy.max_wait = -1s; }},
      {"retry.hint_cap", [](auto& o) { o.policy.hint_cap = -1s; }},
      {"reaper.interval", [](auto& o) { o.reaper_interval = -1s; }},
      {"reaper.limit", [](auto& o) { o.reaper_limit = 0; }},
      {"retention.terminal", [](auto& o) { o.retention_terminal = -1s; }},
      {"retention.unfinished", [](auto& o) { o.retention_unfinished = -1s; }},
      {"circuit.threshold", [](auto& o) { o.circuit.threshold = 0; }},
      {"circuit.open", [](auto& o) { o.circuit.open = 0s; }},
      {"circuit.quota_open", [](auto& o) { o.circuit.quota_open = 0s; }},
      {"limits.request", [](auto& o) { o.limits.request_bytes = 0; }},
      {"limits.result", [](auto& o) { o.limits.result_bytes = 0; }},
      {"limits.error", [](auto& o) { o.limits.error_bytes = 0; }},
      {"limits.depth", [](auto& o) { o.limits.depth = 0; }},
      {"providers.main", [](auto& o) { o.providers.push_back(o.providers[0]); }},
      {"providers", [](auto& o) { o.providers[0].name = ""; }},
      {"providers.main.timeout", [](auto& o) { o.providers[0].timeout = 0s; }},
      {"providers.main.prices.m",
       [](auto& o) {
         o.providers[0].prices["m"] = {-1, 0};
       }},
      {"tools.lookup", [](auto& o) { o.tools.push_back(o.tools[0]); }},
      {"tools.look up", [](auto& o) { o.tools[0].name = "look up"; }},
      {"tools.lookup", [](auto& o) { o.tools[0].command.clear(); }},
      {"tools.lookup.command", [](auto& o) { o.tools[0].command = {""}; }},
      {"tools.lookup.timeout", [](auto& o) { o.tools[0].timeout = 0s; }},
      {"tools.lookup.approval_timeout", [](auto& o) { o.tools[0].approval_timeout = 0s; }},
      {"tools.lookup.parameters",
       [](auto& o) {
         o.tools[0].parameters = {{"type", 3}};
       }},
      {"tools.lookup.input",
       [](auto& o) {
         o.tools[0].input_schema = {{"type", "strin"}};
       }},
      {"agents.triage", [](auto& o) { o.agents.push_back(o.agents[0]); }},
      {"agents.triage.models", [](auto& o) { o.agents[0].models.clear(); }},
      {"agents.triage.models", [](auto& o) { o.agents[0].models = {"gpt"}; }},
      {"agents.triage.models", [](auto& o) { o.agents[0].models = {"main/"}; }},
      {"agents.triage.models", [](auto& o) { o.agents[0].models = {"other/gpt"}; }},
      {"agents.triage.tools",
       [](auto& o) {
         o.agents[0].tools = {"lookup", "lookup"};
       }},
      {"agents.triage.tools", [](auto& o) { o.agents[0].tools = {"other"}; }},
      {"agents.triage.max_iterations", [](auto& o) { o.agents[0].max_iterations = 0; }},
      {"agents.triage.answer_schema",
       [](auto& o) {
         o.agents[0].answer_schema = {{"type", 7}};
       }},
      {"agents.triage.max_repeats", [](auto& o) { o.agents[0].max_repeats = 1; }},
      {"agents.triage.budget", [](auto& o) { o.agents[0].budget.tokens = 0; }},
      {"agents.triage.parallel_reads", [](auto& o) { o.agents[0].parallel_reads = 0; }},
      {"agents.triage.queue", [](auto& o) { o.agents[0].queue = ""; }},
      {"agents.triage.approval_timeout", [](auto& o) { o.agents[0].approval_timeout = 0s; }},
      {"agents.triage.lease.duration",
       [](auto& o) {
         o.agents[0].policy = Policy{};
         o.agents[0].policy->lease = 40s;
       }},
  };
  for (const auto& mistake : mistakes) {
    auto options = good();
    mistake.make(options);
    try {
      check_options(options);
      ADD_FAILURE() << mistake.key << ": accepted";
    } catch (const RefusedError& error) {
      EXPECT_EQ(error.refusal(), Refusal::usage);
      EXPECT_EQ(std::string(error.what()).find(std::string(mistake.key) + ": "), 0U)
          << mistake.key << " expected, got: " << error.what();
    }
  }
}

TEST(CheckOptions, SuggestsTheNameThatIsMeant) {
  auto options = good();
  options.agents[0].tools = {"lokup"};
  try {
    check_options(options);
    FAIL();
  } catch (const RefusedError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"lookup\""), std::string::npos);
  }
}

TEST(CheckOptions, HeartbeatAtBoundariesOnlyIsAllowed) {
  RuntimeOptions options;
  options.heartbeat = 0s;
  options.policy.lease = 1ms;
  EXPECT_NO_THROW(check_options(options));
}

}  // namespace
}  // namespace holdfast
