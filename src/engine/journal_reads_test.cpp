// Reads that run at the same time.

#include <algorithm>
#include <mutex>
#include <system_error>

#include "engine/engine_test_support.hpp"
#include "support/forwarding_env.hpp"

namespace holdfast::engine_test {
namespace {

ReadStep read_step(const std::string& name, StepWork work) {
  ReadStep read;
  read.name = "tool:" + name;
  read.options.kind = StepKind::tool;
  read.options.key = read.name + "#1.1";
  read.work = std::move(work);
  return read;
}

StepWork gives(const Json& result) {
  return [result](const StepContext&) { return StepResult{result, std::nullopt}; };
}

Failure busy() { return make_failure(FailureClass::server_error, "", "it said 500"); }

class ReadsTest : public EngineTest {
 protected:
  using EngineTest::EngineTest;

  /// The names of the recorded tool steps, as they were recorded.
  std::vector<std::string> recorded(const RunId& id) {
    std::vector<std::string> names;
    for (const Event& event : events(id)) {
      if (event.kind.is(EventKind::tool)) names.push_back(event.payload["name"]);
    }
    return names;
  }
  bool is_recorded(const RunId& id, const std::string& name) {
    const auto names = recorded(id);
    return std::find(names.begin(), names.end(), "tool:" + name) != names.end();
  }
};

TEST_F(ReadsTest, RunAtTheSameTimeUpToTheBound) {
  Gate gate;
  std::atomic<int> under_way = 0;
  std::atomic<int> most = 0;
  handle("task", [&](RunContext& run) {
    std::vector<ReadStep> reads;
    for (int i = 0; i < 8; ++i) {
      reads.push_back(read_step(std::to_string(i), [&, i](const StepContext& step) {
        int seen = most;
        const int now = ++under_way;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        gate.pass(step.stop);
        --under_way;
        return StepResult{Json(i), std::nullopt};
      }));
    }
    return Json(run.read_all(reads, 3));
  });
  const RunId id = enqueue("task");
  const auto worker = work();
  const OpenedAtEnd opened(gate);
  ASSERT_TRUE(eventually([&] { return gate.reached() >= 3; }));
  gate.open();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(most, 3);
  EXPECT_EQ(get(id).answer, Json({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(ReadsTest, AreRecordedAsTheyEndAndGivenInTheirOrder) {
  Gate slow;
  handle("task", [&](RunContext& run) {
    const StepWork waits = [&](const StepContext& step) {
      slow.pass(step.stop);
      return StepResult{Json("slow"), std::nullopt};
    };
    return Json(run.read_all({read_step("a", waits), read_step("b", gives("quick"))}, 4));
  });
  const RunId id = enqueue("task");
  const auto worker = work();
  const OpenedAtEnd opened(slow);
  ASSERT_TRUE(eventually([&] { return is_recorded(id, "b"); }));
  EXPECT_FALSE(is_recorded(id, "a"));
  slow.open();
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(recorded(id), (std::vector<std::string>{"tool:b", "tool:a"}));
  EXPECT_EQ(get(id).answer, Json({"slow", "quick"}));
}

TEST_F(ReadsTest, AFailureLosesNoOthersResultAndBeginsNothingMore) {
  Gate failed;
  std::map<std::string, std::atomic<int>> calls;
  for (const char* name : {"a", "b", "c", "d"}) calls[name] = 0;
  handle("task", [&](RunContext& run) {
    const auto counted = [&](const std::string& name) {
      return read_step(name, [&, name](const StepContext&) {
        ++calls.at(name);
        return StepResult{Json(name), std::nullopt};
      });
    };
    const ReadStep a = read_step("a", [&](const StepContext&) {
      if (++calls.at("a") == 1) throw FailureError(busy());
      return StepResult{Json("a"), std::nullopt};
    });
    const ReadStep b = read_step("b", [&](const StepContext& step) {
      ++calls.at("b");
      failed.pass(step.stop);
      return StepResult{Json("b"), std::nullopt};
    });
    return Json(run.read_all({a, b, counted("c"), counted("d")}, 2));
  });
  Policy policy = patient_policy();
  policy.backoff_base = policy.backoff_cap = hours(1);
  const RunId id = enqueue("task", policy);
  const auto worker = work();
  const OpenedAtEnd opened(failed);
  // The first has failed by the time that the second comes back.
  ASSERT_TRUE(eventually([&] { return calls.at("a") == 1 && failed.is_reached(); }));
  failed.open();
  ASSERT_TRUE(eventually([&] { return is(id, Status::queued); }));
  EXPECT_EQ(get(id).requeue_count, 1);
  EXPECT_TRUE(is_recorded(id, "b"));
  EXPECT_EQ(error_of(id), "it said 500");
  const int begun_later = calls.at("c") + calls.at("d");
  memory_->wake(id, {"me", "", "op"});
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); })) << error_of(id);
  EXPECT_EQ(calls.at("a"), 2);
  EXPECT_EQ(calls.at("b"), 1) << "it has a result";
  EXPECT_EQ(calls.at("c") + calls.at("d"), 2);
  EXPECT_EQ(begun_later, 0) << "the segment had failed";
  EXPECT_EQ(get(id).answer, Json({"a", "b", "c", "d"}));
}

TEST_F(ReadsTest, OfSeveralFailuresTheFirstInTheirOrderDecides) {
  Gate late;
  handle("task", [&](RunContext& run) {
    const ReadStep a = read_step("a", [&](const StepContext& step) -> StepResult {
      late.pass(step.stop);
      throw FailureError(make_failure(FailureClass::auth, "", "the first"));
    });
    const ReadStep b = read_step("b", [&](const StepContext&) -> StepResult {
      late.open();
      throw FailureError(busy());
    });
    return Json(run.read_all({a, b}, 2));
  });
  const RunId id = enqueue("task");
  work_off();
  EXPECT_EQ(error_of(id), "the first");
}

TEST_F(ReadsTest, ACancelOfTheRunEndsAllOfThem) {
  Gate cancelled;
  std::atomic<bool> was_stopped = false;
  std::atomic<int> begun = 0;
  handle("task", [&](RunContext& run) {
    const ReadStep a = read_step("a", [&](const StepContext& step) {
      ++begun;
      cancelled.pass(step.stop);
      return StepResult{Json("a"), std::nullopt};
    });
    const ReadStep b = read_step("b", [&](const StepContext& step) {
      ++begun;
      was_stopped = eventually([&] { return step.stop.stop_requested(); }, seconds(20));
      return StepResult{Json("b"), std::nullopt};
    });
    const ReadStep c = read_step("c", [&](const StepContext&) {
      ++begun;
      return StepResult{};
    });
    return Json(run.read_all({a, b, c}, 2));
  });
  options_.heartbeat = hours(1);
  const RunId id = enqueue("task");
  const auto worker = work();
  const OpenedAtEnd opened(cancelled);
  ASSERT_TRUE(eventually([&] { return begun == 2 && cancelled.is_reached(); }));
  memory_->cancel(id, {"me", "", "op"});
  // Nobody renews: the first record brings the news.
  cancelled.open();
  ASSERT_TRUE(eventually([&] { return was_stopped.load(); }));
  worker->stop();
  worker->join();
  EXPECT_TRUE(is(id, Status::cancelled));
  EXPECT_EQ(begun, 2);
}

TEST_F(ReadsTest, AStoppingWorkerLetsThemEndAndBeginsNoMore) {
  Gate stopping;
  std::atomic<int> begun = 0;
  handle("task", [&](RunContext& run) {
    std::vector<ReadStep> reads;
    for (const char* name : {"a", "b", "c", "d"}) {
      reads.push_back(read_step(name, [&](const StepContext& step) {
        ++begun;
        const bool passed = stopping.pass(step.stop);
        return StepResult{Json(passed), std::nullopt};
      }));
    }
    return Json(run.read_all(reads, 2));
  });
  const RunId id = enqueue("task");
  const auto worker = work();
  const OpenedAtEnd opened(stopping);
  ASSERT_TRUE(eventually([&] { return stopping.reached() == 2; }));
  worker->stop();
  stopping.open();
  worker->join();
  EXPECT_EQ(begun, 2);
  EXPECT_TRUE(is_recorded(id, "a"));
  EXPECT_TRUE(is_recorded(id, "b"));
  EXPECT_TRUE(is(id, Status::queued));
  EXPECT_EQ(get(id).requeue_count, 0);
  EXPECT_EQ(count(id, EventKind::released), 1);
}

TEST_F(ReadsTest, EachHasItsOwnDeadline) {
  std::atomic<bool> was_stopped = false;
  handle("task", [&](RunContext& run) {
    ReadStep slow = read_step("slow", [&](const StepContext& step) -> StepResult {
      was_stopped = eventually([&] { return step.stop.stop_requested(); }, seconds(20));
      throw FailureError(make_failure(FailureClass::unknown, "", "cut off"));
    });
    slow.options.timeout = milliseconds(50);
    return Json(run.read_all({slow, read_step("quick", gives("quick"))}, 2));
  });
  const RunId id = enqueue("task");
  work_off();
  EXPECT_TRUE(was_stopped);
  EXPECT_TRUE(is_recorded(id, "quick"));
  EXPECT_TRUE(get(id).error && get(id).error->cls == FailureClass::timeout) << error_of(id);
}

TEST_F(ReadsTest, HoldOnlyReadsWithKeysOfTheirOwnAndNoStepInside) {
  std::map<std::string, ReadStep> bad;
  bad["a write"] = read_step("a", gives(1));
  bad["a write"].options.effect = Effect::idempotent_write;
  bad["no key"] = read_step("a", gives(1));
  bad["no key"].options.key.clear();
  bad["a running number"] = read_step("a", gives(1));
  bad["a running number"].options.key = "tool:a#1";
  for (const auto& [what, step] : bad) {
    handle(what, [read = step](RunContext& run) {
      return Json(run.read_all({read, read_step("b", gives(2))}, 2));
    });
    const RunId id = enqueue(what);
    work_off();
    EXPECT_TRUE(get(id).error && get(id).error->code == "not_a_read") << what << error_of(id);
    EXPECT_TRUE(recorded(id).empty());
  }
  handle("inside", [](RunContext& run) {
    const ReadStep nested = read_step("a", [&run](const StepContext&) {
      return StepResult{run.step("inner", [] { return Json(1); }), std::nullopt};
    });
    return Json(run.read_all({nested, read_step("b", gives(2))}, 2));
  });
  const RunId id = enqueue("inside");
  work_off();
  EXPECT_TRUE(get(id).error && get(id).error->code == "nested_step") << error_of(id);
}

TEST_F(ReadsTest, WhatEndsTheRunFromInsideOneEndsIt) {
  handle("task", [](RunContext& run) {
    const ReadStep ends = read_step("a", [](const StepContext&) -> StepResult {
      throw EndRun{Reason::policy_denied, "enough", std::nullopt};
    });
    return Json(run.read_all({ends, read_step("b", gives(2))}, 2));
  });
  const RunId id = enqueue("task");
  work_off();
  EXPECT_TRUE(get(id).reason && get(id).reason->is(Reason::policy_denied));
  EXPECT_TRUE(is_recorded(id, "b"));
}

TEST_F(ReadsTest, ThatWereInterruptedForWantOfTrustAreRepeatedUncharged) {
  std::atomic<int> a_calls = 0;
  std::atomic<int> b_calls = 0;
  std::atomic<int> stopped = 0;
  handle("task", [&](RunContext& run) {
    const auto patient = [&](std::atomic<int>& calls) {
      return [&stopped, &calls](const StepContext& step) -> StepResult {
        if (++calls > 1) return {Json("done"), std::nullopt};
        if (eventually([&] { return step.stop.stop_requested(); }, seconds(20))) ++stopped;
        throw FailureError(make_failure(FailureClass::unknown, "", "cut off"));
      };
    };
    return Json(
        run.read_all({read_step("a", patient(a_calls)), read_step("b", patient(b_calls))}, 2));
  });
  options_.heartbeat = milliseconds(50);
  const RunId id = enqueue("task", hasty_policy(milliseconds(600)));
  const auto worker = work(1);
  ASSERT_TRUE(eventually([&] { return a_calls == 1 && b_calls == 1; }));
  store_.set_down(true);
  const bool both_stopped = eventually([&] { return stopped == 2; });
  store_.set_down(false);
  ASSERT_TRUE(both_stopped);
  ASSERT_TRUE(eventually([&] { return is(id, Status::completed); }));
  EXPECT_EQ(a_calls, 2);
  EXPECT_EQ(b_calls, 2);
  EXPECT_EQ(get(id).requeue_count, 0);
}

/// Has no thread for reads beyond the first few.
class FewThreadsEnv final : public testing::ForwardingEnv {
 public:
  std::atomic<int> left = 0;
  std::unique_ptr<Thread> spawn(const ThreadOptions& options, std::function<void()> body) override {
    if (options.name == "hf-read" && left-- <= 0) {
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    return ForwardingEnv::spawn(options, std::move(body));
  }
};

class FewThreadsTest : public ReadsTest {
 protected:
  FewThreadsTest() : ReadsTest(few()) {}
  static FewThreadsEnv& few() {
    static FewThreadsEnv env;
    return env;
  }
};

TEST_F(FewThreadsTest, ReadsRunOnThoseThatThereAreAndOnTheSegmentsOwn) {
  handle("task", [](RunContext& run) {
    std::vector<ReadStep> reads;
    for (const char* name : {"a", "b", "c", "d"}) reads.push_back(read_step(name, gives(name)));
    return Json(run.read_all(reads, 4));
  });
  for (const int threads : {0, 1, 2}) {
    few().left = threads;
    const RunId id = enqueue("task");
    work_off();
    ASSERT_TRUE(is(id, Status::completed)) << threads << error_of(id);
    EXPECT_EQ(get(id).answer, Json({"a", "b", "c", "d"}));
    EXPECT_EQ(count(id, EventKind::tool), 4);
  }
}

}  // namespace
}  // namespace holdfast::engine_test
