// The chain before open circuits, and what it tells the board of each call.

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "provider/chain.hpp"
#include "provider/providers.hpp"
#include "support/fake_env.hpp"

namespace holdfast {
namespace {

/// Answers as told, and writes down what it hears.
class FakeBoard : public CircuitBoard {
 public:
  struct Heard {
    std::string target;
    CallEnd end;
  };
  Admission admit(const std::string& target, Duration) override {
    asked.push_back(target);
    const auto it = answers.find(target);
    return it == answers.end() ? Admission() : it->second;
  }
  void note(const std::string& target, const CallEnd& end) override {
    heard.push_back({target, end});
  }
  void open(const std::string& target, Duration retry_after, FailureClass cause) {
    Admission& answer = answers[target];
    answer.is_open = true;
    answer.retry_after = retry_after;
    answer.failures = 7;
    answer.cause = cause;
  }

  std::map<std::string, Admission> answers;
  std::vector<std::string> asked;
  std::vector<Heard> heard;
};

/// Answers, or throws what it is told.
class ToldProvider : public Provider {
 public:
  ModelReply complete(const std::string& model, const ModelRequest&, const CallContext&) override {
    ++calls;
    if (throws_rubbish) throw std::runtime_error("rubbish");
    if (fails) throw FailureError(make_failure(*fails, "code", "it failed"));
    ModelReply reply;
    reply.text = model;
    return reply;
  }
  int calls = 0;
  std::optional<FailureClass> fails;
  bool throws_rubbish = false;
};

class ChainCircuit : public ::testing::Test {
 protected:
  ChainCircuit() {
    auto a = std::make_unique<ToldProvider>();
    auto b = std::make_unique<ToldProvider>();
    auto board = std::make_unique<FakeBoard>();
    a_ = a.get();
    b_ = b.get();
    board_ = board.get();
    ProviderMap providers;
    providers["a"] = std::move(a);
    providers["b"] = std::move(b);
    chain_ = make_chain_of(std::move(providers), env_, std::move(board));
  }
  std::string answer(const CallContext& context = {}) {
    return chain_->complete({"a/x", "b/y"}, {}, {}, context).text;
  }
  Failure failure(const CallContext& context = {}) {
    try {
      answer(context);
      ADD_FAILURE() << "answered";
    } catch (const FailureError& error) {
      return error.failure();
    }
    return {};
  }

  testing::FakeEnv env_;
  ToldProvider* a_ = nullptr;
  ToldProvider* b_ = nullptr;
  FakeBoard* board_ = nullptr;
  std::unique_ptr<ModelChain> chain_;
};

TEST_F(ChainCircuit, AnOpenOneIsPassedOver) {
  board_->open("a/x", Duration(9), FailureClass::timeout);
  EXPECT_EQ(answer(), "y");
  EXPECT_EQ(a_->calls, 0);
  ASSERT_EQ(board_->heard.size(), 1u);
  EXPECT_EQ(board_->heard[0].target, "b/y");
  EXPECT_EQ(board_->heard[0].end.what, CallEnd::What::answered);
}

TEST_F(ChainCircuit, WhereAllAreOpenNothingIsCalledAndTheFirstProbeIsWaitedFor) {
  board_->open("a/x", Duration(9000), FailureClass::quota_exhausted);
  board_->open("b/y", Duration(5000), FailureClass::overloaded);
  const Failure failed = failure();
  EXPECT_EQ(failed.cls, FailureClass::circuit_open);
  EXPECT_FALSE(failed.attempted);
  EXPECT_EQ(failed.retry_after, Duration(5000));
  EXPECT_EQ(failed.delay_source, "circuit");
  EXPECT_NE(failed.message.find("a/x"), std::string::npos) << failed.message;
  EXPECT_NE(failed.message.find("overloaded"), std::string::npos) << failed.message;
  EXPECT_EQ(a_->calls + b_->calls, 0);
  EXPECT_TRUE(board_->heard.empty()) << "no call, no end of a call";
}

TEST_F(ChainCircuit, WhereSpentQuotasOpenedAllOfThemThatIsTheClass) {
  board_->open("a/x", Duration(9), FailureClass::quota_exhausted);
  board_->open("b/y", Duration(8), FailureClass::quota_exhausted);
  EXPECT_EQ(failure().cls, FailureClass::quota_exhausted);
  EXPECT_FALSE(failure().attempted);
}

TEST_F(ChainCircuit, AnOpenOneBehindAFailedCallIsNoAttempt) {
  a_->fails = FailureClass::server_error;
  board_->open("b/y", Duration(5000), FailureClass::overloaded);
  const Failure failed = failure();
  EXPECT_EQ(failed.cls, FailureClass::server_error);
  EXPECT_TRUE(failed.attempted);
  EXPECT_EQ(failed.message, "it failed");
}

TEST_F(ChainCircuit, TellsHowEachCallEnded) {
  board_->answers["a/x"].is_probe = true;
  a_->fails = FailureClass::rate_limit;
  b_->fails = FailureClass::auth;
  failure();
  ASSERT_EQ(board_->heard.size(), 2u);
  EXPECT_EQ(board_->heard[0].end.what, CallEnd::What::failed);
  EXPECT_TRUE(board_->heard[0].end.was_probe);
  EXPECT_EQ(board_->heard[0].end.cls, FailureClass::rate_limit);
  EXPECT_EQ(board_->heard[1].end.what, CallEnd::What::answered) << "who refuses is there";
  EXPECT_FALSE(board_->heard[1].end.was_probe);
}

TEST_F(ChainCircuit, ACallThatWasInterruptedIsGivenUp) {
  a_->fails = FailureClass::timeout;
  std::stop_source stop;
  stop.request_stop();
  CallContext context;
  context.stop = stop.get_token();
  failure(context);
  ASSERT_EQ(board_->heard.size(), 1u);
  EXPECT_EQ(board_->heard[0].end.what, CallEnd::What::given_up);
}

TEST_F(ChainCircuit, WhateverIsThrownTheCallHasEnded) {
  a_->throws_rubbish = true;
  EXPECT_THROW(answer(), std::runtime_error);
  ASSERT_EQ(board_->heard.size(), 1u);
  EXPECT_EQ(board_->heard[0].end.what, CallEnd::What::given_up);
}

TEST_F(ChainCircuit, AnUnknownProviderHasNoCircuit) {
  try {
    chain_->complete({"c/z"}, {}, {}, {});
    ADD_FAILURE() << "answered";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().cls, FailureClass::configuration);
  }
  EXPECT_TRUE(board_->asked.empty());
}

}  // namespace
}  // namespace holdfast
