// Pipes, sockets and event counters: reading from an empty one, or writing to a full one, waits for another
// thread. Whether it can be done is asked from the kernel; the wait itself is the search's.
//
// A socket may also lead out of the program. Only when no thread can go on otherwise does slalom really wait
// for that, and says so. What the program has not opened in one of these ways (files, terminals, standard
// input) is not controlled: a call that waits there holds up all threads. Calls that wait for several of them
// at once are in polls.cc.
#include "preload/channels.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <utility>

#include "preload/accesses.h"
#include "preload/random.h"
#include "preload/raw.h"
#include "preload/runtime.h"
#include "preload/signals.h"

namespace slalom::preload {
namespace {

// By descriptor: the number of the channel that it is an end of; 0: none of ours.
constinit uint32_t channel_numbers[kMostDescriptors] = {};
constinit uint32_t last_channel = 0;
// All sockets that are no pairs are one channel: who is connected with whom is not followed. 0: there is
// none.
constinit uint32_t sockets = 0;

void set_channel(int descriptor, uint32_t number) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) channel_numbers[descriptor] = number;
}

void add_socket(int descriptor) {
  if (sockets == 0) sockets = ++last_channel;
  set_channel(descriptor, sockets);
}

}  // namespace

bool is_ours(int descriptor) {
  return descriptor >= 0 && descriptor < kMostDescriptors && channel_numbers[descriptor] != 0;
}

void add_channel(int descriptor) {
  set_channel(descriptor, ++last_channel);
}

bool has_sockets() {
  return sockets != 0;
}

bool leads_out(int descriptor) {
  return !is_ours(descriptor) || channel_numbers[descriptor] == sockets;
}

uint64_t object_of(int descriptor) {
  return kChannelObjects + channel_numbers[descriptor];
}

namespace {

// Only sockets of this machine (AF_UNIX) say who the other one is.
bool comes_from_outside(int connection) {
  ucred other = {};
  socklen_t size = sizeof other;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.pid > 0 &&
         other.pid != raw_syscall(SYS_getpid);
}

bool waits(int descriptor) {
  return (raw_syscall(SYS_fcntl, descriptor, F_GETFL) & O_NONBLOCK) == 0;
}

// Takes bytes one by one. A large write to one that the kernel calls ready may still wait: so much fits
// always.
bool is_stream(int descriptor) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type == SOCK_STREAM;
}

// A call that reads or writes: when it is this agent's turn, and the kernel has something for it, it is made.
template <typename Call>
ssize_t transfer(int descriptor, short events, bool may_wait, uint64_t pc, Call call) {
  Runtime& rt = runtime();
  const OpKind op = events == POLLIN ? OpKind::SemWait : OpKind::SemPost;
  pollfd wanted{descriptor, events, 0};
  const Interruptible waiting(OnSignal::EndsOrRestarts);
  rt.me().outside = leads_out(descriptor);
  rt.cancel_point(true);
  if (may_wait)
    rt.arrive(op, object_of(descriptor), pc, Need::Descriptors, &wanted, kNever, 1);
  else
    rt.arrive(op, object_of(descriptor), pc);
  rt.cancel_point(false);
  if (waiting.ended()) return errno = EINTR, -1;
  const ssize_t result = call();
  rt.tell(op, object_of(descriptor), 1);
  rt.retire(result < 0);
  return result;
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

#define FROM __builtin_return_address(0)

SLALOM_EXPORT int pipe(int* ends) noexcept {
  return pipe2(ends, 0);
}
SLALOM_EXPORT int pipe2(int* ends, int flags) noexcept {
  const int result = SLALOM_REAL(pipe2)(ends, flags);
  if (result == 0 && runtime().controls()) {
    ++last_channel;
    set_channel(ends[0], last_channel);
    set_channel(ends[1], last_channel);
  }
  return result;
}
SLALOM_EXPORT int socketpair(int domain, int type, int protocol, int* ends) noexcept {
  const int result = SLALOM_REAL(socketpair)(domain, type, protocol, ends);
  if (result == 0 && runtime().controls()) {
    ++last_channel;
    set_channel(ends[0], last_channel);
    set_channel(ends[1], last_channel);
  }
  return result;
}
SLALOM_EXPORT int eventfd(unsigned count, int flags) noexcept {
  const int result = SLALOM_REAL(eventfd)(count, flags);
  if (result >= 0 && runtime().controls()) add_channel(result);
  return result;
}
SLALOM_EXPORT int close(int descriptor) {
  forget_random_device(descriptor);
  forget_set(descriptor);
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(close)(descriptor);
  Runtime& rt = runtime();
  const uint64_t object = object_of(descriptor);
  rt.arrive(OpKind::SemPost, object, SLALOM_PLACE());
  set_channel(descriptor, 0);
  const int result = SLALOM_REAL(close)(descriptor);
  rt.tell(OpKind::SemPost, object, 1);
  rt.retire();
  return result;
}

SLALOM_EXPORT ssize_t read(int descriptor, void* buffer, size_t size) {
  if (runtime().controls() && is_random_device(descriptor)) {
    fill_random(buffer, size);
    return static_cast<ssize_t>(size);
  }
  if (!runtime().controls() || !is_ours(descriptor))
    return received(buffer, SLALOM_REAL(read)(descriptor, buffer, size), FROM);
  return received(buffer,
                  transfer(descriptor, POLLIN, waits(descriptor), SLALOM_PLACE(),
                           [&] { return SLALOM_REAL(read)(descriptor, buffer, size); }),
                  FROM);
}
SLALOM_EXPORT ssize_t write(int descriptor, const void* buffer, size_t size) {
  sends(buffer, size, FROM);
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(write)(descriptor, buffer, size);
  const uint64_t pc = SLALOM_PLACE();
  const bool may_wait = waits(descriptor);
  const auto* bytes = static_cast<const char*>(buffer);
  size_t done = 0;
  do {
    const size_t part = may_wait && is_stream(descriptor) ? size_t{PIPE_BUF} : size;
    const size_t next = size - done < part ? size - done : part;
    const ssize_t result = transfer(descriptor, POLLOUT, may_wait, pc,
                                    [&] { return SLALOM_REAL(write)(descriptor, bytes + done, next); });
    if (result <= 0) return done > 0 ? static_cast<ssize_t>(done) : result;
    done += static_cast<size_t>(result);
  } while (done < size);
  return static_cast<ssize_t>(done);
}
SLALOM_EXPORT ssize_t recv(int descriptor, void* buffer, size_t size, int flags) {
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_REAL(recv)(descriptor, buffer, size, flags);
  return received(
      buffer,
      transfer(descriptor, POLLIN, waits(descriptor) && (flags & MSG_DONTWAIT) == 0, SLALOM_PLACE(),
               [&] { return SLALOM_REAL(recv)(descriptor, buffer, size, flags); }),
      FROM);
}
SLALOM_EXPORT ssize_t send(int descriptor, const void* buffer, size_t size, int flags) {
  sends(buffer, size, FROM);
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_REAL(send)(descriptor, buffer, size, flags);
  return transfer(descriptor, POLLOUT, waits(descriptor) && (flags & MSG_DONTWAIT) == 0, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(send)(descriptor, buffer, size, flags); });
}
SLALOM_EXPORT int eventfd_read(int descriptor, eventfd_t* value) {
  return read(descriptor, value, sizeof *value) == sizeof *value ? 0 : -1;
}
SLALOM_EXPORT int eventfd_write(int descriptor, eventfd_t value) {
  return write(descriptor, &value, sizeof value) == sizeof value ? 0 : -1;
}

SLALOM_EXPORT ssize_t readv(int descriptor, const iovec* parts, int count) {
  const size_t number = count > 0 ? static_cast<size_t>(count) : 0;
  if (!runtime().controls() || !is_ours(descriptor))
    return received(parts, number, SLALOM_REAL(readv)(descriptor, parts, count), FROM);
  return received(parts, number,
                  transfer(descriptor, POLLIN, waits(descriptor), SLALOM_PLACE(),
                           [&] { return SLALOM_REAL(readv)(descriptor, parts, count); }),
                  FROM);
}
SLALOM_EXPORT ssize_t writev(int descriptor, const iovec* parts, int count) {
  sends(parts, count > 0 ? static_cast<size_t>(count) : 0, FROM);
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(writev)(descriptor, parts, count);
  return transfer(descriptor, POLLOUT, waits(descriptor), SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(writev)(descriptor, parts, count); });
}
SLALOM_EXPORT ssize_t recvfrom(int descriptor, void* buffer, size_t size, int flags, sockaddr* from,
                               socklen_t* length) {
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_REAL(recvfrom)(descriptor, buffer, size, flags, from, length);
  return received(
      buffer,
      transfer(descriptor, POLLIN, waits(descriptor) && (flags & MSG_DONTWAIT) == 0, SLALOM_PLACE(),
               [&] { return SLALOM_REAL(recvfrom)(descriptor, buffer, size, flags, from, length); }),
      FROM);
}
SLALOM_EXPORT ssize_t sendto(int descriptor, const void* buffer, size_t size, int flags, const sockaddr* to,
                             socklen_t length) {
  sends(buffer, size, FROM);
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_REAL(sendto)(descriptor, buffer, size, flags, to, length);
  return transfer(descriptor, POLLOUT, waits(descriptor) && (flags & MSG_DONTWAIT) == 0, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(sendto)(descriptor, buffer, size, flags, to, length); });
}
SLALOM_EXPORT ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(recvmsg)(descriptor, message, flags);
  return received(message->msg_iov, message->msg_iovlen,
                  transfer(descriptor, POLLIN, waits(descriptor) && (flags & MSG_DONTWAIT) == 0,
                           SLALOM_PLACE(), [&] { return SLALOM_REAL(recvmsg)(descriptor, message, flags); }),
                  FROM);
}
SLALOM_EXPORT ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  sends(message->msg_iov, message->msg_iovlen, FROM);
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(sendmsg)(descriptor, message, flags);
  return transfer(descriptor, POLLOUT, waits(descriptor) && (flags & MSG_DONTWAIT) == 0, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(sendmsg)(descriptor, message, flags); });
}

SLALOM_EXPORT int socket(int domain, int type, int protocol) noexcept {
  const int result = SLALOM_REAL(socket)(domain, type, protocol);
  if (result >= 0 && runtime().controls()) add_socket(result);
  return result;
}
SLALOM_EXPORT int accept4(int descriptor, sockaddr* from, socklen_t* length, int flags) {
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_REAL(accept4)(descriptor, from, length, flags);
  const auto result = static_cast<int>(transfer(descriptor, POLLIN, waits(descriptor), SLALOM_PLACE(), [&] {
    return SLALOM_REAL(accept4)(descriptor, from, length, flags);
  }));
  if (result >= 0) add_socket(result);
  if (result >= 0 && comes_from_outside(result)) runtime().note_uncontrolled(Uncontrolled::Outside);
  return result;
}
SLALOM_EXPORT int accept(int descriptor, sockaddr* from, socklen_t* length) {
  if (!runtime().controls()) return SLALOM_REAL(accept)(descriptor, from, length);
  return accept4(descriptor, from, length, 0);
}
SLALOM_EXPORT int connect(int descriptor, const sockaddr* to, socklen_t length) {
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(connect)(descriptor, to, length);
  return static_cast<int>(transfer(descriptor, POLLOUT, false, SLALOM_PLACE(),
                                   [&] { return SLALOM_REAL(connect)(descriptor, to, length); }));
}
SLALOM_EXPORT int shutdown(int descriptor, int how) noexcept {
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(shutdown)(descriptor, how);
  bool& cancellable = runtime().me().cancellable;  // unlike the others
  const bool before = std::exchange(cancellable, false);
  const ssize_t result = transfer(descriptor, POLLOUT, false, SLALOM_PLACE(),
                                  [&] { return SLALOM_REAL(shutdown)(descriptor, how); });
  cancellable = before;
  return static_cast<int>(result);
}

// Another name for the same channel.
SLALOM_EXPORT int dup(int descriptor) noexcept {
  const int result = SLALOM_REAL(dup)(descriptor);
  if (runtime().controls() && result >= 0) {
    set_channel(result, is_ours(descriptor) ? channel_numbers[descriptor] : 0);
    copy_set(descriptor, result);
  }
  return result;
}
SLALOM_EXPORT int dup2(int descriptor, int other) noexcept {
  const int result = SLALOM_REAL(dup2)(descriptor, other);
  if (runtime().controls() && result >= 0) {
    set_channel(result, is_ours(descriptor) ? channel_numbers[descriptor] : 0);
    copy_set(descriptor, result);
  }
  return result;
}
