// Calls that are not controlled, but may fail for reasons outside the program. Their errors are kept and
// repeated (preload/runtime/errors.h). Calls that are interposed for other reasons, too, are in channels.cc,
// moves.cc, random.cc, libc_accesses.cc and system.cc.
//
// Not for calls that fail only because of the program itself (dup, pipe).
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/io/file_identity.h"
#include "preload/runtime/errors.h"
#include "preload/runtime/raw.h"

using namespace slalom::preload;

static constexpr Subject kUnnamedChange{nullptr, 0, true};

#define ALIAS(Result, name, id, parameters, subject, failed, ...)                       \
  SLALOM_EXPORT Result name parameters {                                                \
    return SLALOM_PASS_ON(name, id, subject, static_cast<Result>(failed), __VA_ARGS__); \
  }
#define CALL(name, parameters, subject, ...) ALIAS(int, name, name, parameters, subject, -1, __VA_ARGS__)

// Calls that fill a struct stat, or the identical struct stat64.
#define STAT(name, id, parameters, subject, ...)                                    \
  SLALOM_EXPORT int name parameters {                                               \
    return with_stable_identity(SLALOM_PASS_ON(name, id, subject, -1, __VA_ARGS__), \
                                reinterpret_cast<struct stat*>(to));                \
  }
static_assert(sizeof(struct stat) == sizeof(struct stat64));

// Calls on files by name.
CALL(access, (const char* path, int mode) noexcept, found_at(path), path, mode)
CALL(faccessat, (int at, const char* path, int mode, int flags) noexcept, found_at(path), at, path, mode,
     flags)
STAT(stat, stat, (const char* path, struct stat* to) noexcept, found_at(path), path, to)
STAT(lstat, lstat, (const char* path, struct stat* to) noexcept, found_at(path), path, to)
STAT(fstatat, fstatat, (int at, const char* path, struct stat* to, int flags) noexcept, found_at(path), at,
     path, to, flags)
STAT(stat64, stat, (const char* path, struct stat64* to) noexcept, found_at(path), path, to)
STAT(lstat64, lstat, (const char* path, struct stat64* to) noexcept, found_at(path), path, to)
STAT(fstatat64, fstatat, (int at, const char* path, struct stat64* to, int flags) noexcept, found_at(path),
     at, path, to, flags)
CALL(statx, (int at, const char* path, int flags, unsigned mask, struct statx* to) noexcept, found_at(path),
     at, path, flags, mask, to)
CALL(statfs, (const char* path, struct statfs* to) noexcept, found_at(path), path, to)
ALIAS(int, statfs64, statfs, (const char* path, struct statfs64* to) noexcept, found_at(path), -1, path, to)
CALL(statvfs, (const char* path, struct statvfs* to) noexcept, found_at(path), path, to)
ALIAS(int, statvfs64, statvfs, (const char* path, struct statvfs64* to) noexcept, found_at(path), -1, path,
      to)
ALIAS(ssize_t, readlink, readlink, (const char* path, char* to, size_t size) noexcept, found_at(path), -1,
      path, to, size)
ALIAS(ssize_t, readlinkat, readlinkat, (int at, const char* path, char* to, size_t size) noexcept,
      found_at(path), -1, at, path, to, size)
ALIAS(char*, realpath, realpath, (const char* path, char* to) noexcept, found_at(path), nullptr, path, to)
ALIAS(DIR*, opendir, opendir, (const char* path), found_at(path), nullptr, path)
ALIAS(char*, getcwd, getcwd, (char* to, size_t size) noexcept, {}, nullptr, to, size)

// Calls on files by name that change what later calls find.
CALL(chdir, (const char* path) noexcept, changed_at(path), path)
CALL(chmod, (const char* path, mode_t mode) noexcept, changed_at(path), path, mode)
CALL(fchmodat, (int at, const char* path, mode_t mode, int flags) noexcept, changed_at(path), at, path, mode,
     flags)
CALL(chown, (const char* path, uid_t user, gid_t group) noexcept, changed_at(path), path, user, group)
CALL(lchown, (const char* path, uid_t user, gid_t group) noexcept, changed_at(path), path, user, group)
CALL(fchownat, (int at, const char* path, uid_t user, gid_t group, int flags) noexcept, changed_at(path), at,
     path, user, group, flags)
CALL(creat, (const char* path, mode_t mode), changed_at(path), path, mode)
ALIAS(int, creat64, creat, (const char* path, mode_t mode), changed_at(path), -1, path, mode)
CALL(mkdir, (const char* path, mode_t mode) noexcept, changed_at(path), path, mode)
CALL(mkdirat, (int at, const char* path, mode_t mode) noexcept, changed_at(path), at, path, mode)
CALL(mkfifo, (const char* path, mode_t mode) noexcept, changed_at(path), path, mode)
CALL(mknod, (const char* path, mode_t mode, dev_t device) noexcept, changed_at(path), path, mode, device)
CALL(rmdir, (const char* path) noexcept, changed_at(path), path)
CALL(unlink, (const char* path) noexcept, changed_at(path), path)
CALL(unlinkat, (int at, const char* path, int flags) noexcept, changed_at(path), at, path, flags)
CALL(remove, (const char* path) noexcept, changed_at(path), path)
CALL(rename, (const char* path, const char* to) noexcept, changed_at(path), path, to)
CALL(renameat, (int at, const char* path, int there, const char* to) noexcept, changed_at(path), at, path,
     there, to)
CALL(renameat2, (int at, const char* path, int there, const char* to, unsigned flags) noexcept,
     changed_at(path), at, path, there, to, flags)
CALL(link, (const char* path, const char* to) noexcept, changed_at(path), path, to)
CALL(linkat, (int at, const char* path, int there, const char* to, int flags) noexcept, changed_at(path), at,
     path, there, to, flags)
CALL(symlink, (const char* path, const char* to) noexcept, changed_at(to), path, to)
CALL(symlinkat, (const char* path, int there, const char* to) noexcept, changed_at(to), path, there, to)
CALL(truncate, (const char* path, off_t size) noexcept, changed_at(path), path, size)
ALIAS(int, truncate64, truncate, (const char* path, off64_t size) noexcept, changed_at(path), -1, path, size)
CALL(utimensat, (int at, const char* path, const timespec* times, int flags) noexcept, changed_at(path), at,
     path, times, flags)
CALL(shm_open, (const char* path, int flags, mode_t mode), changed_at(path, (flags & O_CREAT) != 0), path,
     flags, mode)
CALL(shm_unlink, (const char* path), changed_at(path), path)

// Calls on open descriptors.
STAT(fstat, fstat, (int file, struct stat* to) noexcept, {}, file, to)
STAT(fstat64, fstat, (int file, struct stat64* to) noexcept, {}, file, to)
CALL(fstatvfs, (int file, struct statvfs* to) noexcept, {}, file, to)
CALL(fchdir, (int file) noexcept, kUnnamedChange, file)
CALL(fchmod, (int file, mode_t mode) noexcept, {}, file, mode)
CALL(fchown, (int file, uid_t user, gid_t group) noexcept, {}, file, user, group)
CALL(ftruncate, (int file, off_t size) noexcept, {}, file, size)
ALIAS(int, ftruncate64, ftruncate, (int file, off64_t size) noexcept, {}, -1, file, size)
CALL(fallocate, (int file, int mode, off_t from, off_t size), {}, file, mode, from, size)
ALIAS(int, fallocate64, fallocate, (int file, int mode, off64_t from, off64_t size), {}, -1, file, mode, from,
      size)
CALL(fsync, (int file), {}, file)
CALL(fdatasync, (int file), {}, file)
ALIAS(ssize_t, preadv, preadv, (int file, const iovec* parts, int count, off_t at), {}, -1, file, parts,
      count, at)
ALIAS(ssize_t, preadv64, preadv, (int file, const iovec* parts, int count, off64_t at), {}, -1, file, parts,
      count, at)
ALIAS(ssize_t, pwritev, pwritev, (int file, const iovec* parts, int count, off_t at), {}, -1, file, parts,
      count, at)
ALIAS(ssize_t, pwritev64, pwritev, (int file, const iovec* parts, int count, off64_t at), {}, -1, file, parts,
      count, at)
ALIAS(ssize_t, copy_file_range, copy_file_range,
      (int from, off64_t* at, int to, off64_t* there, size_t size, unsigned flags), {}, -1, from, at, to,
      there, size, flags)
CALL(msync, (void* memory, size_t size, int flags), {}, memory, size, flags)
CALL(memfd_create, (const char* name, unsigned flags) noexcept, {}, name, flags)

// Calls on the network.
CALL(bind, (int socket, const sockaddr* to, socklen_t length) noexcept, changed_at(to, length), socket, to,
     length)
CALL(listen, (int socket, int most) noexcept, kUnnamedChange, socket, most)
CALL(getpeername, (int socket, sockaddr* to, socklen_t* length) noexcept, {}, socket, to, length)
CALL(setsockopt, (int socket, int level, int name, const void* value, socklen_t size) noexcept, {}, socket,
     level, name, value, size)

// Calls that return the error itself.
SLALOM_EXPORT int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** to) {
  return SLALOM_PASS_ON_BY(ByResult, getaddrinfo, getaddrinfo, found_at(node), EAI_SYSTEM, node, service,
                           hints, to);
}
SLALOM_EXPORT int posix_fallocate(int file, off_t from, off_t size) {
  return SLALOM_PASS_ON_BY(ByResult, posix_fallocate, posix_fallocate, {}, 0, file, from, size);
}
SLALOM_EXPORT int posix_fallocate64(int file, off64_t from, off64_t size) {
  return SLALOM_PASS_ON_BY(ByResult, posix_fallocate64, posix_fallocate, {}, 0, file, from, size);
}

SLALOM_EXPORT int ioctl(int file, unsigned long request, ...) noexcept {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  return SLALOM_PASS_ON(ioctl, ioctl, {}, -1, file, request, argument);
}

// Anonymous memory does not come from outside, so its errors are not kept. Memory that a forked process maps
// by itself has another address in the program.
#define MMAP(name, Offset)                                                                                 \
  SLALOM_EXPORT void* name(void* at, size_t size, int access, int flags, int file, Offset from) noexcept { \
    if ((flags & MAP_SHARED) != 0 && (access & PROT_WRITE) != 0) runtime().begin_executions_here();        \
    if ((flags & MAP_ANONYMOUS) != 0) return SLALOM_REAL(name)(at, size, access, flags, file, from);       \
    if (runtime().is_forked() && (flags & MAP_SHARED) != 0) runtime().note_unreported_signals();           \
    return SLALOM_PASS_ON(name, mmap, {}, MAP_FAILED, at, size, access, flags, file, from);                \
  }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)
#undef MMAP

// Executions that are forked later would share the objects that these calls create.
SLALOM_EXPORT FILE* tmpfile() {
  runtime().begin_executions_here();
  return SLALOM_REAL(tmpfile)();
}
SLALOM_EXPORT FILE* tmpfile64() {
  runtime().begin_executions_here();
  return SLALOM_REAL(tmpfile64)();
}
SLALOM_EXPORT sem_t* sem_open(const char* name, int flags, ...) noexcept {
  va_list list;
  va_start(list, flags);
  const mode_t mode = va_arg(list, mode_t);
  const unsigned count = va_arg(list, unsigned);
  va_end(list);
  runtime().begin_executions_here();
  return SLALOM_REAL(sem_open)(name, flags, mode, count);
}

// freopen() closes the stream even if it fails, so it is always called.
#define FREOPEN(name)                                                                                       \
  SLALOM_EXPORT FILE* name(const char* path, const char* mode, FILE* stream) {                              \
    if (!runtime().controls()) return SLALOM_REAL(name)(path, mode, stream);                                \
    const FallibleCall what{CallId::freopen, changed_at(path, mode[0] != 'r'), __builtin_return_address(0), \
                            __builtin_dwarf_cfa()};                                                         \
    int error = 0;                                                                                          \
    const bool fails = runtime().repeats_error(what, error);                                                \
    FILE* opened = SLALOM_REAL(name)(fails ? "" : path, mode, stream);                                      \
    if (!fails) error = errno;                                                                              \
    if (!fails) runtime().note_result(what, opened == nullptr ? error : 0);                                 \
    errno = error;                                                                                          \
    return opened;                                                                                          \
  }
FREOPEN(freopen)
FREOPEN(freopen64)
#undef FREOPEN
