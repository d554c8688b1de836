// Functions that a program built with _FORTIFY_SOURCE calls: the same functions with the size of the buffer,
// which libc checks first.
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "preload/runtime/runtime.h"

extern "C" [[noreturn]] void __chk_fail();

SLALOM_EXPORT ssize_t __read_chk(int descriptor, void* buffer, size_t size, size_t room) {
  if (size > room) __chk_fail();
  return read(descriptor, buffer, size);
}
SLALOM_EXPORT ssize_t __recv_chk(int descriptor, void* buffer, size_t size, size_t room, int flags) {
  if (size > room) __chk_fail();
  return recv(descriptor, buffer, size, flags);
}
SLALOM_EXPORT ssize_t __recvfrom_chk(int descriptor, void* buffer, size_t size, size_t room, int flags,
                                     sockaddr* from, socklen_t* length) {
  if (size > room) __chk_fail();
  return recvfrom(descriptor, buffer, size, flags, from, length);
}
SLALOM_EXPORT int __poll_chk(pollfd* wanted, nfds_t count, int milliseconds, size_t room) {
  if (count > room / sizeof *wanted) __chk_fail();
  return poll(wanted, count, milliseconds);
}
SLALOM_EXPORT int __ppoll_chk(pollfd* wanted, nfds_t count, const timespec* time, const sigset_t* mask,
                              size_t room) {
  if (count > room / sizeof *wanted) __chk_fail();
  return ppoll(wanted, count, time, mask);
}
SLALOM_EXPORT ssize_t __pread_chk(int descriptor, void* buffer, size_t size, off_t at, size_t room) {
  if (size > room) __chk_fail();
  return pread(descriptor, buffer, size, at);
}
SLALOM_EXPORT ssize_t __pread64_chk(int descriptor, void* buffer, size_t size, off64_t at, size_t room) {
  if (size > room) __chk_fail();
  return pread64(descriptor, buffer, size, at);
}
SLALOM_EXPORT ssize_t __readlink_chk(const char* path, char* buffer, size_t size, size_t room) {
  if (size > room) __chk_fail();
  return readlink(path, buffer, size);
}
SLALOM_EXPORT ssize_t __readlinkat_chk(int folder, const char* path, char* buffer, size_t size, size_t room) {
  if (size > room) __chk_fail();
  return readlinkat(folder, path, buffer, size);
}
SLALOM_EXPORT char* __realpath_chk(const char* path, char* buffer, size_t room) {
  if (room < PATH_MAX) __chk_fail();
  return realpath(path, buffer);
}
SLALOM_EXPORT char* __getcwd_chk(char* buffer, size_t size, size_t room) {
  if (size > room) __chk_fail();
  return getcwd(buffer, size);
}
// Open without a mode, for calls that create nothing.
SLALOM_EXPORT int __open_2(const char* path, int flags) {
  if (flags & O_CREAT) __chk_fail();
  return open(path, flags, 0);
}
SLALOM_EXPORT int __open64_2(const char* path, int flags) {
  if (flags & O_CREAT) __chk_fail();
  return open64(path, flags, 0);
}
SLALOM_EXPORT int __openat_2(int folder, const char* path, int flags) {
  if (flags & O_CREAT) __chk_fail();
  return openat(folder, path, flags, 0);
}
SLALOM_EXPORT int __openat64_2(int folder, const char* path, int flags) {
  if (flags & O_CREAT) __chk_fail();
  return openat64(folder, path, flags, 0);
}
