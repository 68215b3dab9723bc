// What a model has room for, and what it is sent where a conversation is longer.

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/context_window.hpp"
#include "provider/chain.hpp"
#include "provider/judge.hpp"
#include "provider/providers.hpp"
#include "support/fake_env.hpp"

namespace holdfast {
namespace {

TEST(RequestRoom, IsThatOfTheWindowThatIsToldElseOfTheOneThatIsKnown) {
  ProviderSpec spec;
  spec.kind = "openai";
  EXPECT_EQ(request_room(spec, "gpt-4"), 8192 - 819);
  EXPECT_EQ(request_room(spec, "gpt-4o-mini"), 128000 - 12800);
  EXPECT_EQ(request_room(spec, "gpt-4.1-nano"), 1047576 - 104757);
  EXPECT_EQ(request_room(spec, "openai/GPT-5-mini"), 400000 - 40000);
  EXPECT_EQ(request_room(spec, "o3-mini"), 200000 - 20000);
  EXPECT_EQ(request_room(spec, "o1000"), std::nullopt);
  EXPECT_EQ(request_room(spec, "my-own"), std::nullopt);
  spec.context_window = {{"my-own", 1000}, {"gpt-4", 2000}};
  EXPECT_EQ(request_room(spec, "my-own"), 900);
  EXPECT_EQ(request_room(spec, "gpt-4"), 1800);
}

TEST(RequestRoom, LeavesAnthropicTheTokensThatTheAnswerMayTake) {
  ProviderSpec spec;
  spec.kind = "anthropic";
  spec.max_tokens = 64000;
  EXPECT_EQ(request_room(spec, "claude-sonnet-4-5"), 200000 - 64000);
  spec.max_tokens = 1000;
  EXPECT_EQ(request_room(spec, "claude-sonnet-4-5"), 200000 - 20000);
  spec.context_window = {{"claude-x", 1000}};
  spec.max_tokens = 50;
  EXPECT_EQ(request_room(spec, "claude-x"), 900);
  spec.max_tokens = 16384;
  EXPECT_EQ(request_room(spec, "claude-x"), 500);
}

TEST(RequestRoom, OfOllamaIsWhatItsServerIsSetUpFor) {
  ProviderSpec spec;
  spec.kind = "ollama";
  EXPECT_EQ(request_room(spec, "llama-3.1"), std::nullopt);
  spec.context_window = {{"llama-3.1", 4000}};
  EXPECT_EQ(request_room(spec, "llama-3.1"), 3600);
}

/// Takes requests of so many turns, and says that longer ones are too long. Gives in at last.
class Narrow final : public Provider {
 public:
  ModelReply complete(const std::string&, const ModelRequest& request,
                      const CallContext&) override {
    sent.push_back(request.left_out);
    if (spare_turns(request) + 1 > turns && sent.size() < 30) {
      Failure failure;
      failure.cls = FailureClass::context_length;
      failure.message = "too long";
      if (used) throw PaidFailure(failure, *used);
      throw FailureError(failure);
    }
    return {};
  }
  std::optional<std::int64_t> request_room(const std::string&) const override { return room; }

  int turns = 1000;
  std::optional<std::int64_t> room;
  std::optional<ModelUsage> used;  ///< by a refused request: its answer had begun
  std::vector<int> sent;
};

struct Narrows {
  testing::FakeEnv env;
  Narrow* a = nullptr;
  Narrow* b = nullptr;
  std::unique_ptr<ModelChain> chain;
  ModelRequest request;

  explicit Narrows(int turns) {
    ProviderMap providers;
    auto first = std::make_unique<Narrow>();
    auto second = std::make_unique<Narrow>();
    a = first.get();
    b = second.get();
    providers["a"] = std::move(first);
    providers["b"] = std::move(second);
    chain = make_chain_of(std::move(providers), env);
    request.messages.emplace_back().text = "task";
    for (int turn = 1; turn <= turns; ++turn) {
      Message& message = request.messages.emplace_back();
      message.role = Message::Role::assistant;
      message.text = std::string(400, 'x');
      message.calls.push_back({std::to_string(turn), "look", Json::object(), {}});
      Message& result = request.messages.emplace_back();
      result.role = Message::Role::tool;
      result.call_id = std::to_string(turn);
      result.tool_name = "look";
    }
  }

  ModelReply ask(const std::vector<FailureClass>& fallback_on = {}) {
    return chain->complete({"a/m", "b/m"}, fallback_on, request, {});
  }
};

TEST(Window, WhatWouldNotFitIsLeftOutBeforeAnythingIsSent) {
  Narrows w(6);
  w.a->room = estimated_tokens(without_turns(w.request, 2));
  const ModelReply reply = w.ask();
  EXPECT_EQ(w.a->sent, (std::vector<int>{2}));
  EXPECT_EQ(reply.left_out, 2);
  EXPECT_FALSE(reply.was_refused);
  w.request.leaves_out = 4;
  EXPECT_EQ(w.ask().left_out, 4);
}

TEST(Window, EachModelOfTheChainIsSentWhatItHasRoomFor) {
  Narrows w(6);
  w.a->room = 10;  // not even the last turn
  w.b->room = estimated_tokens(without_turns(w.request, 5));
  EXPECT_EQ(w.ask({FailureClass::context_length}).left_out, 5);
  EXPECT_TRUE(w.a->sent.empty());
  EXPECT_EQ(w.b->sent, (std::vector<int>{5}));
}

TEST(Window, WhatCannotFitIsNotSentAndSaysSo) {
  Narrows w(6);
  w.a->room = 50;
  try {
    w.ask();
    ADD_FAILURE() << "answered";
  } catch (const TruncatedFailure& error) {
    EXPECT_EQ(error.failure().cls, FailureClass::context_length);
    EXPECT_FALSE(error.failure().attempted);
    EXPECT_NE(error.failure().message.find("at most 50"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(w.a->sent.empty());
}

TEST(Window, ARefusedRequestIsSentShorterAndNeverAgain) {
  Narrows w(9);
  w.a->turns = 2;
  const ModelReply reply = w.ask();
  EXPECT_EQ(w.a->sent, (std::vector<int>{0, 4, 6, 7}));
  EXPECT_EQ(reply.left_out, 7);
  EXPECT_TRUE(reply.was_refused);
}

TEST(Window, WhatARefusedRequestCostIsCounted) {
  Narrows w(9);
  w.a->turns = 2;
  w.a->used.emplace().total_tokens = 7;
  EXPECT_EQ(w.ask().usage.total_tokens, 21);
}

TEST(Window, ARequestThatIsRefusedToTheLastIsTruncated) {
  Narrows w(3);
  w.a->turns = 0;
  EXPECT_THROW(w.ask(), TruncatedFailure);
  EXPECT_EQ(w.a->sent, (std::vector<int>{0, 1, 2}));
}

TEST(Window, ARequestOfWhichNothingCanBeLeftOutIsSentOnce) {
  Narrows w(0);
  w.a->turns = 0;
  try {
    w.ask();
    ADD_FAILURE() << "answered";
  } catch (const FailureError& error) {
    EXPECT_EQ(dynamic_cast<const TruncatedFailure*>(&error), nullptr);
    EXPECT_EQ(error.failure().message, "too long");
  }
  EXPECT_EQ(w.a->sent.size(), 1u);
}

}  // namespace
}  // namespace holdfast
