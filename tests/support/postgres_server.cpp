#include "support/postgres_server.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/server_process.hpp"

namespace holdfast::testing {
namespace {

namespace fs = std::filesystem;

std::string server_binary(const std::string& name) {
  std::string best;
  if (fs::exists("/usr/lib/postgresql")) {
    for (const auto& version : fs::directory_iterator("/usr/lib/postgresql")) {
      const auto file = version.path() / "bin" / name;
      if (fs::exists(file) && file.string() > best) best = file.string();
    }
  }
  if (best.empty()) throw std::runtime_error("no PostgreSQL server here: install `postgresql`");
  return best;
}

void run_to_end(const std::vector<std::string>& command, const std::string& log) {
  const pid_t child = launch(command, log);
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) return;
  std::ifstream said(log);
  throw std::runtime_error(fmt::format("{} failed: {}", command.front(),
                                       std::string{std::istreambuf_iterator<char>(said), {}}));
}

}  // namespace

PostgresServer::PostgresServer(std::vector<std::string> settings)
    : settings_(std::move(settings)), port_(free_port()) {
  // The folder is the server's, whoever that is; the way to it is everybody's.
  fs::permissions(folder_.path(), fs::perms::all);
  const std::string log = folder_.file("initdb.log");
  run_to_end(
      as_nobody_special({server_binary("initdb"), "-D", folder_.file("data"), "-U", "holdfast",
                         "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"}),
      log);
  start();
}

PostgresServer::PostgresServer(StandbyOf of) : port_(free_port()) {
  fs::permissions(folder_.path(), fs::perms::all);
  run_to_end(as_nobody_special({server_binary("pg_basebackup"), "-D", folder_.file("data"), "-R",
                                "--checkpoint=fast", "--no-sync", "-d",
                                fmt::format("host={} port={} user=holdfast",
                                            of.primary.folder_.path().string(), of.primary.port_)}),
             folder_.file("backup.log"));
  start();
}

PostgresServer::~PostgresServer() {
  if (pid_ > 0) stop(SIGQUIT);
}

void PostgresServer::start() {
  std::vector<std::string> settings = {
      fmt::format("port={}", port_), "listen_addresses=127.0.0.1",
      fmt::format("unix_socket_directories={}", folder_.path().string()), "max_connections=200",
      "fsync=off", "shared_buffers=64MB",
      // A statistics run would hold back the feed of events for a moment.
      "autovacuum=off", "stats_fetch_consistency=none"};
  settings.insert(settings.end(), settings_.begin(), settings_.end());
  std::vector<std::string> command{server_binary("postgres"), "-D", folder_.file("data")};
  for (const std::string& setting : settings) {
    command.push_back("-c");
    command.push_back(setting);
  }
  pid_ = launch(as_nobody_special(command), folder_.file("server.log"));
  const std::string ready = folder_.file("data/postmaster.pid");
  for (int tries = 0; tries < 600; ++tries) {
    // Its last line says when it takes connections.
    std::ifstream file(ready);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.starts_with(std::to_string(pid_) + "\n") && text.find("ready") != std::string::npos) {
      return;
    }
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::ifstream said(folder_.file("server.log"));
  throw std::runtime_error("the server did not start: " +
                           std::string{std::istreambuf_iterator<char>(said), {}});
}

void PostgresServer::stop(int signal) {
  kill(pid_, signal);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
}

std::vector<pid_t> PostgresServer::signal_all(int signal) const {
  if (signal != SIGCONT) {
    // One that stands still starts nobody while its children are listed.
    kill(pid_, SIGSTOP);
    siginfo_t happened{};
    waitid(P_PID, static_cast<id_t>(pid_), &happened, WSTOPPED | WEXITED | WNOWAIT);
  }
  std::vector<pid_t> all{pid_};
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid_));
  for (pid_t child = 0; children >> child;) all.push_back(child);
  for (const pid_t one : all) kill(one, signal);
  return all;
}

void PostgresServer::crash() {
  const std::vector<pid_t> all = signal_all(SIGKILL);
  waitpid(pid_, nullptr, 0);
  const auto is_there = [&](pid_t one) {
    std::ifstream state(fmt::format("/proc/{}/stat", one));
    std::string text{std::istreambuf_iterator<char>(state), {}};
    return text.find("(postgres) ") != std::string::npos &&
           text.find("(postgres) Z") == std::string::npos;
  };
  for (const pid_t one : all) {
    while (is_there(one)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  pid_ = -1;
}

std::string PostgresServer::url(const std::string& schema, const std::string& more) const {
  return fmt::format("postgresql://holdfast@/postgres?host={}&port={}&schema={}{}",
                     folder_.path().string(), port_, schema, more);
}

std::string PostgresServer::tcp_url(int port, const std::string& schema,
                                    const std::string& more) const {
  return fmt::format("postgresql://holdfast@127.0.0.1:{}/postgres?schema={}{}", port, schema, more);
}

PostgresServer& PostgresServer::shared() {
  static PostgresServer server;
  return server;
}

std::string PostgresServer::fresh_schema() {
  static std::atomic<int> number{0};
  return fmt::format("t{}_{}", getpid(), ++number);
}

}  // namespace holdfast::testing
