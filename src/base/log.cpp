#include "base/log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>

#include "base/text.hpp"

namespace holdfast {
namespace {

constexpr std::array<std::string_view, 5> kLevels = {"debug", "info", "warn", "error", "off"};

/// Process-wide on purpose: standard error is.
std::atomic<LogLevel>& threshold() {
  static std::atomic<LogLevel> level{LogLevel::info};
  return level;
}

bool is_plain(std::string_view value) {
  if (value.empty()) return false;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7F || c == '"' || c == '=' || c == '\\') return false;
  }
  return true;
}

void append_quoted(std::string& line, std::string_view value) {
  line += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  line += '"';
}

}  // namespace

void log(LogLevel level, std::string_view message,
         std::initializer_list<std::pair<std::string_view, std::string>> fields) {
  if (level == LogLevel::off || level < threshold().load(std::memory_order_relaxed)) return;
  // The one clock outside Env: a log line's time is for people and decides nothing.
  const auto now = std::chrono::floor<Duration>(std::chrono::system_clock::now());
  std::string line = fmt::format("time={} level={} msg=", format_time(now),
                                 kLevels[static_cast<std::size_t>(level)]);
  append_quoted(line, clean_utf8(message));
  for (const auto& [name, value] : fields) {
    line += ' ';
    line += name;
    line += '=';
    const std::string clean = clean_utf8(value);
    if (is_plain(clean)) {
      line += clean;
    } else {
      append_quoted(line, clean);
    }
  }
  line += '\n';
  // One write, so that lines of several threads and processes do not mix. A closed or full standard
  // error is no reason to stop working.
  ssize_t written = -1;
  do {
    written = ::write(STDERR_FILENO, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
}

void set_log_level(LogLevel level) { threshold().store(level, std::memory_order_relaxed); }

bool parse_log_level(std::string_view word, LogLevel* level) {
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    if (word == kLevels[i]) {
      *level = static_cast<LogLevel>(i);
      return true;
    }
  }
  return false;
}

}  // namespace holdfast
