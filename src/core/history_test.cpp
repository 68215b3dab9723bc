#include "core/history.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

Message said(Message::Role role, std::string text) {
  Message message;
  message.role = role;
  message.text = std::move(text);
  return message;
}

Message calling(std::vector<std::string> ids) {
  Message message = said(Message::Role::assistant, "");
  for (std::string& id : ids) message.calls.push_back({std::move(id), "pay", Json::object(), {}});
  return message;
}

Message result(std::string id, std::string tool = "pay") {
  Message message = said(Message::Role::tool, "ok");
  message.call_id = std::move(id);
  message.tool_name = std::move(tool);
  return message;
}

const Message kUser = said(Message::Role::user, "go");
const Message kText = said(Message::Role::assistant, "so far");

TEST(History, TakesConversationsWhereEachCallHasItsResult) {
  const std::vector<std::vector<Message>> whole = {
      {},
      {kUser},
      {kUser, calling({"1.1"}), result("1.1")},
      {kUser, calling({"1.1", "1.2"}), result("1.2"), result("1.1"), calling({"2.1"}),
       result("2.1")},
      {kUser, kText, kText},
  };
  for (const auto& messages : whole) EXPECT_EQ(history_problem(messages), std::nullopt);
}

TEST(History, NamesWhatIsBroken) {
  struct Case {
    std::vector<Message> messages;
    const char* problem;
  };
  const Case cases[] = {
      {{kUser, calling({"1.1"})}, "call 1.1 of 'pay' has no result"},
      {{kUser, calling({"1.1", "1.2"}), result("1.2"), kUser}, "call 1.1 of 'pay' has no result"},
      {{kUser, calling({"1.1"}), kText, result("1.1")}, "call 1.1 of 'pay' has no result"},
      {{kUser, result("1.1")}, "call 1.1 of 'pay' answers no call"},
      {{kUser, calling({"1.1"}), result("1.1"), result("1.1")}, "is not the first one"},
      {{kUser, calling({"1.1"}), result("1.1"), calling({"1.1"}), result("1.1")},
       "call 1.1 of 'pay' has no id of its own"},
      {{kUser, calling({"1.1", "1.1"}), result("1.1")}, "has no id of its own"},
      {{kUser, calling({""}), result("")}, "has no id of its own"},
      {{kUser, calling({"1.1"}), result("1.1", "refund")}, "is one of 'refund'"},
  };
  for (const Case& c : cases) {
    const std::string problem = history_problem(c.messages).value_or("nothing");
    EXPECT_NE(problem.find(c.problem), std::string::npos) << problem << " for " << c.problem;
  }
}

}  // namespace
}  // namespace holdfast
