// recvmmsg and sendmmsg, as several calls for one message each. Also recvmsg of a message that comes in
// parts.
#include <sys/socket.h>

#include "preload/io/channels.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {

ssize_t receive_all(int descriptor, msghdr* message, int flags) {
  const ssize_t first = recvmsg(descriptor, message, flags & ~MSG_WAITALL);
  if (first <= 0) return first;
  size_t done = static_cast<size_t>(first), before = 0;  // `before` is the size of the previous pieces
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

// Receives the messages one by one. Only the first call waits if MSG_WAITFORONE is set. The kernel checks a
// time limit only between two messages; here a limit makes all calls but the first return at once.
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
