#include <gtest/gtest.h>

#include <set>

#include "base/text.hpp"
#include "core/run_codec.hpp"
#include "core/test_runs.hpp"

namespace holdfast {
namespace {

using namespace testing_runs;  // NOLINT(google-build-using-namespace)

std::set<std::string> keys_of(const Json& json) {
  std::set<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.insert(key);
  return keys;
}

TEST(RunJson, HasEveryFieldAlways) {
  const std::set<std::string> fields = {
      "id",         "agent",          "queue",           "status",        "reason",
      "origin",     "priority",       "input",           "answer",        "error",
      "created_at", "available_at",   "started_at",      "finished_at",   "claimed_by",
      "claim",      "requeue_count",  "max_requeues",    "reclaim_count", "redrive_count",
      "iterations", "usage",          "waiting_for",     "labels",        "abandoned",
      "pending",    "pending_effect", "lease_expires_at"};
  EXPECT_EQ(keys_of(to_json(holdfast::Run{})), fields);
  EXPECT_EQ(keys_of(to_json(with(failed_run(), unsafe_fence()))), fields);
}

TEST(RunJson, IsNullWhereNothingIs) {
  const Json json = to_json(queued_run());
  for (const char* key : {"reason", "answer", "error", "started_at", "finished_at", "claimed_by",
                          "lease_expires_at", "pending", "pending_effect", "waiting_for"}) {
    EXPECT_TRUE(json[key].is_null()) << key;
  }
  EXPECT_EQ(json["labels"], Json::object());
  EXPECT_EQ(json["created_at"], "2026-11-02T07:30:00.000Z");
}

TEST(RunJson, ShowsTheFence) {
  const Json json = to_json(with(running_run(), unsafe_fence()));
  EXPECT_EQ(json["pending_effect"], "non_idempotent_write");
  EXPECT_EQ(keys_of(json["pending"]), (std::set<std::string>{"step", "name", "effect", "arguments",
                                                             "idempotency_key", "since", "claim"}));
}

TEST(RunJson, ShowsWhatIsWaitedFor) {
  holdfast::Run run = waiting_run(2);
  run.waiting_for->calls[0].decision = Verdict::denied;
  run.waiting_for->deadline = kWall;
  const Json approval = to_json(run)["waiting_for"];
  EXPECT_EQ(keys_of(approval),
            (std::set<std::string>{"kind", "turn", "deadline", "calls", "prompt"}));
  EXPECT_EQ(approval["calls"][0]["decision"], "denied");
  EXPECT_TRUE(approval["calls"][1]["decision"].is_null());
  EXPECT_EQ(approval["deadline"], "2026-11-02T08:30:00.000Z");
  const Json input = to_json(input_run())["waiting_for"];
  EXPECT_EQ(keys_of(input),
            (std::set<std::string>{"kind", "turn", "deadline", "schema", "prompt"}));
}

TEST(RunJson, ShowsWordsOfANewerBuildAsTheyAre) {
  holdfast::Run run = failed_run();
  run.status = Word<Status>(std::string("hibernating"));
  run.reason = Word<Reason>(std::string("too_cold"));
  EXPECT_EQ(to_json(run)["status"], "hibernating");
  EXPECT_EQ(to_json(run)["reason"], "too_cold");
}

TEST(RunJson, GivesTheErrorThreeFields) {
  const Json error = to_json(failed_run())["error"];
  EXPECT_EQ(error, (Json{{"class", "timeout"}, {"message", "too slow"}, {"code", ""}}));
}

TEST(EventJson, HasItsSixFields) {
  const Event event{"run-1", 3, EventKind::model, kWall, 2, {{"text", "hi"}}};
  EXPECT_EQ(to_json(event), (Json{{"run", "run-1"},
                                  {"sequence", 3},
                                  {"kind", "model"},
                                  {"at", "2026-11-02T08:30:00.000Z"},
                                  {"claim", 2},
                                  {"payload", {{"text", "hi"}}}}));
}

TEST(RunJson, IsJsonWhateverTheStoreHolds) {
  const Json damaged(Json::value_t::discarded);
  holdfast::Run run = queued_run();
  run.input = damaged;
  run.answer = damaged;
  Event event;
  event.payload = damaged;
  for (const Json& json : {to_json(run), to_json(event)}) {
    const auto read = parse_json(dump_json(json));
    ASSERT_TRUE(read) << dump_json(json);
    EXPECT_EQ(*read, json);
  }
  EXPECT_TRUE(to_json(run)["input"].contains("damaged"));
  EXPECT_TRUE(to_json(run)["answer"].contains("damaged"));
  EXPECT_TRUE(to_json(event)["payload"].contains("damaged"));
}

TEST(RunJson, ABudgetThatIsNotKnownYetIsNull) {
  holdfast::Run run;
  run.max_requeues = -1;
  EXPECT_TRUE(to_json(run).at("max_requeues").is_null());
  run.max_requeues = 0;
  EXPECT_EQ(to_json(run).at("max_requeues"), 0);
}

TEST(RunCodec, LosesNothing) {
  Policy policy;
  policy.lease = Duration(1);
  policy.margin = Duration(2);
  policy.gap_timeout = Duration(3);
  policy.strict_expiry = true;
  policy.max_requeues = 4;
  policy.backoff_base = Duration(5);
  policy.backoff_factor = 1.7;
  policy.backoff_cap = Duration(6);
  policy.jitter = 0.3;
  policy.max_wait = Duration(7);
  policy.hint_cap = Duration(8);
  policy.retry_unknown = false;
  EXPECT_EQ(decode_policy(encode(policy)), policy);

  Failure failure;
  failure.cls = FailureClass::overloaded;
  failure.code = "529";
  failure.message = "m";
  failure.retry_after = Duration(9);
  failure.delay_source = "retry-after";
  failure.should_retry = false;
  failure.provider = "p";
  failure.model = "x";
  failure.attempted = false;
  failure.not_started = true;
  failure.outcome_unknown = true;
  EXPECT_EQ(decode_failure(encode(failure)), failure);
  EXPECT_EQ(decode_failure(encode(Failure{})), Failure{});

  const Fence held = fence(Effect::idempotent_write, true, 9);
  EXPECT_EQ(decode_fence(encode(held)), held);

  Wait wait = input_run().waiting_for.value();
  wait.prompt = "why?";
  wait.timeout = Duration(10);
  wait.deadline = kWall;
  wait.calls[0].decision = Verdict::expired;
  wait.calls[0].ends_on_denial = true;
  EXPECT_EQ(decode_wait(encode(wait)), wait);
  EXPECT_EQ(decode_wait(encode(Wait{})), Wait{});

  const Usage usage{1, 2, 3, 0.1};
  EXPECT_EQ(decode_usage(encode(usage)), usage);
  const Labels labels = {{"a", "b"}, {"", "c"}};
  EXPECT_EQ(decode_labels(encode(labels)), labels);
}

TEST(RunCodec, SurvivesTextForm) {
  const Fence held = unsafe_fence();
  EXPECT_EQ(decode_fence(Json::parse(encode(held).dump())), held);
  Policy policy;
  policy.backoff_factor = 1.0 / 3;
  EXPECT_EQ(decode_policy(Json::parse(encode(policy).dump())), policy);
}

TEST(RunCodec, TakesDefaultsForWhatIsMissing) {
  for (const Json& json : {Json(), Json::object(), Json::array(), Json{{"lease", "soon"}}}) {
    EXPECT_EQ(decode_policy(json), Policy{});
    EXPECT_EQ(decode_usage(json), Usage{});
    EXPECT_EQ(decode_failure(json), Failure{});
    EXPECT_EQ(decode_wait(json), Wait{});
    EXPECT_EQ(decode_fence(json), Fence{});
  }
}

TEST(RunCodec, TakesAnUnknownEffectForTheMostCarefulOne) {
  Json json = encode(fence(Effect::read));
  json["effect"] = "write_twice";
  EXPECT_TRUE(decode_fence(json).is_unsafe());
}

/// The numbers furthest from zero that a damaged row may hold, and what is made of them: far, and
/// a few of them can be added.
struct Damaged {
  std::int64_t held;
  std::int64_t taken;
};
constexpr std::int64_t kFar = 9'007'199'254'740'992;  // 2^53
constexpr Damaged kDamaged[] = {{INT64_MAX, kFar}, {kFar + 1, kFar},   {kFar, kFar},
                                {-kFar, -kFar},    {-kFar - 1, -kFar}, {INT64_MIN, -kFar}};

TEST(RunCodec, TakesNoDurationOrTimeThatCannotBeAddedTo) {
  for (const auto& [held, taken] : kDamaged) {
    const Fence fence = decode_fence({{"since", held}, {"deadline", held}, {"timeout", held}});
    EXPECT_EQ(fence.since.time_since_epoch().count(), taken) << held;
    EXPECT_EQ(fence.deadline.time_since_epoch().count(), taken) << held;
    EXPECT_EQ(fence.timeout.count(), taken) << held;
    const Wait wait = decode_wait({{"timeout", held}, {"deadline", held}});
    EXPECT_EQ(wait.timeout.value_or(Duration(0)).count(), taken) << held;
    EXPECT_EQ(wait.deadline.value_or(WallTime()).time_since_epoch().count(), taken) << held;
    EXPECT_EQ(decode_policy({{"lease", held}}).lease.count(), taken) << held;
  }
}

TEST(RunCodec, TakesNoUsageThatCannotBeAddedTo) {
  for (const auto& [held, taken] : kDamaged) {
    const Usage usage = decode_usage(
        {{"prompt_tokens", held}, {"completion_tokens", held}, {"total_tokens", held}});
    EXPECT_EQ(usage.prompt_tokens, taken) << held;
    EXPECT_EQ(usage.completion_tokens, taken) << held;
    EXPECT_EQ(usage.total_tokens, taken) << held;
  }
}

}  // namespace
}  // namespace holdfast
