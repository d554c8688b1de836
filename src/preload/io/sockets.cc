// Sockets: creation, connection and shutdown. preload/io/transfers.cc has the transfer of data.
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "preload/io/transfers.h"
#include "preload/runtime/raw.h"

namespace slalom::preload {
namespace {

// Returns whether another process has connected. Only local sockets (AF_UNIX) know their peer.
bool comes_from_outside(int connection) {
  ucred other = {};
  socklen_t size = sizeof other;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.pid > 0 &&
         other.pid != raw_syscall(SYS_getpid);
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int socket(int domain, int type, int protocol) noexcept {
  const int result = SLALOM_PAST_CHANNELS(socket, domain, type, protocol);
  if (result >= 0 && runtime().controls()) add_socket(result);
  return result;
}
SLALOM_EXPORT int accept4(int descriptor, sockaddr* from, socklen_t* length, int flags) {
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_PASS_ON(accept4, accept, {}, -1, descriptor, from, length, flags);
  const auto result =
      static_cast<int>(transfer({CallId::accept}, descriptor, POLLIN, waits(descriptor), SLALOM_PLACE(),
                                [&] { return SLALOM_REAL(accept4)(descriptor, from, length, flags); }));
  if (result >= 0) add_socket(result);
  if (result >= 0 && comes_from_outside(result)) runtime().note_uncontrolled(Uncontrolled::Outside);
  return result;
}
SLALOM_EXPORT int accept(int descriptor, sockaddr* from, socklen_t* length) {
  if (!runtime().controls()) return SLALOM_REAL(accept)(descriptor, from, length);
  return accept4(descriptor, from, length, 0);
}
SLALOM_EXPORT int connect(int descriptor, const sockaddr* to, socklen_t length) {
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_PAST_CHANNELS(connect, descriptor, to, length);
  const uint64_t pc = SLALOM_PLACE();
  const FallibleCall what{CallId::connect, found_at(to, length)};
  // connect() to a local socket waits for an accept() if the backlog is full. Here it tries again instead.
  const long flags = raw_syscall(SYS_fcntl, descriptor, F_GETFL);
  const bool retries = to != nullptr && to->sa_family == AF_UNIX && (flags & O_NONBLOCK) == 0;
  for (;;) {
    const auto result = static_cast<int>(transfer(what, descriptor, POLLOUT, false, pc, [&] {
      if (retries) raw_syscall(SYS_fcntl, descriptor, F_SETFL, flags | O_NONBLOCK);
      const int connected = SLALOM_REAL(connect)(descriptor, to, length);
      const int error = errno;
      if (retries) raw_syscall(SYS_fcntl, descriptor, F_SETFL, flags);
      errno = error;
      return connected;
    }));
    if (result == 0 || !retries || errno != EAGAIN) return result;
  }
}
SLALOM_EXPORT int shutdown(int descriptor, int how) noexcept {
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_PAST_CHANNELS(shutdown, descriptor, how);
  bool& cancellable = runtime().me().cancellable;  // shutdown() is not a cancellation point
  const bool before = std::exchange(cancellable, false);
  const ssize_t result = transfer({CallId::shutdown}, descriptor, POLLOUT, false, SLALOM_PLACE(), [&] {
    if (leads_out(descriptor)) runtime().note_change();
    return SLALOM_REAL(shutdown)(descriptor, how);
  });
  cancellable = before;
  return static_cast<int>(result);
}

// SO_ERROR says how a non-blocking connect() has failed, so its result is kept and repeated.
SLALOM_EXPORT int getsockopt(int descriptor, int level, int name, void* value, socklen_t* size) noexcept {
  const auto ask = [&] { return SLALOM_REAL(getsockopt)(descriptor, level, name, value, size); };
  if (level != SOL_SOCKET || name != SO_ERROR || !runtime().controls() || !leads_out(descriptor) ||
      value == nullptr || size == nullptr || *size < sizeof(int))
    return ask();
  const FallibleCall what{CallId::getsockopt, {}, __builtin_return_address(0), __builtin_dwarf_cfa()};
  int error = 0;
  const bool repeats = runtime().repeats_error(what, error);
  if (!repeats) {
    if (ask() != 0) return -1;
    __builtin_memcpy(&error, value, sizeof error);
    runtime().note_result(what, error);
    return 0;
  }
  __builtin_memcpy(value, &error, sizeof error);
  *size = sizeof error;
  return 0;
}
