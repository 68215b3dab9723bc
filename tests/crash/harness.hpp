#pragma once

// Real processes, killed and frozen for real, on a store of their own; and the ledger that the
// tools keep outside the store, which is the truth for "ran twice". The store is a SQLite file in a
// temporary folder or, where HOLDFAST_TEST_STORE is `postgres`, a schema on the program's server.

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/runtime.hpp"

namespace holdfast::crash {

using std::chrono::milliseconds;
using std::chrono::seconds;
namespace fs = std::filesystem;

/// Full lengths instead of the scaled ones (`./test --long`).
bool is_long();
inline int scaled(int usual, int full) { return is_long() ? full : usual; }

/// What keeps the stores of this program.
bool is_postgres();

/// Looks until `done` holds; false when `limit` passed first.
bool eventually(milliseconds limit, const std::function<bool()>& done);

/// Lets the time pass in which something must not happen.
void let_pass(milliseconds);

struct Command {
  std::vector<std::string> args;
  std::map<std::string, std::string> env;  ///< added to this process's own
  std::string folder;                      ///< working folder; empty: this process's
  std::string input;                       ///< path of standard input; empty: none
  std::string output;                      ///< paths of what it prints
  std::string errors;
  int cpu = -1;  ///< bound to this processor
  int uid = -1;  ///< runs as this user
};

/// Was it stopped by SIGSTOP?
bool is_standing_still(pid_t);

/// A child process. Killed, also when frozen, and reaped by its destructor. Spawned from the main
/// thread only: it dies with the thread that made it.
class Process {
 public:
  explicit Process(const Command&);
  ~Process();
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Exit status, or 128 + signal; nothing while it runs.
  std::optional<int> status();
  /// Waits for the end; nothing when `limit` passed first.
  std::optional<int> wait(milliseconds limit);
  /// Does it stand still by SIGSTOP?
  bool is_frozen() const { return is_standing_still(pid_); }
  /// SIGKILL, and waits until it is gone.
  void kill();

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

struct Result {
  int code = -1;  ///< exit status, 128 + signal, or -1: it did not end in time
  std::string out;
  std::string err;
};

/// One line of a tool in the ledger.
struct LedgerLine {
  std::string tool;
  std::string phase;  ///< `start`, `end`
  std::string key;    ///< its idempotency key
  pid_t pid = 0;
};

/// What a site's configuration says where tests differ.
struct Settings {
  std::string lease = "60s";
  std::string heartbeat = "20s";
  std::string reaper = "500ms";
  std::string presence = "100ms";
  std::string backoff = "50ms";
  int max_requeues = 3;
  int circuit_threshold = 1000;  ///< so that runs which fail for their own sake park no others
  std::string circuit_open = "30s";
  std::string quota_open = "50ms";  ///< a quota that was topped up is tried again at once
  std::string more;                 ///< further text of the file
};

/// A folder with a configuration, tools, a ledger and a store. At its end no process that was
/// started for it may be left.
class Site {
 public:
  explicit Site(const Settings& = {});
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  /// Of the runs of tasks that this process enqueues. Set before the first of them.
  Policy policy;

  const fs::path& folder() const { return folder_; }
  const std::string& store_url() const { return url_; }
  fs::path database() const { return store_folder_ / "runs.db"; }
  /// Puts the store elsewhere: a small file system, say. Before anything uses it.
  void move_store(const fs::path& folder);
  /// A PostgreSQL schema of the site's own.
  const std::string& schema() const { return schema_; }
  /// The processes of the site reach the store by `url`, this one by `own_url`. Before anything
  /// uses it; `configure` follows.
  void use_server(const std::string& url, const std::string& own_url);

  void configure(const Settings&);
  void write(const std::string& name, const std::string& text, bool executable = false) const;
  std::string read(const std::string& name) const;
  /// The turns of an agent's scripted model.
  void script(const std::string& agent, const Json& turns) const;

  Command command(std::vector<std::string> args, std::map<std::string, std::string> env = {}) const;
  Result cli(std::vector<std::string> args, std::map<std::string, std::string> env = {},
             milliseconds limit = seconds(60)) const;
  Result run(const Command&, milliseconds limit = seconds(60)) const;
  Process worker(std::vector<std::string> args = {}, std::map<std::string, std::string> env = {});
  /// A worker made of the library, with the tasks of crash_app.
  Process app(std::vector<std::string> args = {}, std::map<std::string, std::string> env = {});
  /// SIGSTOP, outside a write: a process that stands still inside one holds up everybody, as is
  /// stated, and would show something else.
  void freeze(pid_t) const;
  void freeze(const Process& process) const { freeze(process.pid()); }
  /// Has the worker said that it is there?
  bool is_up(const Process&, milliseconds limit = seconds(20));
  std::string log_of(const Process&) const;  ///< what a worker wrote on standard error

  std::string enqueue(const std::string& agent, std::vector<std::string> more = {}) const;
  /// Runs of a task of crash_app, from this process.
  std::vector<std::string> enqueue_many(const std::string& task, int count,
                                        const Json& input = Json::object(),
                                        std::optional<int> max_requeues = {});

  // Looking from this process, through the library.
  Runtime& runtime();
  std::string status(const std::string& run);
  Json show(const std::string& run);
  std::vector<Event> events(const std::string& run);
  int count_events(const std::string& run, EventKind);
  bool reaches(const std::string& run, const std::string& status, milliseconds limit = seconds(30));
  /// Everything that the store holds of one run: rows of all tables, as text.
  std::string rows_of(const std::string& run) const;
  /// When its lease ends, on the store's clock; 0 without one.
  std::int64_t lease_until(const std::string& run) const;
  /// Executes SQL on the store by a connection of its own, `@.` before each table; the first column
  /// of what comes back.
  std::vector<std::string> sql(const std::string& statement) const;
  std::int64_t sql_number(const std::string& statement) const;

  std::vector<LedgerLine> ledger() const;
  int times(const std::string& tool, const std::string& phase = "start") const;
  bool has_started(const std::string& tool, int times = 1, milliseconds limit = seconds(20)) const;
  void hold(const std::string& tool) const;    ///< its next call waits …
  void let_go(const std::string& tool) const;  ///< … until this

  /// Nobody has the folder on its command line any more.
  bool is_quiet(milliseconds limit = seconds(10)) const;
  /// `verify` finds nothing, the file is whole, no fenced write ran twice, no transaction stays
  /// open.
  void expect_sound();

 private:
  fs::path folder_;
  fs::path store_folder_;
  std::string schema_;
  std::string url_;
  std::string own_url_;
  std::unique_ptr<Runtime> runtime_;
  int printed_ = 0;
  mutable int results_ = 0;
  std::map<pid_t, std::string> logs_;
};

std::string binary();     ///< the test build's `holdfast`
std::string crash_app();  ///< the library's misbehaving program
/// All failpoints that the sources name.
std::vector<std::string> failpoints();
std::string read_file(const fs::path&);

}  // namespace holdfast::crash
