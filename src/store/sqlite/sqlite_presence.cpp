#include "store/sqlite/sqlite_presence.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/guard.hpp"
#include "base/text.hpp"

namespace holdfast::sqlite {
namespace {

/// A file that is being made whole: a dot keeps it out of the scan.
constexpr char kUnfinished = '.';
/// How long a holder of leases may be without a file before it is a suspect: a presence may be away
/// for 200 ms (spec, section 10).
constexpr Duration kMayBeAway = std::chrono::milliseconds(250);

bool try_lock(int fd) {
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

/// Which numbering of processes this process lives in.
std::string pid_namespace() {
  std::array<char, 128> name{};
  const auto size = readlink("/proc/self/ns/pid", name.data(), name.size());
  return size > 0 ? std::string(name.data(), static_cast<std::size_t>(size)) : "";
}

std::string read_whole(int fd) {
  std::array<char, 512> text{};
  const auto size = pread(fd, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "";
}

int open_process(int pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

/// Field 22 of /proc/PID/stat: when the process started.
std::optional<std::uint64_t> start_of(int pid) {
  const Descriptor file(open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  const std::string text = read_whole(file.get());
  std::size_t at = text.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  if (at == std::string::npos) return std::nullopt;
  return std::strtoull(text.c_str() + at, nullptr, 10);
}

class Hold : public PresenceHold {
 public:
  Hold(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  Hold(const Hold&) = delete;
  /// Removed while its lock is still held; closing drops the lock.
  ~Hold() override {
    if (is_same_file(path_, file_.get())) unlink(path_.c_str());
  }
  bool is_intact() override { return is_same_file(path_, file_.get()); }

 private:
  const std::string path_;
  Descriptor file_;
};

class Proof : public PresenceProof {
 public:
  Proof(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  Proof(const Proof&) = delete;
  ~Proof() override {
    if (is_same_file(path_, file_.get())) unlink(path_.c_str());
  }

 private:
  const std::string path_;
  Descriptor file_;
};

bool is_file_name(const WorkerId& id) {
  return !id.empty() && id.front() != kUnfinished && id.find('/') == std::string::npos &&
         id.size() < 250 && id.find('\0') == std::string::npos;
}

}  // namespace

SqlitePresence::SqlitePresence(const std::string& database, Env& env,
                               std::function<std::vector<WorkerId>()> lease_holders)
    : folder_(database + "-workers"), env_(env), lease_holders_(std::move(lease_holders)) {}

/// Made under another name, locked, then named: nobody ever sees it unlocked while its process
/// lives.
std::unique_ptr<PresenceHold> SqlitePresence::hold(const Identity& identity) {
  const std::string path = path_of(identity.id);
  const std::string unfinished = folder_ + "/" + kUnfinished + identity.id;
  const auto fail = [&](const std::string& what) -> StoreError {
    return {fmt::format("the presence {} cannot be {} ({}); check the rights of its folder and "
                        "that the disk is not full",
                        path, what, std::strerror(errno)),
            false};
  };
  if (!is_file_name(identity.id)) {
    throw StoreError(fmt::format("'{}' cannot name a file of presence", identity.id), true);
  }
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) throw fail("made");
  Descriptor file(open(unfinished.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_TRUNC, 0600));
  if (!file || !try_lock(file.get())) throw fail("locked");
  const std::string content = dump_json({{"pid", identity.pid},
                                         {"started", identity.process_started},
                                         {"host", identity.host},
                                         {"pid_namespace", pid_namespace()}});
  if (pwrite(file.get(), content.data(), content.size(), 0) !=
      static_cast<ssize_t>(content.size())) {
    const auto error = fail("written");
    unlink(unfinished.c_str());
    throw error;
  }
  if (rename(unfinished.c_str(), path.c_str()) != 0) throw fail("named");
  return std::make_unique<Hold>(path, std::move(file));
}

/// The lock is the proof. A worker without a file left no trace: it gets one for as long as the
/// proof is held, so that two cannot prove it at once.
std::unique_ptr<PresenceProof> SqlitePresence::prove_gone(const WorkerId& id) {
  if (!is_file_name(id)) return nullptr;
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return nullptr;
  const std::string path = path_of(id);
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file || !HOLDFAST_GUARD("presence_lock", try_lock(file.get()))) return nullptr;
  if (!is_same_file(path, file.get())) return nullptr;
  return std::make_unique<Proof>(path, std::move(file));
}

bool SqlitePresence::is_gone(const WorkerId& id) {
  if (!is_file_name(id)) return false;
  const Descriptor file(open(path_of(id).c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return errno == ENOENT;
  return try_lock(file.get());
}

std::vector<WorkerId> SqlitePresence::watch(Duration timeout, const std::stop_token& stop) {
  if (auto found = suspects(false); !found.empty() || stop.stop_requested()) return found;
  const Descriptor stopped(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  std::vector<pollfd> fds{{stopped.get(), POLLIN, 0}};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, process] : processes_) {
      // A copy of its own: another thread's scan may close the original.
      fds.push_back({fcntl(process.get(), F_DUPFD_CLOEXEC, 0), POLLIN, 0});
    }
  }
  {
    const std::stop_callback on_stop(stop, [&] {
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto size = write(stopped.get(), &one, sizeof one);
    });
    poll(fds.data(), fds.size(), static_cast<int>(std::max(timeout, Duration(0)).count()));
  }
  for (std::size_t i = 1; i < fds.size(); ++i) close(fds[i].fd);
  return suspects(true);
}

std::vector<WorkerId> SqlitePresence::suspects(bool asks_store) {
  std::vector<WorkerId> found;
  std::set<WorkerId> present;
  if (DIR* folder = opendir(folder_.c_str()); folder != nullptr) {
    while (const dirent* entry = readdir(folder)) {
      if (entry->d_name[0] != kUnfinished) present.insert(entry->d_name);
    }
    closedir(folder);
  }
  std::vector<WorkerId> holders;
  if (asks_store) holders = lease_holders_();
  const StoreTime now = env_.store_now();
  const std::lock_guard lock(mutex_);
  for (const WorkerId& id : present) {
    const Descriptor file(open(path_of(id).c_str(), O_RDWR | O_CLOEXEC));
    if (!file) continue;
    if (try_lock(file.get())) {
      found.push_back(id);
    } else {
      follow(id, file.get());
    }
  }
  std::erase_if(processes_, [&](const auto& entry) {
    return !present.contains(entry.first) || std::ranges::find(found, entry.first) != found.end();
  });
  if (!asks_store) return found;
  for (WorkerId& id : missing(holders, present, now)) found.push_back(std::move(id));
  return found;
}

/// The system tells of the death of a process that is numbered as here.
void SqlitePresence::follow(const WorkerId& id, int fd) {
  if (processes_.contains(id)) return;
  const auto content = parse_json(read_whole(fd));
  if (!content || !content->is_object()) return;
  if (content->value("pid_namespace", "") != pid_namespace()) return;
  const int pid = content->value("pid", 0);
  Descriptor process(pid > 0 ? open_process(pid) : -1);
  if (process && start_of(pid) == content->value("started", std::uint64_t{0})) {
    processes_.emplace(id, std::move(process));
  }
}

std::vector<WorkerId> SqlitePresence::missing(const std::vector<WorkerId>& holders,
                                              const std::set<WorkerId>& present, StoreTime now) {
  std::vector<WorkerId> found;
  std::map<WorkerId, StoreTime> missing_since;
  for (const WorkerId& id : holders) {
    if (present.contains(id) || !is_file_name(id)) continue;
    const auto known = missing_since_.find(id);
    const StoreTime since = known == missing_since_.end() ? now : known->second;
    missing_since.emplace(id, since);
    if (now - since >= kMayBeAway) found.push_back(id);
  }
  missing_since_ = std::move(missing_since);
  return found;
}

}  // namespace holdfast::sqlite
