// Calls that move data between descriptors, or between memory and a pipe, inside the kernel: splice, tee,
// vmsplice and sendfile. If a descriptor is a channel of the program, the search does the waiting.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "preload/io/channels.h"
#include "preload/runtime/errors.h"
#include "preload/runtime/raw.h"
#include "preload/sync/kernel_waits.h"

namespace slalom::preload {
namespace {

constexpr int kMemory = -1;  // in place of a descriptor

struct MoveWait : KernelWait {
  int from, to;
};

bool could_move(const KernelWait& asked) {
  const auto& wait = static_cast<const MoveWait&>(asked);
  const auto is_ready = [](int descriptor, short events) {
    pollfd wanted{descriptor, events, 0};
    return !is_ours(descriptor) || raw_syscall(SYS_poll, reinterpret_cast<long>(&wanted), 1, 0) != 0;
  };
  return is_ready(wait.from, POLLIN) && is_ready(wait.to, POLLOUT);
}

// Moves data between two descriptors of which at least one is a channel. `call` must not wait.
template <typename Call>
ssize_t move(int from, int to, bool waits, uint64_t pc, Call call, bool cancels = true) {
  const MoveWait wait{{could_move}, from, to};
  const WaitingCall how{.op = is_ours(from) ? OpKind::SemWait : OpKind::SemPost,
                        .object = object_of(is_ours(from) ? from : to),
                        .pc = pc,
                        .deadline = waits && is_ours(to) ? deadline_of(to, POLLOUT) : kNever,
                        .cancels = cancels,
                        .outside = (is_ours(from) && leads_out(from)) || (is_ours(to) && leads_out(to)),
                        .late = EAGAIN};
  return wait_and_call(how, waits ? &wait : nullptr, [&] {
    const ssize_t result = call();
    if (is_ours(from) && is_ours(to)) runtime().tell(OpKind::SemPost, object_of(to), 1);
    return result;
  });
}

bool moves_channel(int from, int to) {
  return is_ours(from) || is_ours(to);
}

// Makes a descriptor non-blocking during a call that has no flag for that. No other agent runs meanwhile.
class WithoutWaiting {
 public:
  explicit WithoutWaiting(int descriptor)
      : descriptor_(descriptor), flags_(raw_syscall(SYS_fcntl, descriptor, F_GETFL)) {
    raw_syscall(SYS_fcntl, descriptor_, F_SETFL, flags_ | O_NONBLOCK);
  }
  ~WithoutWaiting() { raw_syscall(SYS_fcntl, descriptor_, F_SETFL, flags_); }
  WithoutWaiting(const WithoutWaiting&) = delete;
  WithoutWaiting& operator=(const WithoutWaiting&) = delete;

 private:
  int descriptor_;
  long flags_;
};

bool is_socket(int descriptor) {
  struct stat info = {};
  return raw_syscall(SYS_fstat, descriptor, reinterpret_cast<long>(&info)) == 0 && S_ISSOCK(info.st_mode);
}

// Sends all of it to a socket, as the kernel does, and as much as fits to a pipe.
template <typename Call>
ssize_t send_file(int to, int from, size_t size, uint64_t pc, Call call) {
  const bool may_wait = waits(to);
  const bool all = may_wait && is_socket(to);
  size_t done = 0;
  const auto send = [&] {
    const WithoutWaiting now(to);
    return may_fail({CallId::sendfile}, -1, [&] { return call(size - done); });
  };
  do {
    const ssize_t result = move(from, to, may_wait, pc, send, false);
    if (result <= 0) return done > 0 ? static_cast<ssize_t>(done) : result;
    done += static_cast<size_t>(result);
  } while (all && done < size);
  return static_cast<ssize_t>(done);
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT ssize_t splice(int from, off64_t* from_at, int to, off64_t* to_at, size_t size,
                             unsigned flags) {
  if (!runtime().controls() || !moves_channel(from, to))
    return SLALOM_REAL(splice)(from, from_at, to, to_at, size, flags);
  return move(from, to, (flags & SPLICE_F_NONBLOCK) == 0, SLALOM_PLACE(),
              [&] { return SLALOM_REAL(splice)(from, from_at, to, to_at, size, flags | SPLICE_F_NONBLOCK); });
}
SLALOM_EXPORT ssize_t tee(int from, int to, size_t size, unsigned flags) {
  if (!runtime().controls() || !moves_channel(from, to)) return SLALOM_REAL(tee)(from, to, size, flags);
  return move(from, to, (flags & SPLICE_F_NONBLOCK) == 0, SLALOM_PLACE(),
              [&] { return SLALOM_REAL(tee)(from, to, size, flags | SPLICE_F_NONBLOCK); });
}
// Moves data between memory and a pipe. The end of the pipe determines the direction.
SLALOM_EXPORT ssize_t vmsplice(int pipe, const iovec* parts, size_t count, unsigned flags) {
  if (!runtime().controls() || !is_ours(pipe)) return SLALOM_REAL(vmsplice)(pipe, parts, count, flags);
  const bool reads = (raw_syscall(SYS_fcntl, pipe, F_GETFL) & O_ACCMODE) == O_RDONLY;
  return move(reads ? pipe : kMemory, reads ? kMemory : pipe, (flags & SPLICE_F_NONBLOCK) == 0,
              SLALOM_PLACE(),
              [&] { return SLALOM_REAL(vmsplice)(pipe, parts, count, flags | SPLICE_F_NONBLOCK); });
}

#define SENDFILE(name, Offset)                                                            \
  SLALOM_EXPORT ssize_t name(int to, int from, Offset* at, size_t size) noexcept {        \
    if (!runtime().controls() || !is_ours(to))                                            \
      return SLALOM_PASS_ON(name, sendfile, {}, -1, to, from, at, size);                  \
    return send_file(to, from, size, SLALOM_PLACE(),                                      \
                     [&](size_t rest) { return SLALOM_REAL(name)(to, from, at, rest); }); \
  }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)
#undef SENDFILE
