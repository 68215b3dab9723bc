// A server that repeats what it was sent: no key of any provider comes back (spec, section 11).

#include "net/secrets.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/text.hpp"
#include "provider/chain.hpp"
#include "provider/providers.hpp"
#include "support/stub_server.hpp"

namespace holdfast {
namespace {

using testing::StubAnswer;
using testing::StubServer;

constexpr const char* kOwnKey = "plain/word\"secret";
constexpr const char* kOtherKey = "another-one-9";

class SecretsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HOLDFAST_TEST_OWN_KEY", kOwnKey, 1);
    ::setenv("HOLDFAST_TEST_OTHER_KEY", kOtherKey, 1);
    ::setenv("HOLDFAST_TEST_SHORT_KEY", "word", 1);
  }
  void TearDown() override {
    for (const char* name :
         {"HOLDFAST_TEST_OWN_KEY", "HOLDFAST_TEST_OTHER_KEY", "HOLDFAST_TEST_SHORT_KEY"}) {
      ::unsetenv(name);
    }
  }

  ModelReply ask(StubServer& server, bool stream) const {
    ProviderSpec spec;
    spec.name = "main";
    spec.base_url = server.url();
    spec.stream = stream;
    spec.api_key_env = "HOLDFAST_TEST_OWN_KEY";
    ProviderSpec other = spec;
    other.name = "backup";
    other.api_key_env = "HOLDFAST_TEST_OTHER_KEY";
    ModelRequest request;
    Message hello;
    hello.text = "hello";
    request.messages = {hello};
    return make_chain({spec, other}, real_env(), {})->complete({"main/gpt"}, {}, request, {});
  }

  static std::string all_of(const ModelReply& reply) {
    std::string all = reply.text + reply.finish;
    for (const ToolCall& call : reply.calls) {
      all += call.name + dump_json(call.arguments) + call.bad_arguments.value_or("");
    }
    return all;
  }

  static void expect_none(const std::string& text) {
    for (const char* part : {"word\"secret", "word\\\"secret", "another-one", "another"}) {
      EXPECT_EQ(text.find(part), std::string::npos) << text;
    }
  }

  const Secrets secrets_after_setup() const {
    return Secrets({"HOLDFAST_TEST_OWN_KEY", "HOLDFAST_TEST_OTHER_KEY", "HOLDFAST_TEST_SHORT_KEY",
                    "HOLDFAST_TEST_NO_KEY"});
  }
};

TEST_F(SecretsTest, AreInNoPartOfAnAnswer) {
  const Json arguments = {{"echo", kOwnKey}, {kOtherKey, Json::array({kOwnKey})}};
  const Json answer = {
      {"choices",
       {{{"message",
          {{"content", std::string("You sent ") + kOwnKey + " and " + kOtherKey},
           {"tool_calls",
            {{{"function", {{"name", kOtherKey}, {"arguments", dump_json(arguments)}}}},
             {{"function", {{"name", "pay"}, {"arguments", "{\"\\u0061nother-one-9\": \"x\"}"}}}},
             {{"function", {{"name", "pay"}, {"arguments", std::string("{ ") + kOtherKey}}}}}}}},
         {"finish_reason", kOtherKey}}}}};
  StubServer server;
  server.play(StubAnswer::json(200, dump_json(answer)));
  const ModelReply reply = ask(server, false);
  expect_none(all_of(reply));
  EXPECT_EQ(reply.text, "You sent [redacted] and [redacted]");
  ASSERT_EQ(reply.calls.size(), 3u);
  EXPECT_EQ(reply.calls[0].name, "[redacted]");
}

TEST_F(SecretsTest, AreInNoStreamHoweverItIsCutIntoPieces) {
  std::string stream;
  for (const char* piece : {"You sent anoth", "er-one", "-9."}) {
    stream += "data: " + dump_json({{"choices", {{{"delta", {{"content", piece}}}}}}}) + "\n\n";
  }
  stream += "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
  StubServer server;
  server.play(StubAnswer::events(stream));
  EXPECT_EQ(ask(server, true).text, "You sent [redacted].");
}

TEST_F(SecretsTest, AreInNoErrorAlsoAsBase64) {
  // "user:another-one-9" and "another-one-9:"
  for (const char* basic : {"dXNlcjphbm90aGVyLW9uZS05", "YW5vdGhlci1vbmUtOTo="}) {
    StubServer server;
    server.play(StubAnswer::json(
        401, dump_json({{"error",
                         {{"message", std::string("bad header ") + basic + " of " + kOwnKey}}}})));
    try {
      ask(server, false);
      ADD_FAILURE() << "answered";
    } catch (const FailureError& error) {
      const std::string& message = error.failure().message;
      expect_none(message);
      EXPECT_NE(message.find("bad header [redacted] of [redacted]"), std::string::npos) << message;
    }
  }
}

TEST_F(SecretsTest, ThatAreShortAreReplacedAsWholeWordsOnly) {
  const Secrets secrets = secrets_after_setup();
  EXPECT_EQ(secrets.redact_text("a word, swordfish, word-2: word"),
            "a [redacted], swordfish, word-2: [redacted]");
  EXPECT_EQ(secrets.redact_body("{\"word\": 1}"), "{\"word\": 1}");
  EXPECT_EQ(secrets.redact_text("nothing of note"), "nothing of note");
}

}  // namespace
}  // namespace holdfast
