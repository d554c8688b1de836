// Threads that wait for signals: sigwait and its kin end when a signal that they name is pending, sent to the
// process or by pthread_kill. Handlers are not controlled: they run when the kernel delivers the signal.
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "preload/clocks.h"
#include "preload/raw.h"
#include "preload/runtime.h"

namespace slalom::preload {
namespace {

// Signal numbers as the kernel's set has them: bit 0 is signal 1.
uint64_t bits_of(const sigset_t* set) {
  uint64_t bits = 0;
  memcpy(&bits, set, sizeof bits);
  return bits;
}

// 0: its time is over.
int wait_for(const sigset_t* set, uint64_t deadline, uint64_t pc) {
  Runtime& rt = runtime();
  const uint64_t wanted = bits_of(set);
  rt.cancel_point(true);
  const bool in_time = rt.arrive(OpKind::SemWait, kSignalObject, pc, Need::Signal, &wanted, deadline);
  rt.cancel_point(false);
  int signal = 0;
  if (in_time) {
    uint64_t& sent = rt.me().signals;
    if ((sent & wanted) != 0) {
      signal = __builtin_ctzll(sent & wanted) + 1;
      sent &= ~(uint64_t{1} << (signal - 1));
    } else {
      const timespec now{0, 0};
      const long taken = raw_syscall(SYS_rt_sigtimedwait, reinterpret_cast<long>(set), 0,
                                     reinterpret_cast<long>(&now), sizeof(uint64_t));
      signal = taken > 0 ? static_cast<int>(taken) : 0;
    }
  }
  rt.tell(in_time ? OpKind::SemWait : OpKind::TimerFire, kSignalObject, 1);
  rt.retire(!in_time);
  return signal;
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int sigwait(const sigset_t* set, int* signal) {
  if (!runtime().controls()) return SLALOM_REAL(sigwait)(set, signal);
  *signal = wait_for(set, kNever, SLALOM_PLACE());
  return 0;
}
SLALOM_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  if (!runtime().controls()) return SLALOM_REAL(sigwaitinfo)(set, info);
  const int signal = wait_for(set, kNever, SLALOM_PLACE());
  if (info != nullptr) info->si_signo = signal;
  return signal;
}
SLALOM_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* limit) {
  if (!runtime().controls()) return SLALOM_REAL(sigtimedwait)(set, info, limit);
  if (!valid(limit)) return errno = EINVAL, -1;
  const int signal = wait_for(set, after(*limit), SLALOM_PLACE());
  if (info != nullptr) info->si_signo = signal;
  if (signal == 0) errno = EAGAIN;
  return signal == 0 ? -1 : signal;
}

SLALOM_EXPORT int pthread_kill(pthread_t thread, int signal) noexcept {
  const uint32_t index = runtime().controls() ? runtime().find(thread) : kNobody;
  if (index == kNobody || signal < 1 || signal > 64) return SLALOM_REAL(pthread_kill)(thread, signal);
  Runtime& rt = runtime();
  if (rt.agent(index).need != Need::Signal) return SLALOM_REAL(pthread_kill)(thread, signal);
  rt.arrive(OpKind::SemPost, kSignalObject, SLALOM_PLACE());
  rt.tell(OpKind::SemPost, kSignalObject, 0);
  rt.agent(index).signals |= uint64_t{1} << (signal - 1);
  rt.retire();
  return 0;
}
