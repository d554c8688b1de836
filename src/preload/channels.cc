// Pipes, sockets and event counters: reading from an empty one, or writing to a full one, waits for another
// thread. Whether it can be done is asked from the kernel; the wait itself is the search's.
//
// A socket may also lead out of the program. Only when no thread can go on otherwise does slalom really wait
// for that, and says so. What the program has not opened in one of these ways (files, terminals, standard
// input) is not controlled: a call that waits there holds up all threads.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/clocks.h"
#include "preload/random.h"
#include "preload/raw.h"
#include "preload/runtime.h"
#include "preload/signals.h"

namespace slalom::preload {
namespace {

constexpr int kMostDescriptors = 1024;

// By descriptor: the number of the channel that it is an end of; 0: none of ours.
constinit uint32_t channel_numbers[kMostDescriptors] = {};
constinit uint32_t last_channel = 0;
// All sockets that are no pairs are one channel: who is connected with whom is not followed. 0: there is
// none.
constinit uint32_t sockets = 0;

bool is_ours(int descriptor) {
  return descriptor >= 0 && descriptor < kMostDescriptors && channel_numbers[descriptor] != 0;
}

void set_channel(int descriptor, uint32_t number) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) channel_numbers[descriptor] = number;
}

bool leads_out(int descriptor) {
  return !is_ours(descriptor) || channel_numbers[descriptor] == sockets;
}

void add_socket(int descriptor) {
  if (sockets == 0) sockets = ++last_channel;
  set_channel(descriptor, sockets);
}

// Both ends of one channel are one object.
uint64_t object_of(int descriptor) {
  return kChannelObjects + channel_numbers[descriptor];
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
  if (may_wait)
    rt.arrive(op, object_of(descriptor), pc, Need::Descriptors, &wanted, kNever, 1);
  else
    rt.arrive(op, object_of(descriptor), pc);
  if (waiting.ended()) return errno = EINTR, -1;
  const ssize_t result = call();
  rt.tell(op, object_of(descriptor), 1);
  rt.retire(result < 0);
  return result;
}

// How many are ready; -1: a handler has run.
int wait_for(pollfd* wanted, nfds_t count, uint64_t deadline, bool outside, uint64_t pc) {
  Runtime& rt = runtime();
  uint64_t object = 0;
  for (nfds_t i = 0; i < count && object == 0; ++i)
    if (is_ours(wanted[i].fd)) object = object_of(wanted[i].fd);
  const Interruptible waiting(OnSignal::Ends);
  rt.me().outside = outside;
  const bool ready = rt.arrive(OpKind::SemWait, object, pc, Need::Descriptors, wanted, deadline,
                               static_cast<uint32_t>(count));
  if (waiting.ended()) return errno = EINTR, -1;
  rt.tell(ready ? OpKind::SemWait : OpKind::TimerFire, object, 1);
  rt.retire(!ready);
  return static_cast<int>(raw_syscall(SYS_poll, reinterpret_cast<long>(wanted), static_cast<long>(count), 0));
}

int poll_all(pollfd* wanted, nfds_t count, uint64_t deadline, uint64_t pc) {
  bool outside = false;
  for (nfds_t i = 0; i < count; ++i) outside = outside || (wanted[i].fd >= 0 && leads_out(wanted[i].fd));
  const int ready = wait_for(wanted, count, deadline, outside, pc);
  if (ready < -1) return errno = -ready, -1;
  return ready;
}

// As poll, with sets of bits.
int select_all(int count, fd_set* reading, fd_set* writing, fd_set* troubled, uint64_t deadline,
               uint64_t pc) {
  pollfd wanted[FD_SETSIZE];
  nfds_t used = 0;
  for (int i = 0; i < count && i < FD_SETSIZE; ++i) {
    short events = 0;
    if (reading != nullptr && FD_ISSET(i, reading)) events |= POLLIN;
    if (writing != nullptr && FD_ISSET(i, writing)) events |= POLLOUT;
    if (troubled != nullptr && FD_ISSET(i, troubled)) events |= POLLPRI;
    if (events != 0) wanted[used++] = {i, events, 0};
  }
  if (poll_all(wanted, used, deadline, pc) < 0) return -1;
  for (nfds_t i = 0; i < used; ++i)
    if (wanted[i].revents & POLLNVAL) return errno = EBADF, -1;
  for (fd_set* set : {reading, writing, troubled})
    if (set != nullptr) FD_ZERO(set);
  int ready = 0;
  for (nfds_t i = 0; i < used; ++i) {
    const auto take = [&](fd_set* set, short asked, short seen) {
      if (set == nullptr || (wanted[i].events & asked) == 0 || (wanted[i].revents & seen) == 0) return;
      FD_SET(wanted[i].fd, set);
      ++ready;
    };
    take(reading, POLLIN, POLLIN | POLLHUP | POLLERR);
    take(writing, POLLOUT, POLLOUT | POLLERR);
    take(troubled, POLLPRI, POLLPRI);
  }
  return ready;
}

// What an epoll descriptor waits for makes it readable itself.
int epoll_all(int descriptor, epoll_event* events, int most, uint64_t deadline, uint64_t pc) {
  pollfd wanted{descriptor, POLLIN, 0};
  if (wait_for(&wanted, 1, deadline, sockets != 0, pc) < 0) return -1;
  return SLALOM_REAL(epoll_wait)(descriptor, events, most, 0);
}

uint64_t limit(const timespec* time) {
  return time == nullptr ? kNever : after(*time);
}

uint64_t limit(int milliseconds) {
  if (milliseconds < 0) return kNever;
  return after({milliseconds / 1000, milliseconds % 1000 * 1'000'000L});
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

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
  if (result >= 0 && runtime().controls()) set_channel(result, ++last_channel);
  return result;
}
SLALOM_EXPORT int close(int descriptor) {
  forget_random_device(descriptor);
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
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(read)(descriptor, buffer, size);
  return transfer(descriptor, POLLIN, waits(descriptor), SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(read)(descriptor, buffer, size); });
}
SLALOM_EXPORT ssize_t write(int descriptor, const void* buffer, size_t size) {
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
  return transfer(descriptor, POLLIN, waits(descriptor) && (flags & MSG_DONTWAIT) == 0, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(recv)(descriptor, buffer, size, flags); });
}
SLALOM_EXPORT ssize_t send(int descriptor, const void* buffer, size_t size, int flags) {
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
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(readv)(descriptor, parts, count);
  return transfer(descriptor, POLLIN, waits(descriptor), SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(readv)(descriptor, parts, count); });
}
SLALOM_EXPORT ssize_t writev(int descriptor, const iovec* parts, int count) {
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(writev)(descriptor, parts, count);
  return transfer(descriptor, POLLOUT, waits(descriptor), SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(writev)(descriptor, parts, count); });
}
SLALOM_EXPORT ssize_t recvfrom(int descriptor, void* buffer, size_t size, int flags, sockaddr* from,
                               socklen_t* length) {
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_REAL(recvfrom)(descriptor, buffer, size, flags, from, length);
  return transfer(descriptor, POLLIN, waits(descriptor) && (flags & MSG_DONTWAIT) == 0, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(recvfrom)(descriptor, buffer, size, flags, from, length); });
}
SLALOM_EXPORT ssize_t sendto(int descriptor, const void* buffer, size_t size, int flags, const sockaddr* to,
                             socklen_t length) {
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_REAL(sendto)(descriptor, buffer, size, flags, to, length);
  return transfer(descriptor, POLLOUT, waits(descriptor) && (flags & MSG_DONTWAIT) == 0, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(sendto)(descriptor, buffer, size, flags, to, length); });
}
SLALOM_EXPORT ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(recvmsg)(descriptor, message, flags);
  return transfer(descriptor, POLLIN, waits(descriptor) && (flags & MSG_DONTWAIT) == 0, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(recvmsg)(descriptor, message, flags); });
}
SLALOM_EXPORT ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
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
  return static_cast<int>(transfer(descriptor, POLLOUT, false, SLALOM_PLACE(),
                                   [&] { return SLALOM_REAL(shutdown)(descriptor, how); }));
}

// Another name for the same channel.
SLALOM_EXPORT int dup(int descriptor) noexcept {
  const int result = SLALOM_REAL(dup)(descriptor);
  if (runtime().controls() && result >= 0)
    set_channel(result, is_ours(descriptor) ? channel_numbers[descriptor] : 0);
  return result;
}
SLALOM_EXPORT int dup2(int descriptor, int other) noexcept {
  const int result = SLALOM_REAL(dup2)(descriptor, other);
  if (runtime().controls() && result >= 0)
    set_channel(result, is_ours(descriptor) ? channel_numbers[descriptor] : 0);
  return result;
}

SLALOM_EXPORT int poll(pollfd* wanted, nfds_t count, int milliseconds) {
  if (!runtime().controls() || milliseconds == 0) return SLALOM_REAL(poll)(wanted, count, milliseconds);
  return poll_all(wanted, count, limit(milliseconds), SLALOM_PLACE());
}
SLALOM_EXPORT int ppoll(pollfd* wanted, nfds_t count, const timespec* time, const sigset_t* mask) {
  if (!runtime().controls()) return SLALOM_REAL(ppoll)(wanted, count, time, mask);
  if (time != nullptr && !valid(time)) return errno = EINVAL, -1;
  const MaskDuringCall masked(mask);
  return poll_all(wanted, count, limit(time), SLALOM_PLACE());
}
SLALOM_EXPORT int select(int count, fd_set* reading, fd_set* writing, fd_set* troubled, timeval* time) {
  const bool at_once = time != nullptr && time->tv_sec == 0 && time->tv_usec == 0;
  if (!runtime().controls() || at_once) return SLALOM_REAL(select)(count, reading, writing, troubled, time);
  const uint64_t deadline =
      time == nullptr ? kNever : after({time->tv_sec, static_cast<long>(time->tv_usec) * 1000});
  return select_all(count, reading, writing, troubled, deadline, SLALOM_PLACE());
}
SLALOM_EXPORT int pselect(int count, fd_set* reading, fd_set* writing, fd_set* troubled, const timespec* time,
                          const sigset_t* mask) {
  if (!runtime().controls()) return SLALOM_REAL(pselect)(count, reading, writing, troubled, time, mask);
  if (time != nullptr && !valid(time)) return errno = EINVAL, -1;
  const MaskDuringCall masked(mask);
  return select_all(count, reading, writing, troubled, limit(time), SLALOM_PLACE());
}
SLALOM_EXPORT int epoll_wait(int descriptor, epoll_event* events, int most, int milliseconds) {
  if (!runtime().controls() || milliseconds == 0)
    return SLALOM_REAL(epoll_wait)(descriptor, events, most, milliseconds);
  return epoll_all(descriptor, events, most, limit(milliseconds), SLALOM_PLACE());
}
SLALOM_EXPORT int epoll_pwait(int descriptor, epoll_event* events, int most, int milliseconds,
                              const sigset_t* mask) {
  if (!runtime().controls()) return SLALOM_REAL(epoll_pwait)(descriptor, events, most, milliseconds, mask);
  const MaskDuringCall masked(mask);
  return epoll_all(descriptor, events, most, limit(milliseconds), SLALOM_PLACE());
}
SLALOM_EXPORT int epoll_pwait2(int descriptor, epoll_event* events, int most, const timespec* time,
                               const sigset_t* mask) {
  if (!runtime().controls()) return SLALOM_REAL(epoll_pwait2)(descriptor, events, most, time, mask);
  if (time != nullptr && !valid(time)) return errno = EINVAL, -1;
  const MaskDuringCall masked(mask);
  return epoll_all(descriptor, events, most, limit(time), SLALOM_PLACE());
}
