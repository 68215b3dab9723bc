// The copy of the agent that a run carries is what its segments execute (spec, section 3 "Policy").

#include "agent/definition.hpp"

#include <gtest/gtest.h>

#include "agent/agent_test_support.hpp"

namespace holdfast {
namespace {

using namespace agent_test;

/// An agent that pays once, by a command.
Fixture with_command() {
  Fixture f;
  ToolSpec& pay = f.tools.add("pay");
  pay.command = {"./pay.sh", "--once"};
  pay.probe_command = {"bin/probe.sh"};
  pay.pass_env = {"TRACKER_TOKEN"};
  pay.working_folder = "/etc/holdfast";
  f.spec.tools = {"pay"};
  f.chain.replies = {calls({{"pay", {{"amount", 5}}}}), answers("done")};
  return f;
}

TEST(AgentDefinition, ExecutesTheCommandThatTheRunTook) {
  Fixture f = with_command();
  f.define();
  ToolSpec& changed = f.tools.specs["pay"];
  changed.command = {"./other.sh"};
  changed.probe_command = {"./other_probe.sh"};
  changed.pass_env = {"OTHER"};
  changed.working_folder = "/tmp";
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  ASSERT_EQ(f.tools.executed.size(), 1u);
  const ToolSpec& executed = f.tools.executed[0];
  EXPECT_EQ(executed.command, (std::vector<std::string>{"/etc/holdfast/pay.sh", "--once"}));
  EXPECT_EQ(executed.probe_command, (std::vector<std::string>{"/etc/holdfast/bin/probe.sh"}));
  EXPECT_EQ(executed.pass_env, (std::vector<std::string>{"TRACKER_TOKEN"}));
  EXPECT_EQ(executed.working_folder, "/etc/holdfast");
}

TEST(AgentDefinition, LeavesProgramsInPathAndWholePathsAsTheyAre) {
  Fixture f = with_command();
  for (const char* program : {"pay", "/usr/bin/pay"}) {
    f.tools.specs["pay"].command = {program};
    f.define();
    EXPECT_EQ(f.run.definition["tools"][0]["command"][0], program);
  }
}

TEST(AgentDefinition, MakesTheHttpCallThatTheRunTook) {
  Fixture f = with_command();
  ToolSpec& pay = f.tools.specs["pay"];
  pay.command.clear();
  pay.http.emplace();
  pay.http->method = "PUT";
  pay.http->url = "https://bank.example/{amount}";
  pay.http->headers = {{"X-Team", "ops"}};
  pay.http->header_env = {{"X-Key", "BANK_KEY"}};
  pay.http->bearer_env = "BANK_TOKEN";
  f.define();
  const std::string digest = parse_definition(f.run.definition).tools.at(0).digest;
  pay.http->url = "https://elsewhere.example/{amount}";
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  ASSERT_EQ(f.tools.executed.size(), 1u);
  const ToolSpec& executed = f.tools.executed[0];
  ASSERT_TRUE(executed.http);
  EXPECT_TRUE(executed.command.empty());
  EXPECT_EQ(executed.http->method, "PUT");
  EXPECT_EQ(executed.http->url, "https://bank.example/{amount}");
  EXPECT_EQ(executed.http->headers.at("X-Team"), "ops");
  EXPECT_EQ(executed.http->header_env.at("X-Key"), "BANK_KEY");
  EXPECT_EQ(executed.http->bearer_env, "BANK_TOKEN");
  EXPECT_EQ(executed.probe_command, (std::vector<std::string>{"/etc/holdfast/bin/probe.sh"}));
  // A person who approved one address approved no other.
  f.define();
  EXPECT_NE(parse_definition(f.run.definition).tools.at(0).digest, digest);
  f.tools.specs.clear();
  EXPECT_EQ(execution_problem(f.run.definition, f.tools), "") << "all of it is carried";
}

TEST(AgentDefinition, NeedsNoConfigurationForACommandWithoutAnEnv) {
  Fixture f = with_command();
  f.define();
  f.spec.tools.clear();
  f.tools.specs.clear();
  EXPECT_EQ(execution_problem(f.run.definition, f.tools), "");
  EXPECT_EQ(std::get<Json>(f.segment()), "done");
  ASSERT_EQ(f.tools.executed.size(), 1u);
  EXPECT_EQ(f.tools.executed[0].name, "pay");
}

TEST(AgentDefinition, SaysWhatThisProcessCannotExecute) {
  Fixture f = with_command();
  f.tools.specs["pay"].env = {{"TRACKER", "https://tracker.example"}};
  f.tools.add("count");
  f.spec.tools = {"pay", "count"};
  f.define();
  EXPECT_EQ(execution_problem(f.run.definition, f.tools), "");
  FakeToolbox without_function;
  without_function.specs["pay"] = f.tools.specs["pay"];
  EXPECT_NE(execution_problem(f.run.definition, without_function).find("'count'"),
            std::string::npos);
  without_function.add("count").command = {"./count.sh"};
  EXPECT_NE(execution_problem(f.run.definition, without_function).find("'count'"),
            std::string::npos);
  FakeToolbox without_env;
  without_env.add("count");
  EXPECT_NE(execution_problem(f.run.definition, without_env).find("'pay'"), std::string::npos);
  EXPECT_EQ(execution_problem(Json(), without_env), "") << "a task carries no definition";
}

TEST(AgentDefinition, RefusesACallUnderAnotherEnvironment) {
  Fixture f = with_command();
  f.tools.specs["pay"].env = {{"TRACKER", "https://tracker.example"}};
  f.define();
  f.tools.specs["pay"].env = {{"TRACKER", "https://elsewhere.example"}};
  EXPECT_EQ(execution_problem(f.run.definition, f.tools), "") << "no other worker knows better";
  const Failure failure = std::get<Failure>(f.segment());
  EXPECT_EQ(failure.cls, FailureClass::configuration);
  EXPECT_EQ(failure.code, "tool_env_changed");
  EXPECT_TRUE(failure.not_started);
  EXPECT_NE(failure.message.find("'pay'"), std::string::npos) << failure.message;
  EXPECT_NE(failure.message.find("redrive"), std::string::npos) << failure.message;
  EXPECT_TRUE(f.tools.called.empty());
}

TEST(AgentDefinition, HoldsNoSecrets) {
  Fixture f = with_command();
  f.tools.specs["pay"].env = {{"TOKEN", "hidden-value"}};
  f.define();
  EXPECT_EQ(dump_json(f.run.definition).find("hidden-value"), std::string::npos);
}

TEST(AgentDefinition, RefusesAToolThatDoesNotExist) {
  Fixture f = with_command();
  f.spec.tools.push_back("nowhere");
  EXPECT_THROW(agent_definition(f.spec, f.tools), RefusedError);
}

TEST(AgentDefinition, FailsAsConfigurationWhenItCannotBeRead) {
  Fixture f = with_command();
  f.run.definition = {{"system", 5}};
  EXPECT_EQ(std::get<Failure>(f.segment()).cls, FailureClass::configuration);
}

}  // namespace
}  // namespace holdfast
