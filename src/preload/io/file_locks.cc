// File locks: flock, fcntl and lockf. Only the kernel knows the locks of a file. The runtime asks it whether
// a lock is available, and the search does the waiting.
//
// Among threads of one program, locks of open file descriptions (flock, F_OFD_SETLK) exclude each other if
// each thread has opened the file for itself. The older locks of fcntl and lockf belong to the process, so
// only other processes can block them.
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "preload/io/channels.h"
#include "preload/runtime/errors.h"
#include "preload/runtime/raw.h"
#include "preload/sync/kernel_waits.h"

namespace slalom::preload {
namespace {

constexpr uint32_t kMostLocks = 256;
constexpr int kFirstProbe = 900;  // programs rarely use descriptors from here up

constinit Numbers files = {};

// Locks taken by flock() that the runtime has seen.
struct Held {
  int descriptor;
  uint32_t agent;
  uint64_t object;
  bool shared;
};
constinit Held held[kMostLocks] = {};
constinit uint32_t held_count = 0;

uint64_t lock_object(int descriptor) {
  struct stat info = {};
  if (raw_syscall(SYS_fstat, descriptor, reinterpret_cast<long>(&info)) != 0) return kFileObjects;
  return kFileObjects + files.of(info.st_dev, info.st_ino);
}

bool is_same_opening(int a, int b) {
  const long process = raw_syscall(SYS_getpid);
  return a == b || raw_syscall(SYS_kcmp, process, process, KCMP_FILE, a, b) == 0;
}

Held* find_held(int descriptor, uint64_t object) {
  for (uint32_t i = 0; i < held_count; ++i)
    if (held[i].object == object && is_same_opening(held[i].descriptor, descriptor)) return &held[i];
  return nullptr;
}

void add_held(int descriptor, uint64_t object, bool shared) {
  if (Held* before = find_held(descriptor, object)) {
    before->shared = shared;
    return;
  }
  if (held_count < kMostLocks) held[held_count++] = {descriptor, runtime().self(), object, shared};
  runtime().hold_read(as_lock(object));
}

void drop_held(Held* lock) {
  runtime().drop_read(as_lock(lock->object), lock->agent);
  *lock = held[--held_count];
}

// Another opening of the same file, which holds the lock only to test whether it is available. It stays open,
// because closing it would drop the locks of the process itself.
struct Probe {
  uint64_t object;
  int descriptor;
};
constinit Probe probes[kMostLocks] = {};
constinit uint32_t probe_count = 0;

int probe_for(int descriptor, uint64_t object) {
  for (uint32_t i = 0; i < probe_count; ++i)
    if (probes[i].object == object) return probes[i].descriptor;
  if (probe_count == kMostLocks) return -1;
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  const long access = raw_syscall(SYS_fcntl, descriptor, F_GETFL) & O_ACCMODE;
  const long opened = raw_syscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), access | O_CLOEXEC);
  if (opened < 0) return -1;
  const long probe = raw_syscall(SYS_fcntl, opened, F_DUPFD_CLOEXEC, kFirstProbe);
  if (probe >= 0) raw_syscall(SYS_close, opened);
  probes[probe_count++] = {object, static_cast<int>(probe >= 0 ? probe : opened)};
  return probes[probe_count - 1].descriptor;
}

struct FlockWait : KernelWait {
  int probe, operation;
};

bool could_flock(const KernelWait& asked) {
  const auto& wait = static_cast<const FlockWait&>(asked);
  if (wait.probe < 0) return true;
  const long result = raw_syscall(SYS_flock, wait.probe, wait.operation | LOCK_NB);
  if (result == 0) raw_syscall(SYS_flock, wait.probe, LOCK_UN);
  return result != -EAGAIN;
}

int unlock_file(int descriptor, uint64_t object, uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::SemPost, object, pc);
  if (Held* lock = find_held(descriptor, object)) drop_held(lock);
  const int result = SLALOM_REAL(flock)(descriptor, LOCK_UN);
  rt.tell(OpKind::SemPost, object, 1);
  rt.retire();
  return result;
}

int lock_file(int descriptor, int operation, uint64_t pc) {
  const uint64_t object = lock_object(descriptor);
  const int kind = operation & ~LOCK_NB;
  if (kind == LOCK_UN) return unlock_file(descriptor, object, pc);
  const bool shared = kind == LOCK_SH;
  const Held* before = find_held(descriptor, object);
  const bool again = before != nullptr && before->shared == shared;
  // The kernel first releases the lock of the other kind, and other threads may run in between.
  if (before != nullptr && !again) unlock_file(descriptor, object, pc);
  FlockWait wait{{could_flock}, -1, kind};
  const bool waits = (operation & LOCK_NB) == 0 && !again;
  if (waits) wait.probe = probe_for(descriptor, object);
  const WaitingCall how{.op = OpKind::SemWait, .object = object, .pc = pc, .cancels = false, .outside = true};
  return static_cast<int>(wait_and_call(how, waits ? &wait : nullptr, [&] {
    const FallibleCall what{.call = CallId::flock, .busy_outside = !waits && !runtime().is_held(object)};
    const int result = may_fail(what, -1, [&] { return SLALOM_REAL(flock)(descriptor, kind | LOCK_NB); });
    if (result == 0) add_held(descriptor, object, shared);
    return result;
  }));
}

struct RangeWait : KernelWait {
  int descriptor, command;  // command that tests
  struct flock range;
};

bool could_lock_range(const KernelWait& asked) {
  const auto& wait = static_cast<const RangeWait&>(asked);
  struct flock range = wait.range;
  return raw_syscall(SYS_fcntl, wait.descriptor, wait.command, reinterpret_cast<long>(&range)) != 0 ||
         range.l_type == F_UNLCK;
}

// F_SETLK, F_SETLKW and the same for open file descriptions.
int lock_range(CallId call, int descriptor, int command, const struct flock& range, uint64_t pc) {
  const bool of_opening = command == F_OFD_SETLK || command == F_OFD_SETLKW;
  const bool waits = command == F_SETLKW || command == F_OFD_SETLKW;
  const bool unlocks = range.l_type == F_UNLCK;
  const uint64_t object = lock_object(descriptor);
  RangeWait wait{{could_lock_range}, descriptor, of_opening ? F_OFD_GETLK : F_GETLK, range};
  wait.range.l_pid = 0;
  const WaitingCall how{.op = unlocks ? OpKind::SemPost : OpKind::SemWait,
                        .object = object,
                        .pc = pc,
                        .cancels = waits,
                        .outside = true};
  return static_cast<int>(wait_and_call(how, waits && !unlocks ? &wait : nullptr, [&] {
    const FallibleCall what{.call = call, .busy_outside = !waits && !runtime().is_held(object)};
    const int result = may_fail(
        what, -1, [&] { return SLALOM_REAL(fcntl)(descriptor, of_opening ? F_OFD_SETLK : F_SETLK, &range); });
    if (result == 0 && of_opening && !unlocks) runtime().hold_read(as_lock(object));
    if (result == 0 && of_opening && unlocks) runtime().drop_read(as_lock(object));
    return result;
  }));
}

bool locks_range(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

}  // namespace

bool has_lock(int descriptor) {
  for (uint32_t i = 0; i < held_count; ++i)
    if (held[i].descriptor == descriptor) return true;
  return false;
}

int close_locked(int descriptor, uint64_t pc) {
  Runtime& rt = runtime();
  const uint64_t object = lock_object(descriptor);
  rt.arrive(OpKind::SemPost, object, pc);
  if (Held* lock = find_held(descriptor, object)) drop_held(lock);
  const int result = may_fail_when_done({CallId::close}, [&] { return SLALOM_REAL(close)(descriptor); });
  rt.tell(OpKind::SemPost, object, 1);
  rt.retire();
  return result;
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int flock(int descriptor, int operation) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(flock)(descriptor, operation);
  return lock_file(descriptor, operation, SLALOM_PLACE());
}

#define FCNTL(name)                                                                                \
  SLALOM_EXPORT int name(int descriptor, int command, ...) {                                       \
    va_list list;                                                                                  \
    va_start(list, command);                                                                       \
    void* argument = va_arg(list, void*);                                                          \
    va_end(list);                                                                                  \
    if (locks_range(command) && argument != nullptr && runtime().controls())                       \
      return lock_range(CallId::fcntl, descriptor, command, *static_cast<struct flock*>(argument), \
                        SLALOM_PLACE());                                                           \
    const int result = SLALOM_REAL(name)(descriptor, command, argument);                           \
    const bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;                          \
    return copies && runtime().controls() ? rename_channel(descriptor, result) : result;           \
  }
FCNTL(fcntl)
FCNTL(fcntl64)
#undef FCNTL

#define LOCKF(name, Offset)                                                                       \
  SLALOM_EXPORT int name(int descriptor, int command, Offset size) {                              \
    if (command == F_TEST) return SLALOM_PASS_ON(name, lockf, {}, -1, descriptor, command, size); \
    if (!runtime().controls()) return SLALOM_REAL(name)(descriptor, command, size);               \
    struct flock range = {};                                                                      \
    range.l_type = command == F_ULOCK ? F_UNLCK : F_WRLCK;                                        \
    range.l_whence = SEEK_CUR;                                                                    \
    range.l_len = size;                                                                           \
    return lock_range(CallId::lockf, descriptor, command == F_LOCK ? F_SETLKW : F_SETLK, range,   \
                      SLALOM_PLACE());                                                            \
  }
LOCKF(lockf, off_t)
LOCKF(lockf64, off64_t)
#undef LOCKF
