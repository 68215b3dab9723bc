#include "store/sqlite/write_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/guard.hpp"
#include "base/log.hpp"
#include "holdfast/failure.hpp"

namespace holdfast::sqlite {
namespace {

/// A process that is frozen while it waits its turn keeps the others waiting no longer than this.
constexpr Duration kTurnKeptFor = std::chrono::milliseconds(200);
constexpr Duration kNamedAfter = std::chrono::seconds(2);
constexpr Duration kNamedEvery = std::chrono::seconds(10);

/// A pause too short for Env's milliseconds, between two tries. The lock has no wait with a limit.
void pause_briefly(int tries) {
  constexpr long kShort = 50'000;
  constexpr long kLong = 1'000'000;
  const timespec pause{0, tries < 20 ? kShort : kLong};
  nanosleep(&pause, nullptr);
}

bool try_whole(int fd) {
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

/// The place in the queue: who has it is next. A byte lock, independent of the whole file's.
bool set_turn(int fd, short type) {
  struct flock turn {};
  turn.l_type = type;
  turn.l_whence = SEEK_SET;
  turn.l_start = 0;
  turn.l_len = 1;
  return fcntl(fd, F_OFD_SETLK, &turn) == 0;
}

std::string read_holder(int fd) {
  std::array<char, 64> text{};
  const auto size = pread(fd, text.data(), text.size() - 1, 0);
  std::string holder(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return holder.substr(0, holder.find_first_of(" \n"));
}

void write_holder(int fd) {
  const std::string text = fmt::format("{:<15}\n", getpid());
  if (read_holder(fd) + "\n" == fmt::format("{}\n", getpid())) return;
  // Only for people: a full disk must not stop the writer here.
  [[maybe_unused]] const auto size = pwrite(fd, text.data(), text.size(), 0);
}

Descriptor open_lock_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) {
    throw StoreError(fmt::format("the lock file {} cannot be opened ({}); check the rights of its "
                                 "folder and that the disk is not full",
                                 path, std::strerror(errno)),
                     errno != ENOSPC && errno != EMFILE && errno != ENFILE);
  }
  return file;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

bool is_same_file(const std::string& path, int fd) {
  struct stat named {};
  struct stat opened {};
  return stat(path.c_str(), &named) == 0 && fstat(fd, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

WriteLock::WriteLock(const std::string& database, Env& env) : path_(database + "-lock"), env_(env) {
  open();
}

void WriteLock::open() { file_ = open_lock_file(path_); }

void WriteLock::lock() {
  std::optional<StoreTime> waiting_since;
  StoreTime named_at{};
  for (int tries = 0; !try_once(); ++tries) {
    const StoreTime now = env_.store_now();
    if (!waiting_since) waiting_since = now;
    if (now - *waiting_since >= kTurnKeptFor) passes_by_ = true;
    if (now - *waiting_since >= kNamedAfter && now - named_at >= kNamedEvery) {
      named_at = now;
      log(LogLevel::warn,
          "waiting for the store's writer; if that process is frozen, let it go on or kill it",
          {{"path", path_}, {"pid", read_holder(file_.get())}});
    }
    pause_briefly(tries);
  }
  take();
}

bool WriteLock::try_lock() {
  if (!try_once()) {
    set_turn(file_.get(), F_UNLCK);
    return false;
  }
  take();
  return true;
}

/// Whoever waited keeps its turn until it has the lock.
void WriteLock::take() {
  set_turn(file_.get(), F_UNLCK);
  write_holder(file_.get());
}

bool WriteLock::try_once() {
  const bool is_next = set_turn(file_.get(), F_WRLCK);
  if (is_next) passes_by_ = false;
  if (!is_next && !passes_by_) return false;
  if (!try_whole(file_.get())) return false;
  if (HOLDFAST_GUARD("lock_file_same", is_same_file(path_, file_.get()))) return true;
  // Somebody removed the file: those who come later lock another one.
  open();
  return false;
}

void WriteLock::unlock() { flock(file_.get(), LOCK_UN); }

std::optional<std::string> WriteLock::find_frozen_holder(const std::string& database, Env& env,
                                                         Duration patience) {
  const Descriptor file = open_lock_file(database + "-lock");
  const StoreTime since = env.store_now();
  std::string holder;
  while (!try_whole(file.get())) {
    holder = read_holder(file.get());
    if (env.store_now() - since >= patience) return holder;
    env.sleep_for(std::chrono::milliseconds(10), {});
  }
  return std::nullopt;
}

}  // namespace holdfast::sqlite
