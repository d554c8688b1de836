// System V semaphore sets and message queues. The kernel keeps them. The runtime asks it whether an operation
// could be done now, and the search does the waiting. Objects that an execution leaves behind are removed
// after it.
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/sync/kernel_waits.h"

namespace slalom::preload {
namespace {

constexpr size_t kMostSemaphores = 256;
constexpr size_t kMostOperations = 64;
constexpr long kMostBytes = 1 << 16;  // size limit of a message

constinit Numbers sets = {}, queues = {};

uint64_t set_object(int set) {
  return kSemaphoreObjects + sets.of(static_cast<uint64_t>(set), 0);
}
uint64_t queue_object(int queue) {
  return kQueueObjects + queues.of(static_cast<uint64_t>(queue), 0);
}

// Calls `get` (semget() or its kin) with flags. An object that it creates is removed with the execution.
template <typename Get>
int get_noted(char kind, key_t key, int flags, Get get) {
  const int error = errno;
  const bool was_there = key != IPC_PRIVATE && get(0) >= 0;
  errno = error;
  const int id = get(flags);
  if (id >= 0 && !was_there && runtime().controls()) note_left_behind(kind, id);
  return id;
}

struct SemaphoreWait : KernelWait {
  int set;
  const sembuf* operations;
  size_t count;
};

// Returns whether all operations could be done now, one after the other.
bool could_operate(const KernelWait& asked) {
  const auto& wait = static_cast<const SemaphoreWait&>(asked);
  semid_ds info = {};
  if (raw_syscall(SYS_semctl, wait.set, 0, IPC_STAT, reinterpret_cast<long>(&info)) < 0 ||
      info.sem_nsems > kMostSemaphores)
    return true;
  unsigned short values[kMostSemaphores] = {};
  if (raw_syscall(SYS_semctl, wait.set, 0, GETALL, reinterpret_cast<long>(values)) < 0) return true;
  for (size_t i = 0; i < wait.count; ++i) {
    const sembuf& operation = wait.operations[i];
    if (operation.sem_num >= info.sem_nsems) return true;  // the call fails
    unsigned short& value = values[operation.sem_num];
    const bool can = operation.sem_op == 0 ? value == 0 : value + operation.sem_op >= 0;
    if (!can) return (operation.sem_flg & IPC_NOWAIT) != 0;
    value = static_cast<unsigned short>(value + operation.sem_op);
  }
  return true;
}

int operate(int set, sembuf* operations, size_t count, uint64_t deadline, uint64_t pc) {
  if (count > kMostOperations) return SLALOM_REAL(semop)(set, operations, count);
  bool takes = false, posts = false, waits = false;
  for (size_t i = 0; i < count; ++i) {
    takes = takes || operations[i].sem_op <= 0;
    posts = posts || operations[i].sem_op > 0;
    waits = waits || (operations[i].sem_op <= 0 && (operations[i].sem_flg & IPC_NOWAIT) == 0);
  }
  const SemaphoreWait wait{{could_operate}, set, operations, count};
  const WaitingCall how{.op = takes ? OpKind::SemWait : OpKind::SemPost,
                        .object = set_object(set),
                        .pc = pc,
                        .deadline = deadline,
                        .on_signal = OnSignal::Ends,
                        .cancels = false,
                        .late = EAGAIN};
  return static_cast<int>(wait_and_call(how, waits ? &wait : nullptr, [&] {
    sembuf now[kMostOperations];
    for (size_t i = 0; i < count; ++i) {
      now[i] = operations[i];
      now[i].sem_flg = static_cast<short>(now[i].sem_flg | IPC_NOWAIT);
    }
    const int result = SLALOM_REAL(semop)(set, now, count);
    if (result == 0 && takes && posts) runtime().tell(OpKind::SemPost, how.object, 1);
    return result;
  }));
}

struct ReceiveWait : KernelWait {
  int queue;
  long type;
  int flags;
};

bool is_wanted(const ReceiveWait& wait, long type) {
  if (wait.type == 0) return true;
  if (wait.type < 0) return type <= -wait.type;
  return (type == wait.type) != ((wait.flags & MSG_EXCEPT) != 0);
}

bool could_receive(const KernelWait& asked) {
  const auto& wait = static_cast<const ReceiveWait&>(asked);
  msqid_ds info = {};
  if (raw_syscall(SYS_msgctl, wait.queue, IPC_STAT, reinterpret_cast<long>(&info)) < 0) return true;
  if (wait.type == 0 || info.msg_qnum == 0) return info.msg_qnum > 0;
  static struct {
    long type;
    char text[kMostBytes];
  } message;
  for (long i = 0;; ++i) {
    const long result = raw_syscall(SYS_msgrcv, wait.queue, reinterpret_cast<long>(&message), kMostBytes, i,
                                    IPC_NOWAIT | MSG_COPY);
    if (result == -ENOMSG) return false;
    if (result < 0 || is_wanted(wait, message.type)) return true;  // a kernel without MSG_COPY: try the call
  }
}

struct SendWait : KernelWait {
  int queue;
  size_t size;
};

bool could_send(const KernelWait& asked) {
  const auto& wait = static_cast<const SendWait&>(asked);
  msqid_ds info = {};
  if (raw_syscall(SYS_msgctl, wait.queue, IPC_STAT, reinterpret_cast<long>(&info)) < 0) return true;
  return wait.size > info.msg_qbytes ||  // the call fails
         (info.__msg_cbytes + wait.size <= info.msg_qbytes && info.msg_qnum < info.msg_qbytes);
}

// Makes a call that changes a whole object. Waiting agents may then go on or fail.
template <typename Change>
long change(uint64_t object, uint64_t pc, Change change) {
  return wait_and_call({.op = OpKind::SemPost, .object = object, .pc = pc, .cancels = false, .busy = 0},
                       nullptr, change);
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int semget(key_t key, int count, int flags) noexcept {
  runtime().begin_executions_here();
  return get_noted('s', key, flags,
                   [&](int now) { return SLALOM_REAL(semget)(key, now == 0 ? 0 : count, now); });
}
SLALOM_EXPORT int msgget(key_t key, int flags) noexcept {
  runtime().begin_executions_here();
  return get_noted('q', key, flags, [&](int now) { return SLALOM_REAL(msgget)(key, now); });
}
SLALOM_EXPORT int shmget(key_t key, size_t size, int flags) noexcept {
  runtime().begin_executions_here();
  return get_noted('m', key, flags,
                   [&](int now) { return SLALOM_REAL(shmget)(key, now == 0 ? 0 : size, now); });
}

SLALOM_EXPORT void* shmat(int memory, const void* at, int flags) noexcept {
  runtime().begin_executions_here();
  if (runtime().is_forked()) runtime().note_unreported_signals();  // as in mmap()
  return SLALOM_REAL(shmat)(memory, at, flags);
}

SLALOM_EXPORT int semop(int set, sembuf* operations, size_t count) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(semop)(set, operations, count);
  return operate(set, operations, count, kNever, SLALOM_PLACE());
}
SLALOM_EXPORT int semtimedop(int set, sembuf* operations, size_t count, const timespec* limit) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(semtimedop)(set, operations, count, limit);
  if (limit != nullptr && !valid(limit)) return errno = EINVAL, -1;
  return operate(set, operations, count, limit == nullptr ? kNever : after(*limit), SLALOM_PLACE());
}
SLALOM_EXPORT int semctl(int set, int number, int command, ...) noexcept {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  const auto call = [&] { return SLALOM_REAL(semctl)(set, number, command, argument); };
  if (!runtime().controls() || (command != SETVAL && command != SETALL && command != IPC_RMID)) return call();
  return static_cast<int>(change(set_object(set), SLALOM_PLACE(), call));
}

SLALOM_EXPORT int msgsnd(int queue, const void* message, size_t size, int flags) {
  if (!runtime().controls()) return SLALOM_REAL(msgsnd)(queue, message, size, flags);
  const SendWait wait{{could_send}, queue, size};
  const WaitingCall how{.op = OpKind::SemPost,
                        .object = queue_object(queue),
                        .pc = SLALOM_PLACE(),
                        .on_signal = OnSignal::Ends};
  return static_cast<int>(wait_and_call(how, (flags & IPC_NOWAIT) == 0 ? &wait : nullptr, [&] {
    return SLALOM_REAL(msgsnd)(queue, message, size, flags | IPC_NOWAIT);
  }));
}
SLALOM_EXPORT ssize_t msgrcv(int queue, void* message, size_t size, long type, int flags) {
  if (!runtime().controls()) return SLALOM_REAL(msgrcv)(queue, message, size, type, flags);
  const ReceiveWait wait{{could_receive}, queue, type, flags};
  const WaitingCall how{.op = OpKind::SemWait,
                        .object = queue_object(queue),
                        .pc = SLALOM_PLACE(),
                        .on_signal = OnSignal::Ends,
                        .busy = ENOMSG};
  return wait_and_call(how, (flags & IPC_NOWAIT) == 0 ? &wait : nullptr,
                       [&] { return SLALOM_REAL(msgrcv)(queue, message, size, type, flags | IPC_NOWAIT); });
}
SLALOM_EXPORT int msgctl(int queue, int command, msqid_ds* info) noexcept {
  const auto call = [&] { return SLALOM_REAL(msgctl)(queue, command, info); };
  if (!runtime().controls() || (command != IPC_SET && command != IPC_RMID)) return call();
  return static_cast<int>(change(queue_object(queue), SLALOM_PLACE(), call));
}
