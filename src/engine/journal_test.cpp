#include "core/run_codec.hpp"
#include "engine/engine_test_support.hpp"

namespace holdfast::engine_test {
namespace {

class JournalTest : public EngineTest {};

Failure server_error() {
  Failure failure;
  failure.cls = FailureClass::server_error;
  failure.message = "it said 500";
  return failure;
}

TEST_F(JournalTest, ContinuesBehindTheLastRecordedStep) {
  std::atomic<int> first = 0;
  std::atomic<int> second = 0;
  handle("task", [&](RunContext& run) {
    Json one = run.step("one", [&] { return Json{{"n", ++first}}; });
    run.step("two", [&]() -> Json {
      if (++second == 1) throw FailureError(server_error());
      return Json("two");
    });
    return one;
  });
  const RunId id = enqueue("task");
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  EXPECT_EQ(get(id).answer, (Json{{"n", 1}}));
  EXPECT_EQ(get(id).requeue_count, 1);
}

TEST_F(JournalTest, RedriveExecutesTheFailedStepAgainAndNoOther) {
  std::atomic<int> first = 0;
  std::atomic<bool> repaired = false;
  handle("task", [&](RunContext& run) {
    run.step("one", [&] { return Json(++first); });
    return run.step("two", [&]() -> Json {
      Failure failure;
      failure.cls = FailureClass::auth;
      failure.message = "bad key";
      if (!repaired) throw FailureError(failure);
      return Json("ok");
    });
  });
  const RunId id = enqueue("task");
  work_off();
  ASSERT_TRUE(is(id, Status::failed));
  EXPECT_TRUE(get(id).reason->is(Reason::not_retryable));
  repaired = true;
  memory_->redrive(std::vector{id}, {"me", "", "op"});
  work_off();
  EXPECT_TRUE(is(id, Status::completed));
  EXPECT_EQ(first, 1);
  EXPECT_EQ(count(id, EventKind::failed), 1);
}

TEST_F(JournalTest, AChangedTaskEndsBeforeAnythingRuns) {
  std::atomic<bool> changed = false;
  std::atomic<int> refunds = 0;
  handle("task", [&](RunContext& run) -> Json {
    if (changed) {
      return run.step("refund", payment(), [&](const StepContext&) {
        ++refunds;
        return StepResult{};
      });
    }
    run.step("charge", [] { return Json(1); });
    throw FailureError(server_error());
  });
  Policy policy = patient_policy();
  policy.backoff_base = policy.backoff_cap = hours(1);
  const RunId id = enqueue("task", policy);
  work_off();
  ASSERT_TRUE(is(id, Status::queued));
  changed = true;
  memory_->wake(id, {"me", "", "op"});
  work_off();
  EXPECT_TRUE(is(id, Status::failed));
  EXPECT_EQ(refunds, 0);
  EXPECT_NE(error_of(id).find("charge"), std::string::npos);
  EXPECT_NE(error_of(id).find("refund"), std::string::npos);
}

TEST_F(JournalTest, AWriteOfUnknownOutcomeDecidesWhateverTheTaskCatches) {
  std::atomic<int> calls = 0;
  std::atomic<bool> went_on = false;
  handle("task", [&](RunContext& run) {
    try {
      run.step("pay", payment(), [&](const StepContext&) -> StepResult {
        ++calls;
        throw FailureError(server_error());
      });
    } catch (const FailureError&) {
    }
    try {
      run.step("next", [&] {
        went_on = true;
        return Json();
      });
    } catch (const FailureError&) {
    }
    return Json("all is well");
  });
  const RunId id = enqueue("task");
  work_off();
  const Row run = get(id);
  EXPECT_TRUE(run.status.is(Status::failed));
  EXPECT_TRUE(run.reason->is(Reason::not_retryable));
  EXPECT_TRUE(run.is_fenced_unsafe());
  EXPECT_EQ(run.pending->step_key, "pay#1");
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(went_on);
}

TEST_F(JournalTest, AWriteThatNeverStartedMayBeRepeated) {
  std::atomic<int> calls = 0;
  handle("task", [&](RunContext& run) {
    return run.step("pay", payment(), [&](const StepContext&) -> StepResult {
      Failure failure = server_error();
      failure.not_started = true;
      if (++calls == 1) throw FailureError(failure);
      return {Json("paid"), std::nullopt};
    });
  });
  const RunId id = enqueue("task");
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(calls, 2);
}

TEST_F(JournalTest, ATaskMayGoOnAfterAWriteThatNeverStarted) {
  handle("task", [&](RunContext& run) {
    try {
      run.step("pay", payment(), [&](const StepContext&) -> StepResult {
        Failure failure = server_error();
        failure.not_started = true;
        throw FailureError(failure);
      });
    } catch (const FailureError&) {
    }
    return run.step("pay otherwise", payment(), [](const StepContext&) {
      return StepResult{Json("paid"), std::nullopt};
    });
  });
  const RunId id = enqueue("task");
  work_off();
  EXPECT_TRUE(is(id, Status::completed));
}

TEST_F(JournalTest, AnIdempotentWriteKeepsItsKeyOverItsRepetitions) {
  std::vector<std::string> keys;
  handle("task", [&](RunContext& run) {
    return run.step("put", writing(Effect::idempotent_write), [&](const StepContext& context) {
      keys.push_back(context.idempotency_key);
      if (keys.size() == 1) throw FailureError(server_error());
      return StepResult{Json("put"), std::nullopt};
    });
  });
  const RunId id = enqueue("task");
  const auto worker = work(1);
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0], keys[1]);
  EXPECT_FALSE(get(id).pending.has_value());
}

struct ProbeCase {
  ProbeAnswer answer;
  Status status;
  int writes;
};

TEST_F(JournalTest, TheProbeIsAskedInTheSegmentThatSawTheWriteFail) {
  const std::vector<ProbeCase> cases = {
      {Landed{Json("found")}, Status::completed, 1},
      {NotLanded{}, Status::completed, 2},
      {Unknown{"no idea"}, Status::failed, 1},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "task" + std::to_string(i);
    auto writes = std::make_shared<std::atomic<int>>(0);
    handle(name, [&cases, i, writes](RunContext& run) {
      StepOptions options = payment();
      options.probe = [&cases, i](const StepContext&) { return cases[i].answer; };
      return run.step("pay", options, [writes](const StepContext&) -> StepResult {
        Failure failure = server_error();
        failure.outcome_unknown = true;
        if (++*writes == 1) throw FailureError(failure);
        return {Json("paid"), std::nullopt};
      });
    });
    const RunId id = enqueue(name);
    const auto worker = work(1);
    EXPECT_TRUE(eventually([&] { return is(id, cases[i].status); })) << i;
    EXPECT_EQ(*writes, cases[i].writes) << i;
    EXPECT_EQ(get(id).is_fenced_unsafe(), cases[i].status == Status::failed) << i;
    EXPECT_EQ(count(id, EventKind::probed), 1) << i;
  }
}

TEST_F(JournalTest, AWriteThatMayStillRunElsewhereIsNotBelievedUndoneBeforeItsDeadline) {
  std::atomic<int> writes = 0;
  std::atomic<StoreTime> first_deadline{};
  std::atomic<StoreTime> second_write{};
  const auto pay = [&](RunContext& run, bool has_probe) {
    StepOptions options = payment();
    options.timeout = milliseconds(300);
    if (has_probe) options.probe = [](const StepContext&) { return NotLanded{}; };
    return run.step("pay", options, [&](const StepContext&) -> StepResult {
      if (++writes == 2) {
        second_write = env_.store_now();
        return {Json("paid"), std::nullopt};
      }
      first_deadline = get(run.run().id).pending->deadline;
      Failure failure = server_error();
      failure.outcome_unknown = failure.may_still_run = true;
      throw FailureError(failure);
    });
  };
  handle("probed", [&](RunContext& run) { return pay(run, true); });
  handle("blind", [&](RunContext& run) { return pay(run, false); });
  const RunId id = enqueue("probed");
  {
    const auto worker = work(1);
    ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  }
  EXPECT_GE(second_write.load(), first_deadline.load());
  writes = 0;
  const RunId blind = enqueue("blind");
  const auto worker = work(1);
  ASSERT_TRUE(eventually([&] { return is(blind, Status::failed); }));
  EXPECT_EQ(get(blind).pending->deadline, first_deadline.load());
}

TEST_F(JournalTest, SleepsWithoutASlotAndGoesOnBehindTheSleep) {
  std::atomic<int> before = 0;
  handle("task", [&](RunContext& run) {
    run.step("before", [&] { return Json(++before); });
    run.sleep("nap", milliseconds(150));
    return run.step("after", [] { return Json("awake"); });
  });
  const RunId id = enqueue("task");
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(before, 1);
  EXPECT_EQ(count(id, EventKind::slept), 1);
  EXPECT_EQ(count(id, EventKind::claimed), 2);
  EXPECT_EQ(get(id).requeue_count, 0);
}

TEST_F(JournalTest, WakeEndsASleep) {
  handle("task", [&](RunContext& run) {
    run.sleep("nap", hours(24));
    return Json("awake");
  });
  const RunId id = enqueue("task");
  const auto worker = work();
  ASSERT_TRUE(eventually([&] { return count(id, EventKind::slept) == 1; }));
  memory_->wake(id, {"me", "", "op"});
  EXPECT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(count(id, EventKind::slept), 1);
}

Question may_i() {
  Question question;
  question.kind = WaitKind::approval;
  question.key = "turn";
  question.calls = {{"1", "pay", {{"amount", 5}}}};
  return question;
}

Decision decision(const RunId& id, DecisionKind kind, const std::string& operation) {
  Decision made;
  made.run = id;
  made.kind = kind;
  made.by = {"ann", "why not", operation};
  return made;
}

TEST_F(JournalTest, ResumesAfterAnApprovalWithoutRepeatingAnything) {
  std::atomic<int> before = 0;
  handle("task", [&](RunContext& run) {
    run.step("before", [&] { return Json(++before); });
    const Reply reply = run.ask(may_i());
    EXPECT_EQ(reply.actor, "ann");
    EXPECT_EQ(reply.note, "why not");
    return Json(reply.verdicts.at(0) == Verdict::approved ? "yes" : "no");
  });
  const RunId id = enqueue("task");
  work_off();
  ASSERT_TRUE(is(id, Status::waiting_for_approval));
  EXPECT_FALSE(get(id).claimed_by.has_value());
  EXPECT_FALSE(get(id).lease_until.has_value());
  memory_->answer(decision(id, DecisionKind::approve, "op"), {});
  work_off();
  EXPECT_EQ(get(id).answer, Json("yes"));
  EXPECT_EQ(before, 1);
  EXPECT_EQ(get(id).requeue_count, 0);
}

TEST_F(JournalTest, ADenialIsToldToTheTask) {
  handle("task", [&](RunContext& run) {
    return Json(run.ask(may_i()).verdicts.at(0) == Verdict::denied ? "refused" : "?");
  });
  const RunId id = enqueue("task");
  work_off();
  memory_->answer(decision(id, DecisionKind::deny, "op"), {});
  work_off();
  EXPECT_EQ(get(id).answer, Json("refused"));
}

TEST_F(JournalTest, AWaitThatExpiresIsToldAsSuch) {
  handle("task", [&](RunContext& run) {
    Question question = may_i();
    question.timeout = milliseconds(1);
    const Reply reply = run.ask(question);
    return Json(reply.expired && reply.verdicts.at(0) == Verdict::expired ? "nobody" : "?");
  });
  const RunId id = enqueue("task");
  work_off();
  ASSERT_TRUE(eventually([&] { return reap_once(env_, store_, 50, false).expired == 1; }));
  EXPECT_EQ(memory_->answer(decision(id, DecisionKind::approve, "late"), {}).answer,
            ChangeResult::Answer::refused);
  work_off();
  EXPECT_EQ(get(id).answer, Json("nobody"));
  EXPECT_EQ(count(id, EventKind::expired), 1);
}

TEST_F(JournalTest, InputIsGivenToTheTask) {
  handle("task", [&](RunContext& run) {
    return run.ask_input("who", {{"type", "object"}}, "who are you?");
  });
  const RunId id = enqueue("task");
  work_off();
  ASSERT_TRUE(is(id, Status::waiting_for_input));
  Decision input = decision(id, DecisionKind::input, "op");
  input.values = {{"name", "Ann"}};
  memory_->answer(input, {});
  work_off();
  EXPECT_EQ(get(id).answer, (Json{{"name", "Ann"}}));
}

TEST_F(JournalTest, WhatAHandlerSwallowsMeetsItAgain) {
  std::atomic<int> swallowed = 0;
  handle("task", [&](RunContext& run) {
    for (int i = 0; i < 3; ++i) {
      try {
        run.ask(may_i());
      } catch (...) {
        ++swallowed;
      }
    }
    return Json("done all the same");
  });
  const RunId id = enqueue("task");
  work_off();
  EXPECT_TRUE(is(id, Status::waiting_for_approval));
  EXPECT_EQ(swallowed, 3);
}

TEST_F(JournalTest, EndsWithTheReasonThatTheHandlerGives) {
  handle("task", [](RunContext&) -> Json { throw EndRun{Reason::max_iterations, "enough", {}}; });
  const RunId id = enqueue("task");
  work_off();
  EXPECT_TRUE(get(id).reason->is(Reason::max_iterations));
}

TEST_F(JournalTest, AnUnknownExceptionIsRetriedForTasksAndNotForAgents) {
  Policy policy = patient_policy();
  policy.backoff_base = policy.backoff_cap = hours(1);
  const auto throws = [](RunContext&) -> Json { throw std::runtime_error("surprise"); };
  handle("task", throws);
  handle("agent", throws, true);
  const RunId task = enqueue("task", policy);
  const RunId agent = enqueue("agent", policy);
  work_off();
  EXPECT_TRUE(is(task, Status::queued));
  EXPECT_EQ(get(task).requeue_count, 1);
  EXPECT_TRUE(is(agent, Status::failed));
  EXPECT_EQ(error_of(agent), "surprise");
}

TEST_F(JournalTest, AStepOverItsDeadlineFailsWithTimeout) {
  Policy policy = patient_policy();
  policy.max_requeues = 0;
  handle("task", [&](RunContext& run) {
    StepOptions options;
    options.timeout = milliseconds(20);
    return run.step("slow", options, [&](const StepContext& context) -> StepResult {
      Gate().pass(context.stop);
      throw std::runtime_error("stopped");
    });
  });
  const RunId id = enqueue("task", policy);
  work_off();
  EXPECT_TRUE(get(id).reason->is(Reason::retries_exhausted));
  EXPECT_EQ(get(id).error->cls, FailureClass::timeout);
}

TEST_F(JournalTest, RefusesAReadsResultOverTheLimitAndCutsAWrites) {
  options_.limits.result_bytes = 100;
  const Json large(std::string(1000, 'x'));
  handle("read", [&](RunContext& run) { return run.step("r", [&] { return Json(large); }); });
  handle("write", [&](RunContext& run) {
    return run.step("w", payment(), [&](const StepContext&) {
      return StepResult{large, std::nullopt};
    });
  });
  const RunId read = enqueue("read");
  const RunId write = enqueue("write");
  work_off();
  EXPECT_TRUE(is(read, Status::failed));
  EXPECT_EQ(get(read).error->cls, FailureClass::client_error);
  EXPECT_TRUE(is(write, Status::completed));
  EXPECT_LE(get(write).answer->at("cut").get<std::string>().size(), 200u);
}

TEST_F(JournalTest, WhatAStepReturnsIsWhatALaterSegmentReads) {
  std::vector<Json> seen;
  handle("task", [&](RunContext& run) -> Json {
    seen.push_back(run.step("odd", [] {
      return Json{{"text", std::string("caf\xe9 \xed\xa0\x80") + std::string(1, '\0')}, {"n", 1.5}};
    }));
    if (seen.size() == 1) throw FailureError(server_error());
    return Json();
  });
  const RunId id = enqueue("task");
  const auto worker = work(1);
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0], seen[1]);
}

TEST_F(JournalTest, CountsUsageAndIterationsOfModelSteps) {
  handle("agent", [](RunContext& run) {
    StepOptions options;
    options.kind = StepKind::model;
    return run.step("model", options, [](const StepContext&) {
      return StepResult{{{"text", "hi"}}, Usage{3, 4, 7, 0.5}};
    });
  });
  const RunId id = enqueue("agent");
  work_off();
  EXPECT_EQ(get(id).iterations, 1);
  EXPECT_EQ(get(id).usage, (Usage{3, 4, 7, 0.5}));
}

TEST_F(JournalTest, TheEventsOfStepsSayWhatTheyCost) {
  handle("task", [](RunContext& run) {
    const auto paid = [](const StepContext&) { return StepResult{"done", Usage{3, 4, 7, 0.5}}; };
    StepOptions model;
    model.kind = StepKind::model;
    run.step("model", model, paid);
    return run.step("embed", StepOptions{}, paid);
  });
  const RunId id = enqueue("task");
  work_off();
  Usage told;
  for (const Event& event : events(id)) {
    if (event.payload.contains("usage")) told += decode_usage(event.payload.at("usage"));
  }
  EXPECT_EQ(told, (Usage{6, 8, 14, 1.0}));
  EXPECT_EQ(get(id).usage, told);
}

}  // namespace
}  // namespace holdfast::engine_test
