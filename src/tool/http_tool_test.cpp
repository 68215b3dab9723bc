// HTTP tools over a real server on the loopback: what it is sent, and what each end of a call means
// (spec, section 5 "Tools of an agent").

#include "tool/http_tool.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "base/text.hpp"
#include "support/stub_server.hpp"
#include "support/tls_server.hpp"
#include "tool/check_spec.hpp"
#include "tool/tool_test_support.hpp"
#include "tool/toolbox.hpp"

namespace holdfast {
namespace {

using testing::StubAnswer;
using testing::StubRequest;
using testing::StubServer;

constexpr Effect kEffects[] = {Effect::read, Effect::idempotent_write,
                               Effect::non_idempotent_write};

class HttpToolTest : public ::testing::Test {
 protected:
  HttpToolTest() {
    spec_.name = "lookup";
    spec_.effect = Effect::read;
    spec_.parameters = {{"type", "object"}, {"required", {"id"}}};
    spec_.timeout = std::chrono::minutes(1);
    spec_.http.emplace();
    spec_.http->url = server_.url() + "/t/{id}";
  }
  void TearDown() override {
    for (const char* name : {"HTTP_TOOL_TOKEN", "HTTP_TOOL_KEY"}) unsetenv(name);
  }
  ToolOutcome call(Json arguments = Json::object()) {
    arguments.emplace("id", 7);
    StepContext step;
    step.key = "tool:lookup#1.1";
    step.idempotency_key = "run-1/tool:lookup#1.1";
    step.timeout = spec_.timeout;
    step.stop = stop_.get_token();
    const auto box = make_toolbox({spec_}, real_env(), limits_, hosts_);
    return box->call(*box->find("lookup"), arguments, step);
  }
  Failure failure() {
    return failure_of([&] { call(); });
  }
  StubRequest request() const {
    const auto all = server_.requests();
    return all.empty() ? StubRequest() : all.back();
  }
  std::string header(const std::string& name) const {
    const StubRequest sent = request();
    const auto it = sent.headers.find(name);
    return it == sent.headers.end() ? "(none)" : it->second;
  }
  void play_end(StubAnswer::End end, bool before_status) {
    StubAnswer answer = StubAnswer::json(200, "{\"half\": ");
    if (!before_status) answer.headers.emplace_back("content-length", "1000");
    answer.end = end;
    answer.before_status = before_status;
    server_.play(answer);
  }

  StubServer server_;
  ToolSpec spec_;
  Limits limits_;
  std::vector<std::string> hosts_;
  std::stop_source stop_;
};

TEST_F(HttpToolTest, SendsTheRestOfTheArgumentsAsABody) {
  for (const char* method : {"POST", "PUT", "PATCH"}) {
    server_.play(StubAnswer::json(200, "{\"ok\": true}"));
    spec_.http->method = method;
    const ToolOutcome outcome = call({{"id", "a/b"}, {"note", "x"}, {"list", {1, 2}}});
    EXPECT_EQ(outcome.result, (Json{{"ok", true}}));
    EXPECT_FALSE(outcome.is_error);
    EXPECT_EQ(request().line, std::string(method) + " /v1/t/a%2Fb HTTP/1.1");
    EXPECT_EQ(Json::parse(request().body), (Json{{"note", "x"}, {"list", {1, 2}}}));
    EXPECT_EQ(header("content-type"), "application/json");
  }
}

TEST_F(HttpToolTest, SendsTheRestOfTheArgumentsAsAQueryWhereThereIsNoBody) {
  for (const char* method : {"GET", "DELETE"}) {
    server_.play(StubAnswer::json(200, "found"));
    spec_.http->method = method;
    EXPECT_EQ(call({{"a", "x y&z"}, {"n", nullptr}, {"o", {{"p", 1}}}}).result, "found");
    EXPECT_EQ(request().line,
              std::string(method) + " /v1/t/7?a=x%20y%26z&o=%7B%22p%22%3A1%7D HTTP/1.1");
    EXPECT_EQ(request().body, "");
  }
}

TEST_F(HttpToolTest, SendsItsHeadersAndTheKeyOfAWrite) {
  setenv("HTTP_TOOL_TOKEN", "token-0123456789", 1);
  setenv("HTTP_TOOL_KEY", "key-0123456789", 1);
  spec_.http->headers = {{"accept", "text/csv"}, {"X-Team", "ops"}};
  spec_.http->header_env = {{"X-Key", "HTTP_TOOL_KEY"}};
  spec_.http->bearer_env = "HTTP_TOOL_TOKEN";
  for (const Effect effect : kEffects) {
    server_.play(StubAnswer::json(200, "{}"));
    spec_.effect = effect;
    call();
    EXPECT_EQ(header("authorization"), "Bearer token-0123456789");
    EXPECT_EQ(header("x-key"), "key-0123456789");
    EXPECT_EQ(header("x-team"), "ops");
    EXPECT_EQ(header("accept"), "text/csv");
    EXPECT_EQ(header("idempotency-key"),
              effect == Effect::read ? "(none)" : "run-1/tool:lookup#1.1");
  }
}

TEST_F(HttpToolTest, KeepsItsSecretsOutOfWhatAServerRepeats) {
  setenv("HTTP_TOOL_TOKEN", "token-0123456789", 1);
  spec_.http->bearer_env = "HTTP_TOOL_TOKEN";
  StubAnswer echo = StubAnswer::json(302, "you sent token-0123456789");
  echo.headers.emplace_back("Location", "https://elsewhere.example/?t=token-0123456789");
  server_.play(echo);
  const std::string shown = dump_json(call().result);
  EXPECT_EQ(shown.find("0123456789"), std::string::npos) << shown;
  EXPECT_NE(shown.find("[redacted]"), std::string::npos) << shown;
}

TEST_F(HttpToolTest, KeepsASecretOutOfAResultThatEndsWithinIt) {
  const std::string token = "token-" + std::string(300, '7');
  setenv("HTTP_TOOL_TOKEN", token.c_str(), 1);
  spec_.http->bearer_env = "HTTP_TOOL_TOKEN";
  limits_.result_bytes = 1000;
  for (const std::size_t before : {600U, 800U, 900U}) {
    server_.play(
        StubAnswer::json(200, std::string(before, 'x') + token + std::string(200'000, 'y')));
    const std::string shown = dump_json(call().result);
    EXPECT_EQ(shown.find("77"), std::string::npos) << shown;
  }
}

TEST_F(HttpToolTest, NamesASecretThatIsMissingBeforeAnythingIsSent) {
  spec_.http->bearer_env = "HTTP_TOOL_TOKEN";
  for (const char* value : {"", "line\r\nX-Evil: 1"}) {
    setenv("HTTP_TOOL_TOKEN", value, 1);
    const Failure told = failure();
    EXPECT_EQ(told.cls, FailureClass::configuration);
    EXPECT_TRUE(told.not_started);
    EXPECT_NE(told.message.find("HTTP_TOOL_TOKEN"), std::string::npos);
    EXPECT_EQ(told.message.find("Evil"), std::string::npos);
  }
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(HttpToolTest, GoesToNoHostThatIsNotListed) {
  hosts_ = {"api.example.com"};
  const Failure told = failure();
  EXPECT_EQ(told.cls, FailureClass::configuration);
  EXPECT_TRUE(told.not_started);
  EXPECT_NE(told.message.find("127.0.0.1"), std::string::npos) << told.message;
  EXPECT_TRUE(server_.requests().empty());
  hosts_ = {"127.0.0.1"};
  server_.play(StubAnswer::json(200, "{}"));
  EXPECT_FALSE(call().is_error);
}

TEST_F(HttpToolTest, TellsTheModelOfArgumentsThatLeaveTheirPlace) {
  const ToolOutcome outcome = call({{"id", "../admin"}});
  EXPECT_TRUE(outcome.is_error);
  EXPECT_NE(dump_json(outcome.result).find("nothing was sent"), std::string::npos);
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(HttpToolTest, FollowsNoRedirect) {
  StubServer other;
  StubAnswer redirect = StubAnswer::json(307, "");
  redirect.headers.emplace_back("Location", other.url() + "/elsewhere");
  server_.play(redirect);
  const ToolOutcome outcome = call();
  EXPECT_TRUE(outcome.is_error);
  EXPECT_NE(dump_json(outcome.result).find("not followed"), std::string::npos);
  EXPECT_TRUE(other.requests().empty());
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(HttpToolTest, AnAnswerIsAResultForTheModelWhateverItsStatus) {
  for (const int status : {400, 404, 409, 422, 429, 500, 501}) {
    for (const Effect effect : kEffects) {
      StubAnswer answer = StubAnswer::json(status, "{\"why\": \"so\"}");
      answer.headers.emplace_back("Retry-After", "7");
      server_.play(answer);
      spec_.effect = effect;
      const ToolOutcome outcome = call();
      EXPECT_TRUE(outcome.is_error);
      EXPECT_EQ(outcome.result["status"], status);
      EXPECT_EQ(outcome.result["body"], (Json{{"why", "so"}}));
      EXPECT_NE(outcome.result["error"].get<std::string>().find("retry-after: 7"),
                std::string::npos);
    }
  }
  server_.play(StubAnswer::json(204, ""));
  EXPECT_EQ(call().result, (Json{{"status", 204}}));
}

TEST_F(HttpToolTest, AGatewaysAnswerDoesNotSayWhetherAWriteHappened) {
  for (const int status : {502, 503, 504, 520, 524}) {
    for (const Effect effect : {Effect::read, Effect::idempotent_write}) {
      server_.play(StubAnswer::json(status, ""));
      spec_.effect = effect;
      EXPECT_EQ(call().result["status"], status);
    }
    server_.play(StubAnswer::json(status, ""));
    spec_.effect = Effect::non_idempotent_write;
    const Failure told = failure();
    EXPECT_TRUE(told.outcome_unknown) << status;
    EXPECT_TRUE(told.may_still_run) << status;
    EXPECT_FALSE(told.not_started) << status;
  }
  // Whoever says when to come back has not taken the request on.
  StubAnswer busy = StubAnswer::json(503, "");
  busy.headers.emplace_back("Retry-After", "30");
  server_.play(busy);
  EXPECT_EQ(call().result["status"], 503);
}

TEST_F(HttpToolTest, ALostAnswerOfAWriteHasAnUnknownOutcome) {
  for (const auto end :
       {StubAnswer::End::reset, StubAnswer::End::mute, StubAnswer::End::gibberish}) {
    for (const bool before_status : {true, false}) {
      spec_.effect = Effect::read;
      play_end(end, before_status);
      const Failure of_read = failure();
      EXPECT_TRUE(is_retryable(of_read.cls)) << of_read.message;
      EXPECT_FALSE(of_read.outcome_unknown);
      EXPECT_FALSE(of_read.not_started);

      spec_.effect = Effect::non_idempotent_write;
      play_end(end, before_status);
      const Failure of_write = failure();
      EXPECT_EQ(of_write.cls, FailureClass::timeout);
      EXPECT_TRUE(of_write.outcome_unknown);
      EXPECT_TRUE(of_write.may_still_run);
      EXPECT_FALSE(of_write.not_started);
    }
  }
}

TEST_F(HttpToolTest, TellsTheModelOfATimeoutUnlessItWasAWrite) {
  spec_.timeout = std::chrono::milliseconds(200);
  for (const bool before_status : {true, false}) {
    spec_.effect = Effect::idempotent_write;
    play_end(StubAnswer::End::silence, before_status);
    EXPECT_EQ(call().result["error"], "got no whole answer within 200ms");
    spec_.effect = Effect::non_idempotent_write;
    play_end(StubAnswer::End::silence, before_status);
    const Failure told = failure();
    EXPECT_EQ(told.code, "timeout");
    EXPECT_TRUE(told.outcome_unknown);
    EXPECT_TRUE(told.may_still_run);
  }
}

TEST_F(HttpToolTest, IsInterruptedInMidStep) {
  for (const Effect effect : {Effect::read, Effect::non_idempotent_write}) {
    stop_ = {};
    spec_.effect = effect;
    play_end(StubAnswer::End::silence, true);
    Failure told;
    std::size_t sent = server_.requests().size();
    const auto thread = real_env().spawn({"call"}, [&] { told = failure(); });
    ASSERT_TRUE(server_.wait_for_request(sent + 1));
    stop_.request_stop();
    thread->join();
    EXPECT_EQ(told.code, "interrupted");
    EXPECT_FALSE(told.not_started);
    EXPECT_EQ(told.outcome_unknown, effect == Effect::non_idempotent_write);
  }
  const std::size_t sent = server_.requests().size();
  EXPECT_TRUE(failure().not_started);
  EXPECT_EQ(server_.requests().size(), sent);
}

TEST_F(HttpToolTest, WhatWasNeverSentDidNotHappen) {
  spec_.effect = Effect::non_idempotent_write;
  int port = 0;
  {
    const StubServer gone;
    port = gone.port();
  }
  spec_.http->url = "http://127.0.0.1:" + std::to_string(port) + "/t";
  const Failure refused = failure();
  EXPECT_EQ(refused.cls, FailureClass::connection);
  EXPECT_TRUE(refused.not_started);
  EXPECT_FALSE(refused.outcome_unknown);

  const testing::TlsServer untrusted;
  spec_.http->url = untrusted.url();
  const Failure certificate = failure();
  EXPECT_EQ(certificate.cls, FailureClass::configuration);
  EXPECT_TRUE(certificate.not_started);
  EXPECT_EQ(untrusted.requests(), 0);
}

TEST_F(HttpToolTest, CutsALongResult) {
  limits_.result_bytes = 1000;
  for (const Effect effect : kEffects) {
    spec_.effect = effect;
    server_.play(StubAnswer::json(200, std::string(100000, 'x')));
    const ToolOutcome outcome = call();
    EXPECT_FALSE(outcome.is_error);
    EXPECT_LE(dump_json(outcome.result).size(), 1000u);
    EXPECT_NE(dump_json(outcome.result).find("[cut: only the beginning"), std::string::npos);
  }
  server_.play(StubAnswer::json(400, std::string(100000, '"')));
  EXPECT_LE(dump_json(call().result).size(), 1000u);
}

TEST_F(HttpToolTest, RefusesSpecsThatCannotWork) {
  EXPECT_NO_THROW(check_tool_spec(spec_));
  const auto refuses = [&](const std::function<void(ToolSpec&)>& change) {
    ToolSpec spec = spec_;
    change(spec);
    EXPECT_THROW(check_tool_spec(spec), RefusedError);
  };
  refuses([](ToolSpec& s) { s.command = {"x"}; });
  refuses([](ToolSpec& s) { s.http->method = "post"; });
  refuses([](ToolSpec& s) { s.http->url = "http://{id}/"; });
  refuses([](ToolSpec& s) { s.http->headers = {{"a b", "x"}}; });
  refuses([](ToolSpec& s) { s.http->headers = {{"a", "x\r\ny: z"}}; });
  refuses([](ToolSpec& s) { s.http->header_env = {{"a", "B=C"}}; });
  refuses([](ToolSpec& s) { s.http->bearer_env = "B=C"; });
  refuses([](ToolSpec& s) { s.http->connect_timeout = Duration(0); });
}

TEST_F(HttpToolTest, DoctorSaysWhatStandsInTheWay) {
  EXPECT_EQ(check_tool(spec_).grade, Finding::Grade::ok);
  EXPECT_EQ(check_tool(spec_, {"other.example"}).grade, Finding::Grade::bad);
  spec_.http->bearer_env = "HTTP_TOOL_TOKEN";
  EXPECT_NE(check_tool(spec_).text.find("HTTP_TOOL_TOKEN"), std::string::npos);
  setenv("HTTP_TOOL_TOKEN", "token-0123456789", 1);
  EXPECT_EQ(check_tool(spec_).grade, Finding::Grade::ok);
  spec_.http->url = "http://api.example.com/";
  EXPECT_NE(check_tool(spec_).text.find("unencrypted"), std::string::npos);
}

}  // namespace
}  // namespace holdfast
