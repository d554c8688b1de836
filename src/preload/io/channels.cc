// Pipes, sockets and event counters. Reading from an empty one, or writing to a full one, waits for another
// thread. The kernel says whether an operation can be done, and the search does the waiting.
//
// A socket may also lead out of the program. Slalom really waits for it only if no thread can go on
// otherwise, and reports that. Descriptors that the program has not opened in one of these ways (files,
// terminals, standard input) are not controlled: a call that waits there blocks all threads.
//
// This file tracks which descriptors are ends of which channel, from opening to closing. transfers.cc has the
// transfer of data, sockets.cc the connections, and polls.cc the calls that wait for several channels at
// once.
#include "preload/io/channels.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "preload/io/random.h"
#include "preload/runtime/clocks.h"
#include "preload/runtime/errors.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/sync/kernel_waits.h"

namespace slalom::preload {
namespace {

// Indexed by descriptor: the number of the channel that it is an end of; 0 if none.
constinit uint32_t channel_numbers[kMostDescriptors] = {};
constinit uint32_t last_channel = 0;
// All sockets that are not pairs count as one channel, because connections are not tracked. 0 if there is
// none.
constinit uint32_t sockets = 0;
constexpr uint32_t kSignals = UINT32_MAX;  // number for signalfds

}  // namespace

void set_channel(int descriptor, uint32_t number) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) channel_numbers[descriptor] = number;
}

void add_socket(int descriptor) {
  if (sockets == 0) sockets = ++last_channel;
  set_channel(descriptor, sockets);
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

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int pipe(int* ends) noexcept {
  return pipe2(ends, 0);
}
SLALOM_EXPORT int pipe2(int* ends, int flags) noexcept {
  runtime().begin_executions_here();
  const int result = SLALOM_REAL(pipe2)(ends, flags);
  if (result == 0 && runtime().controls()) {
    ++last_channel;
    set_channel(ends[0], last_channel);
    set_channel(ends[1], last_channel);
  }
  return result;
}
SLALOM_EXPORT int socketpair(int domain, int type, int protocol, int* ends) noexcept {
  runtime().begin_executions_here();
  const int result = SLALOM_REAL(socketpair)(domain, type, protocol, ends);
  if (result == 0 && runtime().controls()) {
    ++last_channel;
    set_channel(ends[0], last_channel);
    set_channel(ends[1], last_channel);
  }
  return result;
}
SLALOM_EXPORT int eventfd(unsigned count, int flags) noexcept {
  runtime().begin_executions_here();
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

SLALOM_EXPORT int dup(int descriptor) noexcept {
  const int result = SLALOM_REAL(dup)(descriptor);
  return runtime().controls() ? rename_channel(descriptor, result) : result;
}
SLALOM_EXPORT int dup2(int descriptor, int other) noexcept {
  runtime().begin_executions_here();
  const int result = SLALOM_REAL(dup2)(descriptor, other);
  return runtime().controls() ? rename_channel(descriptor, result) : result;
}
SLALOM_EXPORT int dup3(int descriptor, int other, int flags) noexcept {
  runtime().begin_executions_here();
  const int result = SLALOM_REAL(dup3)(descriptor, other, flags);
  return runtime().controls() ? rename_channel(descriptor, result) : result;
}
// The kernel keeps signals without a handler, including those that the program sends to itself, so a signalfd
// can read them.
SLALOM_EXPORT int signalfd(int descriptor, const sigset_t* set, int flags) noexcept {
  runtime().begin_executions_here();
  const int result = SLALOM_REAL(signalfd)(descriptor, set, flags);
  if (result >= 0 && runtime().controls()) set_channel(result, kSignals);
  return result;
}
