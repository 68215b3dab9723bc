#include "tool/toolbox.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <functional>

#include "base/text.hpp"
#include "tool/tool_test_support.hpp"

namespace holdfast {
namespace {

class ToolboxTest : public ::testing::Test {
 protected:
  ToolSpec& script(const std::string& body) {
    folder_.script("tool.sh", body);
    spec_.name = "tool";
    spec_.command = {"./tool.sh"};
    spec_.working_folder = folder_.path();
    spec_.effect = Effect::read;
    return spec_;
  }
  ToolSpec& probe_script(const std::string& body) {
    script("exit 0\n");
    folder_.script("probe.sh", body);
    spec_.effect = Effect::non_idempotent_write;
    spec_.probe_command = {"./probe.sh"};
    return spec_;
  }
  StepContext context() const {
    StepContext context;
    context.key = "tool:tool#1.1";
    context.idempotency_key = "key-1";
    context.timeout = std::chrono::minutes(1);
    context.stop = stop_.get_token();
    context.run = "run-1";
    return context;
  }
  ToolOutcome call(const Json& arguments = Json::object()) {
    return call_within(arguments, std::chrono::minutes(1));
  }
  ToolOutcome call_within(const Json& arguments, Duration timeout) {
    StepContext step = context();
    step.timeout = timeout;
    const auto box = make_toolbox({spec_}, real_env(), limits_);
    return box->call(*box->find("tool"), arguments, step);
  }
  ProbeAnswer probe() {
    const auto box = make_toolbox({spec_}, real_env(), limits_);
    return box->probe(*box->find("tool"), {{"to", "a"}}, context());
  }

  TestFolder folder_;
  ToolSpec spec_;
  Limits limits_;
  std::stop_source stop_;
};

/// No descriptor can be opened any more while it lives.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptorsLeft() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;

 private:
  rlimit before_{};
};

TEST_F(ToolboxTest, AMachineThatIsFullMayHaveRoomLater) {
  script("echo done\n").effect = Effect::non_idempotent_write;
  call();  // what sanitizers see for the first time costs them descriptors
  const Failure called = failure_of([&] {
    const NoDescriptorsLeft full;
    call();
  });
  probe_script("exit 3\n");
  probe();
  const Failure probed = failure_of([&] {
    const NoDescriptorsLeft full;
    probe();
  });
  for (const Failure& failure : {called, probed}) {
    EXPECT_TRUE(is_retryable(failure.cls)) << failure.message;
    EXPECT_EQ(failure.code, "no_resources");
    EXPECT_TRUE(failure.not_started);
    EXPECT_FALSE(failure.outcome_unknown);
  }
}

TEST_F(ToolboxTest, TakesJsonAndTextAsResults) {
  script("cat\n");
  EXPECT_EQ(call({{"id", 7}}).result, (Json{{"id", 7}}));
  script("echo hello\n");
  EXPECT_EQ(call().result, "hello");
  script("printf 'a\\377b'\n");
  EXPECT_EQ(call().result,
            "a\xEF\xBF\xBD"
            "b");
  script("true\n");
  EXPECT_EQ(call().result, "");
  EXPECT_FALSE(call().is_error);
}

TEST_F(ToolboxTest, TakesNumbersThatWouldBeRoundedAsText) {
  script("echo '{\"id\": 12345678901234567890123}'\n");
  EXPECT_EQ(call().result, "{\"id\": 12345678901234567890123}");
}

TEST_F(ToolboxTest, TakesTooDeepJsonAsText) {
  script("printf '[%.0s' $(seq 1000)\nprintf ']%.0s' $(seq 1000)\n");
  const ToolOutcome outcome = call();
  EXPECT_TRUE(outcome.result.is_string());
  EXPECT_EQ(outcome.result.get<std::string>().size(), 2000u);
}

TEST_F(ToolboxTest, CutsALongResultWithANoteForTheModel) {
  limits_.result_bytes = 1000;
  script("head -c 100000 /dev/zero | tr '\\0' x\n");
  const std::string text = call().result;
  EXPECT_LE(text.size(), 1000u);
  EXPECT_NE(text.find("[cut: the result has 100000 bytes"), std::string::npos) << text;

  spec_.command.clear();
  spec_.function = [](const Json&, const StepContext&) -> Json {
    return {{"long", std::string(5000, 'y')}};
  };
  const std::string from_function = call().result;
  EXPECT_LE(from_function.size(), 1000u);
  EXPECT_NE(from_function.find("[cut:"), std::string::npos);
}

TEST_F(ToolboxTest, GivesResultsThatCanBeRecordedWithinTheLimits) {
  limits_.result_bytes = 2000;
  // Six bytes a character as JSON; long as JSON only; an error whose output is long; nested deep.
  for (const char* body : {"head -c 1900 /dev/zero\n", "seq -s ',' 1 600 | sed 's/.*/[&]/'\n",
                           "head -c 5000 /dev/zero; echo long >&2; exit 1\n",
                           "printf '[%.0s' $(seq 63); printf ']%.0s' $(seq 63)\n"}) {
    script(body);
    const ToolOutcome outcome = call();
    const std::string recorded =
        dump_json({{"is_error", outcome.is_error}, {"result", outcome.result}});
    EXPECT_LE(recorded.size(), limits_.result_bytes) << body;
    EXPECT_TRUE(parse_json(recorded, limits_.depth)) << body;
    EXPECT_NE(dump_json(outcome.result), "\"\"");
  }
}

TEST_F(ToolboxTest, MakesAnErrorResultOfAStatus) {
  script("echo '{\"partial\": 1}'; echo reason >&2; exit 4\n");
  for (const Effect effect :
       {Effect::read, Effect::idempotent_write, Effect::non_idempotent_write}) {
    spec_.effect = effect;
    const ToolOutcome outcome = call();
    EXPECT_TRUE(outcome.is_error);
    EXPECT_EQ(outcome.result, (Json{{"error", "exit status 4"},
                                    {"exit_status", 4},
                                    {"stderr", "reason"},
                                    {"output", {{"partial", 1}}}}));
  }
}

TEST_F(ToolboxTest, KeepsOnlyTheEndOfALongStandardError) {
  limits_.error_bytes = 50;
  script("head -c 100000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 1\n");
  const std::string text = call().result["stderr"];
  EXPECT_TRUE(text.ends_with("the end")) << text;
  EXPECT_LT(text.size(), 70u);
}

TEST_F(ToolboxTest, TellsTheModelOfATimeoutUnlessItWasAWrite) {
  script("exec sleep 1000\n").timeout = std::chrono::milliseconds(200);
  for (const Effect effect : {Effect::read, Effect::idempotent_write}) {
    spec_.effect = effect;
    const ToolOutcome outcome = call_within(Json::object(), spec_.timeout);
    EXPECT_TRUE(outcome.is_error);
    EXPECT_EQ(outcome.result["error"], "did not finish within 200ms and was ended");
  }
  spec_.effect = Effect::non_idempotent_write;
  const Failure failure = failure_of([&] { call_within(Json::object(), spec_.timeout); });
  EXPECT_EQ(failure.cls, FailureClass::timeout);
  EXPECT_EQ(failure.code, "timeout");
  EXPECT_TRUE(failure.outcome_unknown);
  EXPECT_FALSE(failure.not_started);
}

TEST_F(ToolboxTest, TellsTheModelOfADeathBySignalUnlessItWasAWrite) {
  script("kill -9 $$\n");
  for (const Effect effect : {Effect::read, Effect::idempotent_write}) {
    spec_.effect = effect;
    EXPECT_EQ(call().result["error"], "was ended by signal 9 (SIGKILL)");
  }
  spec_.effect = Effect::non_idempotent_write;
  const Failure failure = failure_of([&] { call(); });
  EXPECT_EQ(failure.cls, FailureClass::timeout);
  EXPECT_EQ(failure.code, "signal_9");
  EXPECT_TRUE(failure.outcome_unknown);
}

TEST_F(ToolboxTest, DoesNotTakeATidyExitAfterAnInterruptionForTheEffect) {
  LifeLine life(folder_);
  script("trap 'exit 0' TERM\necho ready >" + life.path() + "\nwhile :; do sleep 0.01; done\n");
  spec_.effect = Effect::non_idempotent_write;
  Failure failure;
  const auto thread = real_env().spawn({"call"}, [&] { failure = failure_of([&] { call(); }); });
  ASSERT_NE(life.wait_for_lines(1), "");
  stop_.request_stop();
  thread->join();
  EXPECT_EQ(failure.code, "interrupted");
  EXPECT_TRUE(failure.outcome_unknown);
}

TEST_F(ToolboxTest, EndsAReadAsInterruptedWhenItIsToStop) {
  LifeLine life(folder_);
  script("echo ready >" + life.path() + "\nexec sleep 1000\n");
  Failure failure;
  const auto thread = real_env().spawn({"call"}, [&] { failure = failure_of([&] { call(); }); });
  ASSERT_NE(life.wait_for_lines(1), "");
  stop_.request_stop();
  thread->join();
  EXPECT_EQ(failure.code, "interrupted");
  EXPECT_FALSE(failure.outcome_unknown);

  const Failure never = failure_of([&] { call(); });
  EXPECT_TRUE(never.not_started);
}

TEST_F(ToolboxTest, NamesAProgramThatCannotBeStartedAndTheRemedy) {
  script("").command = {"./missing.sh"};
  spec_.effect = Effect::non_idempotent_write;
  const Failure failure = failure_of([&] { call(); });
  EXPECT_EQ(failure.cls, FailureClass::configuration);
  EXPECT_TRUE(failure.not_started);
  EXPECT_FALSE(failure.outcome_unknown);
  EXPECT_NE(failure.message.find("./missing.sh"), std::string::npos) << failure.message;
  EXPECT_NE(failure.message.find("check its path"), std::string::npos) << failure.message;

  folder_.write("tool.sh", "", 0644);
  spec_.command = {"./tool.sh"};
  EXPECT_NE(failure_of([&] { call(); }).message.find("chmod +x"), std::string::npos);

  spec_.working_folder = folder_.file("nowhere");
  EXPECT_NE(failure_of([&] { call(); }).message.find("nowhere"), std::string::npos);
}

TEST_F(ToolboxTest, GivesTheToolExactlyItsEnvironment) {
  setenv("HOLDFAST_STORE", "postgresql://user:secret@host/db", 1);
  setenv("TEST_TOKEN", "t0", 1);
  setenv("TEST_OTHER", "hidden", 1);
  setenv("TZ", "UTC", 1);
  script("").command = {"env"};
  spec_.env = {{"TRACKER", "https://tracker.example"}, {"LANG", "C"}};
  spec_.pass_env = {"TEST_TOKEN", "TEST_NOT_SET"};
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  const std::string expected =
      "HOLDFAST_IDEMPOTENCY_KEY=key-1\nHOLDFAST_RUN_ID=run-1\nHOLDFAST_STEP=tool:tool#1.1\n"
      "HOLDFAST_TOOL=tool\n" +
      (home.empty() ? "" : "HOME=" + home + "\n") + "LANG=C\nPATH=" + std::getenv("PATH") +
      "\nTEST_TOKEN=t0\nTRACKER=https://tracker.example\nTZ=UTC";
  EXPECT_EQ(call().result, expected);
  for (const char* name : {"HOLDFAST_STORE", "TEST_TOKEN", "TEST_OTHER", "TZ"}) unsetenv(name);
}

TEST_F(ToolboxTest, LetsAFunctionsFailurePass) {
  spec_.name = "tool";
  spec_.function = [](const Json&, const StepContext&) -> Json {
    Failure failure;
    failure.cls = FailureClass::rate_limit;
    throw FailureError(failure);
  };
  EXPECT_EQ(failure_of([&] { call(); }).cls, FailureClass::rate_limit);
}

TEST_F(ToolboxTest, AsksAProbeWithKeyAndArguments) {
  probe_script("test \"$HOLDFAST_IDEMPOTENCY_KEY\" = key-1 && cat\n");
  EXPECT_EQ(std::get<Landed>(probe()).result,
            (Json{{"idempotency_key", "key-1"}, {"arguments", {{"to", "a"}}}}));
}

TEST_F(ToolboxTest, UnderstandsAProbesAnswers) {
  probe_script("exit 3\n");
  EXPECT_TRUE(std::holds_alternative<NotLanded>(probe()));
  probe_script("echo no connection >&2; exit 1\n");
  EXPECT_EQ(std::get<Unknown>(probe()).why, "the probe ended with exit status 1: no connection");
  probe_script("kill -9 $$\n");
  EXPECT_NE(std::get<Unknown>(probe()).why.find("signal 9"), std::string::npos);
  spec_.probe_command = {"./missing.sh"};
  EXPECT_NE(std::get<Unknown>(probe()).why.find("./missing.sh"), std::string::npos);
}

TEST_F(ToolboxTest, TakesAnInterruptedProbeForNoAnswer) {
  probe_script("exit 3\n");
  stop_.request_stop();
  EXPECT_EQ(failure_of([&] { probe(); }).code, "interrupted");
}

TEST_F(ToolboxTest, RefusesSpecsThatCannotWork) {
  const auto refused = [&](const std::function<void(ToolSpec&)>& change) {
    ToolSpec spec = script("true\n");
    change(spec);
    try {
      make_toolbox({spec}, real_env(), limits_);
    } catch (const RefusedError& error) {
      EXPECT_EQ(error.refusal(), Refusal::usage);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused([](ToolSpec&) {}), "accepted");
  EXPECT_NE(refused([](ToolSpec& s) { s.name = "a b"; }), "accepted");
  EXPECT_NE(refused([](ToolSpec& s) { s.command.clear(); }), "accepted");
  EXPECT_NE(refused([](ToolSpec& s) { s.command = {""}; }), "accepted");
  EXPECT_NE(refused([](ToolSpec& s) {
              s.function = [](const Json& json, const StepContext&) { return json; };
            }),
            "accepted");
  EXPECT_NE(refused([](ToolSpec& s) { s.timeout = Duration(0); }), "accepted");
  EXPECT_NE(refused([](ToolSpec& s) { s.parameters = {{"type", 5}}; }), "accepted");
  EXPECT_NE(refused([](ToolSpec& s) { s.parameters = {{"type", "string"}}; }), "accepted");
  EXPECT_NE(refused([](ToolSpec& s) { s.input_schema = "text"; }), "accepted");
  EXPECT_NE(refused([](ToolSpec& s) { s.pass_env = {"A=B"}; }), "accepted");
  EXPECT_THROW(make_toolbox({script(""), script("")}, real_env(), limits_), RefusedError);
}

TEST_F(ToolboxTest, ChecksWhetherAToolCanBeStarted) {
  EXPECT_EQ(check_tool(script("true\n")).grade, Finding::Grade::ok);
  spec_.pass_env = {"TEST_NOT_SET"};
  EXPECT_EQ(check_tool(spec_).grade, Finding::Grade::warning);
  spec_.probe_command = {"./probe.sh"};
  EXPECT_EQ(check_tool(spec_).grade, Finding::Grade::bad);
  spec_.command = {"holdfast-no-such-program"};
  EXPECT_NE(check_tool(spec_).text.find("not in PATH"), std::string::npos);
  spec_.command = {folder_.write("odd.sh", "#!/no/such/interpreter\n", 0755)};
  EXPECT_NE(check_tool(spec_).text.find("/no/such/interpreter"), std::string::npos);
  spec_.working_folder = folder_.file("nowhere");
  EXPECT_EQ(check_tool(spec_).grade, Finding::Grade::bad);
}

}  // namespace
}  // namespace holdfast
