#include "tool/descriptors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>

namespace holdfast::descriptors {
namespace {

/// The guardian puts the tool's descriptors at 0 to 2; none of ours may be there already.
Fd above_standard(const char* call, int fd) {
  if (fd < 0) throw NoResources{call, errno};
  Fd first(fd);
  if (fd > 2) return first;
  Fd moved(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!moved.is_open()) throw NoResources{"fcntl", errno};
  return moved;
}

}  // namespace

Pair make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) throw NoResources{"pipe", errno};
  Fd keep(fds[1]);
  Pair pair;
  pair.ours = above_standard("pipe", fds[0]);
  const int write_end = fcntl(keep.get(), F_DUPFD_CLOEXEC, 3);
  pair.theirs = above_standard("pipe", write_end);
  fcntl(pair.ours.get(), F_SETFL, O_NONBLOCK);
  return pair;
}

Pair make_control() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    throw NoResources{"socketpair", errno};
  }
  Fd keep(fds[1]);
  Pair pair;
  pair.ours = above_standard("socketpair", fds[0]);
  const int other_end = fcntl(keep.get(), F_DUPFD_CLOEXEC, 3);
  pair.theirs = above_standard("socketpair", other_end);
  return pair;
}

Fd make_input(const std::string& text) {
  Fd fd = above_standard("memfd_create", memfd_create("holdfast-input", MFD_CLOEXEC));
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(fd.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw NoResources{"write", errno};
    done += static_cast<std::size_t>(count);
  }
  lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

}  // namespace holdfast::descriptors
