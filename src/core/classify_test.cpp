#include "core/classify.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>

#include "base/text.hpp"

namespace holdfast {
namespace {

using enum FailureClass;

TransportPhase phase_of(const std::string& word) {
  if (word == "local") return TransportPhase::local;
  if (word == "connect") return TransportPhase::connect;
  if (word == "tls") return TransportPhase::tls;
  if (word == "request") return TransportPhase::request;
  if (word == "first_byte") return TransportPhase::first_byte;
  if (word == "body") return TransportPhase::body;
  if (word == "stream") return TransportPhase::stream;
  if (word == "response") return TransportPhase::response;
  return TransportPhase::unknown;
}

std::vector<Json> recorded_rows() {
  std::ifstream file(std::string(HOLDFAST_SOURCE_DIR) + "/tests/data/provider-errors.jsonl");
  std::vector<Json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
  return rows;
}

Evidence evidence_of(const Json& row) {
  Evidence evidence;
  evidence.provider = row.at("provider");
  if (row.at("status").is_number()) evidence.status = row.at("status").get<int>();
  for (const auto& [name, value] : row.at("headers").items()) evidence.headers[name] = value;
  if (row.at("body").is_string()) evidence.body = row.at("body");
  evidence.body_was_success = row.at("stage") == "body_200";
  if (const Json& error = row.at("transport_error"); error.is_object()) {
    evidence.transport_kind = error.at("kind");
    evidence.phase = phase_of(error.at("phase"));
  }
  return evidence;
}

Evidence http(int status, std::string body, std::map<std::string, std::string> headers = {}) {
  Evidence evidence;
  evidence.status = status;
  evidence.body = std::move(body);
  evidence.headers = std::move(headers);
  evidence.provider = "main";
  evidence.model = "gpt";
  return evidence;
}

Evidence broken(std::string kind, TransportPhase phase) {
  Evidence evidence;
  evidence.transport_kind = std::move(kind);
  evidence.phase = phase;
  return evidence;
}

TEST(Classify, KnowsEveryRecordedFailure) {
  int seen = 0;
  for (const Json& row : recorded_rows()) {
    const std::string stage = row.at("stage");
    if (stage == "stream" || row.at("id") == "local-circuit-open") continue;
    ++seen;
    const Failure failure = classify(evidence_of(row));
    const std::string about = row.at("id").get<std::string>() + ": " + failure.message;
    EXPECT_EQ(to_word(failure.cls), row.at("expected_class").get<std::string>()) << about;
    EXPECT_EQ(failure.should_retry.value_or(is_retryable(failure.cls)),
              row.at("expected_retryable").get<bool>())
        << about;
    std::optional<std::int64_t> hint;
    if (failure.retry_after) hint = failure.retry_after->count();
    std::optional<std::int64_t> expected;
    if (row.at("delay_hint_ms").is_number()) expected = row.at("delay_hint_ms").get<std::int64_t>();
    EXPECT_EQ(hint, expected) << about << " by " << failure.delay_source;
    EXPECT_FALSE(failure.code.empty()) << about;
  }
  EXPECT_GE(seen, 140);
}

/// The specification's table, said once more in other words.
FailureClass expected_for(int status) {
  if (status == 429) return rate_limit;
  if (status == 529 || status == 503) return overloaded;
  if (status == 408 || status == 504 || status == 522 || status == 524) return timeout;
  if (status == 409 || status == 425 || status == 499) return server_error;
  if (status == 401 || status == 403 || status == 451) return auth;
  if (status == 402) return quota_exhausted;
  if (status == 404 || status == 405 || status == 407 || status == 410 || status == 501) {
    return configuration;
  }
  if (status >= 500) return server_error;
  if (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) {
    return configuration;
  }
  if (status >= 300) return client_error;
  if (status >= 200) return server_error;
  return unknown;
}

TEST(Classify, FollowsTheTableForEveryStatusAndKindOfBody) {
  const std::string json = R"({"error":{"message":"something happened","type":null,"code":null}})";
  const std::string html = "<!DOCTYPE html><html><head><title>Oops</title></head></html>";
  for (int status = 100; status < 600; ++status) {
    EXPECT_EQ(classify(http(status, json, {{"content-type", "application/json"}})).cls,
              expected_for(status))
        << status << " with JSON";
    EXPECT_EQ(classify(http(status, "")).cls, expected_for(status)) << status << " without a body";
    FailureClass page = expected_for(status);
    if (status >= 200 && status < 300) page = configuration;
    EXPECT_EQ(classify(http(status, html, {{"content-type", "text/html"}})).cls, page)
        << status << " with a page";
  }
}

TEST(Classify, IsUnknownWhereNothingSpeaks) {
  EXPECT_EQ(classify(Evidence{}).cls, unknown);
  EXPECT_EQ(classify(http(999, "nope")).cls, unknown);
  EXPECT_EQ(classify(http(0, "")).cls, unknown);
  EXPECT_EQ(classify(broken("never_heard_of", TransportPhase::unknown)).cls, unknown);
}

TEST(Classify, TellsQuotaFromRateWhereverTheWordStands) {
  EXPECT_EQ(classify(http(429, R"({"error":{"type":"insufficient_quota","code":null}})")).cls,
            quota_exhausted);
  EXPECT_EQ(classify(http(429, R"({"error":{"type":"x","code":"insufficient_quota"}})")).cls,
            quota_exhausted);
  EXPECT_EQ(classify(http(429, R"({"error":{"type":"insufficient_quota",
                                            "code":"rate_limit_exceeded"}})"))
                .cls,
            quota_exhausted);
  EXPECT_EQ(classify(http(429, "insufficient_quota, says a page that is not JSON")).cls,
            rate_limit);
  EXPECT_EQ(
      classify(http(429, R"({"error":{"type":"requests","code":"rate_limit_exceeded"}})")).cls,
      rate_limit);
}

TEST(Classify, KnowsAPromptThatIsTooLongByCodeAndBySentence) {
  EXPECT_EQ(
      classify(http(400, R"({"error":{"code":"context_length_exceeded","message":"x"}})")).cls,
      context_length);
  EXPECT_EQ(
      classify(
          http(400, R"({"error":{"message":"the request exceeds the available context size"}})"))
          .cls,
      context_length);
  EXPECT_EQ(classify(http(400, R"({"error":{"code":400,"type":"exceed_context_size_error",
                                            "message":"too big","n_ctx":4096}})"))
                .cls,
            context_length);
  EXPECT_FALSE(is_retryable(classify(http(413, "")).cls));
  EXPECT_FALSE(is_retryable(
      classify(http(413, R"({"error":{"code":"rate_limit_exceeded","message":"too large"}})"))
          .cls));
}

TEST(Classify, GivesContentPolicyOneCodeInAllItsShapes) {
  const Failure by_code = classify(
      http(400, "{\"error\":{\"code\":\"content_filter\",\"message\":\"It\u2019s filtered\"}}"));
  Evidence finish = http(200, R"({"choices":[{"message":{"content":""},
                                               "finish_reason":"content_filter"}]})");
  finish.body_was_success = true;
  Evidence filtered = http(200, R"({"choices":[],"prompt_filter_results":[{"prompt_index":0,
      "content_filter_results":{"hate":{"filtered":true,"severity":"high"}}}]})");
  filtered.body_was_success = true;
  for (const Failure& failure : {by_code, classify(finish), classify(filtered)}) {
    EXPECT_EQ(failure.cls, content_policy) << failure.message;
    EXPECT_EQ(failure.code, "content_filter") << failure.message;
  }
}

TEST(Classify, JudgesTransportFailuresByWhatBroke) {
  struct Row {
    const char* kind;
    TransportPhase phase;
    FailureClass cls;
  };
  const Row rows[] = {{"dns", TransportPhase::connect, connection},
                      {"connection_refused", TransportPhase::connect, connection},
                      {"connection_reset", TransportPhase::body, connection},
                      {"tls_handshake", TransportPhase::tls, connection},
                      {"tls_verify", TransportPhase::tls, configuration},
                      {"tls_certificate_expired", TransportPhase::tls, configuration},
                      {"total_timeout", TransportPhase::body, timeout},
                      {"interrupted", TransportPhase::stream, timeout},
                      {"something_new", TransportPhase::first_byte, connection},
                      {"something_new", TransportPhase::local, unknown}};
  for (const Row& row : rows) {
    EXPECT_EQ(classify(broken(row.kind, row.phase)).cls, row.cls) << row.kind;
  }
}

TEST(Classify, LetsAnErrorStatusWinOverABrokenBody) {
  Evidence evidence = http(401, "");
  evidence.transport_kind = "partial_body";
  evidence.phase = TransportPhase::body;
  EXPECT_EQ(classify(evidence).cls, auth);
  evidence.status = 200;
  EXPECT_EQ(classify(evidence).cls, connection);
}

TEST(Classify, TellsInOneShortLineWhatBroke) {
  const std::string kind = "re\nset\x84 by" + std::string(5000, 'x');
  const Failure failure = classify(broken(kind, TransportPhase::body));
  EXPECT_EQ(failure.message.find('\n'), std::string::npos);
  EXPECT_EQ(failure.message, clean_utf8(failure.message));
  EXPECT_LT(failure.message.size(), 1000u);
  EXPECT_NE(failure.message.find("re set"), std::string::npos);
}

TEST(Classify, ReportsTheServersOwnWordAboutRetrying) {
  const Failure veto = classify(http(500, "", {{"x-should-retry", "false"}}));
  EXPECT_EQ(veto.cls, server_error);
  EXPECT_EQ(veto.should_retry, false);
  EXPECT_EQ(classify(http(400, "", {{"x-should-retry", "true"}})).should_retry, true);
  EXPECT_EQ(classify(http(400, "", {{"x-should-retry", "maybe"}})).should_retry, std::nullopt);
}

TEST(Classify, NamesProviderModelStatusAndAShortExcerpt) {
  Evidence evidence = http(503, R"({"error":{"message":"the engine\n\tis\u0000 tired"}})");
  const Failure failure = classify(evidence);
  EXPECT_EQ(failure.message, "main/gpt: status 503 (overloaded, http_503): the engine is tired");
  EXPECT_EQ(failure.provider, "main");
  EXPECT_EQ(failure.model, "gpt");
}

TEST(Classify, NeverRepeatsAKey) {
  const char* texts[] = {
      "Incorrect key provided: sk-proj-abc123DEF456ghi789.",
      "The API key sent is not correct: sk-xx****xx01.",
      "got header Authorization: Bearer abc123DEF456ghi789",
      "api_key=abc123DEF456ghi789 is wrong",
      "x-api-key: abc123DEF456ghi789",
  };
  for (const char* text : texts) {
    const Failure failure = classify(http(401, Json{{"error", {{"message", text}}}}.dump()));
    EXPECT_EQ(failure.message.find("abc123"), std::string::npos) << failure.message;
    EXPECT_EQ(failure.message.find("xx01"), std::string::npos) << failure.message;
    EXPECT_NE(failure.message.find("[redacted]"), std::string::npos) << failure.message;
  }
}

TEST(Classify, SurvivesHostileBodies) {
  std::string brackets(100000, '[');
  std::string objects;
  for (int i = 0; i < 20000; ++i) objects += R"({"error":)";
  const std::string long_text = R"({"error":{"message":")" + std::string(2 << 20, 'x') + "\"}}";
  const std::string bodies[] = {
      brackets,
      objects,
      long_text,
      std::string(2 << 20, 'y'),
      std::string("\xff\xfe\x00{", 4),
      "{\"error\":{\"message\":\"\xc3\x28\xed\xa0\x80\"}}",
      "{\"error\":\"a\\u0000b\"}",
      R"({"error":[[[]]],"code":{},"type":7,"message":[1]})",
      R"({"error":{"code":1e308,"details":7,"metadata":[],"type":{}}})",
      R"({"error":{"details":[1,null,{"violations":{}}]}})",
      R"({"choices":{"a":1},"promptFeedback":null,"retry_after":"1e999"})",
      R"({"error":{"retry_after":-1},"retry_after_ms":0})",
      "null",
      "\"text\"",
      "[]"};
  for (const std::string& body : bodies) {
    for (int status : {200, 400, 500}) {
      Evidence evidence = http(status, body);
      const Failure failure = classify(evidence);
      EXPECT_LT(failure.message.size(), evidence.excerpt_bytes + 200) << body.substr(0, 60);
      EXPECT_LE(failure.code.size(), 64u);
      EXPECT_EQ(clean_utf8(failure.message), failure.message);
      EXPECT_EQ(failure.message.find('\0'), std::string::npos);
      EXPECT_EQ(failure.retry_after, std::nullopt);
    }
  }
}

RC_GTEST_PROP(Classify, NeverThrowsAndNeverHintsBackwards, ()) {
  Evidence evidence;
  evidence.status = *rc::gen::inRange(-5, 1100);
  evidence.body = *rc::gen::arbitrary<std::string>();
  for (const char* name : {"retry-after", "retry-after-ms", "x-ratelimit-remaining-requests",
                           "x-ratelimit-reset-requests", "date", "x-should-retry"}) {
    evidence.headers[name] = *rc::gen::oneOf(
        rc::gen::arbitrary<std::string>(), rc::gen::element<std::string>("0", "-1", "nan", "inf"));
  }
  const Failure failure = classify(evidence);
  RC_ASSERT(!failure.retry_after || failure.retry_after->count() > 0);
  RC_ASSERT(failure.retry_after.has_value() == !failure.delay_source.empty());
}

std::optional<std::int64_t> hint_of(std::map<std::string, std::string> headers,
                                    std::string body = {}, std::string* source = nullptr) {
  auto hint = delay_hint(http(429, std::move(body), std::move(headers)), source);
  if (!hint) return std::nullopt;
  return hint->count();
}

TEST(DelayHint, ReadsEveryForm) {
  const std::string now = "Tue, 03 Nov 2026 10:00:00 GMT";
  std::string source;
  EXPECT_EQ(hint_of({{"retry-after-ms", "1873"}, {"retry-after", "2"}}, "", &source), 1873);
  EXPECT_EQ(source, "retry-after-ms");
  EXPECT_EQ(hint_of({{"retry-after", " 6 "}}, "", &source), 6000);
  EXPECT_EQ(source, "retry-after");
  EXPECT_EQ(hint_of({{"retry-after", "Tue, 03 Nov 2026 10:00:42 GMT"}, {"date", now}}), 42000);
  EXPECT_EQ(hint_of({{"retry-after", "Tuesday, 03-Nov-26 10:00:42 GMT"}, {"date", now}}), 42000);
  EXPECT_EQ(hint_of({{"retry-after", "Tue Nov  3 10:00:42 2026"}, {"date", now}}), 42000);
  EXPECT_EQ(hint_of({}, R"({"error":{"details":[{"retryDelay":"34.4s"}]}})", &source), 34400);
  EXPECT_EQ(source, "body");
  EXPECT_EQ(hint_of({{"x-ratelimit-remaining-tokens", "0"}, {"x-ratelimit-reset-tokens", "6m0s"}},
                    "", &source),
            360000);
  EXPECT_EQ(source, "x-ratelimit-reset-tokens");
  EXPECT_EQ(hint_of({{"x-ratelimit-remaining-tokens", "3"}, {"x-ratelimit-reset-tokens", "6m0s"}}),
            std::nullopt);
  EXPECT_EQ(hint_of({{"x-ratelimit-remaining", "0"},
                     {"x-ratelimit-reset", "1793700009000"},
                     {"date", "Tue, 03 Nov 2026 10:00:00 GMT"}}),
            9000);
  EXPECT_EQ(hint_of({}, R"({"error":{"message":"Please try again in 7m12s."}})", &source), 432000);
  EXPECT_EQ(source, "text");
  EXPECT_EQ(hint_of({}, R"({"error":{"message":"Retry after 37 seconds"}})"), 37000);
}

TEST(DelayHint, IgnoresWhatCannotBeMeant) {
  for (const char* value : {"0", "-5", "abc", "nan", "inf", "-inf", "", "1e999", "3 sheep", "0x10",
                            "Tue, 03 Nov 2026 10:00:42 GMT", "Tue, 99 Foo 2026 99:99:99 GMT"}) {
    EXPECT_EQ(hint_of({{"retry-after", value}}), std::nullopt) << value;
  }
  EXPECT_EQ(hint_of({{"retry-after", "Tue, 03 Nov 2026 09:00:00 GMT"},
                     {"date", "Tue, 03 Nov 2026 10:00:00 GMT"}}),
            std::nullopt);
}

TEST(DelayHint, SurvivesHugeValues) {
  EXPECT_EQ(hint_of({{"retry-after", "99999999"}}), 99999999000);
  const auto huge = hint_of({{"retry-after", "1e300"}});
  ASSERT_TRUE(huge);
  EXPECT_GT(*huge, 0);
}

TEST(FallsBack, GoesOnForRetryableClassesAndQuota) {
  for (FailureClass cls :
       {connection, timeout, rate_limit, overloaded, server_error, circuit_open, quota_exhausted}) {
    EXPECT_TRUE(falls_back(cls)) << to_word(cls);
  }
  for (FailureClass cls :
       {auth, configuration, client_error, context_length, content_policy, unknown}) {
    EXPECT_FALSE(falls_back(cls)) << to_word(cls);
  }
}

}  // namespace
}  // namespace holdfast
