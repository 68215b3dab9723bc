#pragma once

#include <memory>
#include <optional>

#include "app/config.hpp"
#include "cli/args.hpp"
#include "cli/host.hpp"
#include "env/env.hpp"

namespace holdfast {

class SignalWatch;

/// The program's real surroundings: configuration from files, a store, signals of this process.
class RealHost final : public Host {
 public:
  RealHost(const GlobalOptions&, Env&);
  ~RealHost() override;

  Runtime& runtime() override;
  std::optional<std::string> config_file() override;
  std::string config_target() override;
  const RuntimeOptions& options() override;
  MigrationReport migrate() override;
  std::string sqlite_version() override;
  std::string user_name() override;
  StoreTime now() override;
  void pause(Duration) override;
  void on_signal(std::function<void(int count)> handler) override;
  [[noreturn]] void leave(int code) override;

 private:
  const Configuration& configuration();

  Env& env_;
  ConfigSources sources_;
  std::optional<Configuration> configuration_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<SignalWatch> signals_;
};

}  // namespace holdfast
