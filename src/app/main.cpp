#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/real_host.hpp"
#include "cli/cli.hpp"

namespace {

using holdfast::Output;

/// Writes all of it; false with errno where that fails.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const auto written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// A pipe or socket says so; a file never does.
bool is_reader_gone() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

Output::Setup standard_streams() {
  Output::Setup setup;
  setup.write_result = [](std::string_view text) {
    if (write_all(STDOUT_FILENO, text)) return;
    if (errno == EPIPE) throw holdfast::OutputClosed{};
    throw holdfast::OutputFailed{std::strerror(errno)};
  };
  setup.write_note = [](std::string_view text) { write_all(STDERR_FILENO, text); };
  setup.reader_is_gone = is_reader_gone;
  setup.result_is_terminal = isatty(STDOUT_FILENO) == 1;
  setup.note_is_terminal = isatty(STDERR_FILENO) == 1;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  setup.colours = (no_colour == nullptr || *no_colour == '\0') &&
                  (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
  return setup;
}

/// Everybody on the machine can read the words of a command line: a password is gone from them as
/// soon as they are read.
void hide_store_url(char* word) {
  const std::string_view text(word);
  const auto from = text.starts_with("postgres") ? 0 : text.find("=postgres");
  auto hidden = text.npos;
  if (from != text.npos && text.find('@', from) != text.npos) hidden = text.find(':', from);
  if (const auto password = text.find("password"); password != text.npos) {
    hidden = std::min(hidden, from == text.npos ? password : text.find(':', from));
  }
  for (auto i = hidden; i < text.size(); ++i) word[i] = '*';
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  for (int i = 1; i < argc; ++i) hide_store_url(argv[i]);
  // A reader that goes away is an error of write, not the death of a worker.
  signal(SIGPIPE, SIG_IGN);
  Output out(standard_streams());
  const auto make_host = [](const holdfast::GlobalOptions& global) {
    return std::make_unique<holdfast::RealHost>(global, holdfast::real_env());
  };
  return holdfast::run_command_line(std::move(words), make_host, out);
}
