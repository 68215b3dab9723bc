#include "app/config.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/safe_text.hpp"
#include "env/env.hpp"

namespace holdfast {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

RuntimeOptions parse(std::string_view text) { return parse_configuration(text, "f.toml", ""); }

/// The message with which a text is refused; empty: it is not.
std::string problem_of(std::string_view text) {
  try {
    parse(text);
  } catch (const RefusedError& error) {
    EXPECT_EQ(error.refusal(), Refusal::usage);
    return error.what();
  }
  return "";
}

constexpr const char* kWhole = R"(
[store]
url = "sqlite:runs.db"
[lease]
duration = "60s"
heartbeat = "15s"
presence_interval = "50ms"
margin = "6s"
gap_timeout = "1m"
strict_expiry = true
[retry]
max_requeues = 5
backoff_base = "10s"
backoff_factor = 3
backoff_cap = "5m"
jitter = 0.2
max_wait = "2h"
hint_cap = "30m"
retry_unknown = false
[reaper]
interval = "2s"
limit = 7
[retention]
terminal = "1d"
unfinished = "2d"
[circuit]
threshold = 9
open = "1m"
quota_open = "1h"
[limits]
request = "2MiB"
result = 1000
error = "8KiB"
depth = 32
[providers.main]
kind = "openai"
base_url = "http://127.0.0.1:11434/v1"
api = "chat"
api_key_env = "OPENAI_API_KEY"
stream = false
timeout = "100s"
connect_timeout = "1s"
first_byte_timeout = "2s"
idle_timeout = "3s"
headers = { "x-team" = "ops" }
prices = { "gpt-5-mini" = { input = 0.25, output = 2 } }
context_window = { "gpt-5-mini" = 100000, "my.own" = 4096 }
[providers.demo]
kind = "scripted"
script = "turns.json"
[agents.triage]
models = ["main/meta/llama", "demo/script"]
system = "You sort."
tools = ["lookup", "create"]
max_iterations = 4
max_repeats = 3
parallel_reads = 2
queue = "mail"
fallback_on = ["auth", "context_length"]
approval_timeout = "1d"
[agents.triage.retry]
max_requeues = 1
[agents.triage.lease]
duration = "90s"
[tools.lookup]
kind = "command"
command = ["./lookup.sh", "-v"]
description = "Look up"
effect = "read"
timeout = "30s"
parameters = { type = "object", properties = { id = { type = "string" } }, required = ["id"] }
[tools.create]
command = ["create"]
effect = "non_idempotent_write"
approval = true
approval_timeout = "2h"
on_denial = "end"
probe = ["./probe.sh"]
input = { type = "object", properties = { amount = { type = "number" } } }
env = { TRACKER = "https://tracker.example" }
pass_env = ["TRACKER_TOKEN"]
)";

TEST(Config, ReadsEveryKey) {
  const auto o = parse(kWhole);
  EXPECT_EQ(o.store_url, "sqlite:runs.db");
  EXPECT_EQ(o.policy.lease, seconds(60));
  EXPECT_EQ(o.heartbeat, seconds(15));
  EXPECT_EQ(o.presence_interval, milliseconds(50));
  EXPECT_EQ(o.policy.margin, seconds(6));
  EXPECT_EQ(o.policy.gap_timeout, minutes(1));
  EXPECT_TRUE(o.policy.strict_expiry);
  EXPECT_EQ(o.policy.max_requeues, 5);
  EXPECT_EQ(o.policy.backoff_base, seconds(10));
  EXPECT_EQ(o.policy.backoff_factor, 3);
  EXPECT_EQ(o.policy.backoff_cap, minutes(5));
  EXPECT_EQ(o.policy.jitter, 0.2);
  EXPECT_EQ(o.policy.max_wait, hours(2));
  EXPECT_EQ(o.policy.hint_cap, minutes(30));
  EXPECT_FALSE(o.policy.retry_unknown);
  EXPECT_EQ(o.reaper_interval, seconds(2));
  EXPECT_EQ(o.reaper_limit, 7);
  EXPECT_EQ(o.retention_terminal, hours(24));
  EXPECT_EQ(o.retention_unfinished, hours(48));
  EXPECT_EQ(o.circuit.threshold, 9);
  EXPECT_EQ(o.circuit.open, minutes(1));
  EXPECT_EQ(o.circuit.quota_open, hours(1));
  EXPECT_EQ(o.limits.request_bytes, 2u << 20);
  EXPECT_EQ(o.limits.result_bytes, 1000u);
  EXPECT_EQ(o.limits.error_bytes, 8192u);
  EXPECT_EQ(o.limits.depth, 32);
}

TEST(Config, ReadsProviders) {
  const auto o = parse(kWhole);
  ASSERT_EQ(o.providers.size(), 2u);
  const auto& main = o.providers[0];
  EXPECT_EQ(main.name, "main");
  EXPECT_EQ(main.base_url, "http://127.0.0.1:11434/v1");
  EXPECT_EQ(main.api_key_env, "OPENAI_API_KEY");
  EXPECT_FALSE(main.stream);
  EXPECT_EQ(main.timeout, seconds(100));
  EXPECT_EQ(main.connect_timeout, seconds(1));
  EXPECT_EQ(main.first_byte_timeout, seconds(2));
  EXPECT_EQ(main.idle_timeout, seconds(3));
  EXPECT_EQ(main.headers.at("x-team"), "ops");
  EXPECT_EQ(main.prices.at("gpt-5-mini").input, 0.25);
  EXPECT_EQ(main.prices.at("gpt-5-mini").output, 2);
  EXPECT_EQ(main.context_window,
            (std::map<std::string, std::int64_t>{{"gpt-5-mini", 100000}, {"my.own", 4096}}));
  EXPECT_EQ(o.providers[1].script, "turns.json");
}

TEST(Config, ReadsAgentsAndTools) {
  const auto o = parse(kWhole);
  ASSERT_EQ(o.agents.size(), 1u);
  const auto& agent = o.agents[0];
  EXPECT_EQ(agent.models, (std::vector<std::string>{"main/meta/llama", "demo/script"}));
  EXPECT_EQ(agent.system, "You sort.");
  EXPECT_EQ(agent.tools, (std::vector<std::string>{"lookup", "create"}));
  EXPECT_EQ(agent.max_iterations, 4);
  EXPECT_EQ(agent.max_repeats, 3);
  EXPECT_EQ(agent.parallel_reads, 2);
  EXPECT_EQ(agent.queue, "mail");
  EXPECT_EQ(agent.fallback_on,
            (std::vector<FailureClass>{FailureClass::auth, FailureClass::context_length}));
  EXPECT_EQ(agent.approval_timeout, hours(24));
  ASSERT_TRUE(agent.policy);
  EXPECT_EQ(agent.policy->max_requeues, 1);
  EXPECT_EQ(agent.policy->lease, seconds(90));
  EXPECT_EQ(agent.policy->backoff_base, seconds(10)) << "the global value is the default";

  ASSERT_EQ(o.tools.size(), 2u);
  EXPECT_EQ(o.tools[0].command, (std::vector<std::string>{"./lookup.sh", "-v"}));
  EXPECT_EQ(o.tools[0].effect, Effect::read);
  EXPECT_EQ(o.tools[0].timeout, seconds(30));
  EXPECT_EQ(o.tools[0].parameters["required"], Json::array({"id"}));
  EXPECT_EQ(o.tools[0].working_folder, std::filesystem::current_path().string());
  const auto& create = o.tools[1];
  EXPECT_EQ(create.effect, Effect::non_idempotent_write);
  EXPECT_TRUE(create.approval);
  EXPECT_TRUE(create.end_on_denial);
  EXPECT_EQ(create.approval_timeout, hours(2));
  EXPECT_EQ(create.probe_command, std::vector<std::string>{"./probe.sh"});
  EXPECT_EQ(create.input_schema["properties"]["amount"]["type"], "number");
  EXPECT_EQ(create.env.at("TRACKER"), "https://tracker.example");
  EXPECT_EQ(create.pass_env, std::vector<std::string>{"TRACKER_TOKEN"});
}

TEST(Config, DefaultsAreThoseOfTheRuntime) {
  const auto o = parse("");
  const RuntimeOptions defaults;
  EXPECT_EQ(o.store_url, defaults.store_url);
  EXPECT_EQ(o.policy, defaults.policy);
  EXPECT_EQ(o.heartbeat, defaults.heartbeat);
  EXPECT_EQ(o.presence_interval, defaults.presence_interval);
  EXPECT_EQ(o.limits.depth, defaults.limits.depth);
  EXPECT_TRUE(o.agents.empty());
}

TEST(Config, AnEffectThatIsNotSaidIsTheMostCarefulOne) {
  EXPECT_EQ(parse("[tools.t]\ncommand = [\"t\"]").tools[0].effect, Effect::non_idempotent_write);
}

TEST(Config, AShortLeaseAloneIsAWholeSetting) {
  EXPECT_EQ(parse("[lease]\nduration = \"3s\"").heartbeat, seconds(1));
  EXPECT_EQ(parse("[lease]\nduration = \"3s\"\nheartbeat = \"0s\"").heartbeat, seconds(0));
}

struct Case {
  const char* text;
  const char* message;  ///< a part of it
};

TEST(Config, NamesLineKeyAndWhatIsExpected) {
  const Case cases[] = {
      {"[lease\n", "f.toml:1: not TOML"},
      {"[!lease]\n", "f.toml:1: not TOML"},
      {"\n[\x01-store]\n", "f.toml:2: not TOML"},
      {"\nüber = 1\n", "f.toml:2: not TOML"},
      {"\n\ufef7 = 1\n", "f.toml:2: not TOML"},
      {"\n[leese]\nduration = \"1s\"", "f.toml:2: leese: unknown key; did you mean \"lease\"?"},
      {"[lease]\ndurations = \"1s\"",
       "f.toml:2: lease.durations: unknown key; did you mean \"duration\"?"},
      {"[lease]\nxyzzy = 1", "f.toml:2: lease.xyzzy: unknown key; expected one of duration"},
      {"xyzzy = 1", "f.toml:1: xyzzy: unknown key; expected one of agents, circuit, "},
      {"[lease]\nduration = \"soon\"", "f.toml:2: lease.duration: expected a duration in quotes"},
      {"[lease]\nduration = \"soon\"", "found \"soon\""},
      {"[lease]\nduration = 60", "f.toml:2: lease.duration: expected a duration in quotes"},
      {"[lease]\nduration = \"0s\"", "f.toml:2: lease.duration: expected a duration of at least"},
      {"lease = 3", "f.toml:1: lease: expected a table, found 3"},
      {"[lease]\nduration = \"60s\"\nheartbeat = \"30s\"",
       "f.toml:3: lease.heartbeat: expected less than half of the lease (1m)"},
      {"[lease]\nduration = \"9s\"\nmargin = \"4s\"", "f.toml:3: lease.margin: expected at most"},
      {"[lease]\nstrict_expiry = \"yes\"", "f.toml:2: lease.strict_expiry: expected true or false"},
      {"[retry]\nmax_requeues = -1",
       "f.toml:2: retry.max_requeues: expected a whole number from 0"},
      {"[retry]\nmax_requeues = 1.5", "f.toml:2: retry.max_requeues: expected a whole number"},
      {"[retry]\njitter = 1.5", "f.toml:2: retry.jitter: expected a number from 0 to 1, found 1.5"},
      {"[retry]\njitter = nan", "f.toml:2: retry.jitter: expected a number from 0 to 1"},
      {"[retry]\nbackoff_factor = 0.5", "f.toml:2: retry.backoff_factor: expected a number from 1"},
      {"[reaper]\nlimit = 0", "f.toml:2: reaper.limit: expected a whole number from 1"},
      {"[retention]\nterminal = \"3d\"\nunfinished = \"1d\"", "f.toml:3: retention.unfinished"},
      {"[circuit]\nthreshold = 0", "f.toml:2: circuit.threshold"},
      {"[limits]\nrequest = \"1MB\"", "f.toml:2: limits.request: expected a size"},
      {"[limits]\ndepth = 0", "f.toml:2: limits.depth"},
      {"[store]\nurl = \"mysql:x\"", "f.toml:2: store.url: 'mysql:…' is not the URL of a store"},
      {"[store]\nurl = \"postgresql://h/d?schema=a-b\"", "f.toml:2: store.url: "},
      {"[providers.a]\nkind = \"opnai\"\nbase_url = \"http://x\"", "did you mean \"openai\"?"},
      {"[providers.a]\nkind = \"gmini\"\n", "did you mean \"gemini\"?"},
      {"[providers.a]\nkind = \"openai\"", "f.toml:1: providers.a.base_url: missing"},
      {"[providers.a]\nkind = \"anthropic\"\nbase_url = \"x\"", "f.toml:3: providers.a.base_url"},
      {"[providers.a]\nkind = \"anthropic\"\napi = \"chat\"", "f.toml:3: providers.a.api: only"},
      {"[providers.a]\nkind = \"anthropic\"\nmax_tokens = 0", "f.toml:3: providers.a.max_tokens"},
      {"[providers.a]\nbase_url = \"http://x\"\nmax_tokens = 5", "providers.a.max_tokens: only"},
      {"[providers.a]\nbase_url = \"http://x\"\nprices = { m = { cached = -1 } }",
       "f.toml:3: providers.a.prices.m.cached"},
      {"[providers.a]\nbase_url = \"ftp://x\"",
       "f.toml:2: providers.a.base_url: expected an address"},
      {"[providers.a]\nbase_url = \"http://x\"\napi = \"response\"",
       "f.toml:3: providers.a.api: expected chat or responses"},
      {"[providers.a]\nkind = \"ollama\"\nmax_tokens = 5",
       "f.toml:3: providers.a.max_tokens: only"},
      {"[providers.a]\nkind = \"gemini\"\nscript = \"s\"", "only a provider of kind"},
      {"[providers.a]\nkind = \"scripted\"", "f.toml:1: providers.a.script: missing"},
      {"[providers.a]\nbase_url = \"http://x\"\nscript = \"s\"", "only a provider of kind"},
      {"[tools.t]\nkind = \"mcp\"", "f.toml:2: tools.t.kind: \"mcp\" is not part of this version"},
      {"[tools.t]\neffect = \"write\"\ncommand = [\"t\"]",
       "f.toml:2: tools.t.effect: expected read"},
      {"[tools.t]\ncommand = []", "f.toml:2: tools.t.command: expected a list of the program"},
      {"[tools.t]\ncommand = \"t\"", "f.toml:2: tools.t.command: expected a list of texts"},
      {"[tools.t]\neffect = \"read\"", "f.toml:1: tools.t.command: missing"},
      {"[tools.\"a b\"]\ncommand = [\"t\"]", "f.toml:1: tools.a b: a tool's name has"},
      {"[tools.t]\ncommand = [\"t\"]\non_denial = \"stop\"", "expected continue or end"},
      {"[tools.t]\ncommand = [\"t\"]\nparameters = { type = 7 }", "f.toml:3: tools.t.parameters"},
      {"[tools.t]\ncommand = [\"t\"]\ninput = { type = \"string\" }",
       "f.toml:3: tools.t.input: must describe an object"},
      {"[tools.t]\ncommand = [\"t\"]\nparameters = { d = 2020-01-01 }", "holds a date"},
      {"[tools.t]\ncommand = [\"t\"]\nenv = { \"A-B\" = \"x\" }", "f.toml:3: tools.t.env.A-B"},
      {"[agents.a]\nsystem = \"x\"", "f.toml:1: agents.a.models: missing"},
      {"[agents.a]\nmodels = [\"gpt\"]", "f.toml:2: agents.a.models: expected \"provider/model\""},
      {"[agents.a]\nmodels = []", "f.toml:2: agents.a.models: expected at least one"},
      {"[providers.x]\nbase_url = \"http://h\"\ncontext_window = { m = 0 }",
       "f.toml:3: providers.x.context_window.m"},
      {"[agents.a]\nmodels = [\"x/y\"]\nmax_iterations = 0", "f.toml:3: agents.a.max_iterations"},
      {"[agents.a]\nmodels = [\"x/y\"]\nmax_repeats = 1", "f.toml:3: agents.a.max_repeats"},
      {"[agents.a]\nmodels = [\"x/y\"]\nparallel_reads = 65", "f.toml:3: agents.a.parallel_reads"},
      {"[agents.a]\nmodels = [\"x/y\"]\nlease = { heartbeat = \"1s\" }",
       "belongs to the process and not to an agent"},
      {"[agents.a]\nmodels = [\"x/y\"]\nfallback_on = [\"sometimes\"]", "no such failure class"},
  };
  for (const auto& c : cases) {
    EXPECT_NE(problem_of(c.text).find(c.message), std::string::npos) << c.text << "\n---\n"
                                                                     << problem_of(c.text);
  }
}

TEST(Config, ProvidersOfOtherKindsKnowTheirAddress) {
  const auto settings = parse(
      "[providers.a]\nkind = \"anthropic\"\nmax_tokens = 5000\n"
      "prices = { m = { input = 3, output = 15, cached = 0.3, cache_write = 3.75 } }");
  ASSERT_EQ(settings.providers.size(), 1u);
  for (const char* kind : {"gemini", "ollama"}) {
    EXPECT_EQ(problem_of("[providers.a]\nkind = \"" + std::string(kind) + "\""), "") << kind;
  }
  EXPECT_EQ(problem_of("[providers.a]\nbase_url = \"http://x\"\napi = \"responses\""), "");
  EXPECT_EQ(settings.providers[0].max_tokens, 5000);
  EXPECT_TRUE(settings.providers[0].base_url.empty());
  const Price& price = settings.providers[0].prices.at("m");
  EXPECT_DOUBLE_EQ(price.cached.value_or(0), 0.3);
  EXPECT_DOUBLE_EQ(price.cache_write.value_or(0), 3.75);
}

TEST(Config, NamesThatLeadNowhereAreNamedAtTheirLine) {
  const auto text = problem_of(
      "[providers.main]\nbase_url = \"http://x\"\n[tools.lookup]\ncommand = [\"t\"]\n"
      "[agents.a]\nmodels = [\"main/x\",\n\"mian/y\"]\ntools = [\n\"lookpu\",\n\"zzz\"]\n");
  EXPECT_NE(
      text.find("f.toml:7: agents.a.models: no such provider \"mian\"; did you mean \"main\"?"),
      std::string::npos)
      << text;
  EXPECT_NE(
      text.find("f.toml:9: agents.a.tools: no such tool \"lookpu\"; did you mean \"lookup\"?"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("f.toml:10: agents.a.tools: no such tool \"zzz\"; add [tools.zzz]"),
            std::string::npos)
      << text;
}

TEST(Config, EveryMistakeIsOneSafeLine) {
  for (const char* text : {"a = tr\n", "a = 'b\n'", "[lease]\nduration = \"1\\n2\\u001b[2J\"",
                           "\"a\\nb\" = 1", "[\"x\\u202e\"]", "a = \x7f",
                           "[agents.\"\\n\"]\nmodels = [\"\\n\"]", "[store]\nurl = \"\\u009b\""}) {
    const std::string said = problem_of(text);
    EXPECT_TRUE(said.starts_with("f.toml:")) << said;
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(line.starts_with("f.toml:")) << said;
      EXPECT_EQ(safe_line(line), line);
    }
  }
}

TEST(Config, TellsAllMistakesInTheOrderOfTheFile) {
  const auto text = problem_of("[reaper]\nlimit = 0\n[lease]\nduration = 1\n[zzz]\n");
  const auto reaper = text.find("f.toml:2:");
  const auto lease = text.find("f.toml:4:");
  const auto unknown = text.find("f.toml:5:");
  ASSERT_NE(unknown, std::string::npos) << text;
  EXPECT_LT(reaper, lease);
  EXPECT_LT(lease, unknown);
}

TEST(Config, ALeaseOfAnAgentMustSuitTheHeartbeat) {
  const auto text = problem_of(
      "[lease]\nheartbeat = \"10s\"\n[providers.p]\nbase_url = \"http://x\"\n[agents.a]\n"
      "models = [\"p/m\"]\n[agents.a.lease]\nduration = \"15s\"\n");
  EXPECT_NE(text.find("f.toml:8: agents.a.lease.duration: expected more than twice"),
            std::string::npos)
      << text;
}

TEST(Config, SecretsInTheFileAreRefusedWithTheRemedyAndNotShown) {
  const Case cases[] = {
      {"[providers.p]\nbase_url = \"http://x\"\napi_key = \"sk-hush\"", "use api_key_env"},
      {"[providers.p]\nbase_url = \"http://x\"\napi_key_env = \"sk-hush\"", "expected the name of"},
      {"[providers.p]\nbase_url = \"http://x\"\napi_key_env = [\"sk-hush\"]", "api_key_env"},
      {"[providers.p]\nbase_url = \"http://u:sk-hush@x/v1\"", "use api_key_env"},
      {"[providers.p]\nbase_url = \"http://x\"\nheaders = { Authorization = \"sk-hush\" }",
       "use api_key_env"},
      {"[providers.p]\nbase_url = \"http://x\"\nheaders = { x-api-key = \"sk-hush\" }",
       "use api_key_env"},
      {"[tools.t]\ncommand = [\"t\"]\nenv = { TRACKER_TOKEN = \"sk-hush\" }",
       "use pass_env = [\"TRACKER_TOKEN\"]"},
      {"[tools.t]\nkind = \"http\"\nurl = \"https://u:sk-hush@h/\"", "use bearer_env"},
      {"[tools.t]\nkind = \"http\"\nurl = \"https://h/\"\nbearer_env = \"sk-hush\"",
       "expected the name of"},
      {"[tools.t]\nkind = \"http\"\nurl = \"https://h/\"\nheader_env = { X-Key = \"sk-hush\" }",
       "expected the name of"},
      {"[tools.t]\nkind = \"http\"\nurl = \"https://h/\"\nheaders = { Authorization = \"sk-hush\" "
       "}",
       "use bearer_env or header_env"},
      {"[tools.t]\nkind = \"http\"\nurl = \"https://h/\"\ntoken = \"sk-hush\"",
       "use bearer_env or header_env"},
      {"password = \"sk-hush\"", "only from the environment"},
  };
  for (const auto& c : cases) {
    const auto text = problem_of(c.text);
    EXPECT_NE(text.find(c.message), std::string::npos) << c.text << "\n---\n" << text;
    EXPECT_EQ(text.find("hush"), std::string::npos) << text;
  }
}

TEST(Config, RelativePathsStartAtTheFolderOfTheFile) {
  const auto o = parse_configuration(
      "[store]\nurl = \"sqlite:a.db\"\n[providers.p]\nkind = \"scripted\"\nscript = \"s.json\"\n"
      "[tools.t]\ncommand = [\"./t.sh\"]\n",
      "/etc/hf/f.toml", "/etc/hf");
  EXPECT_EQ(o.store_url, "sqlite:/etc/hf/a.db");
  EXPECT_EQ(o.providers[0].script, "/etc/hf/s.json");
  EXPECT_EQ(o.tools[0].working_folder, "/etc/hf");
  EXPECT_EQ(parse_configuration("[store]\nurl = \"sqlite:/v/a.db\"", "f", "/etc").store_url,
            "sqlite:/v/a.db");
}

class ConfigLookup : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    folder_ = std::filesystem::temp_directory_path() / ("config-" + real_env().new_id());
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }
  static void write(const std::string& name, const std::string& text) {
    std::ofstream(name) << text;
  }
  std::filesystem::path before_;
  std::filesystem::path folder_;
};

TEST_F(ConfigLookup, TheOptionBeatsTheVariableBeatsTheWorkingFolder) {
  write("holdfast.toml", "[reaper]\nlimit = 1");
  write("env.toml", "[reaper]\nlimit = 2");
  write("opt.toml", "[reaper]\nlimit = 3");
  ConfigSources sources;
  EXPECT_EQ(load_configuration(sources).options.reaper_limit, 1);
  sources.config_env = "env.toml";
  EXPECT_EQ(load_configuration(sources).options.reaper_limit, 2);
  sources.config_option = "opt.toml";
  const auto loaded = load_configuration(sources);
  EXPECT_EQ(loaded.options.reaper_limit, 3);
  EXPECT_EQ(loaded.file, "opt.toml");
}

TEST_F(ConfigLookup, WithoutAFileThereAreDefaults) {
  const auto loaded = load_configuration({});
  EXPECT_FALSE(loaded.file);
  EXPECT_EQ(loaded.options.store_url, "sqlite:holdfast.db");
}

TEST_F(ConfigLookup, ANamedFileThatIsMissingIsRefused) {
  ConfigSources option;
  option.config_option = "none.toml";
  EXPECT_THROW(load_configuration(option), RefusedError);
  ConfigSources variable;
  variable.config_env = "none.toml";
  EXPECT_THROW(load_configuration(variable), RefusedError);
  ConfigSources is_folder;
  is_folder.config_option = folder_.string();
  EXPECT_THROW(load_configuration(is_folder), RefusedError);
}

TEST_F(ConfigLookup, TheStoreOptionBeatsTheVariableBeatsTheFile) {
  write("holdfast.toml", "[store]\nurl = \"sqlite:file.db\"");
  ConfigSources sources;
  EXPECT_EQ(load_configuration(sources).options.store_url, "sqlite:file.db");
  sources.store_env = "sqlite:env.db";
  EXPECT_EQ(load_configuration(sources).options.store_url, "sqlite:env.db");
  sources.store_option = "memory:";
  EXPECT_EQ(load_configuration(sources).options.store_url, "memory:");
}

}  // namespace
}  // namespace holdfast
