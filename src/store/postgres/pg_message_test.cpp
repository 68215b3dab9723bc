#include "store/postgres/pg_message.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace holdfast::postgres {
namespace {

constexpr std::size_t kNotification = 8000;

Message a_message() {
  Message message;
  message.from = "sender";
  message.number = 7;
  return message;
}

/// What a binary makes of it that knows but agents.
std::set<std::string> words_of(const std::string& payload) {
  std::istringstream text(payload);
  std::set<std::string> words;
  for (std::string word; text >> word;) words.insert(word);
  return words;
}

TEST(PgMessage, IsReadAsItWasMeant) {
  Message message = a_message();
  message.queued = {{{"triage", "default"}, 3}, {{"with \"quotes\" \\ and { spaces", "q {"}, 1}};
  message.here = {{{"triage", "other"}, {"default"}, false}, {{}, {}, true}};
  message.missed = {"one", "two"};
  message.asks = true;
  message.leaves = true;
  EXPECT_EQ(decode_message(encode(message), 1), message);
}

TEST(PgMessage, OlderVersionsFindTheAgentsInIt) {
  Message message = a_message();
  message.queued = {{{"triage", "default"}, 1}, {{"sorter", "q"}, 2}};
  const std::string payload = encode(message);
  EXPECT_TRUE(payload.starts_with("sender "));
  EXPECT_TRUE(words_of(payload).contains("triage"));
  EXPECT_TRUE(words_of(payload).contains("sorter"));
  EXPECT_FALSE(words_of(payload).contains("*"));
}

TEST(PgMessage, AnAgentThatIsNoWordIsAnyToOlderVersions) {
  for (const char* agent : {"two words", "{", "a{b", "back\\slash", ""}) {
    Message message = a_message();
    message.queued = {{{agent, "default"}, 1}};
    EXPECT_TRUE(words_of(encode(message)).contains("*")) << agent;
    EXPECT_EQ(decode_message(encode(message), 1), message) << agent;
  }
}

TEST(PgMessage, WhatTellsOfNoRunsWakesNoOlderVersion) {
  Message message = a_message();
  message.here = {{{"triage"}, {}, false}};
  EXPECT_FALSE(words_of(encode(message)).contains("triage"));
  EXPECT_FALSE(words_of(encode(message)).contains("*"));
}

TEST(PgMessage, WhatOlderVersionsAndSqlSayIsRead) {
  const Message message = decode_message("sql triage * {", 42);
  EXPECT_EQ(message.from, "sql");
  EXPECT_EQ(message.number, 42);
  ASSERT_EQ(message.queued.size(), 3u);
  EXPECT_EQ(message.queued[0], (Message::Told{{"triage", ""}, 0}));
  EXPECT_EQ(message.queued[1], (Message::Told{{"", ""}, 0}));
  EXPECT_EQ(message.queued[2], (Message::Told{{"{", ""}, 0}));
}

TEST(PgMessage, WhatIsNoMessageTellsOfNothing) {
  for (const char* payload : {"", "sender", "sender-without-a-space{}"}) {
    EXPECT_TRUE(decode_message(payload, 1).queued.empty()) << payload;
  }
}

TEST(PgMessage, AlwaysFitsIntoANotification) {
  const std::string longest(300, 'x');
  Message message = a_message();
  std::vector<Service> services;
  for (int i = 0; i < 100; ++i) {
    message.queued.push_back({{longest + std::to_string(i), longest}, 1});
    message.missed.push_back("0123456789abcdef");
    services.push_back({{longest + std::to_string(i)}, {longest}, false});
  }
  message.here = services;
  const std::string payload = encode(message);
  EXPECT_LT(payload.size(), kNotification);
  EXPECT_TRUE(words_of(payload).contains("*"));
  const Message read = decode_message(payload, 1);
  ASSERT_EQ(read.queued.size(), 1u);
  EXPECT_EQ(read.queued[0], (Message::Told{{"", ""}, 0}));
  ASSERT_EQ(read.here->size(), 1u);
  EXPECT_TRUE(read.here->front().may_serve({longest + "7", longest}));
}

TEST(PgService, ServesItsAgentsOfItsQueues) {
  const Service of_queue{{"triage"}, {"fast"}, false};
  EXPECT_TRUE(of_queue.may_serve({"triage", "fast"}));
  EXPECT_TRUE(of_queue.may_serve({"triage", ""}));
  EXPECT_TRUE(of_queue.may_serve({"", "fast"}));
  EXPECT_FALSE(of_queue.may_serve({"triage", "slow"}));
  EXPECT_FALSE(of_queue.may_serve({"other", "fast"}));
  EXPECT_TRUE((Service{{"triage"}, {}, false}).may_serve({"triage", "slow"}));
  EXPECT_TRUE((Service{{}, {"fast"}, true}).may_serve({"any", "fast"}));
  EXPECT_FALSE((Service{}).may_serve({"", ""}));
}

}  // namespace
}  // namespace holdfast::postgres
