// Calls for several messages at once: recvmmsg and sendmmsg, as so many calls for one.
#include <sys/socket.h>

#include "preload/channels.h"
#include "preload/raw.h"
#include "preload/runtime.h"

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
