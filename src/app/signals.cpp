#include "app/signals.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

namespace holdfast {
namespace {

// A signal handler gets no argument of ours: the one place where a global cannot be avoided.
std::atomic<int> signal_pipe = -1;
std::atomic<pid_t> signal_owner = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void write_signal(int number) {
  // A child between fork and exec still has this handler and this pipe; its signals are not ours.
  if (getpid() != signal_owner.load()) return;
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(number);
  [[maybe_unused]] const auto written = write(signal_pipe.load(), &byte, 1);
  errno = saved;
}

void catch_signal(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

SignalWatch::SignalWatch(Env& env) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  read_end_ = ends[0];
  write_end_ = ends[1];
  // A full pipe must not block the handler; the signals in it are enough.
  fcntl(write_end_, F_SETFL, O_NONBLOCK);
  signal_pipe = write_end_;
  signal_owner = getpid();
  thread_ = env.spawn({"signals", 256u << 10}, [this] { listen(); });
  catch_signal(SIGINT, write_signal);
  catch_signal(SIGTERM, write_signal);
}

SignalWatch::~SignalWatch() {
  catch_signal(SIGINT, SIG_DFL);
  catch_signal(SIGTERM, SIG_DFL);
  signal_pipe = -1;
  close(write_end_);  // the listener reads the end of the pipe
  thread_->join();
  close(read_end_);
}

void SignalWatch::set_handler(std::function<void(int count)> handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
  count_ = 0;
}

void SignalWatch::listen() {
  unsigned char number = 0;
  while (true) {
    const auto got = read(read_end_, &number, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    const std::lock_guard lock(mutex_);
    if (!handler_) _exit(128 + number);
    handler_(++count_);
  }
}

}  // namespace holdfast
