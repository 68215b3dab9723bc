#pragma once

// What the tests of every dialect need.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/classify.hpp"
#include "provider/chain.hpp"
#include "provider/judge.hpp"
#include "support/stub_server.hpp"

namespace holdfast::dialect_test {

using testing::StubAnswer;
using testing::StubServer;

inline Message said(Message::Role role, std::string text) {
  Message message;
  message.role = role;
  message.text = std::move(text);
  return message;
}

inline Message result(const std::string& call, const std::string& tool, std::string text,
                      bool is_error = false) {
  Message message = said(Message::Role::tool, std::move(text));
  message.call_id = call;
  message.tool_name = tool;
  message.is_error = is_error;
  return message;
}

/// A system text, a question, a turn with two calls, one of them unreadable, and their results.
inline ModelRequest conversation(const std::string& maker = "other/m", Json opaque = nullptr) {
  ModelRequest request;
  request.run = "run";
  request.tools = {
      ToolDefinition{"look.up", "Looks", Json{{"type", "object"}}},
      ToolDefinition{"pay", "",
                     Json::parse(R"({"type":"object","properties":{"n":{"type":"integer"}}})")}};
  Message answer = said(Message::Role::assistant, "I look");
  answer.calls = {ToolCall{"1.1", "look.up", Json{{"b", 1}, {"a", 2}}, std::nullopt},
                  ToolCall{"1.2", "pay", Json::object(), "{oops"}};
  answer.made_by = maker;
  answer.opaque = std::move(opaque);
  request.messages = {said(Message::Role::system, "You sort."), said(Message::Role::user, "hello"),
                      answer, result("1.1", "look.up", "found"), result("1.2", "pay", "no", true)};
  return request;
}

inline ProviderSpec dialect_spec(const StubServer& server, const std::string& kind, bool stream,
                                 const std::string& api = "chat") {
  ProviderSpec spec;
  spec.name = "main";
  spec.kind = kind;
  spec.api = api;
  spec.base_url = server.url();
  spec.stream = stream;
  return spec;
}

inline ModelReply ask(const ProviderSpec& spec, const CallContext& context = {}) {
  ModelRequest request = conversation();
  request.messages = {said(Message::Role::user, "hello")};
  return make_chain({spec}, real_env(), Limits{})->complete({"main/m"}, {}, request, context);
}

inline Failure failure_of(const ProviderSpec& spec) {
  try {
    const ModelReply reply = ask(spec);
    ADD_FAILURE() << "answered: " << reply.text << " finish " << reply.finish;
  } catch (const FailureError& error) {
    return error.failure();
  }
  return {};
}

inline std::string joined(const std::vector<std::string>& events, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < std::min(count, events.size()); ++i) out += events[i];
  return out;
}

inline StubAnswer streamed(const std::string& body, const std::string& type,
                           std::size_t piece = 0) {
  StubAnswer answer = StubAnswer::events(body, piece);
  answer.headers = {{"content-type", type}};
  return answer;
}

/// An answer that takes all of these events is none with fewer, and none when it breaks off with
/// an error: `connection`, whatever came before.
inline void expect_cut_everywhere(const std::vector<std::string>& events, const std::string& kind,
                                  const std::string& api = "chat",
                                  const std::string& type = "text/event-stream") {
  for (std::size_t count = 0; count < events.size(); ++count) {
    for (const StubAnswer::End end : {StubAnswer::End::close, StubAnswer::End::reset}) {
      StubServer server;
      StubAnswer answer = streamed(joined(events, count), type, 13);
      answer.end = end;
      server.play(answer);
      const Failure failure = failure_of(dialect_spec(server, kind, true, api));
      EXPECT_EQ(failure.cls, FailureClass::connection) << count << ": " << failure.message;
      EXPECT_EQ(server.requests().size(), 1u);
    }
    // In the middle of the event behind it.
    StubServer server;
    server.play(streamed(
        joined(events, count) +
            events[count].substr(0, std::max<std::size_t>(events[count].size() * 2 / 3, 1)),
        type));
    EXPECT_EQ(failure_of(dialect_spec(server, kind, true, api)).cls, FailureClass::connection)
        << count;
  }
}

/// What breaks a stream in its middle, whatever the dialect.
inline void expect_garbage_refused(const std::string& head, const std::vector<std::string>& garbage,
                                   const std::string& kind, const std::string& api = "chat",
                                   const std::string& type = "text/event-stream") {
  for (const std::string& piece : garbage) {
    StubServer server;
    server.play(streamed(head + piece, type));
    const Failure failure = failure_of(dialect_spec(server, kind, true, api));
    EXPECT_EQ(failure.cls, FailureClass::server_error) << piece << ": " << failure.message;
    EXPECT_EQ(failure.code, "malformed_response") << piece;
  }
}

}  // namespace holdfast::dialect_test
