#include "base/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <thread>
#include <vector>

namespace holdfast {
namespace {

/// What `work` writes to standard error.
std::string standard_error_of(const std::function<void()>& work) {
  std::FILE* file = std::tmpfile();
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file), STDERR_FILENO);
  work();
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  std::rewind(file);
  std::string text;
  std::array<char, 4096> buffer{};
  std::size_t count = 0;
  while ((count = std::fread(buffer.data(), 1, buffer.size(), file)) > 0) {
    text.append(buffer.data(), count);
  }
  std::fclose(file);
  return text;
}

TEST(Log, WritesOneLineOfFields) {
  const std::string line = standard_error_of([] {
    log(LogLevel::warn, "lease is short", {{"run", "r1"}, {"step", "tool:pay #2"}});
  });
  EXPECT_EQ(line.find("time=2"), 0u) << line;
  EXPECT_NE(line.find("Z level=warn msg=\"lease is short\" run=r1 step=\"tool:pay #2\"\n"),
            std::string::npos)
      << line;
}

TEST(Log, EscapesWhatWouldBreakALine) {
  const std::string line = standard_error_of([] {
    log(LogLevel::error, "a\nb\x1b[31m", {{"v", "x\"y\\"}, {"empty", ""}, {"bytes", "\xFF"}});
  });
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  EXPECT_NE(line.find(R"(msg="a\nb\x1b[31m" v="x\"y\\" empty="" bytes=)"), std::string::npos)
      << line;
  EXPECT_EQ(line.find('\xFF'), std::string::npos);
}

TEST(Log, LeavesOutWhatIsBelowTheLevel) {
  set_log_level(LogLevel::error);
  EXPECT_EQ(standard_error_of([] { log(LogLevel::warn, "quiet"); }), "");
  EXPECT_NE(standard_error_of([] { log(LogLevel::error, "loud"); }), "");
  set_log_level(LogLevel::off);
  EXPECT_EQ(standard_error_of([] { log(LogLevel::error, "quiet"); }), "");
  set_log_level(LogLevel::info);
}

TEST(Log, LinesOfManyThreadsStayWhole) {
  const std::string text = standard_error_of([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 100; ++i) log(LogLevel::info, std::string(300, 'x'));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size(); ++lines) {
    const std::size_t end = text.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    EXPECT_EQ(text.compare(at, 5, "time="), 0);
    EXPECT_EQ(text.compare(end - 2, 2, "x\""), 0);
    at = end + 1;
  }
  EXPECT_EQ(lines, 400u);
}

TEST(LogLevel, KnowsItsWords) {
  LogLevel level = LogLevel::info;
  EXPECT_TRUE(parse_log_level("debug", &level));
  EXPECT_EQ(level, LogLevel::debug);
  EXPECT_FALSE(parse_log_level("loud", &level));
  EXPECT_EQ(level, LogLevel::debug);
}

}  // namespace
}  // namespace holdfast
