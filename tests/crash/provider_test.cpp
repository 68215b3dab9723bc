// A worker of the binary against a server of models that misbehaves: what is asked again, what is
// not, and what the run says of it.

#include <gtest/gtest.h>

#include "crash/harness.hpp"
#include "support/stub_server.hpp"
#include "support/tls_server.hpp"

namespace holdfast::crash {
namespace {

using testing::StubAnswer;
using testing::StubServer;

constexpr const char* kGood =
    R"({"choices":[{"index":0,"message":{"role":"assistant","content":"well"},)"
    R"("finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}})";

constexpr const char* kGoodStream =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"well\"},"
    "\"finish_reason\":null}]}\n\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
    "data: [DONE]\n\n";

StubAnswer with(StubAnswer answer, const std::string& header, const std::string& value) {
  answer.headers.emplace_back(header, value);
  return answer;
}

StubAnswer html(int status) {
  StubAnswer answer;
  answer.status = status;
  answer.headers = {{"content-type", "text/html"}};
  answer.pieces = {"<html><body>Sign in, please</body></html>"};
  return answer;
}

/// More is promised than comes.
StubAnswer torn() {
  StubAnswer answer = StubAnswer::json(200, std::string(kGood).substr(0, 60));
  answer.headers.emplace_back("content-length", "5000");
  return answer;
}

/// A site whose one agent calls the server.
class ModelSite {
 public:
  explicit ModelSite(bool stream = false) : site_(settings(stream)) {}

  void play(StubAnswer answer) { server_.play(std::move(answer)); }
  std::string work_off() {
    run_ = site_.enqueue("caller");
    worker_.emplace(site_.worker());
    EXPECT_TRUE(eventually(seconds(60), [&] { return is_over(); })) << site_.show(run_).dump(1);
    return site_.status(run_);
  }
  /// The server is mended: the run goes on where it was, with the same question.
  void expect_redrive_succeeds() {
    play(StubAnswer::json(200, kGood));
    EXPECT_EQ(site_.cli({"redrive", run_}).code, 0);
    EXPECT_TRUE(site_.reaches(run_, "completed"));
    EXPECT_EQ(site_.show(run_).at("answer"), "well");
    expect_same_question();
  }
  /// What failed left nothing in the conversation.
  void expect_same_question() {
    const auto requests = server_.requests();
    for (const auto& request : requests) EXPECT_EQ(request.body, requests.front().body);
  }
  std::size_t requests() const { return server_.requests().size(); }
  Json shown() { return site_.show(run_); }
  std::vector<Event> requeues() {
    std::vector<Event> found;
    for (Event& event : site_.events(run_)) {
      if (event.kind.is(EventKind::requeued)) found.push_back(std::move(event));
    }
    return found;
  }
  Site& site() { return site_; }

 private:
  Settings settings(bool stream) const {
    Settings made;
    made.more = "[providers.live]\nkind = \"openai\"\nbase_url = \"" + server_.url() +
                "\"\nstream = " + (stream ? "true" : "false") +
                "\n[agents.caller]\nmodels = [\"live/m\"]\n";
    return made;
  }
  bool is_over() {
    const std::string now = site_.status(run_);
    return now == "completed" || now == "failed";
  }

  StubServer server_;
  Site site_;
  std::string run_;
  std::optional<Process> worker_;
};

TEST(Provider, AnOverloadedModelIsAskedAgainNoSoonerThanItSays) {
  for (const bool stream : {false, true}) {
    SCOPED_TRACE(stream ? "stream" : "whole");
    ModelSite model(stream);
    const auto overloaded =
        with(StubAnswer::json(529, R"({"error":{"type":"overloaded_error"}})"), "Retry-After", "2");
    model.play(overloaded);
    model.play(overloaded);
    model.play(stream ? StubAnswer::events(kGoodStream) : StubAnswer::json(200, kGood));
    EXPECT_EQ(model.work_off(), "completed");
    EXPECT_EQ(model.requests(), 3u);
    EXPECT_EQ(model.shown().at("requeue_count"), 2);
    const auto requeues = model.requeues();
    ASSERT_EQ(requeues.size(), 2u);
    const auto claims = model.site().events(model.shown().at("id"));
    WallTime asked{};
    for (const Event& event : claims) {
      if (event.kind.is(EventKind::requeued)) {
        EXPECT_EQ(event.payload.at("delay_source"), "retry-after") << event.payload;
        asked = event.at;
      } else if (event.kind.is(EventKind::claimed) && asked != WallTime{}) {
        EXPECT_GE(event.at - asked, seconds(2));
      }
    }
    model.expect_same_question();
  }
}

struct Hint {
  std::string header;
  std::string value;
  std::string source;  ///< that decided
};

TEST(Provider, AHintOfAnyFormIsFollowedOrIgnoredAndNamed) {
  const std::vector<Hint> hints = {
      {"Retry-After", "1", "retry-after"},       {"RETRY-AFTER", "1", "retry-after"},
      {"retry-after-ms", "1100", "retry-after"}, {"Retry-After", "soon", "backoff"},
      {"Retry-After", "-5", "backoff"},          {"Retry-After", "", "backoff"}};
  for (const Hint& hint : hints) {
    SCOPED_TRACE(hint.header + ": " + hint.value);
    ModelSite model;
    model.play(
        with(StubAnswer::json(429, R"({"error":{"type":"requests"}})"), hint.header, hint.value));
    model.play(StubAnswer::json(200, kGood));
    EXPECT_EQ(model.work_off(), "completed");
    EXPECT_EQ(model.requests(), 2u);
    const auto requeues = model.requeues();
    ASSERT_EQ(requeues.size(), 1u);
    const std::string source = requeues.front().payload.at("delay_source");
    EXPECT_EQ(source.rfind(hint.source, 0), 0u) << source;
  }
}

struct Final {
  std::string what;
  StubAnswer answer;
  std::string cls;
};

TEST(Provider, AFailureThatCannotPassIsAskedOnceAndRedrivenWhenItIsMended) {
  const std::string filtered_choice =
      R"({"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":)"
      R"("content_filter"}]})";
  const std::vector<Final> all = {
      {"a quota that is spent",
       StubAnswer::json(429, R"({"error":{"type":"insufficient_quota","message":"pay first"}})"),
       "quota_exhausted"},
      {"a quota by its code",
       StubAnswer::json(429, R"({"error":{"type":"x","code":"insufficient_quota"}})"),
       "quota_exhausted"},
      {"too long by code",
       StubAnswer::json(400, R"({"error":{"code":"context_length_exceeded","message":"x"}})"),
       "context_length"},
      {"too long by a sentence",
       StubAnswer::json(400, R"({"error":{"message":"This model's maximum context length is )"
                             R"(8192 tokens, however you requested 9000 tokens."}})"),
       "context_length"},
      {"filtered by status",
       StubAnswer::json(400,
                        "{\"error\":{\"code\":\"content_filter\",\"message\":\"It\u2019s "
                        "filtered\"}}"),
       "content_policy"},
      {"filtered by the end", StubAnswer::json(200, filtered_choice), "content_policy"},
      {"filtered away",
       StubAnswer::json(200, R"({"choices":[],"prompt_filter_results":[{"content_filter_results")"
                             R"(:{"hate":{"filtered":true}}}]})"),
       "content_policy"},
      {"a page for people", html(200), "configuration"},
      {"a key that is wrong", StubAnswer::json(401, R"({"error":{"message":"no"}})"), "auth"},
      {"an error inside a 200",
       StubAnswer::json(200, R"({"error":{"code":"context_length_exceeded","message":"x"}})"),
       "context_length"},
  };
  for (const Final& one : all) {
    SCOPED_TRACE(one.what);
    ModelSite model;
    model.play(one.answer);
    EXPECT_EQ(model.work_off(), "failed");
    EXPECT_EQ(model.requests(), 1u);
    const Json shown = model.shown();
    EXPECT_EQ(shown.at("reason"), "not_retryable");
    EXPECT_EQ(shown.at("requeue_count"), 0);
    EXPECT_EQ(shown.at("error").at("class"), one.cls) << shown.at("error");
    EXPECT_LE(shown.at("error").at("message").get<std::string>().size(), 4200u);
    if (one.cls == "content_policy") {
      EXPECT_EQ(shown.at("error").at("code"), "content_filter");
    }
    model.expect_redrive_succeeds();
  }
}

TEST(Provider, AnAnswerCutAtTheTokenLimitIsSaidToBeSoEverywhere) {
  ModelSite model;
  model.play(StubAnswer::json(
      200, R"({"choices":[{"index":0,"message":{"role":"assistant","content":"Once upon a"},)"
           R"("finish_reason":"length"}]})"));
  EXPECT_EQ(model.work_off(), "completed");
  EXPECT_EQ(model.requests(), 1u);
  const Json shown = model.shown();
  EXPECT_EQ(shown.at("answer"), "Once upon a");
  EXPECT_EQ(shown.at("finish"), "length");
  const std::string id = shown.at("id");
  for (const Event& event : model.site().events(id)) {
    if (event.kind.is(EventKind::model) || event.kind.is(EventKind::completed)) {
      EXPECT_EQ(event.payload.at("finish"), "length") << event.payload;
    }
  }
  for (const char* command : {"show", "why", "events"}) {
    const Result told = model.site().cli({command, id});
    EXPECT_NE(told.out.find("token limit"), std::string::npos) << told.out;
  }
  EXPECT_EQ(Json::parse(model.site().cli({"wait", id, "--json"}).out).at("finish"), "length");
  EXPECT_TRUE(model.site().runtime().verify().front().grade != Finding::Grade::bad);
}

TEST(Provider, AHostOrCertificateThatIsWrongFollowsItsClass) {
  testing::TlsServer server;
  const std::string unknown = "http://" + std::string(64, 'a') + ".invalid/v1";
  Settings settings;
  settings.max_requeues = 1;
  settings.more = "[providers.astray]\nkind = \"openai\"\nbase_url = \"" + unknown +
                  "\"\n[agents.astray]\nmodels = [\"astray/m\"]\n"
                  "[providers.untrusted]\nkind = \"openai\"\nbase_url = \"" +
                  server.url() + "\"\n[agents.untrusted]\nmodels = [\"untrusted/m\"]\n";
  Site site(settings);
  const auto astray = site.enqueue("astray");
  const auto untrusted = site.enqueue("untrusted");
  const auto worker = site.worker();
  ASSERT_TRUE(site.reaches(astray, "failed"));
  ASSERT_TRUE(site.reaches(untrusted, "failed"));
  EXPECT_EQ(site.show(astray).at("reason"), "retries_exhausted");
  EXPECT_EQ(site.show(astray).at("error").at("class"), "connection");
  EXPECT_EQ(site.show(astray).at("error").at("code"), "dns");
  EXPECT_EQ(site.show(untrusted).at("reason"), "not_retryable");
  EXPECT_EQ(site.show(untrusted).at("error").at("class"), "configuration");
  EXPECT_EQ(site.show(untrusted).at("error").at("code"), "tls_verify");
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(server.requests(), 0);
}

TEST(Provider, AnAnswerThatIsNoneIsAskedForAgain) {
  const std::vector<std::pair<std::string, StubAnswer>> all = {
      {"a page of a proxy", html(502)},
      {"an empty page of the edge", StubAnswer::json(520, "")},
      {"a limit that does not say so in JSON", html(429)},
      {"cut within what was promised", torn()},
      {"cut JSON", StubAnswer::json(200, std::string(kGood).substr(0, 60))},
      {"no choices", StubAnswer::json(200, R"({"choices":[]})")},
      {"null for choices", StubAnswer::json(200, R"({"choices":null})")},
      {"nothing for choices", StubAnswer::json(200, R"({"id":"x"})")},
      {"choices of another type", StubAnswer::json(200, R"({"choices":"two"})")},
  };
  for (const auto& [what, answer] : all) {
    SCOPED_TRACE(what);
    ModelSite model;
    model.play(answer);
    model.play(StubAnswer::json(200, kGood));
    EXPECT_EQ(model.work_off(), "completed");
    EXPECT_EQ(model.requests(), 2u);
    EXPECT_EQ(model.shown().at("requeue_count"), 1);
    model.expect_same_question();
  }
}

TEST(Provider, AnAnswerThatNeverComesRightSpendsTheBudgetAndNoMore) {
  ModelSite model;
  for (int i = 0; i < 6; ++i) model.play(StubAnswer::json(200, R"({"choices":[]})"));
  EXPECT_EQ(model.work_off(), "failed");
  EXPECT_EQ(model.requests(), 4u);
  EXPECT_EQ(model.shown().at("reason"), "retries_exhausted");
}

}  // namespace
}  // namespace holdfast::crash
