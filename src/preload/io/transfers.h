// Calls that read from or write to a channel (preload/io/channels.h), each as one operation.
#pragma once

#include <errno.h>
#include <poll.h>

#include "preload/io/channels.h"
#include "preload/runtime/errors.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {

// Makes the call when it is the agent's turn and the kernel is ready for it.
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
  if (may_wait) rt.let_others_answer(&wanted, 1);
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
  // Within the program the schedule decides which calls fail, so their errors are not kept.
  const ssize_t result = leads_out(descriptor) ? may_fail(what, -1, call) : call();
  rt.tell(op, object_of(descriptor), 1);
  rt.retire(result < 0);
  return result;
}

}  // namespace slalom::preload

// Passes on a call on a descriptor that is not a channel's.
#define SLALOM_PAST_CHANNELS(name, ...) SLALOM_PASS_ON(name, name, {}, -1, __VA_ARGS__)
