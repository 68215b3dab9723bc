#include "support/pg_bouncer.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <stdexcept>
#include <thread>

#include "support/server_process.hpp"

namespace holdfast::testing {

PgBouncer::PgBouncer(const PostgresServer& server, int sessions) : port_(free_port()) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  std::ofstream(folder_.file("users.txt")) << "\"holdfast\" \"\"\n";
  std::ofstream(folder_.file("bouncer.ini"))
      << fmt::format("[databases]\n* = host=127.0.0.1 port={}\n", server.port())
      << fmt::format("[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port={}\n", port_)
      << fmt::format("unix_socket_dir=\nauth_type=trust\nauth_file={}\n", folder_.file("users.txt"))
      << fmt::format("pool_mode=transaction\nmax_client_conn=500\ndefault_pool_size={}\n",
                     sessions);
  start();
}

void PgBouncer::restart() {
  stop();
  std::filesystem::remove(folder_.file("bouncer.log"));
  start();
}

void PgBouncer::start() {
  const std::string log = folder_.file("bouncer.log");
  pid_ = launch(as_nobody_special({"/usr/sbin/pgbouncer", folder_.file("bouncer.ini")}), log);
  for (int tries = 0; tries < 600; ++tries) {
    std::ifstream file(log);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.find("process up") != std::string::npos) return;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      throw std::runtime_error("pgbouncer did not start; is it installed? " + text);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw std::runtime_error("pgbouncer does not say that it is up");
}

PgBouncer::~PgBouncer() { stop(); }

void PgBouncer::stop() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);  // at once, whatever its clients do
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
}

}  // namespace holdfast::testing
