// Streams (FILE) on pipes and sockets. libc would read and write these by system calls of its own, which
// would block all threads. So fdopen() returns a stream that uses the controlled functions.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload/io/channels.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

int descriptor_of(void* cookie) {
  return static_cast<int>(reinterpret_cast<intptr_t>(cookie));
}

constexpr cookie_io_functions_t kFunctions = {
    [](void* cookie, char* buffer, size_t size) { return read(descriptor_of(cookie), buffer, size); },
    [](void* cookie, const char* buffer, size_t size) -> ssize_t {
      const ssize_t written = write(descriptor_of(cookie), buffer, size);
      return written < 0 ? 0 : written;  // 0 means an error
    },
    nullptr,
    [](void* cookie) { return close(descriptor_of(cookie)); },
};

}  // namespace
}  // namespace slalom::preload

using namespace slalom::preload;

SLALOM_EXPORT FILE* fdopen(int descriptor, const char* mode) noexcept {
  if (!runtime().controls() || !is_ours(descriptor)) return SLALOM_REAL(fdopen)(descriptor, mode);
  const long access = raw_syscall(SYS_fcntl, descriptor, F_GETFL) & O_ACCMODE;
  const bool both = strchr(mode, '+') != nullptr;
  if (access == (mode[0] == 'r' ? O_WRONLY : O_RDONLY) || (both && access != O_RDWR))
    return errno = EINVAL, nullptr;
  FILE* stream = fopencookie(reinterpret_cast<void*>(intptr_t{descriptor}), mode, kFunctions);
  if (stream == nullptr) return nullptr;
  stream->_fileno = descriptor;  // for fileno()
  if (strchr(mode, 'e') != nullptr) raw_syscall(SYS_fcntl, descriptor, F_SETFD, FD_CLOEXEC);
  return stream;
}
