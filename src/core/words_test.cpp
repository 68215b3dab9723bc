#include "holdfast/words.hpp"

#include <gtest/gtest.h>

#include <set>

#include "holdfast/run.hpp"

namespace holdfast {
namespace {

/// Every value up to `last` has a word of its own that is read back.
template <class E>
void expect_words(E last, int count) {
  std::set<std::string> seen;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto value = static_cast<E>(i);
    EXPECT_TRUE(seen.emplace(to_word(value)).second);
    EXPECT_EQ(parse_word<E>(to_word(value)), value);
  }
  EXPECT_EQ(static_cast<int>(seen.size()), count);
  EXPECT_EQ(parse_word<E>("of a newer build"), std::nullopt);
  EXPECT_EQ(parse_word<E>(""), std::nullopt);
}

TEST(Words, AreReadBack) {
  expect_words(Status::cancelled, 7);
  expect_words(Reason::cancelled, 10);
  expect_words(Outcome::slept, 12);
  expect_words(FailureClass::unknown, 13);
  expect_words(Effect::non_idempotent_write, 3);
  expect_words(Origin::interactive, 2);
  expect_words(EventKind::failed, 25);
  expect_words(Verdict::expired, 4);
  expect_words(WaitKind::input, 2);
}

TEST(Words, KeepWhatThisBuildDoesNotKnow) {
  const Word<Status> word(std::string("hibernating"));
  EXPECT_EQ(word.text(), "hibernating");
  EXPECT_EQ(word.known(), std::nullopt);
  EXPECT_FALSE(word.is(Status::queued));
  EXPECT_EQ(Word<Status>(std::string("queued")), Word<Status>(Status::queued));
}

TEST(Words, TheLastThreeStatusesAreTerminal) {
  for (const Status status :
       {Status::queued, Status::running, Status::waiting_for_approval, Status::waiting_for_input}) {
    EXPECT_FALSE(is_terminal(status));
  }
  for (const Status status : {Status::completed, Status::failed, Status::cancelled}) {
    EXPECT_TRUE(is_terminal(status));
    EXPECT_FALSE(is_waiting(status));
  }
}

TEST(Words, ProviderFailedAloneIsRetryable) {
  for (int i = 0; i <= static_cast<int>(Reason::cancelled); ++i) {
    const auto reason = static_cast<Reason>(i);
    EXPECT_EQ(is_retryable(reason), reason == Reason::provider_failed) << to_word(reason);
  }
}

TEST(Words, SixClassesAreRetryable) {
  const std::set<FailureClass> retryable = {FailureClass::connection,   FailureClass::timeout,
                                            FailureClass::rate_limit,   FailureClass::overloaded,
                                            FailureClass::server_error, FailureClass::circuit_open};
  for (int i = 0; i <= static_cast<int>(FailureClass::unknown); ++i) {
    const auto cls = static_cast<FailureClass>(i);
    EXPECT_EQ(is_retryable(cls), retryable.contains(cls)) << to_word(cls);
  }
}

}  // namespace
}  // namespace holdfast
