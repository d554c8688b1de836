// Calls that wait for several channels at once: poll, select, epoll_wait and their kin. Such a call depends
// on every channel that it watches, and the runtime reports all of them. The kernel says which are ready.
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <algorithm>

#include "preload/io/channels.h"
#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/signals.h"

namespace slalom::preload {
namespace {

constexpr int kDeepest = 5;  // nesting of sets that the kernel allows
constexpr int kWordBits = 64;

// The descriptors in each epoll set, indexed by the set's descriptor, as bits. A closed descriptor stays in,
// so that at worst a call seems to depend on more than it does.
constinit uint64_t sets[kMostDescriptors][kMostDescriptors / kWordBits] = {};

bool is_small(int descriptor) {
  return descriptor >= 0 && descriptor < kMostDescriptors;
}

bool is_set(int descriptor) {
  return is_small(descriptor) &&
         std::ranges::any_of(sets[descriptor], [](uint64_t word) { return word != 0; });
}

void note_member(int set, int operation, int descriptor) {
  if (!is_small(set) || !is_small(descriptor)) return;
  const uint64_t bit = uint64_t{1} << (descriptor % kWordBits);
  uint64_t& word = sets[set][descriptor / kWordBits];
  word = operation == EPOLL_CTL_DEL ? word & ~bit : word | bit;
}

// The channels that a call watches, each once. While it exists, slalom knows that the agent waits for all of
// them.
class Watched {
 public:
  Watched() = default;
  ~Watched() { runtime().unwatch(this); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  void add(int descriptor, int depth = 0) {
    if (!is_small(descriptor)) return;
    if (is_ours(descriptor)) add_object(object_of(descriptor));
    if (depth == kDeepest) return;
    for (int word = 0; word < kMostDescriptors / kWordBits; ++word)
      for (uint64_t rest = sets[descriptor][word]; rest != 0; rest &= rest - 1)
        add(word * kWordBits + __builtin_ctzll(rest), depth + 1);
  }
  uint32_t count() const { return count_; }
  uint64_t first() const { return first_; }
  void tell(OpKind op, uint64_t state) const {
    if (count_ == 0) runtime().tell(op, 0, state);
    runtime().tell_watched(op, state, this);
  }

 private:
  void add_object(uint64_t object) {
    if (!runtime().watch(object, this)) return;
    if (count_++ == 0) first_ = object;
  }

  uint64_t first_ = 0;
  uint32_t count_ = 0;
};

int ask_kernel(pollfd* wanted, nfds_t count) {
  return static_cast<int>(raw_syscall(SYS_poll, reinterpret_cast<long>(wanted), static_cast<long>(count), 0));
}

// Returns the number of ready descriptors; -1 if a signal handler has run.
int wait_for(pollfd* wanted, nfds_t count, const Watched& watched, uint64_t deadline, bool outside,
             uint64_t pc) {
  Runtime& rt = runtime();
  const Interruptible waiting(OnSignal::Ends);
  rt.me().outside = outside;
  rt.let_others_answer(wanted, static_cast<uint32_t>(count));
  rt.cancel_point(true);
  // If one of several is enough, the state of the first says nothing, so the operation is announced as one
  // that may always be possible.
  const OpKind op = watched.count() > 1 ? OpKind::TryLock : unless_limited(OpKind::SemWait, deadline);
  const bool ready =
      rt.arrive(op, watched.first(), pc, Need::Descriptors, wanted, deadline, static_cast<uint32_t>(count));
  rt.cancel_point(false);
  if (waiting.ended()) return errno = EINTR, -1;
  watched.tell(ready ? OpKind::SemWait : OpKind::TimerFire, 1);
  rt.retire(!ready);
  return ask_kernel(wanted, count);
}

// As wait_for(), without waiting. Counts as a yield if nothing is ready, for loops that do nothing else.
int poll_once(pollfd* wanted, nfds_t count, const Watched& watched, uint64_t pc) {
  Runtime& rt = runtime();
  rt.cancel_point(false);
  if (watched.count() > 0) rt.arrive(OpKind::TryLock, watched.first(), pc);
  const int ready = ask_kernel(wanted, count);
  if (watched.count() == 0) return ready;
  watched.tell(ready != 0 ? OpKind::SemWait : OpKind::TryLock, ready != 0);
  rt.retire(ready == 0);
  return ready;
}

int ask_or_wait(pollfd* wanted, nfds_t count, const Watched& watched, uint64_t deadline, bool outside,
                uint64_t pc) {
  return deadline <= runtime().now() ? poll_once(wanted, count, watched, pc)
                                     : wait_for(wanted, count, watched, deadline, outside, pc);
}

int poll_all(pollfd* wanted, nfds_t count, uint64_t deadline, uint64_t pc) {
  bool outside = false;
  Watched watched;
  for (nfds_t i = 0; i < count; ++i) {
    const int descriptor = wanted[i].fd;
    outside = outside || (descriptor >= 0 && (leads_out(descriptor) || is_set(descriptor)));
    watched.add(descriptor);
  }
  const int ready = ask_or_wait(wanted, count, watched, deadline, outside, pc);
  if (ready < -1) return errno = -ready, -1;
  return ready;
}

// As poll_all(), with sets of bits.
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

// An epoll descriptor is readable itself when something in its set is ready.
int epoll_all(int descriptor, epoll_event* events, int most, uint64_t deadline, uint64_t pc) {
  pollfd wanted{descriptor, POLLIN, 0};
  Watched watched;
  watched.add(descriptor);
  if (ask_or_wait(&wanted, 1, watched, deadline, has_sockets(), pc) < 0) return -1;
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

void forget_set(int descriptor) {
  if (is_small(descriptor)) std::ranges::fill(sets[descriptor], 0);
}

void copy_set(int from, int to) {
  if (is_small(from) && is_small(to)) std::ranges::copy(sets[from], sets[to]);
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int epoll_create1(int flags) noexcept {
  runtime().begin_executions_here();
  const int result = SLALOM_REAL(epoll_create1)(flags);
  if (result >= 0 && runtime().controls()) add_channel(result);
  return result;
}
SLALOM_EXPORT int epoll_create(int size) noexcept {
  if (size <= 0) return errno = EINVAL, -1;
  return epoll_create1(0);
}
SLALOM_EXPORT int epoll_ctl(int set, int operation, int descriptor, epoll_event* event) noexcept {
  Runtime& rt = runtime();
  const bool seen = rt.controls() && is_ours(set);
  if (seen) rt.arrive(OpKind::SemPost, object_of(set), SLALOM_PLACE());
  const int result = SLALOM_REAL(epoll_ctl)(set, operation, descriptor, event);
  if (result == 0) note_member(set, operation, descriptor);
  if (seen) {
    rt.tell(OpKind::SemPost, object_of(set), 1);
    rt.retire();
  }
  return result;
}

SLALOM_EXPORT int poll(pollfd* wanted, nfds_t count, int milliseconds) {
  if (!runtime().controls()) return SLALOM_REAL(poll)(wanted, count, milliseconds);
  return poll_all(wanted, count, limit(milliseconds), SLALOM_PLACE());
}
SLALOM_EXPORT int ppoll(pollfd* wanted, nfds_t count, const timespec* time, const sigset_t* mask) {
  if (!runtime().controls()) return SLALOM_REAL(ppoll)(wanted, count, time, mask);
  if (time != nullptr && !valid(time)) return errno = EINVAL, -1;
  const MaskDuringCall masked(mask);
  return poll_all(wanted, count, limit(time), SLALOM_PLACE());
}
SLALOM_EXPORT int select(int count, fd_set* reading, fd_set* writing, fd_set* troubled, timeval* time) {
  if (!runtime().controls()) return SLALOM_REAL(select)(count, reading, writing, troubled, time);
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
  if (!runtime().controls()) return SLALOM_REAL(epoll_wait)(descriptor, events, most, milliseconds);
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
