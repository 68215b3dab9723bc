// A conversation without its oldest turns, as each API is sent it: what only its maker can read
// goes with the turn that it belongs to, and stays byte for byte where the turn stays.

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "core/context_window.hpp"
#include "core/history.hpp"
#include "provider/anthropic_wire.hpp"
#include "provider/chat_wire.hpp"
#include "provider/dialect_test_support.hpp"
#include "provider/gemini_wire.hpp"
#include "provider/ollama_wire.hpp"
#include "provider/own_parts.hpp"
#include "provider/responses_wire.hpp"

namespace holdfast {
namespace {

using namespace dialect_test;

/// Three turns of a signed thought, a text, and a call with a signature of its own and a result.
ModelRequest signed_turns(const std::string& dialect) {
  ModelRequest request;
  request.tools = {{"look", "", {{"type", "object"}}}};
  request.messages = {said(Message::Role::system, "sys"), said(Message::Role::user, "task")};
  for (const char* n : {"1", "2", "3"}) {
    const std::string number = n;
    Message answer = said(Message::Role::assistant, "say");
    answer.calls = {ToolCall{number + ".1", "look", Json::object(), std::nullopt}};
    answer.made_by = "main/m";
    PartsWriter parts;
    if (dialect != "chat") parts.add_own({{"type", "thinking"}, {"sealed", "thought-" + number}});
    parts.add_text(3);
    parts.add_call({{"thoughtSignature", "call-" + number},
                    {"id", "own-" + number},
                    {"extra_content", "extra-" + number}});
    answer.opaque = parts.kept(dialect);
    request.messages.push_back(answer);
    request.messages.push_back(result(number + ".1", "look", "found-" + number));
  }
  return request;
}

std::string rendered(const std::string& dialect, const ModelRequest& request) {
  const Target target{"main", "m"};
  if (dialect == "chat") return render_chat_request(target, request, false);
  if (dialect == "responses") return render_responses_request(target, request, false);
  if (dialect == "anthropic") return render_messages_request(target, request, {100, false});
  if (dialect == "gemini") return render_gemini_request(target, request);
  return render_ollama_request("m", request, false);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Shortened, WhatOnlyItsMakerReadsGoesAndStaysWithItsTurn) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"chat", {"extra-", "found-"}},
      {"responses", {"thought-", "own-", "found-"}},
      {"anthropic", {"thought-", "found-"}},
      {"gemini", {"thought-", "call-", "own-", "found-"}},
      {"ollama", {"found-"}}};
  for (const auto& [dialect, signs] : cases) {
    SCOPED_TRACE(dialect);
    const ModelRequest shorter = without_turns(signed_turns(dialect), 1);
    ASSERT_EQ(history_problem(shorter.messages), std::nullopt);
    const std::string text = rendered(dialect, shorter);
    EXPECT_TRUE(has(text, "sys") && has(text, "task"));
    for (const std::string& sign : signs) {
      EXPECT_TRUE(has(rendered(dialect, signed_turns(dialect)), sign + "1")) << sign;
      EXPECT_FALSE(has(text, sign + "1")) << text;
      EXPECT_TRUE(has(text, sign + "2") && has(text, sign + "3")) << text;
    }
    EXPECT_FALSE(has(text, "call00000")) << "a result without its call: " << text;
  }
}

}  // namespace
}  // namespace holdfast
