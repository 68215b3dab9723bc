#include "provider/chain.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "provider/judge.hpp"
#include "provider/providers.hpp"
#include "support/fake_env.hpp"

namespace holdfast {
namespace {

using enum FailureClass;

/// Fails with what it is told, in order; then answers. Counts its calls.
class Fake : public Provider {
 public:
  Fake(std::string name, std::vector<Failure> failures, testing::FakeEnv* env)
      : name_(std::move(name)), failures_(std::move(failures)), env_(env) {}

  ModelReply complete(const std::string& model, const ModelRequest&,
                      const CallContext& context) override {
    const std::size_t call = calls++;
    last_timeout = context.timeout;
    env_->advance(takes);
    if (during) during();
    if (call < failures_.size()) {
      Failure failure = failures_[call];
      failure.provider = name_;
      failure.model = model;
      if (used) throw PaidFailure(failure, *used);
      throw FailureError(failure);
    }
    ModelReply reply;
    reply.usage.total_tokens = 7;
    reply.provider = name_;
    reply.model = model;
    reply.text = "hi from " + name_ + "/" + model;
    return reply;
  }

  std::size_t calls = 0;
  Duration takes{};
  Duration last_timeout{};
  std::function<void()> during;
  std::optional<ModelUsage> used;

 private:
  std::string name_;
  std::vector<Failure> failures_;
  testing::FakeEnv* env_;
};

Failure failed(FailureClass cls, std::string message = "it failed") {
  Failure failure;
  failure.cls = cls;
  failure.message = std::move(message);
  return failure;
}

struct World {
  testing::FakeEnv env;
  Fake* a = nullptr;
  Fake* b = nullptr;
  std::unique_ptr<ModelChain> chain;

  explicit World(std::vector<Failure> of_a, std::vector<Failure> of_b = {}) {
    auto first = std::make_unique<Fake>("a", std::move(of_a), &env);
    auto second = std::make_unique<Fake>("b", std::move(of_b), &env);
    a = first.get();
    b = second.get();
    ProviderMap providers;
    providers["a"] = std::move(first);
    providers["b"] = std::move(second);
    chain = make_chain_of(std::move(providers), env);
  }

  Failure failure(const std::vector<std::string>& models,
                  const std::vector<FailureClass>& fallback_on = {},
                  const CallContext& context = {}) {
    try {
      chain->complete(models, fallback_on, {}, context);
      ADD_FAILURE() << "answered";
    } catch (const FailureError& error) {
      return error.failure();
    }
    return {};
  }
};

TEST(Chain, TakesTheFirstThatAnswers) {
  World world({});
  EXPECT_EQ(world.chain->complete({"a/m/with/slashes", "b/n"}, {}, {}, {}).text,
            "hi from a/m/with/slashes");
  EXPECT_EQ(world.a->calls, 1u);
  EXPECT_EQ(world.b->calls, 0u);
}

TEST(Chain, GoesOnByClassAlone) {
  for (FailureClass cls :
       {connection, timeout, rate_limit, overloaded, server_error, quota_exhausted}) {
    World world({failed(cls)});
    EXPECT_EQ(world.chain->complete({"a/m", "b/n"}, {}, {}, {}).provider, "b") << to_word(cls);
  }
  for (FailureClass cls :
       {auth, configuration, client_error, context_length, content_policy, unknown}) {
    World world({failed(cls)});
    EXPECT_EQ(world.failure({"a/m", "b/n"}).cls, cls);
    EXPECT_EQ(world.b->calls, 0u) << to_word(cls);
  }
}

TEST(Chain, TheServersWordAboutRetryingDoesNotDecideOnFallback) {
  Failure veto = failed(server_error);
  veto.should_retry = false;
  World world({veto});
  EXPECT_EQ(world.chain->complete({"a/m", "b/n"}, {}, {}, {}).provider, "b");
  Failure permission = failed(client_error);
  permission.should_retry = true;
  World other({permission});
  EXPECT_EQ(other.failure({"a/m", "b/n"}).should_retry, true);
  EXPECT_EQ(other.b->calls, 0u);
}

TEST(Chain, GoesOnForTheClassesThatTheAgentAdds) {
  World world({failed(context_length)});
  EXPECT_EQ(world.chain->complete({"a/m", "b/n"}, {context_length}, {}, {}).provider, "b");
}

TEST(Chain, OneCallIsOneAttemptPerModel) {
  World world({failed(overloaded), failed(overloaded)}, {failed(rate_limit)});
  world.failure({"a/m", "b/n"});
  EXPECT_EQ(world.a->calls, 1u);
  EXPECT_EQ(world.b->calls, 1u);
}

TEST(Chain, AnExhaustedChainIsClassifiedByItsLastAttemptAndNamesAll) {
  Failure last = failed(rate_limit, "b/n: status 429");
  last.retry_after = Duration(5000);
  World world({failed(overloaded, "a/m: status 503")}, {last});
  const Failure failure = world.failure({"a/m", "b/n"});
  EXPECT_EQ(failure.cls, rate_limit);
  EXPECT_EQ(failure.retry_after, Duration(5000));
  EXPECT_EQ(failure.provider, "b");
  EXPECT_NE(failure.message.find("a/m: status 503"), std::string::npos) << failure.message;
  EXPECT_NE(failure.message.find("b/n: status 429"), std::string::npos) << failure.message;
}

TEST(Chain, SendsNoBrokenConversation) {
  World world({});
  ModelRequest request;
  Message calling;
  calling.role = Message::Role::assistant;
  calling.calls.push_back({"1.1", "pay", Json::object(), {}});
  request.messages = {calling};
  try {
    world.chain->complete({"a/m", "b/n"}, {}, request, {});
    ADD_FAILURE() << "answered";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().cls, client_error);
    EXPECT_EQ(error.failure().code, "broken_history");
    EXPECT_NE(error.failure().message.find("call 1.1 of 'pay'"), std::string::npos);
  }
  EXPECT_EQ(world.a->calls + world.b->calls, 0u);
}

TEST(Chain, CountsWhatABrokenStreamOfAnEarlierModelUsed) {
  World world({failed(connection)});
  world.a->used = ModelUsage{{100, 20, 120, 0.5}, 0, 0, 0, true};
  const ModelReply reply = world.chain->complete({"a/m", "b/n"}, {}, {}, {});
  EXPECT_EQ(reply.provider, "b");
  EXPECT_EQ(reply.usage.total_tokens, 120 + 7);
  EXPECT_DOUBLE_EQ(reply.usage.cost_usd, 0.5);
  EXPECT_TRUE(reply.usage.estimated);
}

TEST(Chain, AnEmptyChainIsUnknown) {
  World world({});
  EXPECT_EQ(world.failure({}).cls, unknown);
}

TEST(Chain, NamesAProviderThatIsNotConfigured) {
  World world({});
  for (const char* model : {"c/m", "a", "a/", "/m", ""}) {
    EXPECT_EQ(world.failure({model}).cls, configuration) << model;
  }
  EXPECT_EQ(world.a->calls, 0u);
}

TEST(Chain, StopsAfterAnInterruption) {
  World world({failed(timeout)});
  std::stop_source stop;
  world.a->during = [&] { stop.request_stop(); };
  CallContext context;
  context.stop = stop.get_token();
  world.failure({"a/m", "b/n"}, {}, context);
  EXPECT_EQ(world.b->calls, 0u);
}

TEST(Chain, SharesTheStepsTime) {
  World world({failed(timeout)});
  world.a->takes = Duration(700);
  CallContext context;
  context.timeout = Duration(1000);
  world.chain->complete({"a/m", "b/n"}, {}, {}, context);
  EXPECT_EQ(world.a->last_timeout, Duration(1000));
  EXPECT_EQ(world.b->last_timeout, Duration(300));

  World late({failed(timeout)});
  late.a->takes = Duration(1000);
  late.failure({"a/m", "b/n"}, {}, context);
  EXPECT_EQ(late.b->calls, 0u);
}

ProviderSpec spec_of(std::string kind) {
  ProviderSpec spec;
  spec.name = "main";
  spec.kind = std::move(kind);
  spec.base_url = "https://api.example.com/v1";
  return spec;
}

TEST(MakeChain, RefusesWhatItCannotSetUp) {
  testing::FakeEnv env;
  for (const char* kind : {"openai", "anthropic", "gemini", "ollama"}) {
    EXPECT_NE(make_chain({spec_of(kind)}, env, {}), nullptr) << kind;
  }
  EXPECT_THROW(make_chain({spec_of("oracle")}, env, {}), RefusedError);
  EXPECT_THROW(make_chain({spec_of("openai"), spec_of("openai")}, env, {}), RefusedError);
  EXPECT_THROW(make_chain({spec_of("scripted")}, env, {})->prepare(), RefusedError);
  ProviderSpec spec = spec_of("openai");
  spec.api = "responses";
  EXPECT_NE(make_chain({spec}, env, {}), nullptr);
  spec.api = "completions";
  EXPECT_THROW(make_chain({spec}, env, {}), RefusedError);
  spec = spec_of("gemini");
  spec.api = "responses";
  EXPECT_THROW(make_chain({spec}, env, {}), RefusedError);
  spec = spec_of("anthropic");
  spec.max_tokens = 0;
  EXPECT_THROW(make_chain({spec}, env, {}), RefusedError);
  spec = spec_of("openai");
  spec.name = "a/b";
  EXPECT_THROW(make_chain({spec}, env, {}), RefusedError);
  spec = spec_of("openai");
  spec.headers = {{"x", "a\r\nevil: 1"}};
  EXPECT_THROW(make_chain({spec}, env, {}), RefusedError);
}

TEST(CheckProvider, SaysWhatToMend) {
  testing::FakeEnv env;
  ProviderSpec spec = spec_of("openai");
  EXPECT_EQ(check_provider(spec, env).grade, Finding::Grade::ok);
  spec.api_key_env = "HOLDFAST_TEST_ABSENT_KEY";
  ::unsetenv("HOLDFAST_TEST_ABSENT_KEY");
  const Finding missing = check_provider(spec, env);
  EXPECT_EQ(missing.grade, Finding::Grade::bad);
  EXPECT_NE(missing.text.find("HOLDFAST_TEST_ABSENT_KEY"), std::string::npos);
  ::setenv("HOLDFAST_TEST_ABSENT_KEY", "secret-value", 1);
  const Finding present = check_provider(spec, env);
  EXPECT_EQ(present.grade, Finding::Grade::ok);
  EXPECT_EQ(present.text.find("secret-value"), std::string::npos);
  spec.base_url = "http://models.example.com/v1";
  EXPECT_EQ(check_provider(spec, env).grade, Finding::Grade::warning);
  ::unsetenv("HOLDFAST_TEST_ABSENT_KEY");
  EXPECT_EQ(check_provider(spec_of("oracle"), env).grade, Finding::Grade::bad);
  for (const auto& [kind, address] : {std::pair("anthropic", "https://api.anthropic.com"),
                                      std::pair("gemini", "https://generativelanguage.google"),
                                      std::pair("ollama", "http://127.0.0.1:11434")}) {
    ProviderSpec plain = spec_of(kind);
    plain.base_url.clear();
    const Finding finding = check_provider(plain, env);
    EXPECT_EQ(finding.grade, Finding::Grade::ok) << kind;
    EXPECT_NE(finding.text.find(address), std::string::npos) << finding.text;
  }
}

}  // namespace
}  // namespace holdfast
