#include "store/sqlite/wake_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace holdfast::sqlite {
namespace {

/// A run whose notification was lost is found by then (spec, section 9).
constexpr Duration kLongestWait = std::chrono::milliseconds(240);
constexpr double kJitter = 0.2;
/// Without a notification a wait is a poll.
constexpr std::uint32_t kWatched = IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB;

void ring(int event) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto size = write(event, &one, sizeof one);
}

}  // namespace

WakeFile::WakeFile(const std::string& database, Env& env)
    : path_(database + "-wake"), env_(env), watching_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  const std::lock_guard lock(mutex_);
  reopen_if_removed();
}

void WakeFile::reopen_if_removed() {
  if (touched_ && is_same_file(path_, touched_.get())) return;
  touched_ = Descriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!watching_) return;
  if (watch_ >= 0) inotify_rm_watch(watching_.get(), watch_);
  watch_ = inotify_add_watch(watching_.get(), path_.c_str(), kWatched);
}

void WakeFile::announce() noexcept {
  const std::lock_guard lock(mutex_);
  wake_all();
  if (!touched_) return;
  const char byte = '.';
  [[maybe_unused]] const auto size = pwrite(touched_.get(), &byte, 1, 0);
}

void WakeFile::wake_all() {
  ++announced_;
  for (const int event : sleepers_) ring(event);
}

void WakeFile::about_to_look() {
  const std::lock_guard lock(mutex_);
  drain();
  seen_[std::this_thread::get_id()] = announced_;
}

/// Takes what other processes (and this one) announced. True when there was anything.
bool WakeFile::drain() {
  if (!watching_) return false;
  alignas(inotify_event) std::array<char, 4096> events{};
  bool is_any = false;
  while (read(watching_.get(), events.data(), events.size()) > 0) is_any = true;
  if (is_any) wake_all();
  return is_any;
}

Duration WakeFile::limit(Duration max) {
  const double share = 1.0 - kJitter * env_.unit_random();
  const auto longest =
      Duration(static_cast<Duration::rep>(static_cast<double>(kLongestWait.count()) * share));
  return std::clamp(max, Duration(0), longest);
}

void WakeFile::wait(Duration max, const std::stop_token& stop) {
  const Descriptor event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  const Duration longest = limit(max);
  if (!event) {
    env_.sleep_for(longest, stop);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    const auto seen = seen_.find(std::this_thread::get_id());
    const bool is_news = seen != seen_.end() && seen->second != announced_;
    if (seen != seen_.end()) seen_.erase(seen);
    reopen_if_removed();
    if (is_news) return;
    sleepers_.insert(event.get());
  }
  {
    const std::stop_callback on_stop(stop, [&] { ring(event.get()); });
    std::array<pollfd, 2> fds{{{event.get(), POLLIN, 0}, {watching_.get(), POLLIN, 0}}};
    poll(fds.data(), fds.size(), static_cast<int>(longest.count()));
  }
  const std::lock_guard lock(mutex_);
  sleepers_.erase(event.get());
  drain();
}

}  // namespace holdfast::sqlite
