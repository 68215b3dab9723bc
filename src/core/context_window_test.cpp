#include "core/context_window.hpp"

#include <gtest/gtest.h>

#include "core/history.hpp"

namespace holdfast {
namespace {

Message message(Message::Role role, std::string text) {
  Message message;
  message.role = role;
  message.text = std::move(text);
  return message;
}

/// System text, task, and turns of two calls each with results of `bytes` bytes.
ModelRequest conversation(int turns, std::size_t bytes = 400) {
  ModelRequest request;
  request.messages = {message(Message::Role::system, "sys"), message(Message::Role::user, "task")};
  for (int turn = 1; turn <= turns; ++turn) {
    Message answer = message(Message::Role::assistant, "turn " + std::to_string(turn));
    for (const char* place : {".1", ".2"}) {
      answer.calls.push_back({std::to_string(turn) + place, "look", Json::object(), {}});
    }
    request.messages.push_back(answer);
    for (const ToolCall& call : answer.calls) {
      Message result = message(Message::Role::tool, std::string(bytes, 'x'));
      result.call_id = call.id;
      result.tool_name = call.name;
      request.messages.push_back(result);
    }
  }
  return request;
}

TEST(ContextWindow, LeavesOutWholeTurnsTheOldestFirst) {
  const ModelRequest whole = conversation(4);
  ASSERT_EQ(spare_turns(whole), 3);
  for (int count = 0; count <= 5; ++count) {
    const ModelRequest shorter = without_turns(whole, count);
    const int left_out = std::min(count, 3);
    EXPECT_EQ(shorter.left_out, left_out);
    EXPECT_EQ(history_problem(shorter.messages), std::nullopt);
    ASSERT_EQ(shorter.messages.size(), 2u + 3u * static_cast<std::size_t>(4 - left_out));
    EXPECT_EQ(shorter.messages[0].text, "sys");
    EXPECT_EQ(shorter.messages[1].text, "task");
    EXPECT_EQ(shorter.messages[2].text, "turn " + std::to_string(left_out + 1));
    EXPECT_EQ(shorter.messages.back().call_id, "4.2");
  }
}

TEST(ContextWindow, WithoutTurnsHasNoneToSpare) {
  ModelRequest request = conversation(0);
  EXPECT_EQ(spare_turns(request), 0);
  EXPECT_EQ(without_turns(request, 3).messages.size(), 2u);
  EXPECT_EQ(spare_turns(conversation(1)), 0);
}

TEST(ContextWindow, WhatFollowsAPauseIsTheSameTurn) {
  ModelRequest request = conversation(2);
  request.messages.push_back(message(Message::Role::assistant, "paused"));
  request.messages.push_back(message(Message::Role::assistant, "went on"));
  ASSERT_EQ(spare_turns(request), 2);
  const ModelRequest shorter = without_turns(request, 9);
  ASSERT_EQ(shorter.messages.size(), 4u);
  EXPECT_EQ(shorter.messages[2].text, "paused");
}

TEST(ContextWindow, WhatAPersonOrTheLoopSaysBehindAnAnswerGoesWithIt) {
  ModelRequest request = conversation(0);
  for (const char* said : {"first", "second"}) {
    request.messages.push_back(message(Message::Role::assistant, said));
    request.messages.push_back(message(Message::Role::user, "once more"));
  }
  const ModelRequest shorter = without_turns(request, 9);
  ASSERT_EQ(shorter.messages.size(), 4u);
  EXPECT_EQ(shorter.messages[2].text, "second");
  EXPECT_EQ(shorter.messages[3].text, "once more");
}

TEST(ContextWindow, LeavesOutNoMoreThanItMust) {
  const ModelRequest whole = conversation(4);
  const std::int64_t all = estimated_tokens(whole);
  for (int count = 0; count <= 3; ++count) {
    const std::int64_t needs = estimated_tokens(without_turns(whole, count));
    EXPECT_EQ(turns_to_leave_out(whole, 0, needs), count);
    EXPECT_EQ(turns_to_leave_out(whole, 0, needs - 1),
              count == 3 ? std::nullopt : std::optional(count + 1));
    // What was left out before stays out.
    EXPECT_EQ(turns_to_leave_out(whole, count, all), count);
  }
}

TEST(ContextWindow, CountsWhatIsSent) {
  ModelRequest request;
  auto grows_by = [&request, last = std::int64_t{0}]() mutable {
    const std::int64_t now = estimated_tokens(request);
    return now - std::exchange(last, now);
  };
  request.messages = {message(Message::Role::user, std::string(4000, 'a'))};
  EXPECT_NEAR(static_cast<double>(grows_by()), 1000, 10);
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "語";
  request.messages.push_back(message(Message::Role::user, wide));
  EXPECT_NEAR(static_cast<double>(grows_by()), 1000, 10);
  Message answer = message(Message::Role::assistant, "");
  answer.calls.push_back({"1.1", "look", {{"x", std::string(4000, 'a')}}, {}});
  request.messages.push_back(answer);
  EXPECT_NEAR(static_cast<double>(grows_by()), 1000, 20);
  request.messages.back().calls[0].bad_arguments = std::string(8000, 'a');
  EXPECT_NEAR(static_cast<double>(grows_by()), 1000, 20);
  request.messages.back().opaque = {{"signature", std::string(4000, 'a')}};
  EXPECT_NEAR(static_cast<double>(grows_by()), 1000, 20);
  request.tools.push_back({"look", std::string(4000, 'a'), {{"x", std::string(4000, 'a')}}});
  EXPECT_NEAR(static_cast<double>(grows_by()), 2000, 20);
}

}  // namespace
}  // namespace holdfast
