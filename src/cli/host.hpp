#pragma once

#include <functional>
#include <optional>
#include <string>

#include "holdfast/runtime.hpp"

namespace holdfast {

/// What the commands need of the program around them. The real one opens configuration and store
/// when they are first asked for; tests put their own in its place. Used by the main thread.
class Host {
 public:
  virtual ~Host() = default;

  /// Reads the configuration and opens the store at the first call. Throws as those do.
  virtual Runtime& runtime() = 0;
  /// The configuration file in use; none: defaults.
  virtual std::optional<std::string> config_file() = 0;
  /// Where a configuration file would be: what --config or $HOLDFAST_CONFIG names, else
  /// `holdfast.toml`.
  virtual std::string config_target() = 0;
  /// What is configured, without opening the store.
  virtual const RuntimeOptions& options() = 0;
  virtual MigrationReport migrate() = 0;
  virtual std::string sqlite_version() = 0;
  /// The login name, for decisions.
  virtual std::string user_name() = 0;

  /// A clock that nobody sets, for time limits.
  virtual StoreTime now() = 0;
  virtual void pause(Duration) = 0;

  /// From now on SIGINT and SIGTERM do not end the process: `handler` is told of the first, the
  /// second, … of them, on a thread of its own. Null: they end it again; returns when no handler
  /// is being called any more.
  virtual void on_signal(std::function<void(int count)> handler) = 0;
  /// Ends the process where it stands; nothing is handed back or written.
  [[noreturn]] virtual void leave(int code) = 0;
};

}  // namespace holdfast
