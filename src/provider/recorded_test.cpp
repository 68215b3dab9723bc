// Every recorded failure over the real HTTP path, through the dialect of its own maker; what an API
// says with an error status is judged alike through all dialects.

#include <gtest/gtest.h>

#include <map>

#include "provider/dialect_test_support.hpp"
#include "provider/recorded_test_rows.hpp"

namespace holdfast {
namespace {

using testing::StubServer;

/// Kind and API of a provider's configuration.
using Spoken = std::pair<std::string, std::string>;

const std::vector<Spoken> kSpoken = {{"openai", "chat"},
                                     {"openai", "responses"},
                                     {"anthropic", "chat"},
                                     {"gemini", "chat"},
                                     {"ollama", "chat"}};

Spoken spoken_by(const std::string& maker) {
  static const std::map<std::string, Spoken> kMakers = {
      {"openai_responses", {"openai", "responses"}},
      {"anthropic", {"anthropic", "chat"}},
      {"gemini", {"gemini", "chat"}},
      {"ollama", {"ollama", "chat"}}};
  const auto found = kMakers.find(maker);
  return found == kMakers.end() ? Spoken{"openai", "chat"} : found->second;
}

Failure judged(const Json& row, const Spoken& spoken, bool stream) {
  StubServer server;
  server.play(answer_of(row));
  Failure failure = dialect_test::failure_of(
      dialect_test::dialect_spec(server, spoken.first, stream, spoken.second));
  EXPECT_EQ(server.requests().size(), 1u) << row["id"] << ": a call is one request";
  return failure;
}

std::string shown(const Spoken& spoken, bool stream) {
  return spoken.first + " " + spoken.second + (stream ? " streamed" : " whole");
}

TEST(Recorded, ErrorStatusesAreJudgedAlikeThroughEveryDialect) {
  int seen = 0;
  for (const Json& row : recorded_rows(HOLDFAST_SOURCE_DIR)) {
    const bool is_anybodys = row["provider"] == "generic" && row["stage"] == "body_200";
    if (row["stage"] != "http" && !is_anybodys) continue;
    for (const Spoken& spoken : kSpoken) {
      const bool stream = ++seen % 2 == 0;
      expect_row(row, judged(row, spoken, stream), shown(spoken, stream));
    }
  }
  EXPECT_GE(seen, 120 * static_cast<int>(kSpoken.size()));
}

TEST(Recorded, AnswersThatAreNoneAreJudgedThroughTheirOwnDialect) {
  int seen = 0;
  for (const Json& row : recorded_rows(HOLDFAST_SOURCE_DIR)) {
    if (row["stage"] != "stream" && row["stage"] != "body_200") continue;
    const std::string maker = row["provider"];
    if (maker == "bedrock") continue;  // no dialect of this build
    const Spoken spoken = spoken_by(maker);
    expect_row(row, judged(row, spoken, true), shown(spoken, true));
    ++seen;
    // Asked for whole, a stream may come all the same; what came is judged, not what was asked.
    expect_row(row, judged(row, spoken, false), shown(spoken, false));
  }
  EXPECT_GE(seen, 18);
}

}  // namespace
}  // namespace holdfast
