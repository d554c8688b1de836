// The calls whose errors are kept (preload/runtime/errors.h), by their usual names. Functions that differ
// only in the size of their offsets share one name. The channel has them as numbers, capsules as names.
#pragma once

#include <cstdint>

// clang-format off
#define SLALOM_CALLS(X) \
  X(accept) X(access) X(bind) X(chdir) X(chmod) X(chown) X(close) X(connect) X(copy_file_range) X(creat) \
  X(faccessat) X(fallocate) X(fchdir) X(fchmod) X(fchmodat) X(fchown) X(fchownat) X(fclose) X(fcntl) \
  X(fdatasync) X(fflush) X(fgetc) X(fgets) X(flock) X(fopen) X(fprintf) X(fputc) X(fputs) X(fread) X(freopen) \
  X(fscanf) X(fseek) X(fstat) X(fstatat) X(fstatvfs) X(fsync) X(ftruncate) X(fwrite) X(getaddrinfo) X(getcwd) X(getline) \
  X(getpeername) X(getsockopt) X(ioctl) X(lchown) X(link) X(linkat) X(listen) X(lockf) X(lstat) X(memfd_create) \
  X(mkdir) X(mkdirat) X(mkdtemp) X(mkfifo) X(mknod) X(mkostemp) X(mkstemp) X(mmap) X(msync) X(open) X(openat) \
  X(opendir) X(posix_fallocate) X(pread) X(preadv) X(printf) X(puts) X(pwrite) X(pwritev) X(read) X(readlink) \
  X(readlinkat) X(readv) X(realpath) X(recv) X(recvfrom) X(recvmsg) X(remove) X(rename) X(renameat) \
  X(renameat2) X(rmdir) X(send) X(sendfile) X(sendmsg) X(sendto) X(setsockopt) X(shm_open) X(shm_unlink) \
  X(shutdown) X(socket) X(stat) X(statfs) X(statvfs) X(statx) X(symlink) X(symlinkat) X(syscall) X(truncate) \
  X(unlink) X(unlinkat) X(utimensat) X(write) X(writev)
// clang-format on

namespace slalom::preload {

#define SLALOM_CALL(name) name,
enum class CallId : uint8_t { SLALOM_CALLS(SLALOM_CALL) };
#undef SLALOM_CALL

#define SLALOM_CALL(name) #name,
inline constexpr const char* kCallNames[] = {SLALOM_CALLS(SLALOM_CALL)};
#undef SLALOM_CALL
inline constexpr uint32_t kCalls = sizeof kCallNames / sizeof *kCallNames;
static_assert(kCalls <= UINT8_MAX);

}  // namespace slalom::preload
