#include <fmt/format.h>
#include <pthread.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "env/env.hpp"

namespace holdfast {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackFactor = 4;  // sanitizers blow frames up
#else
constexpr std::size_t kStackFactor = 1;
#endif

// Longer waits are cut: the wait's own arithmetic must not overflow.
constexpr Duration kLongestWait = std::chrono::hours(24 * 365);

std::int64_t millis_of(clockid_t clock) {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) {
    throw std::system_error(errno, std::generic_category(), "clock_gettime");
  }
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

/// How far tests move the wall clock: a number of milliseconds in a file, read at every call.
Duration wall_offset() {
#ifdef HOLDFAST_TESTING
  if (const char* path = std::getenv("HOLDFAST_TEST_WALL_OFFSET_FILE")) {
    std::ifstream file(path);
    std::int64_t offset = 0;
    if (file >> offset) return Duration(offset);
  }
#endif
  return Duration(0);
}

std::string read_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Field 22 of /proc/self/stat: clock ticks since boot. The command name before it may hold blanks.
std::uint64_t process_start_ticks() {
  const std::string stat = read_line("/proc/self/stat");
  const auto end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos) return 0;
  std::istringstream fields(stat.substr(end_of_name + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  return std::strtoull(field.c_str(), nullptr, 10);
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

/// What remains of a host's name in a file name.
std::string as_file_name(std::string host) {
  for (char& c : host) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!is_plain) c = '-';
  }
  return host.substr(0, 63);
}

class RealEventCount final : public EventCount {
 public:
  std::uint64_t current() const override {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  void notify_all() override {
    {
      const std::lock_guard lock(mutex_);
      ++count_;
    }
    changed_.notify_all();
  }
  bool wait_past(std::uint64_t seen, Duration timeout, const std::stop_token& stop) override {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, stop, std::clamp(timeout, Duration(0), kLongestWait),
                             [&] { return count_ != seen; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t count_ = 0;
};

struct ThreadStart {
  std::string name;
  std::function<void()> body;
};

void* run_thread(void* argument) noexcept {
  const std::unique_ptr<ThreadStart> start(static_cast<ThreadStart*>(argument));
  // The kernel keeps 15 characters.
  pthread_setname_np(pthread_self(), start->name.substr(0, 15).c_str());
  start->body();
  return nullptr;
}

class RealThread final : public Thread {
 public:
  RealThread(const ThreadOptions& options, std::function<void()> body) {
    auto start = std::make_unique<ThreadStart>(ThreadStart{options.name, std::move(body)});
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const auto smallest = static_cast<std::size_t>(sysconf(_SC_THREAD_STACK_MIN));
    const std::size_t wanted = std::max(options.stack_bytes * kStackFactor, smallest);
    pthread_attr_setstacksize(&attributes, (wanted + page - 1) / page * page);
    const int error = pthread_create(&thread_, &attributes, run_thread, start.get());
    pthread_attr_destroy(&attributes);
    if (error != 0) {
      throw std::system_error(error, std::generic_category(),
                              "cannot start thread " + options.name);
    }
    static_cast<void>(start.release());  // the thread owns it now
  }
  RealThread(const RealThread&) = delete;
  RealThread& operator=(const RealThread&) = delete;
  ~RealThread() override { join(); }

  void join() override {
    if (joined_) return;
    pthread_join(thread_, nullptr);
    joined_ = true;
  }

 private:
  pthread_t thread_{};
  bool joined_ = false;
};

class RealEnv final : public Env {
 public:
  RealEnv() : boot_id_(read_line("/proc/sys/kernel/random/boot_id")) {
    if (boot_id_.empty()) {
      throw std::runtime_error("cannot read the boot id from /proc: is /proc mounted?");
    }
  }

  WallTime wall_now() override {
    return WallTime(Duration(millis_of(CLOCK_REALTIME)) + wall_offset());
  }
  StoreTime store_now() override { return StoreTime(Duration(millis_of(CLOCK_BOOTTIME))); }
  std::string boot_id() override { return boot_id_; }

  std::uint64_t random() override {
    // One system call each: nothing is buffered that a fork could copy.
    std::uint64_t value = 0;
    for (;;) {
      const ssize_t got = getrandom(&value, sizeof value, 0);
      if (got == static_cast<ssize_t>(sizeof value)) return value;
      if (got < 0 && errno != EINTR) {
        throw std::system_error(errno, std::generic_category(), "getrandom");
      }
    }
  }

  std::unique_ptr<EventCount> make_event_count() override {
    return std::make_unique<RealEventCount>();
  }
  std::unique_ptr<Thread> spawn(const ThreadOptions& options, std::function<void()> body) override {
    return std::make_unique<RealThread>(options, std::move(body));
  }
  void sleep_for(Duration duration, const std::stop_token& stop) override {
    RealEventCount never;
    never.wait_past(0, duration, stop);
  }

  Identity make_identity() override {
    Identity identity;
    identity.host = host_name();
    identity.pid = static_cast<int>(getpid());
    identity.process_started = process_start_ticks();
    identity.id = fmt::format("{}-{}-{}-{:016x}", as_file_name(identity.host), identity.pid,
                              identity.process_started, random());
    return identity;
  }

 private:
  const std::string boot_id_;
};

}  // namespace

Env& real_env() {
  static RealEnv env;
  return env;
}

}  // namespace holdfast
