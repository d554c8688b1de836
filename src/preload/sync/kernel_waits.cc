#include "preload/sync/kernel_waits.h"

namespace slalom::preload {

namespace {

// Another process may have taken the resource between the agent's turn and its call.
bool lost_to_another(const WaitingCall& how) {
  if (how.deadline != kNever) return false;
  runtime().tell(OpKind::TryLock, how.object, 0, 0);
  runtime().retire(true);
  return true;
}

}  // namespace

bool arrive_at(const WaitingCall& how, const void* wait) {
  Runtime& rt = runtime();
  const Interruptible waiting(how.on_signal);
  rt.me().outside = how.outside;
  bool in_time = true;
  if (how.cancels) rt.cancel_point(true);
  if (wait != nullptr)
    in_time = rt.arrive(unless_limited(how.op, how.deadline), how.object, how.pc, how.need, wait,
                        how.deadline, how.count);
  else
    rt.arrive(how.op == OpKind::SemWait ? OpKind::TryLock : how.op, how.object, how.pc);
  if (how.cancels) rt.cancel_point(false);
  if (waiting.ended()) return errno = EINTR, false;
  if (in_time) return true;
  if (lost_to_another(how)) return arrive_at(how, wait);
  rt.tell(OpKind::TimerFire, how.object, 1);
  rt.retire(true);
  errno = how.late;
  return false;
}

}  // namespace slalom::preload
