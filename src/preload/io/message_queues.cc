// POSIX message queues. On Linux they are descriptors that can be polled. Sending to a full queue and
// receiving from an empty one wait.
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/sync/kernel_waits.h"

namespace slalom::preload {
namespace {

constinit Numbers message_queues = {};

// Identifies the queue by its inode, since it may be open more than once. The numbers lie above those of
// System V queues, which have the same kind of object.
uint64_t queue_of(mqd_t queue) {
  struct stat info = {};
  if (raw_syscall(SYS_fstat, queue, reinterpret_cast<long>(&info)) != 0) return kQueueObjects;
  return kQueueObjects + (uint64_t{1} << 16) + message_queues.of(info.st_dev, info.st_ino);
}

constexpr timespec kLongAgo = {0, 0};  // a deadline in the past, so that no call waits

template <typename Call>
long transfer(mqd_t queue, short events, const timespec* until, uint64_t pc, Call call) {
  const bool waits = (raw_syscall(SYS_fcntl, queue, F_GETFL) & O_NONBLOCK) == 0;
  if (waits && until != nullptr && !valid(until)) return errno = EINVAL, -1;
  const pollfd wanted{queue, events, 0};
  const WaitingCall how{.op = events == POLLIN ? OpKind::SemWait : OpKind::SemPost,
                        .object = queue_of(queue),
                        .pc = pc,
                        .deadline = waits && until != nullptr ? from_clock(CLOCK_REALTIME, *until) : kNever,
                        .busy = waits ? ETIMEDOUT : EAGAIN,
                        .need = Need::Descriptors,
                        .count = 1};
  return wait_and_call(how, waits ? &wanted : nullptr, call);
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT mqd_t mq_open(const char* name, int flags, ...) noexcept {
  va_list list;
  va_start(list, flags);
  const mode_t mode = va_arg(list, mode_t);
  auto* attributes = va_arg(list, mq_attr*);
  va_end(list);
  runtime().begin_executions_here();
  const bool makes = (flags & O_CREAT) != 0 && runtime().controls();
  const int error = errno;
  // If the queue did not exist before, it is removed with the execution.
  const mqd_t before = makes && (flags & O_EXCL) == 0 ? SLALOM_REAL(mq_open)(name, O_RDONLY) : -1;
  if (before >= 0) SLALOM_REAL(mq_close)(before);
  errno = error;
  const mqd_t queue = SLALOM_REAL(mq_open)(name, flags, mode, attributes);
  if (makes && queue >= 0 && before < 0) note_left_behind(name);
  return queue;
}
SLALOM_EXPORT mqd_t __mq_open_2(const char* name, int flags) noexcept {
  return mq_open(name, flags & ~O_CREAT);
}

SLALOM_EXPORT int mq_timedsend(mqd_t queue, const char* message, size_t size, unsigned priority,
                               const timespec* until) {
  if (!runtime().controls()) return SLALOM_REAL(mq_timedsend)(queue, message, size, priority, until);
  return static_cast<int>(transfer(queue, POLLOUT, until, SLALOM_PLACE(), [&] {
    return SLALOM_REAL(mq_timedsend)(queue, message, size, priority, &kLongAgo);
  }));
}
SLALOM_EXPORT int mq_send(mqd_t queue, const char* message, size_t size, unsigned priority) {
  if (!runtime().controls()) return SLALOM_REAL(mq_send)(queue, message, size, priority);
  return static_cast<int>(transfer(queue, POLLOUT, nullptr, SLALOM_PLACE(), [&] {
    return SLALOM_REAL(mq_timedsend)(queue, message, size, priority, &kLongAgo);
  }));
}
SLALOM_EXPORT ssize_t mq_timedreceive(mqd_t queue, char* message, size_t size, unsigned* priority,
                                      const timespec* until) {
  if (!runtime().controls()) return SLALOM_REAL(mq_timedreceive)(queue, message, size, priority, until);
  return transfer(queue, POLLIN, until, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(mq_timedreceive)(queue, message, size, priority, &kLongAgo); });
}
SLALOM_EXPORT ssize_t mq_receive(mqd_t queue, char* message, size_t size, unsigned* priority) {
  if (!runtime().controls()) return SLALOM_REAL(mq_receive)(queue, message, size, priority);
  return transfer(queue, POLLIN, nullptr, SLALOM_PLACE(),
                  [&] { return SLALOM_REAL(mq_timedreceive)(queue, message, size, priority, &kLongAgo); });
}
