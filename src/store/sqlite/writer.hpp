#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>

#include "env/env.hpp"
#include "store/sqlite/sqlite_rows.hpp"
#include "store/sqlite/write_lock.hpp"
#include "store/wake_up.hpp"

namespace holdfast::sqlite {

/// Above this the log is emptied even if that has to wait for readers: 64 MiB in pages of 4 KiB.
constexpr int kLogCapPages = 16384;

/// The one writer of this process. Callers queue up; one of them leads: it takes the lock of all
/// processes, runs everything that is waiting in one transaction and makes it durable with one
/// commit (group commit), then hands the lead to the next. Each caller learns its own result. Any
/// thread.
class Writer {
 public:
  using Work = std::function<void(Rows&)>;

  Writer(const std::string& path, Env&, SqliteRows::IsGone, std::function<void()> on_queued);

  /// Runs `work` in a transaction; returns when it is durable. Throws what `work` threw (its own
  /// changes are undone, nobody else's), or StoreError: then nothing of it is stored, or the answer
  /// is not known.
  void run(const Work& work);

  /// The same, for what stands in no run.
  void run_with_connection(const std::function<void(Rows&, Connection&)>& work) {
    run([&](Rows& rows) { work(rows, db_); });
  }

  /// Throws StoreError when the file was removed or replaced since it was opened.
  void check_file() const;

 private:
  struct Waiter {
    const Work* work = nullptr;
    std::exception_ptr error;
    bool leads = false;
    WakeUp awake;
  };
  class Locked;

  void enter(Waiter&);
  void lead(Waiter& self);
  std::deque<Waiter*> take_batch();
  void execute(const std::deque<Waiter*>&);
  void commit_together(const std::deque<Waiter*>&);
  void commit_alone(Waiter&);
  void check_log();
  void begin();
  void commit();
  void undo();
  void checkpoint_if_due();
  void complain(const std::string& text);

  const std::string path_;
  Env& env_;
  std::function<void()> on_queued_;
  std::mutex mutex_;
  std::deque<Waiter*> waiting_;
  bool has_leader_ = false;

  // The leader's:
  WriteLock lock_;
  Connection db_;
  SqliteRows rows_;
  std::uint64_t file_ = 0;      ///< inode
  std::uint64_t log_file_ = 0;  ///< of the log beside it; 0: not seen yet
  int log_pages_ = 0;
  bool has_new_log_ = true;  ///< or it is not known to be marked
  int checkpoint_at_ = 0;    ///< pages
  StoreTime complained_at_{};
};

}  // namespace holdfast::sqlite
