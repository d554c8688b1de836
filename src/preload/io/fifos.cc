// Named pipes. Opening one end waits until another thread opens the other end. From then on they are channels
// like other pipes.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "preload/io/channels.h"
#include "preload/runtime/raw.h"
#include "preload/sync/kernel_waits.h"

namespace slalom::preload {
namespace {

constexpr uint32_t kMostFifos = 256;

constinit Numbers fifos = {};
struct Fifo {
  uint32_t channel;
  uint32_t opened[2];  // number of openings for writing and for reading
};
constinit Fifo known[kMostFifos + 1] = {};

Fifo* find_fifo(int folder, const char* path) {
  struct stat info = {};
  if (raw_syscall(SYS_newfstatat, folder, reinterpret_cast<long>(path), reinterpret_cast<long>(&info)) != 0 ||
      !S_ISFIFO(info.st_mode))
    return nullptr;
  Fifo& fifo = known[fifos.of(info.st_dev, info.st_ino)];
  if (fifo.channel == 0) fifo.channel = new_channel();
  return &fifo;
}

struct PartnerWait : KernelWait {
  int descriptor;
  bool reads;
  const uint32_t* opened;  // openings of the other end
  uint32_t before;
};

// Returns whether the other end is or was open.
bool has_partner(const KernelWait& asked) {
  const auto& wait = static_cast<const PartnerWait&>(asked);
  if (*wait.opened != wait.before) return true;
  pollfd wanted{wait.descriptor, wait.reads ? short{POLLIN} : short{POLLOUT}, 0};
  raw_syscall(SYS_poll, reinterpret_cast<long>(&wanted), 1, 0);
  if (!wait.reads) return (wanted.revents & POLLERR) == 0;
  if (wanted.revents != 0) return true;
  // A read from an empty pipe gives EAGAIN if there is a writer, otherwise end of file.
  char byte = 0;
  return raw_syscall(SYS_read, wait.descriptor, reinterpret_cast<long>(&byte), 1) != 0;
}

long open_at(int folder, const char* path, long flags) {
  return raw_syscall(SYS_openat, folder, reinterpret_cast<long>(path), flags);
}

// Opens the end for writing although there is no reader. Opens the pipe for both first, and replaces that
// descriptor.
long open_to_write(int folder, const char* path, int flags) {
  const long both = open_at(folder, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (both < 0) return both;
  char name[32];
  snprintf(name, sizeof name, "/proc/self/fd/%ld", both);
  const long end = open_at(AT_FDCWD, name, flags | O_NONBLOCK);
  if (end >= 0) raw_syscall(SYS_dup3, end, both, flags & O_CLOEXEC);
  raw_syscall(SYS_close, end >= 0 ? end : both);
  return end >= 0 ? both : end;
}

}  // namespace

bool is_fifo(int folder, const char* path) {
  return path != nullptr && find_fifo(folder, path) != nullptr;
}

int open_fifo(int folder, const char* path, int flags, uint64_t pc) {
  Runtime& rt = runtime();
  Fifo& fifo = *find_fifo(folder, path);
  const uint64_t object = kChannelObjects + fifo.channel;
  const int access = flags & O_ACCMODE;
  const bool reads = access != O_WRONLY;
  const bool waits = access != O_RDWR && (flags & (O_NONBLOCK | O_PATH)) == 0;
  rt.arrive(OpKind::SemPost, object, pc);
  const PartnerWait before{{has_partner}, -1, reads, &fifo.opened[!reads], fifo.opened[!reads]};
  const long opened = waits && !reads ? open_to_write(folder, path, flags)
                                      : open_at(folder, path, waits ? flags | O_NONBLOCK : flags);
  if (opened >= 0 && (flags & O_PATH) == 0) {
    if (reads) ++fifo.opened[1];
    if (access != O_RDONLY) ++fifo.opened[0];
    set_channel(static_cast<int>(opened), fifo.channel);
  }
  rt.tell(OpKind::SemPost, object, 1);
  rt.retire();
  if (opened < 0) return errno = static_cast<int>(-opened), -1;
  if (!waits) return static_cast<int>(opened);
  PartnerWait wait = before;
  wait.descriptor = static_cast<int>(opened);
  const long result = wait_and_call({.op = OpKind::SemWait, .object = object, .pc = pc}, &wait, [&] {
    return raw_syscall(SYS_fcntl, opened, F_SETFL, flags & ~O_NONBLOCK);
  });
  if (result == 0) return static_cast<int>(opened);
  const int error = errno;
  set_channel(static_cast<int>(opened), 0);
  raw_syscall(SYS_close, opened);
  return errno = error, -1;
}

// As fopen(), which would open the pipe by itself.
FILE* open_fifo_stream(const char* path, const char* mode, uint64_t pc) {
  const bool both = strchr(mode, '+') != nullptr;
  const int access = both ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  const int end = open_fifo(AT_FDCWD, path, access | (strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0), pc);
  return end < 0 ? nullptr : fdopen(end, mode);
}

}  // namespace slalom::preload
