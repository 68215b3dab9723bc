#include <gtest/gtest.h>

#include "cli/args.hpp"
#include "holdfast/failure.hpp"

namespace holdfast {
namespace {

std::string problem_of(const std::vector<std::string>& words) {
  try {
    parse_line(words);
  } catch (const RefusedError& error) {
    EXPECT_EQ(error.refusal(), Refusal::usage);
    return error.what();
  }
  return "";
}

TEST(Parse, GlobalOptionsStandBeforeOrBehindTheCommand) {
  const auto before = parse_line({"--json", "--store", "memory:", "list", "--limit", "3"});
  const auto behind = parse_line({"list", "--limit", "3", "--store=memory:", "--json"});
  for (const auto* line : {&before, &behind}) {
    EXPECT_TRUE(line->global.json);
    EXPECT_EQ(line->global.store, "memory:");
    ASSERT_NE(line->command, nullptr);
    EXPECT_EQ(line->command->name, "list");
    EXPECT_EQ(line->args.find_integer("--limit", 1), 3);
  }
}

TEST(Parse, ValuesMayLookLikeAnything) {
  const auto line = parse_line({"enqueue", "a", "--input", "--json", "--priority", "-3", "--label",
                                "k=[1,2]", "--label", "l={}"});
  EXPECT_EQ(line.args.find_text("--input"), "--json");
  EXPECT_FALSE(line.global.json);
  EXPECT_EQ(line.args.find_integer("--priority", -10), -3);
  EXPECT_EQ(line.args.labels(), (Labels{{"k", "[1,2]"}, {"l", "{}"}}));
  EXPECT_EQ(parse_line({"run", "a", "--input", ""}).args.find_text("--input"), "");
  EXPECT_EQ(parse_line({"run", "a", "--input", "[x]"}).args.find_text("--input"), "[x]");
}

TEST(Parse, AnOperandMayBeNamedLikeACommand) {
  const auto line = parse_line({"run", "list", "--input", "x"});
  EXPECT_EQ(line.command->name, "run");
  EXPECT_EQ(line.args.operand(), "list");
}

TEST(Parse, TwoDashesEndTheOptions) {
  const auto line = parse_line({"cancel", "--", "--odd", "-x"});
  EXPECT_EQ(line.args.operands(), (std::vector<std::string>{"--odd", "-x"}));
}

TEST(Parse, AnOptionThatRepeatsTakesSeveralWordsWhereNothingElseCanStand) {
  const auto line =
      parse_line({"worker", "--queue", "mail", "reports", "--drain", "--queue", "odd", "--json"});
  EXPECT_EQ(line.args.texts("--queue"), (std::vector<std::string>{"mail", "reports", "odd"}));
  EXPECT_TRUE(line.args.has("--drain"));
  EXPECT_TRUE(line.global.json);
  const auto run = parse_line({"enqueue", "--label", "a=b", "agent"});
  EXPECT_EQ(run.args.operands(), std::vector<std::string>{"agent"});
}

TEST(Parse, SaysWhatIsWrong) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"enqeue"}, "unknown command \"enqeue\"; did you mean \"enqueue\"?"},
      {{"zzzzzz"}, "unknown command \"zzzzzz\""},
      {{"--jsn", "list"}, "unknown option --jsn; did you mean --json?"},
      {{"list", "--limt=3"}, "unknown option --limt; did you mean --limit?"},
      {{"list", "--limit"}, "--limit: a value is missing"},
      {{"list", "--limit", "1", "--limit", "2"}, "--limit is given 2 times"},
      {{"list", "x"}, "\"x\" is one word too many: holdfast list [options]"},
      {{"show"}, "ID is missing: holdfast show ID [options]"},
      {{"show", "a", "b"}, "\"b\" is one word too many"},
      {{"show", ""}, "ID is empty"},
      {{"worker", "--drain=no"}, "--drain takes no value"},
      {{"run", "-x"}, "unknown option -x"},
  };
  for (const auto& [words, message] : cases) {
    EXPECT_NE(problem_of(words).find(message), std::string::npos) << problem_of(words);
  }
}

TEST(Parse, HelpNeedsNothingElse) {
  EXPECT_TRUE(parse_line({"show", "--help"}).help);
  EXPECT_TRUE(parse_line({"-h"}).help);
  EXPECT_TRUE(parse_line({"--help", "list"}).help);
}

TEST(Args, MalformedValuesNameTheOption) {
  const auto line = parse_line({"enqueue", "a", "--priority", "1x", "--delay", "soon", "--at",
                                "2026-11-02T08:30:00", "--input-json", "{", "--label", "novalue"});
  const auto refused = [&](const auto& get, const char* message) {
    try {
      get();
      ADD_FAILURE() << message;
    } catch (const RefusedError& error) {
      EXPECT_EQ(std::string(error.what()).find(message), 0u) << error.what();
    }
  };
  const auto& args = line.args;
  refused([&] { args.find_integer("--priority", 1); },
          "--priority: expected a whole number from 1 to 2147483647, got");
  refused([&] { args.find_duration("--delay"); }, "--delay: expected a duration such as");
  refused([&] { args.find_time("--at"); }, "--at: expected a time with its offset");
  refused([&] { args.find_json("--input-json", 64); }, "--input-json: not JSON");
  refused([&] { args.labels(); }, "--label: expected KEY=VALUE");
}

TEST(Args, NumbersBelowTheLeastOrTooLargeAreRefused) {
  for (const auto* text : {"0", "-1", "99999999999999", "", " 1", "1.5"}) {
    const auto line = parse_line({"list", "--limit", text});
    EXPECT_THROW(line.args.find_integer("--limit", 1), RefusedError) << text;
  }
  EXPECT_EQ(parse_line({"list", "--limit", "1"}).args.find_integer("--limit", 1), 1);
}

}  // namespace
}  // namespace holdfast
