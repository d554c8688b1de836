// Calls that wait for signals, or until a handler has run: sigwait and its kin, pause, sigsuspend.
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/signals.h"
#include "preload/signals/system_signals.h"

namespace slalom::preload {
namespace {

// Waits until a handler has run.
int wait_for_handler(uint64_t pc) {
  Runtime& rt = runtime();
  rt.cancel_point(true);
  rt.arrive(OpKind::SemWait, signals_object(rt.slot(rt.self())), pc, Need::Handler);
  rt.cancel_point(false);
  return errno = EINTR, -1;
}

// Returns the signal that came; 0 if the deadline has passed; -1 if the handler of another signal has run.
int wait_for(const sigset_t* set, uint64_t deadline, OnSignal how, uint64_t pc, siginfo_t& info) {
  Runtime& rt = runtime();
  const uint64_t wanted = bits_of(set);
  rt.cancel_point(true);
  const Interruptible call(how);
  const bool in_time = rt.arrive(unless_limited(OpKind::SemWait, deadline), kSignalObject, pc, Need::Signal,
                                 &wanted, deadline);
  rt.cancel_point(false);
  if (call.ended()) return -1;
  int signal = 0;
  if (in_time) {
    for (uint64_t* pending : {&rt.me().awaited_signals, &rt.me().pending_signals, &rt.process_signals()}) {
      if ((*pending & wanted) == 0) continue;
      signal = __builtin_ctzll(*pending & wanted) + 1;
      info = info_of(signal,
                     take_pending(*pending, pending == &rt.process_signals() ? kNoAgent : rt.self(), signal));
      break;
    }
    if (signal == 0) {
      const timespec now{0, 0};
      const long taken =
          raw_syscall(SYS_rt_sigtimedwait, reinterpret_cast<long>(set), reinterpret_cast<long>(&info),
                      reinterpret_cast<long>(&now), sizeof(uint64_t));
      signal = taken > 0 ? static_cast<int>(taken) : 0;
      if (signal > 0) info.si_pid = rt.number_of(info.si_pid);
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

SLALOM_EXPORT int pause() {
  if (!runtime().controls()) return SLALOM_REAL(pause)();
  const uint64_t pc = SLALOM_PLACE();
  runtime().pass(OpKind::GoOn, pc, false);  // a handler that runs before the call does not end it
  return wait_for_handler(pc);
}
SLALOM_EXPORT int sigsuspend(const sigset_t* mask) {
  if (!runtime().controls()) return SLALOM_REAL(sigsuspend)(mask);
  const MaskDuringCall masked(mask);
  return wait_for_handler(SLALOM_PLACE());
}

SLALOM_EXPORT int sigwait(const sigset_t* set, int* signal) {
  if (!runtime().controls()) return SLALOM_REAL(sigwait)(set, signal);
  siginfo_t info = {};
  *signal = wait_for(set, kNever, OnSignal::GoesOn, SLALOM_PLACE(), info);
  return 0;
}
SLALOM_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  if (!runtime().controls()) return SLALOM_REAL(sigwaitinfo)(set, info);
  siginfo_t came = {};
  const int signal = wait_for(set, kNever, OnSignal::Ends, SLALOM_PLACE(), came);
  if (signal < 0) return errno = EINTR, -1;
  if (info != nullptr) *info = came;
  return signal;
}
SLALOM_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* limit) {
  if (!runtime().controls()) return SLALOM_REAL(sigtimedwait)(set, info, limit);
  if (!valid(limit)) return errno = EINVAL, -1;
  siginfo_t came = {};
  const int signal = wait_for(set, after(*limit), OnSignal::Ends, SLALOM_PLACE(), came);
  if (signal <= 0) return errno = signal == 0 ? EAGAIN : EINTR, -1;
  if (info != nullptr) *info = came;
  return signal;
}
