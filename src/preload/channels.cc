// Pipes, pairs of sockets and event counters inside the program: reading from an empty one, or writing to a
// full one, waits for another thread. Whether it can be done is asked from the kernel; the wait itself is the
// search's.
//
// Descriptors that lead out of the program (files, terminals, network) are not controlled: a call that waits
// there holds up all threads.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "preload/clocks.h"
#include "preload/raw.h"
#include "preload/runtime.h"

namespace slalom::preload {
namespace {

constexpr int kMostDescriptors = 1024;

// By descriptor: the number of the channel that it is an end of; 0: none of ours.
constinit uint32_t channel_numbers[kMostDescriptors] = {};
constinit uint32_t last_channel = 0;

bool is_ours(int descriptor) {
  return descriptor >= 0 && descriptor < kMostDescriptors && channel_numbers[descriptor] != 0;
}

void set_channel(int descriptor, uint32_t number) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) channel_numbers[descriptor] = number;
}

// Both ends of one channel are one object.
uint64_t object_of(int descriptor) {
  return kChannelObjects + channel_numbers[descriptor];
}

bool waits(int descriptor) {
  return (raw_syscall(SYS_fcntl, descriptor, F_GETFL) & O_NONBLOCK) == 0;
}

// A call that reads or writes: when it is this agent's turn, and the kernel has something for it, it is made.
template <typename Call>
ssize_t transfer(int descriptor, short events, bool may_wait, uint64_t pc, Call call) {
  Runtime& rt = runtime();
  const OpKind op = events == POLLIN ? OpKind::SemWait : OpKind::SemPost;
  pollfd wanted{descriptor, events, 0};
  if (may_wait)
    rt.arrive(op, object_of(descriptor), pc, Need::Descriptors, &wanted, kNever, 1);
  else
    rt.arrive(op, object_of(descriptor), pc);
  const ssize_t result = call();
  rt.tell(op, object_of(descriptor), 1);
  rt.retire(result < 0);
  return result;
}

int wait_for(pollfd* wanted, nfds_t count, uint64_t deadline, uint64_t pc) {
  Runtime& rt = runtime();
  uint64_t object = 0;
  for (nfds_t i = 0; i < count && object == 0; ++i)
    if (is_ours(wanted[i].fd)) object = object_of(wanted[i].fd);
  const bool ready = rt.arrive(OpKind::SemWait, object, pc, Need::Descriptors, wanted, deadline,
                               static_cast<uint32_t>(count));
  rt.tell(ready ? OpKind::SemWait : OpKind::TimerFire, object, 1);
  rt.retire(!ready);
  return static_cast<int>(raw_syscall(SYS_poll, reinterpret_cast<long>(wanted), static_cast<long>(count), 0));
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
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(read)(descriptor, buffer, size);
  return transfer(descriptor, POLLIN, waits(descriptor), SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(read)(descriptor, buffer, size); });
}
SLALOM_EXPORT ssize_t write(int descriptor, const void* buffer, size_t size) {
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(write)(descriptor, buffer, size);
  return transfer(descriptor, POLLOUT, waits(descriptor), SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(write)(descriptor, buffer, size); });
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

SLALOM_EXPORT int poll(pollfd* wanted, nfds_t count, int milliseconds) {
  if (!runtime().controls() || milliseconds == 0) return SLALOM_REAL(poll)(wanted, count, milliseconds);
  bool all_ours = true;
  for (nfds_t i = 0; i < count; ++i) all_ours = all_ours && (wanted[i].fd < 0 || is_ours(wanted[i].fd));
  if (!all_ours) return SLALOM_REAL(poll)(wanted, count, milliseconds);
  return wait_for(wanted, count, limit(milliseconds), SLALOM_PLACE());
}
// As poll, with sets of bits.
SLALOM_EXPORT int select(int count, fd_set* reading, fd_set* writing, fd_set* troubled, timeval* time) {
  pollfd wanted[FD_SETSIZE];
  nfds_t used = 0;
  bool all_ours = true;
  for (int i = 0; i < count && i < FD_SETSIZE; ++i) {
    short events = 0;
    if (reading != nullptr && FD_ISSET(i, reading)) events |= POLLIN;
    if (writing != nullptr && FD_ISSET(i, writing)) events |= POLLOUT;
    if (troubled != nullptr && FD_ISSET(i, troubled)) events |= POLLPRI;
    if (events == 0) continue;
    wanted[used++] = {i, events, 0};
    all_ours = all_ours && is_ours(i);
  }
  const bool at_once = time != nullptr && time->tv_sec == 0 && time->tv_usec == 0;
  if (!runtime().controls() || at_once || !all_ours)
    return SLALOM_REAL(select)(count, reading, writing, troubled, time);
  const uint64_t deadline =
      time == nullptr ? kNever : after({time->tv_sec, static_cast<long>(time->tv_usec) * 1000});
  wait_for(wanted, used, deadline, SLALOM_PLACE());
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
SLALOM_EXPORT int epoll_wait(int descriptor, epoll_event* events, int most, int milliseconds) {
  if (!runtime().controls() || milliseconds == 0)
    return SLALOM_REAL(epoll_wait)(descriptor, events, most, milliseconds);
  pollfd wanted{descriptor, POLLIN, 0};
  wait_for(&wanted, 1, limit(milliseconds), SLALOM_PLACE());
  return SLALOM_REAL(epoll_wait)(descriptor, events, most, 0);
}
