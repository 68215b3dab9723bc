#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/safe_text.hpp"
#include "provider/providers.hpp"
#include "support/fake_env.hpp"

namespace holdfast {
namespace {

class ScriptFile {
 public:
  explicit ScriptFile(const std::string& text) {
    path_ = std::filesystem::temp_directory_path() /
            ("holdfast-script-" + std::to_string(::getpid()) + "-" +
             std::to_string(reinterpret_cast<std::uintptr_t>(this)) + ".json");
    std::ofstream(path_) << text;
  }
  ~ScriptFile() { std::filesystem::remove(path_); }
  ScriptFile(const ScriptFile&) = delete;
  ScriptFile& operator=(const ScriptFile&) = delete;

  ProviderSpec spec() const {
    ProviderSpec spec;
    spec.name = "demo";
    spec.kind = "scripted";
    spec.script = path_.string();
    return spec;
  }

 private:
  std::filesystem::path path_;
};

ModelRequest turn(int assistant_messages, const RunId& run = "run-1") {
  ModelRequest request;
  request.run = run;
  Message user;
  user.text = "12345678";
  request.messages = {user};
  for (int i = 0; i < assistant_messages; ++i) {
    Message message;
    message.role = Message::Role::assistant;
    message.text = "ok";
    request.messages.push_back(message);
  }
  return request;
}

Failure failure_of(Provider& provider, const ModelRequest& request,
                   const CallContext& context = {}) {
  try {
    provider.complete("m", request, context);
    ADD_FAILURE() << "answered";
  } catch (const FailureError& error) {
    return error.failure();
  }
  return {};
}

const char* kScript = R"([
  {"tool_calls": [{"name": "look", "arguments": {"id": "7"}}, {"name": "odd", "arguments": "{oops"}]},
  {"reply": "done", "delay": "2s",
   "errors": [{"status": 503, "headers": {"Retry-After": "3"}, "body": "busy"}, {"status": 429}]}
])";

TEST(Scripted, ChoosesTheEntryByTheTurnsOfTheConversation) {
  const ScriptFile file(kScript);
  testing::FakeEnv env;
  const auto provider = make_scripted(file.spec(), env);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const ModelReply reply = provider->complete("m", turn(0), {});
    ASSERT_EQ(reply.calls.size(), 2u);
    EXPECT_EQ(reply.calls[0].name, "look");
    EXPECT_EQ(reply.calls[0].arguments["id"], "7");
    EXPECT_EQ(reply.calls[1].bad_arguments, "{oops");
    EXPECT_EQ(reply.finish, "tool_calls");
    EXPECT_EQ(reply.provider, "demo");
  }
}

TEST(Scripted, GivesItsErrorsFirstOncePerRun) {
  const ScriptFile file(kScript);
  testing::FakeEnv env;
  const auto provider = make_scripted(file.spec(), env);
  for (const char* run : {"run-1", "run-2"}) {
    const Failure first = failure_of(*provider, turn(1, run));
    EXPECT_EQ(first.cls, FailureClass::overloaded);
    EXPECT_EQ(first.retry_after, Duration(3000));
    EXPECT_EQ(failure_of(*provider, turn(1, run)).cls, FailureClass::rate_limit);
    for (int repeat = 0; repeat < 2; ++repeat) {
      EXPECT_EQ(provider->complete("m", turn(1, run), {}).text, "done");
    }
  }
}

TEST(Scripted, WaitsItsDelayInTheEnvironment) {
  const ScriptFile file(R"([{"reply": "a", "delay": "2s"}])");
  testing::FakeEnv env;
  make_scripted(file.spec(), env)->complete("m", turn(0), {});
  EXPECT_EQ(env.elapsed(), Duration(2000));
}

TEST(Scripted, IsInterruptedWhileItWaits) {
  const ScriptFile file(R"([{"reply": "a", "delay": "2s"}])");
  testing::FakeEnv env;
  std::stop_source stop;
  env.during_sleep = [&] { stop.request_stop(); };
  CallContext context;
  context.stop = stop.get_token();
  const Failure failure = failure_of(*make_scripted(file.spec(), env), turn(0), context);
  EXPECT_EQ(failure.cls, FailureClass::timeout);
  EXPECT_EQ(failure.code, "interrupted");
}

TEST(Scripted, TimesOutWhenItsDelayIsLongerThanTheCall) {
  const ScriptFile file(R"([{"reply": "a", "delay": "2h"}])");
  testing::FakeEnv env;
  CallContext context;
  context.timeout = Duration(5000);
  const Failure failure = failure_of(*make_scripted(file.spec(), env), turn(0), context);
  EXPECT_EQ(failure.cls, FailureClass::timeout);
  EXPECT_EQ(env.elapsed(), Duration(5000));
}

TEST(Scripted, SaysThatTheScriptHasEnded) {
  const ScriptFile file(kScript);
  testing::FakeEnv env;
  const Failure failure = failure_of(*make_scripted(file.spec(), env), turn(2));
  EXPECT_EQ(failure.cls, FailureClass::configuration);
  EXPECT_EQ(failure.code, "script_ended");
  EXPECT_NE(failure.message.find("entry 2"), std::string::npos) << failure.message;
}

TEST(Scripted, CountsTokensTheSameEachTime) {
  const ScriptFile file(R"([{"reply": "12345678"}])");
  testing::FakeEnv env;
  ProviderSpec spec = file.spec();
  spec.prices = {{"m", Price{1, 10}}};
  const ModelReply reply = make_scripted(spec, env)->complete("m", turn(0), {});
  EXPECT_EQ(reply.usage.prompt_tokens, 2);
  EXPECT_EQ(reply.usage.completion_tokens, 2);
  EXPECT_EQ(reply.usage.total_tokens, 4);
  EXPECT_DOUBLE_EQ(reply.usage.cost_usd, 22e-6);
}

TEST(Scripted, RefusesMalformedScriptsByFileAndEntry) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "empty"},
      {"[", "not JSON"},
      {"{}", "expected a list"},
      {"[7]", "entry 0"},
      {R"([{"reply":"a"},{}])", "entry 1"},
      {R"([{"reply":"a","tool_calls":[]}])", "exactly one"},
      {R"([{"reply":7}])", "`reply`"},
      {R"([{"replay":"a"}])", "unknown key `replay`"},
      {R"([{"reply":"a","delay":"soon"}])", "`delay`"},
      {R"([{"reply":"a","delay":2}])", "`delay`"},
      {R"([{"tool_calls":[]}])", "list of calls"},
      {R"([{"tool_calls":[{"arguments":{}}]}])", "`name`"},
      {R"([{"tool_calls":[{"name":"a","args":{}}]}])", "unknown key `args`"},
      {R"([{"reply":"a","errors":{}}])", "`errors`"},
      {R"([{"reply":"a","errors":[{"body":"x"}]}])", "`status`"},
      {R"([{"reply":"a","errors":[{"status":7}]}])", "`status`"},
      {R"([{"reply":"a","errors":[{"status":500,"header":{}}]}])", "unknown key `header`"},
      {R"([{"reply":"a","errors":[{"status":500,"headers":{"a":[]}}]}])", "header `a`"},
  };
  testing::FakeEnv env;
  for (const auto& [text, part] : cases) {
    const ScriptFile file(text);
    try {
      make_scripted(file.spec(), env)->prepare();
      ADD_FAILURE() << text;
    } catch (const RefusedError& error) {
      const std::string what = error.what();
      EXPECT_EQ(error.refusal(), Refusal::usage);
      EXPECT_NE(what.find(part), std::string::npos) << what;
      EXPECT_NE(what.find(file.spec().script), std::string::npos) << what;
    }
  }
}

TEST(Scripted, RefusesAnEmptyListAndNumbersThatWouldBeRounded) {
  for (const char* text :
       {"[]",
        R"([{"tool_calls": [{"name": "pay", "arguments": {"id": 12345678901234567890123}}]}])"}) {
    const ScriptFile script(text);
    testing::FakeEnv env;
    try {
      make_scripted(script.spec(), env)->prepare();
      ADD_FAILURE() << text;
    } catch (const RefusedError& error) {
      EXPECT_EQ(error.refusal(), Refusal::usage);
      EXPECT_NE(std::string(error.what()).find(script.spec().script), std::string::npos);
    }
  }
}

TEST(Scripted, ARefusalIsOneShortLineWhateverTheScriptHolds) {
  const std::string keys[] = {"\\u001b[2J\\n", std::string(5000, 'k')};
  for (const std::string& key : keys) {
    for (const std::string& text :
         {"[{\"" + key + "\": 1}]", "[{\"tool_calls\": [{\"name\": \"t\", \"" + key + "\": 1}]}]",
          "[{\"reply\": \"\", \"errors\": [{\"status\": 500, \"" + key + "\": 1}]}]",
          "[{\"reply\": \"\", \"errors\": [{\"status\": 500, \"headers\": {\"" + key +
              "\": []}}]}]"}) {
      const ScriptFile script(text);
      testing::FakeEnv env;
      try {
        make_scripted(script.spec(), env)->prepare();
        ADD_FAILURE() << text;
      } catch (const RefusedError& error) {
        const std::string said = error.what();
        EXPECT_EQ(safe_line(said), said);
        EXPECT_LT(said.size(), 1000U) << said;
      }
    }
  }
}

TEST(Scripted, RefusesAMissingFile) {
  testing::FakeEnv env;
  ProviderSpec spec;
  spec.name = "demo";
  spec.script = "no/such/file.json";
  EXPECT_THROW(make_scripted(spec, env)->prepare(), RefusedError);
  spec.script.clear();
  EXPECT_THROW(make_scripted(spec, env)->prepare(), RefusedError);
  spec.script = std::filesystem::temp_directory_path().string();
  EXPECT_THROW(make_scripted(spec, env)->prepare(), RefusedError);
}

}  // namespace
}  // namespace holdfast
