// Reading from and writing to pipes, sockets and event counters. A write that is larger than fits is done in
// parts.
#include "preload/io/transfers.h"

#include <limits.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/io/random.h"
#include "preload/memory/accesses.h"
#include "preload/runtime/raw.h"

namespace slalom::preload {
namespace {

// Returns whether the descriptor is a byte stream. A large write to a stream that the kernel calls ready may
// still wait, but PIPE_BUF bytes always fit.
bool is_stream(int descriptor) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type == SOCK_STREAM;
}

// Writes everything. If the call may wait, writes parts that always fit.
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

// As put(), for several pieces. `call` writes a part of one piece.
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

// Reads; with MSG_WAITALL, until all bytes have come.
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

SLALOM_EXPORT ssize_t read(int descriptor, void* buffer, size_t size) {
  if (runtime().controls() && is_random_device(descriptor)) {
    fill_random(buffer, size);
    return static_cast<ssize_t>(size);
  }
  if (!runtime().controls() || !is_ours(descriptor))
    return received(buffer, SLALOM_PAST_CHANNELS(read, descriptor, buffer, size), FROM);
  return received(buffer,
                  transfer({CallId::read}, descriptor, POLLIN, waits(descriptor), SLALOM_PLACE(),
                           [&] { return SLALOM_REAL(read)(descriptor, buffer, size); }),
                  FROM);
}
SLALOM_EXPORT ssize_t write(int descriptor, const void* buffer, size_t size) {
  sends(buffer, size, FROM);
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_PAST_CHANNELS(write, descriptor, buffer, size);
  const auto* bytes = static_cast<const char*>(buffer);
  return put({CallId::write}, descriptor, size, waits(descriptor), SLALOM_PLACE(),
             [&](size_t from, size_t part) { return SLALOM_REAL(write)(descriptor, bytes + from, part); });
}
SLALOM_EXPORT ssize_t recv(int descriptor, void* buffer, size_t size, int flags) {
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_PAST_CHANNELS(recv, descriptor, buffer, size, flags);
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
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_PAST_CHANNELS(send, descriptor, buffer, size, flags);
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
    return received(parts, number, SLALOM_PAST_CHANNELS(readv, descriptor, parts, count), FROM);
  return received(parts, number,
                  transfer({CallId::readv}, descriptor, POLLIN, waits(descriptor), SLALOM_PLACE(),
                           [&] { return SLALOM_REAL(readv)(descriptor, parts, count); }),
                  FROM);
}
SLALOM_EXPORT ssize_t writev(int descriptor, const iovec* parts, int count) {
  sends(parts, count > 0 ? static_cast<size_t>(count) : 0, FROM);
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_PAST_CHANNELS(writev, descriptor, parts, count);
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
    return SLALOM_PAST_CHANNELS(recvfrom, descriptor, buffer, size, flags, from, length);
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
    return SLALOM_PAST_CHANNELS(sendto, descriptor, buffer, size, flags, to, length);
  const auto* bytes = static_cast<const char*>(buffer);
  return put({CallId::sendto}, descriptor, size, waits(descriptor) && (flags & MSG_DONTWAIT) == 0,
             SLALOM_PLACE(), [&](size_t from, size_t part) {
               return SLALOM_REAL(sendto)(descriptor, bytes + from, part, flags, to, length);
             });
}
SLALOM_EXPORT ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_PAST_CHANNELS(recvmsg, descriptor, message, flags);
  if (wants_all(descriptor, flags)) return receive_all(descriptor, message, flags);
  return received(
      message->msg_iov, message->msg_iovlen,
      transfer({CallId::recvmsg}, descriptor, POLLIN, waits(descriptor) && (flags & MSG_DONTWAIT) == 0,
               SLALOM_PLACE(), [&] { return SLALOM_REAL(recvmsg)(descriptor, message, flags); }),
      FROM);
}
SLALOM_EXPORT ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  sends(message->msg_iov, message->msg_iovlen, FROM);
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_PAST_CHANNELS(sendmsg, descriptor, message, flags);
  const bool may_wait = waits(descriptor) && (flags & MSG_DONTWAIT) == 0;
  if (may_wait && !fits_always(message->msg_iov, message->msg_iovlen) && is_stream(descriptor))
    return put_pieces({CallId::sendmsg}, descriptor, message->msg_iov, message->msg_iovlen, SLALOM_PLACE(),
                      [&](iovec& part, bool first) {
                        msghdr piece = *message;
                        piece.msg_iov = &part;
                        piece.msg_iovlen = 1;
                        if (!first) piece.msg_controllen = 0;  // ancillary data is sent only once
                        return SLALOM_REAL(sendmsg)(descriptor, &piece, flags);
                      });
  return transfer({CallId::sendmsg}, descriptor, POLLOUT, may_wait, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(sendmsg)(descriptor, message, flags); });
}
