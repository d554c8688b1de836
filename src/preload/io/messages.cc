// Calls for several messages at once, recvmmsg and sendmmsg, as so many calls for one. And one for a message
// that comes in parts.
#include <sys/socket.h>

#include "preload/io/channels.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {

ssize_t receive_all(int descriptor, msghdr* message, int flags) {
  const ssize_t first = recvmsg(descriptor, message, flags & ~MSG_WAITALL);
  if (first <= 0) return first;
  size_t done = static_cast<size_t>(first), before = 0;  // what the pieces before can hold
  for (size_t i = 0; i < message->msg_iovlen; before += message->msg_iov[i++].iov_len) {
    const iovec& piece = message->msg_iov[i];
    if (done >= before + piece.iov_len) continue;
    const size_t filled = done - before;
    const ssize_t more =
        recv(descriptor, static_cast<char*>(piece.iov_base) + filled, piece.iov_len - filled, flags);
    if (more <= 0) break;
    done += static_cast<size_t>(more);
    if (done < before + piece.iov_len) break;
  }
  return static_cast<ssize_t>(done);
}

}  // namespace slalom::preload

using namespace slalom::preload;

// One after the other. Only the first waits if it is asked for so, as MSG_WAITFORONE does; a time limit is
// looked at by the kernel between two, so that here it counts for those after the first.
SLALOM_EXPORT int recvmmsg(int descriptor, mmsghdr* messages, unsigned count, int flags, timespec* limit) {
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_REAL(recvmmsg)(descriptor, messages, count, flags, limit);
  unsigned done = 0;
  for (int now = flags & ~MSG_WAITFORONE; done < count; ++done) {
    const ssize_t size = recvmsg(descriptor, &messages[done].msg_hdr, now);
    if (size < 0) break;
    messages[done].msg_len = static_cast<unsigned>(size);
    if ((flags & MSG_WAITFORONE) != 0 || limit != nullptr) now |= MSG_DONTWAIT;
  }
  return done > 0 || count == 0 ? static_cast<int>(done) : -1;
}
SLALOM_EXPORT int sendmmsg(int descriptor, mmsghdr* messages, unsigned count, int flags) {
  if (!runtime().controls() || !is_ours(descriptor))
    return SLALOM_REAL(sendmmsg)(descriptor, messages, count, flags);
  unsigned done = 0;
  for (; done < count; ++done) {
    const ssize_t size = sendmsg(descriptor, &messages[done].msg_hdr, flags);
    if (size < 0) break;
    messages[done].msg_len = static_cast<unsigned>(size);
  }
  return done > 0 || count == 0 ? static_cast<int>(done) : -1;
}
