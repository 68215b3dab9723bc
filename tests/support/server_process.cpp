#include "support/server_process.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace holdfast::testing {

std::vector<std::string> as_nobody_special(std::vector<std::string> command) {
  if (geteuid() != 0) return command;
  std::vector<std::string> all{"/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres",
                               "--clear-groups",   "--pdeathsig=QUIT", "--"};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

pid_t launch(const std::vector<std::string>& command, const std::string& log) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (freopen(log.c_str(), "a", stdout) == nullptr || dup2(1, 2) < 0) _exit(126);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGQUIT);
  if (getppid() != parent) _exit(126);
  // What a sanitizer preloads or says is not for others.
  unsetenv("LD_PRELOAD");
  setenv("LC_ALL", "C.UTF-8", 1);
  execv(words[0], words.data());
  _exit(127);
}

int free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(probe, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    close(probe);
    throw std::runtime_error("no free port");
  }
  close(probe);
  return ntohs(address.sin_port);
}

}  // namespace holdfast::testing
