#include "store/sqlite/writer.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "base/log.hpp"
#include "store/sqlite/statements.hpp"

namespace holdfast::sqlite {
namespace {

constexpr std::size_t kBatch = 512;
/// When the log is copied back into the database, in pages of 4 KiB: 8 MiB.
constexpr int kCheckpointPages = 2048;
constexpr int kCheckpointWaitMilliseconds = 200;
constexpr Duration kComplainEvery = std::chrono::seconds(10);

std::uint64_t inode_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

class Writer::Locked {
 public:
  explicit Locked(WriteLock& lock) : lock_(lock) { lock_.lock(); }
  Locked(const Locked&) = delete;
  ~Locked() { lock_.unlock(); }

 private:
  WriteLock& lock_;
};

Writer::Writer(const std::string& path, Env& env, SqliteRows::IsGone is_gone,
               std::function<void()> on_queued)
    : path_(path),
      env_(env),
      on_queued_(std::move(on_queued)),
      lock_(path, env),
      db_(path, false),
      rows_(db_, std::move(is_gone)) {
  db_.execute("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384");
  sqlite3_wal_hook(
      db_.handle(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &log_pages_);
  file_ = inode_of(path_);
}

void Writer::run(const Work& work) {
  Waiter self;
  self.work = &work;
  enter(self);
}

void Writer::enter(Waiter& self) {
  bool must_wait = false;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&self);
    must_wait = has_leader_;
    self.leads = !has_leader_;
    has_leader_ = true;
  }
  // From here on the leader writes to `self`, until it wakes this thread.
  if (must_wait) self.awake.acquire();
  if (self.leads) lead(self);
  if (self.error) std::rethrow_exception(self.error);
}

/// The leader stands first in the queue, so its own work is in the batch. The next leader starts
/// before the others are told.
void Writer::lead(Waiter& self) {
  const auto batch = take_batch();
  execute(batch);
  Waiter* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      has_leader_ = false;
    } else {
      next = waiting_.front();
      next->leads = true;
    }
  }
  if (next != nullptr) next->awake.release();
  for (Waiter* waiter : batch) {
    if (waiter != &self) waiter->awake.release();
  }
}

std::deque<Writer::Waiter*> Writer::take_batch() {
  const std::lock_guard lock(mutex_);
  std::deque<Waiter*> batch;
  while (!waiting_.empty() && batch.size() < kBatch) {
    batch.push_back(waiting_.front());
    waiting_.pop_front();
  }
  return batch;
}

void Writer::execute(const std::deque<Waiter*>& batch) {
  bool has_queued = false;
  try {
    const Locked locked(lock_);
    check_file();
    check_log();
    commit_together(batch);
    HOLDFAST_FAILPOINT("commit.after");
    has_queued = rows_.has_queued();
    checkpoint_if_due();
  } catch (...) {
    for (Waiter* waiter : batch) waiter->error = std::current_exception();
  }
  if (has_queued) on_queued_();
}

void Writer::commit_together(const std::deque<Waiter*>& batch) {
  try {
    begin();
    for (Waiter* waiter : batch) (*waiter->work)(rows_);
    commit();
    return;
  } catch (...) {
    undo();
    if (batch.size() == 1) throw;
  }
  // One of them failed, or the commit did: each by itself, so that it fails for its own sake only.
  bool has_queued = false;
  for (Waiter* waiter : batch) {
    commit_alone(*waiter);
    has_queued = has_queued || (!waiter->error && rows_.has_queued());
  }
  rows_.set_has_queued(has_queued);
}

void Writer::commit_alone(Waiter& waiter) {
  try {
    begin();
    (*waiter.work)(rows_);
    commit();
  } catch (...) {
    undo();
    waiter.error = std::current_exception();
  }
}

void Writer::begin() {
  db_.run("BEGIN IMMEDIATE");
  rows_.begin({env_.wall_now(), env_.store_now()}, false);
  auto version = db_.query("PRAGMA data_version");
  rows_.keep_rows(version.next() ? version.number(0) : 0);
}

void Writer::commit() {
  rows_.flush();
  if (has_new_log_) db_.run(kMarkLog);
  HOLDFAST_FAILPOINT("commit.before");
  const int pages_before = log_pages_;
  db_.run("COMMIT");
  // This commit was the first of a log that began anew: the next one says whose it is.
  has_new_log_ = log_pages_ < pages_before;
}

void Writer::undo() {
  db_.roll_back();
  rows_.forget();
}

/// A store whose file is gone would swallow what is written to it.
void Writer::check_file() const {
  if (!HOLDFAST_GUARD("file_replaced", inode_of(path_) == file_)) {
    throw StoreError(fmt::format("the store {} was removed or replaced while it was in use; put it "
                                 "back and start this process again",
                                 path_),
                     true);
  }
}

void Writer::check_log() {
  const auto now = inode_of(path_ + "-wal");
  if (log_file_ != 0 && !HOLDFAST_GUARD("log_replaced", now == log_file_)) {
    throw StoreError(fmt::format("the log {}-wal of the store was removed or replaced while it was "
                                 "in use; stop all its users, run `holdfast doctor`, and start "
                                 "again",
                                 path_),
                     true);
  }
  log_file_ = now;
}

/// Under the lock: a checkpoint never runs beside a commit, whichever process does it. What fails
/// here fails nobody's write.
void Writer::checkpoint_if_due() {
  if (log_pages_ < kCheckpointPages) checkpoint_at_ = kCheckpointPages;
  if (log_pages_ < checkpoint_at_) return;
  // Where readers keep the log from starting over, not again at every commit.
  checkpoint_at_ = log_pages_ + kCheckpointPages / 4;
  HOLDFAST_FAILPOINT("checkpoint.before");
  const bool is_over_cap = log_pages_ > kLogCapPages;
  if (is_over_cap) sqlite3_busy_timeout(db_.handle(), kCheckpointWaitMilliseconds);
  const int mode = is_over_cap ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  int left = 0;
  const int code = sqlite3_wal_checkpoint_v2(db_.handle(), nullptr, mode, &left, nullptr);
  if (is_over_cap) sqlite3_busy_timeout(db_.handle(), kBusyMilliseconds);
  if (code == SQLITE_BUSY && is_over_cap) {
    complain(
        fmt::format("the store's log has grown to {} MiB: some process has been reading all "
                    "the time; is one stopped?",
                    (log_pages_ * 4) >> 10));
  } else if (code != SQLITE_OK && code != SQLITE_BUSY) {
    complain("the store's log could not be copied back; is its disk full?");
  }
  HOLDFAST_FAILPOINT("checkpoint.after");
}

void Writer::complain(const std::string& text) {
  const StoreTime now = env_.store_now();
  if (now - complained_at_ < kComplainEvery) return;
  complained_at_ = now;
  log(LogLevel::warn, text, {{"path", path_}, {"error", sqlite3_errmsg(db_.handle())}});
}

}  // namespace holdfast::sqlite
