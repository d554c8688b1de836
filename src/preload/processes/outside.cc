// Events outside the program's threads: another program at the other end of a socket, and the processes that
// the program has started, which may write to its pipes, end, and use memory that they share with it. The
// runtime waits for such events, and reports that it does, only if no thread can go on otherwise.
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "preload/io/channels.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/signals.h"

namespace slalom::preload {
namespace {

constexpr uint32_t kMostPolled = 64;
// In milliseconds:
constexpr long kShort = 20;
constexpr long kLong = 2000;  // time for a living child to have an effect that the runtime cannot foresee
constexpr long kSoon = 100;   // time that a child needs to end or to answer if nothing delays it
constexpr uint32_t kMostFutileWaits = 5;
constexpr int kQuiet = 3;              // milliseconds without new data: then all data has arrived
constexpr int kEnough = 1 << 16;       // bytes; with so many, waiting for more makes no difference
constexpr uint32_t kMostWakes = 1000;  // in an execution; each takes a millisecond

long real_milliseconds() {
  timespec now = {};
  raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, reinterpret_cast<long>(&now));
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// Returns the port; 0 if the address has none.
in_port_t port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return reinterpret_cast<const sockaddr_in&>(address).sin_port;
  return address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port : 0;
}

in_port_t port_of(long call, int descriptor) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  const long result =
      raw_syscall(call, descriptor, reinterpret_cast<long>(&address), reinterpret_cast<long>(&size));
  return result == 0 ? port_of(address) : 0;
}

// Returns whether the other end is in another program, as far as the runtime knows. An end in this program
// has a socket at the peer's port.
bool is_answered_outside(int descriptor) {
  if (!is_ours(descriptor) || !leads_out(descriptor)) return false;
  const in_port_t theirs = port_of(SYS_getpeername, descriptor);
  if (theirs == 0) return false;
  for (int i = 0; i < kMostDescriptors; ++i)
    if (is_ours(i) && port_of(SYS_getsockname, i) == theirs) return false;
  return true;
}

// Returns false if no part of the answer has arrived.
bool has_answered(int descriptor) {
  pollfd asked{descriptor, POLLIN, 0};
  return raw_syscall(SYS_poll, reinterpret_cast<long>(&asked), 1, 0) != 0;
}

// Waits until no more data arrives, so that the amount that can be read does not depend on chance.
void let_all_arrive(int descriptor) {
  for (int quiet = 0, before = 0; quiet < kQuiet; ++quiet) {
    int size = 0;
    pollfd asked{descriptor, POLLRDHUP, 0};
    raw_syscall(SYS_ioctl, descriptor, FIONREAD, reinterpret_cast<long>(&size));
    raw_syscall(SYS_poll, reinterpret_cast<long>(&asked), 1, 0);
    if (asked.revents != 0 || size >= kEnough) return;
    if (size != before) quiet = 0;
    before = size;
    const timespec moment{0, 1'000'000};
    raw_syscall(SYS_nanosleep, reinterpret_cast<long>(&moment));
  }
}

}  // namespace

// Returns true if an event outside lets an agent go on.
bool Runtime::wait_outside(bool for_long) {
  const bool happened = await_outside(for_long);
  channel_->waits_outside = Outside::No;
  return happened;
}

bool Runtime::await_outside(bool for_long) {
  const bool children = has_children();
  pollfd wanted[kMostPolled];
  uint32_t count = 0;
  bool leads_out = false, for_child = false;
  for (uint32_t i = 0; i < agent_count(); ++i) {
    const Agent& agent = agents_[i];
    if (ended(i)) continue;
    for_child = for_child || agent.need == Need::Child;
    leads_out = leads_out || (agent.need == Need::Kernel && agent.outside && !is_held(slot(i).object));
    if (agent.need != Need::Descriptors || (!agent.outside && !children)) continue;
    leads_out = leads_out || agent.outside;
    const auto* theirs = static_cast<const pollfd*>(agent.object);
    for (uint32_t k = 0; k < agent.count && count < kMostPolled; ++k) wanted[count++] = theirs[k];
  }
  const bool endless = for_long && (leads_out || for_child);
  const long limit = for_long ? kLong : kShort;
  const long start = real_milliseconds();
  for (bool waited = false;; waited = true) {
    // Determined before the check below, which then sees all effects of ended children.
    const bool live = children && children_live();
    if (outside_signals_ != 0 || children) take_outside_signals();
    if (children) take_shared_signals();
    for (uint32_t i = 0; i < agent_count(); ++i)
      if (!ended(i) && satisfied(i)) return true;
    if (waited && children && wake_shared(live)) return true;
    if (waited && !leads_out && !live) return false;
    if (!leads_out && !children) return false;
    if (!endless && real_milliseconds() - start >= limit) return false;
    if (leads_out || (live && !for_child)) note_uncontrolled(Uncontrolled::Outside);
    channel_->waits_outside = endless ? Outside::Endless : Outside::Bounded;
    raw_syscall(SYS_poll, reinterpret_cast<long>(wanted), count, 1);
  }
}

void Runtime::let_child_end(const ChildWait& wanted) {
  if (channel_->futile_waits >= kMostFutileWaits) return;
  siginfo_t info = {};
  for (const long start = real_milliseconds(); real_milliseconds() - start < kSoon;) {
    if (raw_syscall(SYS_waitid, wanted.kind, wanted.id, reinterpret_cast<long>(&info),
                    wanted.options | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != 0)
      return;
    let_children_run();
  }
  ++channel_->futile_waits;
}

void Runtime::let_others_answer(const pollfd* wanted, uint32_t count) {
  if (has_children()) return let_child_answer(wanted, count);
  if (!me().outside) return;
  for (uint32_t i = 0; i < count; ++i) {
    const int descriptor = wanted[i].fd;
    if ((wanted[i].events & POLLIN) == 0 || !is_answered_outside(descriptor)) continue;
    note_uncontrolled(Uncontrolled::Outside);
    for (const long start = real_milliseconds(); !has_answered(descriptor);) {
      if (channel_->futile_waits >= kMostFutileWaits) return;
      if (real_milliseconds() - start >= kSoon) {
        ++channel_->futile_waits;
        return;
      }
      let_children_run();
    }
    let_all_arrive(descriptor);
  }
}

void Runtime::let_child_answer(const pollfd* wanted, uint32_t count) {
  if (channel_->futile_waits >= kMostFutileWaits || count > kMostPolled) return;
  pollfd asked[kMostPolled];
  for (uint32_t i = 0; i < count; ++i) asked[i] = wanted[i];
  for (const long start = real_milliseconds(); real_milliseconds() - start < kSoon;) {
    // Determined before the check below, which then sees all effects of ended children.
    const bool live = children_live();
    if (raw_syscall(SYS_poll, reinterpret_cast<long>(asked), count, 0) != 0 || !live) return;
    note_uncontrolled(Uncontrolled::Outside);
    let_children_run();
  }
  ++channel_->futile_waits;
}

// Returns whether one of the program's threads holds the object, as far as the runtime knows.
bool Runtime::is_held(uint64_t object) const {
  for (uint32_t i = 0; i < read_hold_count_; ++i)
    if (object_id(read_holds_[i].lock) == object) return true;
  return false;
}

bool Runtime::children_live() const {
  const auto lives = [](idtype_t kind, int id) {  // an error means that there is no such child
    siginfo_t info = {};
    return raw_syscall(SYS_waitid, kind, id, reinterpret_cast<long>(&info), WEXITED | WNOHANG | WNOWAIT) == 0
               ? info.si_pid == 0
               : false;
  };
  if (lives(P_ALL, 0)) return true;
  // A dead child that was not waited for hides others that may live.
  for (uint32_t i = 0; i < child_count_ && i < kMostChildren; ++i)
    if (lives(P_PID, children_[i])) return true;
  return child_count_ > kMostChildren;
}

// For condition variables that the program shares with processes that may signal without a report
// (preload/sync/shared_signals.cc). Wakes their waiting agents, which then check what they wait for; POSIX
// allows spurious wake-ups. `again`: do so repeatedly, because a child lives; otherwise only once per
// execution.
bool Runtime::wake_shared(bool again) {
  constexpr unsigned kShared = 1;  // glibc's bit
  if (channel_->unreported_signals.load(std::memory_order_relaxed) == 0 || shared_wakes_ >= kMostWakes)
    return false;
  bool any = false;
  for (uint32_t i = 0; i < agent_count(); ++i) {
    const Agent& agent = agents_[i];
    if (ended(i) || agent.need != Need::Wakeup || agent.relock == nullptr) continue;
    const auto* condition = static_cast<const pthread_cond_t*>(agent.object);
    if ((condition->__data.__wrefs & kShared) == 0) continue;
    wake(i, object_id(condition));
    any = true;
  }
  if (any) shared_wakes_ = again ? shared_wakes_ + 1 : kMostWakes;
  return any;
}

}  // namespace slalom::preload
