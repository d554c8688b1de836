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
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <utility>

#include "preload/accesses.h"
#include "preload/clocks.h"
#include "preload/errors.h"
#include "preload/kernel_waits.h"
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
constexpr uint32_t kSignals = UINT32_MAX;  // what a signalfd is an end of

void add_socket(int descriptor) {
  if (sockets == 0) sockets = ++last_channel;
  set_channel(descriptor, sockets);
}

}  // namespace

void set_channel(int descriptor, uint32_t number) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) channel_numbers[descriptor] = number;
}

uint32_t new_channel() {
  return ++last_channel;
}

int rename_channel(int from, int to) {
  if (to < 0) return to;
  set_channel(to, is_ours(from) ? channel_numbers[from] : 0);
  copy_set(from, to);
  return to;
}

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

int other_name(int descriptor) {
  for (int i = 0; i < kMostDescriptors; ++i)
    if (i != descriptor && channel_numbers[i] == channel_numbers[descriptor]) return i;
  return -1;
}

uint64_t object_of(int descriptor) {
  if (channel_numbers[descriptor] == kSignals) return kSignalObject;
  return kChannelObjects + channel_numbers[descriptor];
}

bool waits(int descriptor) {
  return (raw_syscall(SYS_fcntl, descriptor, F_GETFL) & O_NONBLOCK) == 0;
}

uint64_t deadline_of(int descriptor, short events) {
  timeval limit{};
  socklen_t size = sizeof limit;
  const int option = events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO;
  if (raw_syscall(SYS_getsockopt, descriptor, SOL_SOCKET, option, reinterpret_cast<long>(&limit),
                  reinterpret_cast<long>(&size)) != 0 ||
      (limit.tv_sec == 0 && limit.tv_usec == 0))
    return kNever;
  return after({limit.tv_sec, limit.tv_usec * 1000});
}

namespace {

// Only sockets of this machine (AF_UNIX) say who the other one is.
bool comes_from_outside(int connection) {
  ucred other = {};
  socklen_t size = sizeof other;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.pid > 0 &&
         other.pid != raw_syscall(SYS_getpid);
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
ssize_t transfer(const FallibleCall& what, int descriptor, short events, bool may_wait, uint64_t pc,
                 Call call) {
  Runtime& rt = runtime();
  const OpKind op = events == POLLIN ? OpKind::SemWait : OpKind::SemPost;
  pollfd wanted{descriptor, events, 0};
  const Interruptible waiting(OnSignal::EndsOrRestarts);
  rt.me().outside = leads_out(descriptor);
  const uint64_t deadline = may_wait ? deadline_of(descriptor, events) : kNever;
  bool in_time = true;
  rt.cancel_point(true);
  if (may_wait)
    in_time = rt.arrive(unless_limited(op, deadline), object_of(descriptor), pc, Need::Descriptors, &wanted,
                        deadline, 1);
  else
    rt.arrive(op, object_of(descriptor), pc);
  rt.cancel_point(false);
  if (waiting.ended()) return errno = EINTR, -1;
  if (!in_time) {
    rt.tell(OpKind::TimerFire, object_of(descriptor), 1);
    rt.retire(true);
    return errno = EAGAIN, -1;
  }
  // Between the program's own threads the schedule decides what fails.
  const ssize_t result = leads_out(descriptor) ? may_fail(what, -1, call) : call();
  rt.tell(op, object_of(descriptor), 1);
  rt.retire(result < 0);
  return result;
}

// Writes all of it, where it may wait in parts of which one fits always.
template <typename Call>
ssize_t put(const FallibleCall& what, int descriptor, size_t size, bool may_wait, uint64_t pc, Call call) {
  const size_t part = may_wait && is_stream(descriptor) ? size_t{PIPE_BUF} : size;
  size_t done = 0;
  do {
    const size_t next = size - done < part ? size - done : part;
    const ssize_t result =
        transfer(what, descriptor, POLLOUT, may_wait, pc, [&] { return call(done, next); });
    if (result <= 0) return done > 0 ? static_cast<ssize_t>(done) : result;
    done += static_cast<size_t>(result);
  } while (done < size);
  return static_cast<ssize_t>(done);
}

// The same of several pieces, with `call` for a part of one.
template <typename Call>
ssize_t put_pieces(const FallibleCall& what, int descriptor, const iovec* pieces, size_t count, uint64_t pc,
                   Call call) {
  ssize_t done = 0;
  for (size_t i = 0; i < count; ++i) {
    if (pieces[i].iov_len == 0) continue;
    const ssize_t result = put(what, descriptor, pieces[i].iov_len, true, pc, [&](size_t from, size_t size) {
      iovec part{static_cast<char*>(pieces[i].iov_base) + from, size};
      return call(part, done == 0 && from == 0);
    });
    if (result <= 0) return done > 0 ? done : result;
    done += result;
    if (result < static_cast<ssize_t>(pieces[i].iov_len)) break;
  }
  return done;
}

bool fits_always(const iovec* pieces, size_t count) {
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) size += pieces[i].iov_len;
  return size <= PIPE_BUF;
}

bool wants_all(int descriptor, int flags) {
  return (flags & MSG_WAITALL) != 0 && (flags & (MSG_PEEK | MSG_DONTWAIT)) == 0 && waits(descriptor) &&
         is_stream(descriptor);
}

// Reads, and with MSG_WAITALL until all is there.
template <typename Call>
ssize_t get(const FallibleCall& what, int descriptor, size_t size, int flags, uint64_t pc, Call call) {
  const bool may_wait = waits(descriptor) && (flags & MSG_DONTWAIT) == 0;
  const bool all = wants_all(descriptor, flags);
  size_t done = 0;
  do {
    const ssize_t result = transfer(what, descriptor, POLLIN, may_wait, pc,
                                    [&] { return call(done, all ? flags & ~MSG_WAITALL : flags); });
    if (result <= 0) return done > 0 ? static_cast<ssize_t>(done) : result;
    done += static_cast<size_t>(result);
  } while (all && done < size);
  return static_cast<ssize_t>(done);
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

#define FROM __builtin_return_address(0)
// To what is none of our channels.
#define PASS_ON(name, ...) SLALOM_PASS_ON(name, name, {}, -1, __VA_ARGS__)

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
  if (runtime().controls() && has_lock(descriptor)) return close_locked(descriptor, SLALOM_PLACE());
  if (!runtime().controls()) return SLALOM_REAL(close)(descriptor);
  if (!is_ours(descriptor))
    return may_fail_when_done({CallId::close, {}, __builtin_return_address(0), __builtin_dwarf_cfa()},
                              [&] { return SLALOM_REAL(close)(descriptor); });
  Runtime& rt = runtime();
  const uint64_t object = object_of(descriptor);
  rt.arrive(OpKind::SemPost, object, SLALOM_PLACE());
  if (leads_out(descriptor)) rt.note_change();
  forget_timer(descriptor);
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
    return received(buffer, PASS_ON(read, descriptor, buffer, size), FROM);
  return received(buffer,
                  transfer({CallId::read}, descriptor, POLLIN, waits(descriptor), SLALOM_PLACE(),
                           [&] { return SLALOM_REAL(read)(descriptor, buffer, size); }),
                  FROM);
}
SLALOM_EXPORT ssize_t write(int descriptor, const void* buffer, size_t size) {
  sends(buffer, size, FROM);
  if (!runtime().controls() || !is_ours(descriptor)) return PASS_ON(write, descriptor, buffer, size);
  const auto* bytes = static_cast<const char*>(buffer);
  return put({CallId::write}, descriptor, size, waits(descriptor), SLALOM_PLACE(),
             [&](size_t from, size_t part) { return SLALOM_REAL(write)(descriptor, bytes + from, part); });
}
SLALOM_EXPORT ssize_t recv(int descriptor, void* buffer, size_t size, int flags) {
  if (!runtime().controls() || !is_ours(descriptor)) return PASS_ON(recv, descriptor, buffer, size, flags);
  return received(buffer,
                  get({CallId::recv}, descriptor, size, flags, SLALOM_PLACE(),
                      [&](size_t done, int now) {
                        return SLALOM_REAL(recv)(descriptor, static_cast<char*>(buffer) + done, size - done,
                                                 now);
                      }),
                  FROM);
}
SLALOM_EXPORT ssize_t send(int descriptor, const void* buffer, size_t size, int flags) {
  sends(buffer, size, FROM);
  if (!runtime().controls() || !is_ours(descriptor)) return PASS_ON(send, descriptor, buffer, size, flags);
  const auto* bytes = static_cast<const char*>(buffer);
  return put(
      {CallId::send}, descriptor, size, waits(descriptor) && (flags & MSG_DONTWAIT) == 0, SLALOM_PLACE(),
      [&](size_t from, size_t part) { return SLALOM_REAL(send)(descriptor, bytes + from, part, flags); });
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
    return received(parts, number, PASS_ON(readv, descriptor, parts, count), FROM);
  return received(parts, number,
                  transfer({CallId::readv}, descriptor, POLLIN, waits(descriptor), SLALOM_PLACE(),
                           [&] { return SLALOM_REAL(readv)(descriptor, parts, count); }),
                  FROM);
}
SLALOM_EXPORT ssize_t writev(int descriptor, const iovec* parts, int count) {
  sends(parts, count > 0 ? static_cast<size_t>(count) : 0, FROM);
  if (!runtime().controls() || !is_ours(descriptor)) return PASS_ON(writev, descriptor, parts, count);
  const bool may_wait = waits(descriptor);
  if (may_wait && count > 0 && !fits_always(parts, static_cast<size_t>(count)) && is_stream(descriptor))
    return put_pieces(
        {CallId::writev}, descriptor, parts, static_cast<size_t>(count), SLALOM_PLACE(),
        [&](iovec& part, bool) { return SLALOM_REAL(write)(descriptor, part.iov_base, part.iov_len); });
  return transfer({CallId::writev}, descriptor, POLLOUT, may_wait, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(writev)(descriptor, parts, count); });
}
SLALOM_EXPORT ssize_t recvfrom(int descriptor, void* buffer, size_t size, int flags, sockaddr* from,
                               socklen_t* length) {
  if (!runtime().controls() || !is_ours(descriptor))
    return PASS_ON(recvfrom, descriptor, buffer, size, flags, from, length);
  return received(buffer,
                  get({CallId::recvfrom}, descriptor, size, flags, SLALOM_PLACE(),
                      [&](size_t done, int now) {
                        return SLALOM_REAL(recvfrom)(descriptor, static_cast<char*>(buffer) + done,
                                                     size - done, now, from, length);
                      }),
                  FROM);
}
SLALOM_EXPORT ssize_t sendto(int descriptor, const void* buffer, size_t size, int flags, const sockaddr* to,
                             socklen_t length) {
  sends(buffer, size, FROM);
  if (!runtime().controls() || !is_ours(descriptor))
    return PASS_ON(sendto, descriptor, buffer, size, flags, to, length);
  const auto* bytes = static_cast<const char*>(buffer);
  return put({CallId::sendto}, descriptor, size, waits(descriptor) && (flags & MSG_DONTWAIT) == 0,
             SLALOM_PLACE(), [&](size_t from, size_t part) {
               return SLALOM_REAL(sendto)(descriptor, bytes + from, part, flags, to, length);
             });
}
SLALOM_EXPORT ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  if (!runtime().controls() || !is_ours(descriptor)) return PASS_ON(recvmsg, descriptor, message, flags);
  if (wants_all(descriptor, flags)) return receive_all(descriptor, message, flags);
  return received(
      message->msg_iov, message->msg_iovlen,
      transfer({CallId::recvmsg}, descriptor, POLLIN, waits(descriptor) && (flags & MSG_DONTWAIT) == 0,
               SLALOM_PLACE(), [&] { return SLALOM_REAL(recvmsg)(descriptor, message, flags); }),
      FROM);
}
SLALOM_EXPORT ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  sends(message->msg_iov, message->msg_iovlen, FROM);
  if (!runtime().controls() || !is_ours(descriptor)) return PASS_ON(sendmsg, descriptor, message, flags);
  const bool may_wait = waits(descriptor) && (flags & MSG_DONTWAIT) == 0;
  if (may_wait && !fits_always(message->msg_iov, message->msg_iovlen) && is_stream(descriptor))
    return put_pieces({CallId::sendmsg}, descriptor, message->msg_iov, message->msg_iovlen, SLALOM_PLACE(),
                      [&](iovec& part, bool first) {
                        msghdr piece = *message;
                        piece.msg_iov = &part;
                        piece.msg_iovlen = 1;
                        if (!first) piece.msg_controllen = 0;  // what goes with it goes once
                        return SLALOM_REAL(sendmsg)(descriptor, &piece, flags);
                      });
  return transfer({CallId::sendmsg}, descriptor, POLLOUT, may_wait, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(sendmsg)(descriptor, message, flags); });
}

SLALOM_EXPORT int socket(int domain, int type, int protocol) noexcept {
  const int result = PASS_ON(socket, domain, type, protocol);
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
  if (!runtime().controls() || !is_ours(descriptor)) return PASS_ON(connect, descriptor, to, length);
  const uint64_t pc = SLALOM_PLACE();
  const FallibleCall what{CallId::connect, found_at(to, length)};
  // To one of this machine it waits for an accept() once enough others wait for that: there it is tried
  // again.
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
  if (!runtime().controls() || !is_ours(descriptor)) return PASS_ON(shutdown, descriptor, how);
  bool& cancellable = runtime().me().cancellable;  // unlike the others
  const bool before = std::exchange(cancellable, false);
  const ssize_t result = transfer({CallId::shutdown}, descriptor, POLLOUT, false, SLALOM_PLACE(), [&] {
    if (leads_out(descriptor)) runtime().note_change();
    return SLALOM_REAL(shutdown)(descriptor, how);
  });
  cancellable = before;
  return static_cast<int>(result);
}

// How a connection that was made without waiting has failed.
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

SLALOM_EXPORT int dup(int descriptor) noexcept {
  const int result = SLALOM_REAL(dup)(descriptor);
  return runtime().controls() ? rename_channel(descriptor, result) : result;
}
SLALOM_EXPORT int dup2(int descriptor, int other) noexcept {
  const int result = SLALOM_REAL(dup2)(descriptor, other);
  return runtime().controls() ? rename_channel(descriptor, result) : result;
}
SLALOM_EXPORT int dup3(int descriptor, int other, int flags) noexcept {
  const int result = SLALOM_REAL(dup3)(descriptor, other, flags);
  return runtime().controls() ? rename_channel(descriptor, result) : result;
}
// Signals that nobody handles are left to the kernel, also those that the program sends to itself.
SLALOM_EXPORT int signalfd(int descriptor, const sigset_t* set, int flags) noexcept {
  const int result = SLALOM_REAL(signalfd)(descriptor, set, flags);
  if (result >= 0 && runtime().controls()) set_channel(result, kSignals);
  return result;
}
