#include <gtest/gtest.h>

#include <algorithm>

#include "provider/chain.hpp"
#include "support/stub_server.hpp"

namespace holdfast {
namespace {

using testing::StubAnswer;
using testing::StubServer;

/// What is said of a call that `count` models answer with an error text of so many letters x.
std::string told_of(std::size_t letters, std::size_t count) {
  std::vector<ProviderSpec> specs;
  std::vector<std::string> models;
  StubServer server;
  for (std::size_t i = 0; i < count; ++i) {
    ProviderSpec spec;
    spec.name = "p" + std::to_string(i);
    spec.base_url = server.url();
    spec.stream = false;
    specs.push_back(spec);
    models.push_back(spec.name + "/gpt");
    server.play(
        StubAnswer::json(503, dump_json({{"error", {{"message", std::string(letters, 'x')}}}})));
  }
  try {
    make_chain(specs, real_env(), {})->complete(models, {}, {}, {});
    ADD_FAILURE() << "answered";
  } catch (const FailureError& error) {
    return error.failure().message;
  }
  return {};
}

TEST(ErrorText, IsKeptUpToTheLimitAndTellsHowMuchIsMissing) {
  const std::size_t limit = Limits{}.error_bytes;
  for (const std::size_t letters : {std::size_t{4100}, std::size_t{100000}, std::size_t{200000}}) {
    const std::string message = told_of(letters, 1);
    EXPECT_LE(message.size(), limit);
    EXPECT_GT(message.size(), limit - 8);
    const auto kept = static_cast<std::size_t>(std::ranges::count(message, 'x'));
    EXPECT_NE(message.find(" … [" + std::to_string(letters - kept) + " bytes cut]"),
              std::string::npos)
        << message.substr(message.size() - 60);
  }
  EXPECT_EQ(told_of(3000, 1).find("bytes cut"), std::string::npos);
}

TEST(ErrorText, OfAChainShowsEachAttempt) {
  const std::string message = told_of(100000, 3);
  EXPECT_LE(message.size(), Limits{}.error_bytes);
  for (const char* part : {"1) p0/gpt", "2) p1/gpt", "3) p2/gpt"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part;
  }
  const auto kept = static_cast<std::size_t>(std::ranges::count(message, 'x')) / 3;
  EXPECT_NE(message.find(" … [" + std::to_string(100000 - kept) + " bytes cut] 2)"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace holdfast
