#include "app/real_host.hpp"

#include <pwd.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "app/signals.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

}  // namespace

RealHost::RealHost(const GlobalOptions& global, Env& env) : env_(env) {
  sources_.config_option = global.config;
  sources_.config_env = variable("HOLDFAST_CONFIG");
  sources_.store_option = global.store;
  sources_.store_env = variable("HOLDFAST_STORE");
}

RealHost::~RealHost() = default;

const Configuration& RealHost::configuration() {
  if (!configuration_) configuration_ = load_configuration(sources_);
  return *configuration_;
}

Runtime& RealHost::runtime() {
  if (!runtime_) runtime_ = Runtime::open(configuration().options);
  return *runtime_;
}

std::optional<std::string> RealHost::config_file() { return configuration().file; }

std::string RealHost::config_target() {
  return sources_.config_option.value_or(sources_.config_env.value_or(kConfigFile));
}

const RuntimeOptions& RealHost::options() { return configuration().options; }

MigrationReport RealHost::migrate() { return holdfast::migrate(configuration().options.store_url); }

std::string RealHost::sqlite_version() { return sqlite3_libversion(); }

std::string RealHost::user_name() {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16384);
  const auto uid = geteuid();
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return clean_utf8(found->pw_name);
  }
  return "uid " + std::to_string(uid);
}

StoreTime RealHost::now() { return env_.store_now(); }

void RealHost::pause(Duration duration) { env_.sleep_for(duration, {}); }

void RealHost::on_signal(std::function<void(int count)> handler) {
  if (!signals_ && handler) signals_ = std::make_unique<SignalWatch>(env_);
  if (signals_) signals_->set_handler(std::move(handler));
}

void RealHost::leave(int code) { _exit(code); }

}  // namespace holdfast
