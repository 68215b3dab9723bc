#pragma once

// Which seed it was, where a history ends the whole program: an assertion, an exception that nobody
// may throw, or a thread that turns on the spot and never comes to a point of the world.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace holdfast::sim {

/// For as long as it lives: one history. One at a time, in the program's own thread.
class LastWords {
 public:
  explicit LastWords(std::uint64_t seed) {
    words().fill('\0');
    fmt::format_to_n(words().begin(), words().size() - 1,
                     "seed {}: this history was the last, it broke the program or does not end\n",
                     seed);
    signal(SIGABRT, say);
    signal(SIGALRM, say);
    alarm(kLongestSeconds);
  }
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
  ~LastWords() {
    alarm(0);
    signal(SIGABRT, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
  }

 private:
  /// A history takes some milliseconds, also where it comes to the bound on its points.
  static constexpr unsigned kLongestSeconds = 300;

  static std::array<char, 128>& words() {
    static std::array<char, 128> kept;
    return kept;
  }
  static void say(int number) {
    std::size_t length = 0;
    while (words()[length] != '\0') ++length;
    if (write(STDERR_FILENO, words().data(), length) < 0) _exit(2);
    signal(number, SIG_DFL);
    raise(number);
  }
};

}  // namespace holdfast::sim
